"""Mistakes with torch.cuda's own functions, and with tensors handed to Python and NumPy."""

from __future__ import annotations

from ._program import in_group

# fmt: off
# A program's name and the opening of its text share a line.

program = in_group("errors_api")

ORDINALS = [
    program("zeros_on_device_9", 'torch.zeros(1, device="cuda:9")'),
    program("tensor_to_device_9", 'torch.zeros(1).to("cuda:9")'),
    program("tensor_cuda_9", "torch.zeros(1).cuda(9)"),
    program("module_to_device_9", 'torch.nn.Linear(2, 2).to("cuda:9")'),
    program("device_context_9", """
        with torch.cuda.device(9):
            print("inside")
    """),
    program("device_context_9_then_fine", """
        try:
            with torch.cuda.device(9):
                pass
        except Exception as error:
            print(type(error).__name__)
        print(torch.cuda.current_device(), torch.ones(2, device="cuda"))
    """),
    program("device_context_none", """
        with torch.cuda.device(None):
            print(torch.cuda.current_device())
    """),
    program("device_context_minus_1", """
        with torch.cuda.device(-1):
            print(torch.cuda.current_device())
    """),
    program("device_context_string", """
        with torch.cuda.device("cuda:0"):
            print(torch.cuda.current_device())
        with torch.cuda.device("cuda"):
            print(torch.cuda.current_device())
    """),
    program("device_context_cpu", """
        with torch.cuda.device("cpu"):
            print("inside")
    """),
    program("device_of_cpu_tensor", """
        with torch.cuda.device_of(torch.ones(1)):
            print(torch.cuda.current_device())
        with torch.cuda.device_of(torch.ones(1, device="cuda")):
            print(torch.cuda.current_device())
    """),
    program("set_device_minus_1", """
        torch.cuda.set_device(-1)
        print(torch.cuda.current_device())
    """),
    program("set_device_cpu", 'torch.cuda.set_device("cpu")'),
    program("set_device_not_a_device", 'torch.cuda.set_device("gpu0")'),
    program("set_device_forms", """
        for device in (0, "cuda", "cuda:0", torch.device("cuda"), torch.device("cuda", 0)):
            torch.cuda.set_device(device)
            print(torch.cuda.current_device())
    """),
    program("set_device_float", "torch.cuda.set_device(0.0)"),
    program("properties_minus_1", "torch.cuda.get_device_properties(-1)"),
    program("properties_cpu", 'torch.cuda.get_device_properties("cpu")'),
    program("properties_string_9", 'torch.cuda.get_device_properties("cuda:9")'),
    program("capability_cpu", 'torch.cuda.get_device_capability("cpu")'),
    program("capability_9", "torch.cuda.get_device_capability(9)"),
    program("name_cpu", 'torch.cuda.get_device_name("cpu")'),
    program("synchronize_cpu", 'torch.cuda.synchronize("cpu")'),
    program("synchronize_9", "torch.cuda.synchronize(9)"),
    program("stream_on_device_9", "torch.cuda.Stream(device=9)"),
    program("stream_on_cpu", 'torch.cuda.Stream(device="cpu")'),
    program("current_stream_9", """
        try:
            torch.cuda.current_stream(9)
        except Exception as error:
            print(type(error).__name__)
    """),
    program("peer_access_9", "torch.cuda.can_device_access_peer(0, 9)"),
    program("memory_allocated_9_before_init", "print(torch.cuda.memory_allocated(9))"),
    program("memory_allocated_9", """
        torch.cuda.init()
        torch.cuda.memory_allocated(9)
    """),
    program("memory_allocated_cpu", """
        torch.cuda.init()
        torch.cuda.memory_allocated("cpu")
    """),
    program("reset_peak_9", """
        torch.cuda.init()
        torch.cuda.reset_peak_memory_stats(9)
    """),
    program("mem_get_info_9", "torch.cuda.mem_get_info(9)"),
    program("mem_get_info_cpu", 'torch.cuda.mem_get_info("cpu")'),
    program("memory_summary_9", """
        torch.cuda.init()
        torch.cuda.memory_summary(9)
    """),
    program("memory_fraction_negative", "torch.cuda.set_per_process_memory_fraction(-0.5)"),
    program("memory_fraction_integer", "torch.cuda.set_per_process_memory_fraction(1)"),
    program("memory_fraction_9", "torch.cuda.set_per_process_memory_fraction(0.5, 9)"),
    program("manual_seed_string", 'torch.cuda.manual_seed("zero")'),
    program("get_rng_state_9", "torch.cuda.get_rng_state(9)"),
]

