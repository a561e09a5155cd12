"""Programs whose answer on the simulator is not the recorded one, each with the reason."""

from __future__ import annotations

#: The simulated GPU cannot or should not answer as a real one.
BY_NATURE: dict[str, str] = {
    "legacy_isinstance": "the private class of a simulated tensor: type(x) is not torch.Tensor",
    "module_parameter_types": "the private class of a simulated parameter",
    "cuda_array_interface": "hands out raw device addresses; refused by name",
    "dlpack_round_trip": "hands out raw device addresses; refused by name",
    "caching_allocator_names": "hands out raw device addresses; refused by name",
    "record_stream_on_cpu_tensor": "the message lists the backends of the build",
    "torch_version_types": "torch.version and cuDNN are those of the installed build",
    "device_properties_unknown": "the class of the properties is Python's, not C's",
    "visible_devices_changed_in_time": "CUDA_VISIBLE_DEVICES does not hide simulated devices",
    "spawned_child_sees_the_gpu": "a spawned child starts its own simulation, or none",
    "function_returns_cpu_gradient": "C++ checks gradients' devices, and sees the host's",
    "accelerator_streams": "one class of streams answers for torch.Stream and torch.cuda.Stream",
    "legacy_constructor_of_cpu_tensor": "C++ checks legacy constructors, and sees the host",
    "legacy_cpu_constructor_of_gpu_tensor": "C++ checks legacy constructors, and sees the host",
    "bilinear_mixed": "a fused operator of CUDA's is another one on the host",
    "sdpa_mask_on_cpu": "a fused operator of CUDA's is another one on the host",
    "cosine_similarity_mixed": "a fused operator of CUDA's is another one on the host",
    "cross_entropy_float_target": "the message names a CUDA kernel",
    "after_an_assert_matmul": "the message is cuBLAS's own",
    "assert_binary_cross_entropy": "whether the host notices at once is a matter of chance",
    "assert_multinomial_negative": "whether the host notices at once is a matter of chance",
    "surfaces_at_backward": "whether the host notices at once is a matter of chance",
    "version_counter_error": "C++ prints the type of the tensor it believes in",
    "stream_context_of_class": "the message is of a C++ check",
}

#: Programs that wait for the next recording on a real GPU: nothing to compare them with yet.
UNRECORDED = {"generator_of_in_place_draws"}

#: Recorded with torch 2.11; later versions say it otherwise on real devices too.
BY_VERSION: dict[str, str] = {
    "unused_input": "torch 2.13 names the index of the unused tensor",
    "bool_minus_bool": "torch 2.14 raises NotImplementedError",
    "is_shared_and_meta": "torch 2.13 has no Tensor.names",
}

#: What a real GPU does and the simulator does not yet do.
NOT_YET: dict[str, str] = {
    "cublas_workspace_is_counted_once": "library workspaces are not in the memory model yet",
    "lazy_module_on_gpu": "lazy modules have to be called once before they move",
    "loader_shuffle_default_device_and_generator": "mixes a default device and a generator",
    "membership_across_devices": "the order of operands in the message",
    "func_grad_and_vmap": "forward-over-reverse of torch.func makes tensors in C++",
    "normal_moments": "negative deviations are noticed on the host on CUDA",
    "generic_stream_and_event": "an unrecorded torch.Event has no device",
    "current_stream_9": "the class of the error for a device that does not exist",
    "after_an_assert_seed": "seeding after a failure does not fail",
}