DEVICE_NAMES = [
    program("device_string_upper_case", 'torch.device("CUDA")'),
    program("device_string_underscore", 'torch.device("cuda_0")'),
    program("device_string_no_colon", 'torch.device("cuda0")'),
    program("device_string_no_index", 'torch.device("cuda:")'),
    program("device_string_negative", 'torch.device("cuda:-1")'),
    program("device_string_two_colons", 'torch.device("cuda:0:1")'),
    program("device_string_leading_zero", 'torch.device("cuda:01")'),
    program("device_string_with_space", 'torch.device("cuda: 0")'),
    program("device_string_and_index", 'torch.device("cuda:0", 0)'),
    program("device_string_empty", 'torch.device("")'),
    program("device_index_9_is_only_a_name", 'print(torch.device("cuda:9"))'),
    program("device_from_integer", "print(torch.device(0), torch.zeros(1, device=0).device)"),
    program("device_from_float", "torch.device(0.5)"),
    program("device_none", "torch.device(None)"),
    program("device_attributes", """
        device = torch.device("cuda")
        print(device.type, device.index, torch.device("cuda:1").index, torch.device("cpu").index)
    """),
    program("device_compared_with_string", """
        x = torch.ones(1, device="cuda")
        print(x.device == "cuda", x.device == "cuda:0", x.device.type == "cuda")
        print(x.device == torch.device("cuda:0"), str(x.device) == "cuda:0")
    """),
    program("device_is_hashable", """
        devices = {torch.device("cuda:0"), torch.device("cuda", 0), torch.device("cuda")}
        print(len(devices), torch.ones(1, device="cuda").device in devices)
    """),
    program("device_is_read_only", """
        x = torch.ones(1)
        x.device = "cuda"
    """),
    program("is_cuda_is_read_only", """
        x = torch.ones(1)
        x.is_cuda = True
    """),
    program("device_as_context", """
        with torch.device("cuda"):
            x = torch.ones(2)
            layer = torch.nn.Linear(2, 2)
        print(x.device, layer.weight.device, torch.ones(1).device)
    """),
    program("device_contexts_nest", """
        with torch.device("cuda"):
            with torch.device("cpu"):
                print(torch.ones(1).device)
            print(torch.ones(1).device, torch.ones(1, device="cpu").device)
    """),
    program("to_gpu_string", 'torch.ones(1).to("gpu")'),
    program("to_misspelt", 'torch.ones(1).to("cuda0")'),
    program("to_nothing", "torch.ones(1).to()"),
    program("cuda_with_string", 'print(torch.ones(1).cuda("cuda:0").device)'),
    program("cuda_with_cpu", 'torch.ones(1).cuda("cpu")'),
    program("cuda_with_cpu_device", 'torch.ones(1).cuda(torch.device("cpu"))'),
    program("cuda_keyword", "print(torch.ones(1).cuda(device=0, non_blocking=True).device)"),
    program("module_cuda_with_string", 'print(torch.nn.Linear(1, 1).cuda("cuda:0").weight.device)'),
    program("module_cuda_with_cpu", 'torch.nn.Linear(1, 1).cuda("cpu")'),
    program("module_to_integer_dtype", 'torch.nn.Linear(1, 1).to("cuda", torch.int64)'),
    program("module_to_nonsense", 'torch.nn.Linear(1, 1).to("fast")'),
    program("integer_cuda", "(5).cuda()"),
    program("string_to", '"batch".to("cuda")'),
    program("dict_to", '{"x": torch.ones(1)}.to("cuda")'),
    program("tuple_cuda", "(torch.ones(1), torch.ones(1)).cuda()"),
    program("numpy_array_cuda", """
        import numpy as np
        np.ones(3).cuda()
    """),
    program("optimizer_to", """
        torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1).to("cuda")
    """),
    program("forgot_to_assign", """
        x = torch.ones(2)
        x.to("cuda")
        print(x.device)
    """),
]

STREAMS_AND_EVENTS = [
    program("elapsed_time_one_event_untimed", """
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event()
        a.record()
        b.record()
        torch.cuda.synchronize()
        a.elapsed_time(b)
    """),
    program("elapsed_time_second_not_recorded", """
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        torch.cuda.synchronize()
        a.elapsed_time(b)
    """),
    program("elapsed_time_not_finished", """
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.ones(1, device="cuda")
        a.record()
        torch.cuda._sleep(500_000_000)
        b.record()
        a.elapsed_time(b)
    """),
    program("elapsed_time_number", """
        a = torch.cuda.Event(enable_timing=True)
        a.record()
        a.elapsed_time(0)
    """),
    program("elapsed_time_is_milliseconds", """
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        torch.ones(10, device="cuda").sum()
        b.record()
        b.synchronize()
        print(type(a.elapsed_time(b)).__name__, a.elapsed_time(b) > 0, b.elapsed_time(a) < 0)
        print(a.elapsed_time(a))
    """),
    program("event_positional_timing", """
        a, b = torch.cuda.Event(True), torch.cuda.Event(True)
        a.record()
        b.record()
        b.synchronize()
        print(a.elapsed_time(b) >= 0)
    """),
    program("event_unknown_option", "torch.cuda.Event(timing=True)"),
    program("event_record_on_integer", "torch.cuda.Event().record(0)"),
    program("event_methods_before_record", """
        event = torch.cuda.Event()
        event.synchronize()
        event.wait()
        print(event.query())
    """),
    program("stream_context_none", """
        with torch.cuda.stream(None):
            print(torch.cuda.current_stream() == torch.cuda.default_stream())
    """),
    program("stream_context_integer", """
        with torch.cuda.stream(1):
            print("inside")
    """),
    program("stream_context_of_class", """
        with torch.cuda.stream(torch.cuda.Stream):
            print("inside")
    """),
    program("wait_stream_none", "torch.cuda.current_stream().wait_stream(None)"),
    program("wait_event_stream", """
        torch.cuda.current_stream().wait_event(torch.cuda.Stream())
    """),
    program("stream_unknown_method", "torch.cuda.Stream().wait(torch.cuda.Event())"),
    program("record_stream_on_cpu_tensor", "torch.ones(2).record_stream(torch.cuda.Stream())"),
    program("record_stream_none", 'torch.ones(2, device="cuda").record_stream(None)'),
]

GENERATORS = [
    program("cpu_generator_for_gpu_draw", """
        torch.randn(3, device="cuda", generator=torch.Generator())
    """),
    program("gpu_generator_for_cpu_draw", 'torch.randn(3, generator=torch.Generator("cuda"))'),
    program("cpu_generator_in_place", """
        torch.empty(3, device="cuda").normal_(generator=torch.Generator())
    """),
    program("gpu_generator_in_place_on_cpu", """
        torch.empty(3).uniform_(generator=torch.Generator("cuda"))
    """),
    program("gpu_generator_randperm_on_cpu", """
        torch.randperm(4, generator=torch.Generator("cuda"))
    """),
    program("cpu_generator_multinomial", """
        torch.multinomial(torch.ones(3, device="cuda"), 2, generator=torch.Generator())
    """),
    program("generator_on_device_9", 'torch.Generator("cuda:9").manual_seed(0)'),
    program("generator_on_nonsense", 'torch.Generator("gpu")'),
    program("generator_set_cpu_state", """
        torch.Generator("cuda").set_state(torch.Generator().get_state())
    """),
    program("generator_set_state_on_gpu", """
        generator = torch.Generator("cuda")
        generator.set_state(generator.get_state().cuda())
    """),
    program("random_split_gpu_generator", """
        torch.utils.data.random_split(range(4), [2, 2], generator=torch.Generator("cuda"))
    """),
    program("loader_shuffle_gpu_generator", """
        loader = torch.utils.data.DataLoader(
            list(range(4)), shuffle=True, generator=torch.Generator("cuda")
        )
        print(len(list(loader)))
    """),
    program("loader_shuffle_with_default_device", """
        torch.set_default_device("cuda")
        loader = torch.utils.data.DataLoader(list(range(4)), shuffle=True)
        print(len(list(loader)))
    """),
    program("loader_shuffle_default_device_and_generator", """
        torch.set_default_device("cuda")
        loader = torch.utils.data.DataLoader(
            list(range(4)), shuffle=True, generator=torch.Generator("cuda")
        )
        print(len(list(loader)), next(iter(loader)).device)
    """),
    program("set_rng_state_of_cpu", "torch.cuda.set_rng_state(torch.get_rng_state())"),
]

SAVING_AND_PINNING = [
    program("load_map_location_9", """
        import io
        buffer = io.BytesIO()
        torch.save(torch.ones(2), buffer)
        buffer.seek(0)
        print(torch.load(buffer, map_location="cuda").device)
        buffer.seek(0)
        try:
            torch.load(buffer, map_location="cuda:9")
        except RuntimeError as error:
            print(str(error).split(" but ")[0])
    """),
    program("load_map_location_nonsense", """
        import io
        buffer = io.BytesIO()
        torch.save(torch.ones(2, device="cuda"), buffer)
        buffer.seek(0)
        torch.load(buffer, map_location="gpu")
    """),
    program("load_whole_module_weights_only", """
        import io
        buffer = io.BytesIO()
        torch.save(torch.nn.Linear(2, 2).cuda(), buffer)
        buffer.seek(0)
        try:
            torch.load(buffer)
        except Exception as error:
            print(type(error).__name__, str(error).split(".")[0])
        buffer.seek(0)
        print(torch.load(buffer, weights_only=False).weight.device)
    """),
    program("load_state_dict_missing_key", """
        net = torch.nn.Linear(2, 2).cuda()
        net.load_state_dict({"weight": torch.ones(2, 2)})
    """),
    program("load_state_dict_module_prefix", """
        state = {f"module.{k}": v for k, v in torch.nn.Linear(2, 2).cuda().state_dict().items()}
        torch.nn.Linear(2, 2).cuda().load_state_dict(state)
    """),
    program("pin_module_parameter", "torch.nn.Linear(2, 2).cuda().weight.pin_memory()"),
    program("pin_half_cuda_tensor", """
        torch.ones(2, dtype=torch.half, device="cuda").pin_memory()
    """),
    program("loader_pins_cuda_tensors", """
        data = torch.utils.data.TensorDataset(torch.zeros(4, 2, device="cuda"))
        next(iter(torch.utils.data.DataLoader(data, pin_memory=True)))
    """),
    program("factory_pin_on_cuda", 'torch.zeros(2, device="cuda", pin_memory=True)'),
    program("is_pinned_of_cuda_tensor", 'print(torch.ones(2, device="cuda").is_pinned())'),
]

TO_PYTHON_AND_NUMPY = [
    program("np_asarray", """
        import numpy as np
        np.asarray(torch.ones(3, device="cuda"))
    """),
    program("np_array_of_list", """
        import numpy as np
        np.array([torch.ones(1, device="cuda"), torch.ones(1, device="cuda")])
    """),
    program("np_mean", """
        import numpy as np
        np.mean([torch.tensor(1.0, device="cuda"), torch.tensor(2.0, device="cuda")])
    """),
    program("np_sqrt", """
        import numpy as np
        np.sqrt(torch.ones(3, device="cuda"))
    """),
    program("dunder_array", 'torch.ones(3, device="cuda").__array__()'),
    program("numpy_force", 'print(torch.ones(3, device="cuda").numpy(force=True))'),
    program("numpy_of_gpu_gradient_tensor", """
        torch.ones(3, device="cuda", requires_grad=True).numpy()
    """),
    program("numpy_of_detached", """
        x = torch.ones(3, device="cuda", requires_grad=True)
        print(x.detach().cpu().numpy(), x.detach().cpu().numpy().dtype)
    """),
    program("numpy_of_bfloat16", 'torch.ones(3, device="cuda").bfloat16().cpu().numpy()'),
    program("list_of_tensor", """
        print(list(torch.arange(3, device="cuda")))
    """),
    program("tolist_and_item", """
        x = torch.arange(4, device="cuda").view(2, 2)
        print(x.tolist(), x[1, 1].item(), x.float().mean().item(), type(x[0, 0].item()).__name__)
    """),
    program("item_of_many", 'torch.ones(3, device="cuda").item()'),
    program("float_of_many", 'float(torch.ones(3, device="cuda"))'),
    program("int_float_bool_complex", """
        x = torch.tensor(2.75, device="cuda")
        print(int(x), float(x), bool(x), complex(x), bool(torch.tensor([0], device="cuda")))
    """),
    program("if_tensor", """
        if torch.tensor(1.0, device="cuda") > 0:
            print("positive")
    """),
    program("if_many", """
        if torch.ones(3, device="cuda") > 0:
            print("positive")
    """),
    program("if_empty", 'bool(torch.ones(0, device="cuda"))'),
    program("length_and_iteration", """
        x = torch.arange(6, device="cuda").view(3, 2)
        print(len(x), [row.tolist() for row in x])
        a, b, c = x
        print(c)
    """),
    program("length_of_number", 'len(torch.tensor(1.0, device="cuda"))'),
    program("iterate_over_number", """
        for item in torch.tensor(1.0, device="cuda"):
            print(item)
    """),
    program("list_index_with_tensor", """
        names = ["cat", "dog", "fish"]
        print(names[torch.tensor([1.0, 9.0, 3.0], device="cuda").argmax()])
        print(names[torch.tensor([2], device="cuda")])
    """),
    program("list_index_with_float_tensor", '["a", "b"][torch.tensor(1.0, device="cuda")]'),
    program("dict_key_from_tensor", """
        names = {0: "cat", 1: "dog"}
        label = torch.tensor(1, device="cuda")
        print(names.get(label), names.get(label.item()))
    """),
    program("range_of_tensor", 'print(list(range(torch.tensor(3, device="cuda"))))'),
    program("format_number", """
        x = torch.tensor(3.14159, device="cuda")
        print(f"{x:.2f} {x.item():.3f} {torch.tensor(7, device='cuda'):d}")
    """),
    program("format_many", """
        x = torch.ones(2, device="cuda")
        print(f"{x}")
        print(f"{x:.2f}")
    """),
    program("math_of_tensor", """
        import math
        print(math.sqrt(torch.tensor(9.0, device="cuda")), round(float(torch.tensor(2.6).cuda())))
    """),
    program("builtin_sum_max_sorted", """
        x = torch.tensor([3.0, 1.0, 2.0], device="cuda")
        print(sum(x), max(x), min(x), sorted(x))
    """),
    program("membership", """
        x = torch.arange(3, device="cuda")
        print(2 in x, 5 in x, torch.tensor(1, device="cuda") in x)
    """),
    program("membership_across_devices", """
        print(torch.tensor([1, 2]) in torch.arange(3, device="cuda"))
    """),
    program("print_tensors", """
        print(torch.arange(3, device="cuda"))
        print(torch.ones(2, 2, dtype=torch.half, device="cuda"))
        print(torch.ones(1, device="cuda", requires_grad=True) * 2)
        print(torch.tensor([], device="cuda"), torch.tensor(True, device="cuda"))
    """),
    program("print_parameter_and_module", """
        print(torch.nn.Parameter(torch.ones(2, device="cuda")))
        print(torch.nn.Linear(2, 3).cuda())
    """),
    program("print_large_tensor", 'print(torch.zeros(2000, device="cuda"))'),
    program("json_of_tensor", """
        import json
        json.dumps({"loss": torch.tensor(1.0, device="cuda")})
    """),
    program("assert_on_tensor", """
        assert torch.tensor(False, device="cuda"), "not close"
    """),
    program("cuda_array_interface", """
        shape = torch.ones(2, 3, device="cuda").__cuda_array_interface__["shape"]
        print(shape, hasattr(torch.ones(1), "__cuda_array_interface__"))
    """),
]

LEGACY_AND_DEFAULTS = [
    program("legacy_constructors", """
        print(torch.cuda.FloatTensor([1, 2]), torch.cuda.LongTensor(2, 3).shape)
        print(torch.cuda.HalfTensor(2).dtype, torch.cuda.BoolTensor(1).device)
    """),
    program("legacy_isinstance", """
        x = torch.ones(1, device="cuda")
        print(isinstance(x, torch.cuda.FloatTensor), isinstance(x, torch.FloatTensor))
        print(isinstance(x, torch.Tensor), type(x).__name__, type(x) is torch.Tensor)
        print(torch.is_tensor(x), isinstance(x.half(), torch.cuda.HalfTensor))
    """),
    program("legacy_constructor_of_cpu_tensor", "torch.cuda.FloatTensor(torch.ones(2))"),
    program("legacy_cpu_constructor_of_gpu_tensor", """
        torch.FloatTensor(torch.ones(2, device="cuda"))
    """),
    program("set_default_device", """
        torch.set_default_device("cuda")
        print(torch.ones(1).device, torch.tensor([1]).device, torch.nn.Linear(1, 1).weight.device)
        print(torch.get_default_device(), torch.ones(1, device="cpu").device)
        print(torch.as_tensor([1]).device, torch.arange(2).device, torch.ones(1).cpu().device)
        torch.set_default_device(None)
        print(torch.ones(1).device)
    """),
    program("set_default_device_9", """
        torch.set_default_device("cuda:9")
        torch.ones(1)
    """),
    program("set_default_tensor_type", """
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
        print(torch.ones(1).device, torch.ones(1).dtype, torch.arange(2).device)
    """),
    program("set_default_tensor_type_misspelt", """
        torch.set_default_tensor_type("torch.gpu.FloatTensor")
    """),
    program("default_dtype_on_gpu", """
        torch.set_default_dtype(torch.float64)
        print(torch.ones(1, device="cuda").dtype, torch.tensor([1.5], device="cuda").dtype)
    """),
    program("share_memory_of_cuda_tensor", """
        x = torch.ones(1, device="cuda")
        print(x.share_memory_() is x, x.is_shared(), torch.ones(1).is_shared())
    """),
    program("requires_grad_of_integers", """
        torch.ones(2, dtype=torch.long, device="cuda", requires_grad=True)
    """),
    program("matmul_shapes", 'torch.ones(2, 3, device="cuda") @ torch.ones(2, 3, device="cuda")'),
    program("matmul_dtypes", """
        torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, dtype=torch.half, device="cuda")
    """),
    program("matmul_integers", """
        a = torch.ones(2, 2, dtype=torch.long, device="cuda")
        a @ a
    """),
    program("linear_shapes", "torch.nn.Linear(3, 2).cuda()(torch.ones(4, 5).cuda())"),
    program("linear_double_input", """
        torch.nn.Linear(3, 2).cuda()(torch.ones(4, 3, dtype=torch.float64, device="cuda"))
    """),
    program("linear_integer_input", """
        torch.nn.Linear(3, 2).cuda()(torch.ones(4, 3, dtype=torch.long, device="cuda"))
    """),
    program("conv_half_input", """
        torch.nn.Conv2d(1, 1, 3).cuda()(torch.ones(1, 1, 4, 4).cuda().half())
    """),
    program("conv_channels", "torch.nn.Conv2d(3, 1, 3).cuda()(torch.ones(1, 1, 4, 4).cuda())"),
    program("add_shapes", 'torch.ones(3, device="cuda") + torch.ones(4, device="cuda")'),
    program("cat_shapes", """
        torch.cat([torch.ones(2, 3, device="cuda"), torch.ones(2, 4, device="cuda")])
    """),
    program("view_shapes", 'torch.ones(6, device="cuda").view(4)'),
    program("view_of_transposed", 'torch.ones(2, 3, device="cuda").t().view(6)'),
    program("index_too_large", 'torch.ones(3, device="cuda")[5]'),
    program("dimension_too_large", 'torch.ones(3, device="cuda").sum(dim=2)'),
    program("cross_entropy_float_target", """
        logits = torch.ones(3, 4, device="cuda")
        torch.nn.functional.cross_entropy(logits, torch.ones(3, device="cuda"))
    """),
    program("cross_entropy_batch_size", """
        logits = torch.ones(3, 4, device="cuda")
        torch.nn.functional.cross_entropy(logits, torch.zeros(2, dtype=torch.long, device="cuda"))
    """),
    program("mse_loss_shapes_warn", """
        loss = torch.nn.functional.mse_loss(torch.ones(3, 1).cuda(), torch.zeros(3).cuda())
        print(loss.item())
    """),
    program("embedding_float_index", "torch.nn.Embedding(3, 2).cuda()(torch.ones(2).cuda())"),
    program("batch_norm_one_sample", "torch.nn.BatchNorm1d(4).cuda()(torch.ones(1, 4).cuda())"),
    program("singular_inverse", 'torch.linalg.inv(torch.zeros(2, 2, device="cuda"))'),
    program("not_positive_definite", 'torch.linalg.cholesky(-torch.eye(2, device="cuda"))'),
    program("bincount_negative", 'torch.bincount(torch.tensor([-1], device="cuda"))'),
    program("nonsense_attribute", 'torch.ones(2, device="cuda").gpu()'),
    program("torch_cuda_nonsense", "torch.cuda.memory_used_by_me()"),
]

PROGRAMS = [
    *ORDINALS,
    *DEVICE_NAMES,
    *STREAMS_AND_EVENTS,
    *GENERATORS,
    *SAVING_AND_PINNING,
    *TO_PYTHON_AND_NUMPY,
    *LEGACY_AND_DEFAULTS,
]
