"""Moving tensors, modules, optimisers and checkpoints between devices."""

from __future__ import annotations

from ._program import in_group

# fmt: off
# A program's name and the opening of its text share a line.

program = in_group("movement")

TENSORS = [
    program("round_trip", """
        x = torch.arange(6.0).view(2, 3)
        y = x.to("cuda")
        print(y.device, y.is_cuda, y.is_cpu, x.is_cuda, torch.equal(y.cpu(), x))
        print(y.shape, y.dtype, y.stride(), y.is_contiguous(), y.layout)
    """),
    program("cpu_of_cpu_is_same", """
        x = torch.ones(2)
        print(x.cpu() is x, x.to("cpu") is x, x.cuda().cpu() is x, x.to("cpu", copy=True) is x)
    """),
    program("same_object_rules", """
        x = torch.ones(2, device="cuda")
        print(x.to(torch.float32) is x, x.to("cuda", torch.float32) is x, x.float() is x)
        print(x.to(torch.float64) is x, x.to(x) is x, x.to(device="cuda", copy=True) is x)
        print(x.contiguous() is x, x.detach() is x, x.cuda(0) is x, x.type(torch.float32) is x)
    """),
    program("dtype_and_device_at_once", """
        x = torch.arange(3)
        print(x.to("cuda", torch.float16), x.to(device="cuda", dtype=torch.float64))
        print(x.to(torch.bfloat16).cuda().dtype, x.cuda().half().cpu())
    """),
    program("to_other_tensor", """
        like = torch.zeros(1, dtype=torch.float64, device="cuda")
        x = torch.arange(3).to(like)
        print(x.dtype, x.device, like.cpu().to(x).device)
    """),
    program("non_blocking_upload", """
        x = torch.arange(1000.0).pin_memory()
        y = x.to("cuda", non_blocking=True)
        print(y.sum().item(), y.device)
    """),
    program("non_blocking_download_then_wait", """
        x = torch.arange(1000.0, device="cuda") * 2
        y = x.to("cpu", non_blocking=True)
        torch.cuda.synchronize()
        print(y.sum().item(), y.is_pinned(), y.device)
    """),
    program("copy_into_pinned_then_wait", """
        host = torch.zeros(100, pin_memory=True)
        host.copy_(torch.ones(100, device="cuda"), non_blocking=True)
        torch.cuda.current_stream().synchronize()
        print(host.sum().item())
    """),
    program("copy_converts_and_broadcasts", """
        x = torch.zeros(2, 3, device="cuda")
        x.copy_(torch.tensor([1, 2, 3]))
        y = torch.zeros(2, 3, dtype=torch.long)
        y.copy_(x + 0.75)
        print(x.tolist(), y.tolist())
    """),
    program("copy_wrong_shape", 'torch.zeros(3, device="cuda").copy_(torch.ones(4))'),
    program("copy_returns_target", """
        x = torch.zeros(2, device="cuda")
        print(x.copy_(torch.ones(2)) is x, x.fill_(3) is x, x.zero_() is x)
    """),
    program("all_dtypes_move", """
        for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
                      torch.float16, torch.bfloat16, torch.float32, torch.float64,
                      torch.complex64, torch.complex128):
            x = torch.tensor([0, 1, 1]).to(dtype)
            y = x.cuda()
            print(dtype, y.dtype == dtype, torch.equal(y.cpu(), x), y.element_size())
    """),
    program("complex_and_conjugate", """
        x = torch.tensor([1 + 2j, 3 - 1j], device="cuda")
        c = x.conj()
        print(c.is_conj(), c.resolve_conj().is_conj(), c, c.cpu())
        print(x.real, x.imag, torch.view_as_real(x).shape, (x * c).real.tolist())
    """),
    program("empty_tensors", """
        x = torch.ones(0, 3).cuda()
        print(x.shape, x.device, x.sum().item(), x.numel(), torch.cat([x, x]).shape)
        print(torch.ones(2, 0, device="cuda").cpu().shape, torch.tensor([], device="cuda").dtype)
    """),
    program("empty_matmul", """
        a, b = torch.ones(2, 0, device="cuda"), torch.ones(0, 3, device="cuda")
        print(a @ b, (b @ torch.ones(3, 2, device="cuda")).shape)
    """),
    program("transposed_keeps_strides", """
        x = torch.arange(6).view(2, 3).t()
        y = x.cuda()
        print(y.stride(), y.is_contiguous(), y.contiguous().stride(), torch.equal(y.cpu(), x))
        print(y.cpu().stride())
    """),
    program("strided_slice_moves", """
        x = torch.arange(10)[::2]
        y = x.cuda()
        print(y.stride(), y.tolist(), y.untyped_storage().nbytes(), y.is_contiguous())
    """),
    program("strided_gpu_slice_to_cpu", """
        x = torch.arange(12, device="cuda").view(3, 4)[:, 1::2]
        y = x.cpu()
        print(x.stride(), y.stride(), y.tolist(), x.storage_offset(), y.storage_offset())
    """),
    program("expanded_moves", """
        x = torch.arange(3.0).expand(4, 3)
        y = x.cuda()
        print(x.stride(), y.stride(), y.shape, y.sum().item())
    """),
    program("channels_last_moves", """
        x = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
        y = x.cuda()
        z = torch.zeros(2, 3, 4, 5).to("cuda", memory_format=torch.channels_last)
        print(y.stride(), y.is_contiguous(memory_format=torch.channels_last), z.stride())
        print(y.cpu().stride(), y.contiguous().stride(), y.clone().stride())
    """),
    program("storage_facts", """
        x = torch.zeros(4, 5, device="cuda")
        v = x[1:]
        same = v.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        print(same, v.storage_offset(), v.data_ptr() - x.data_ptr(), v.untyped_storage().nbytes())
        print(x.element_size(), x.nbytes, x.half().nbytes, x.untyped_storage().device)
    """),
    program("views_share_on_gpu", """
        x = torch.zeros(2, 3, device="cuda")
        x.view(-1)[0] = 1
        x.t()[2, 1] = 2
        x[0].add_(10)
        print(x.tolist(), *(t.data_ptr() == x.data_ptr() for t in (x.view(6), x.t(), x.clone())))
    """),
    program("views_do_not_share_across", """
        x = torch.zeros(3)
        y = x.cuda()
        y.add_(1)
        x.add_(5)
        print(x.tolist(), y.tolist())
    """),
    program("view_is_base_tracked", """
        x = torch.zeros(4, device="cuda")
        v = x[1:3]
        print(v._is_view(), v._base is x, x._base)
    """),
    program("chunk_split_unbind_are_views", """
        x = torch.arange(6, device="cuda")
        for part in x.chunk(3):
            part.mul_(10)
        a, b = x.split([2, 4])
        b.zero_()
        print(x.tolist(), [r.item() for r in x.unbind()])
    """),
    program("data_attribute", """
        x = torch.ones(2, device="cuda", requires_grad=True)
        x.data.mul_(3)
        print(x.data.requires_grad, x, x.data.data_ptr() == x.data_ptr())
    """),
    program("set_data_on_gpu", """
        x = torch.nn.Parameter(torch.ones(2, device="cuda"))
        x.data = torch.arange(3.0, device="cuda")
        print(x.shape, x.requires_grad, x.is_leaf)
    """),
    program("get_device", """
        x = torch.ones(1, device="cuda")
        print(x.get_device(), torch.ones(1).get_device(), x.device.index, x.device.type)
    """),
    program("type_strings", """
        x = torch.ones(1, device="cuda")
        print(x.type(), x.half().type(), x.long().type(), x.cpu().type(), (x > 0).type())
        print(x.type("torch.FloatTensor").device, torch.ones(1).type("torch.cuda.HalfTensor"))
        print(torch.ones(1).type(torch.cuda.DoubleTensor), x.type(torch.int32))
    """),
    program("type_string_misspelt", 'torch.ones(1).type("torch.gpu.FloatTensor")'),
    program("factories_on_gpu", """
        kw = {"device": "cuda"}
        print(torch.zeros(2, **kw), torch.full((2,), 7, **kw), torch.eye(2, **kw).tolist())
        print(torch.arange(1, 7, 2, **kw), torch.linspace(0, 1, 5, **kw).tolist())
        print(torch.empty(2, 3, **kw).shape, torch.logspace(0, 2, 3, **kw).tolist())
        print(torch.tril_indices(2, 2, **kw).tolist())
        print(torch.empty_strided((2, 2), (1, 2), **kw).stride())
        print(torch.tensor([[1, 2]], **kw).dtype, torch.scalar_tensor(3, **kw))
    """),
    program("like_factories", """
        x = torch.ones(2, dtype=torch.half, device="cuda")
        print(torch.zeros_like(x), torch.ones_like(x, device="cpu"), torch.full_like(x, 2))
        print(torch.empty_like(x).device, torch.zeros_like(torch.ones(2), device="cuda"))
        print(torch.rand_like(x).device, torch.randn_like(x, dtype=torch.float32).dtype)
        print(torch.randint_like(x, 5).dtype)
    """),
    program("new_methods", """
        x = torch.ones(2, dtype=torch.float64, device="cuda")
        print(x.new_zeros(1), x.new_ones(1, device="cpu"), x.new_tensor([1]), x.new_full((1,), 5))
        print(x.new_empty(3).shape, x.new_zeros(1, dtype=torch.int32).dtype, x.new(2).device)
    """),
    program("tensor_from_gpu_tensor", """
        x = torch.ones(2, device="cuda")
        print(torch.tensor(x).device, torch.as_tensor(x) is x, torch.tensor(x, device="cpu"))
        print(torch.as_tensor(x, device="cpu").device, torch.as_tensor([1, 2], device="cuda"))
    """),
    program("from_numpy_then_move", """
        import numpy as np
        a = np.arange(3, dtype=np.float32)
        x = torch.from_numpy(a)
        y = x.cuda()
        a += 1
        print(x.tolist(), y.tolist(), torch.tensor(a, device="cuda").tolist())
        print(*(torch.as_tensor(n, device="cuda").dtype for n in (a, np.ones(1), np.arange(2))))
    """),
    program("pin_memory_facts", """
        x = torch.arange(4.0)
        p = x.pin_memory()
        print(x.is_pinned(), p.is_pinned(), p is x, p.device, torch.equal(p, x))
        print(p.pin_memory() is p, torch.zeros(2, pin_memory=True).is_pinned())
        print((p + 1).is_pinned(), p[1:].is_pinned(), p.clone().is_pinned(), p.cuda().is_pinned())
    """),
    program("pin_memory_other_factories", """
        print(torch.empty(2, pin_memory=True).is_pinned())
        print(torch.rand(2, pin_memory=True).is_pinned())
        print(torch.tensor([1], pin_memory=True).is_pinned())
        print(torch.zeros_like(torch.ones(2), pin_memory=True).is_pinned())
        print(torch.ones(2, device="cuda").cpu().is_pinned())
    """),
    program("is_shared_and_meta", """
        x = torch.ones(2, device="cuda")
        print(x.is_shared(), x.is_meta, x.is_sparse, x.is_quantized, x.is_floating_point())
        print(x.to("meta").device, x.names, x.is_complex(), x.is_inference())
    """),
    program("recursive_move_of_a_batch", """
        def move(item, device):
            if torch.is_tensor(item):
                return item.to(device)
            if isinstance(item, dict):
                return {key: move(value, device) for key, value in item.items()}
            if isinstance(item, (list, tuple)):
                return type(item)(move(value, device) for value in item)
            return item

        batch = {"x": torch.zeros(2), "name": "a", "pair": (torch.ones(1), [torch.ones(1)])}
        batch = move(batch, "cuda")
        print(batch["x"].device, batch["name"], batch["pair"][0].device, batch["pair"][1][0].device)
    """),
    program("tensor_clone_and_detach", """
        x = torch.ones(2, device="cuda", requires_grad=True)
        c, d = x.clone(), x.detach()
        print(c.requires_grad, c.is_leaf, d.requires_grad, d.data_ptr() == x.data_ptr())
        print(x.detach().clone().data_ptr() == x.data_ptr())
    """),
    program("resize_and_set", """
        x = torch.arange(4, device="cuda")
        x.resize_(2)
        print(x.tolist(), x.untyped_storage().nbytes())
        x.set_(torch.arange(3, device="cuda"))
        print(x.tolist())
    """),
    program("attributes_survive_in_place_only", """
        x = torch.ones(2, device="cuda")
        x.label = "kept"
        x.add_(1)
        print(x.label, hasattr(x.clone(), "label"), hasattr(x.cpu(), "label"))
    """),
    program("get_device_module", """
        print(torch.get_device_module("cuda") is torch.cuda)
        print(torch.get_device_module("cpu").__name__)
    """),
    program("to_two_gpus", """
        x = torch.arange(3.0, device="cuda:0")
        y = x.to("cuda:1")
        print(y, y is x, y.to(0).device, y.cuda() is y, y.cuda().device, y.to("cuda").device)
    """, 2),
    program("current_device_decides", """
        with torch.cuda.device(1):
            a, b = torch.ones(1, device="cuda"), torch.ones(1).cuda()
            c = torch.ones(1, device="cuda:0").to("cuda")
            print(a.device, b.device, c.device, torch.cuda.FloatTensor([1]).device)
        print(torch.ones(1).cuda().device, torch.ones_like(a).device, (a + 1).device)
    """, 2),
    program("device_of_second_gpu", """
        x = torch.ones(1, device="cuda:1")
        with torch.cuda.device_of(x):
            print(torch.cuda.current_device(), torch.zeros(1, device="cuda").device)
        with torch.cuda.device(x.device):
            print(torch.cuda.current_device())
        print(torch.cuda.current_device(), x.get_device(), x.new_zeros(1).device)
    """, 2),
    program("device_context_restores_after_error", """
        try:
            with torch.cuda.device(1):
                raise ValueError("inside")
        except ValueError:
            print(torch.cuda.current_device())
        torch.cuda.set_device(1)
        with torch.cuda.device(0):
            pass
        print(torch.cuda.current_device())
    """, 2),
    program("default_device_index", """
        torch.set_default_device("cuda:1")
        print(torch.ones(1).device, torch.ones(1, device="cuda").device)
        print(torch.cuda.current_device())
    """, 2),
    program("accelerator_device_index", """
        torch.accelerator.set_device_index(1)
        print(torch.accelerator.current_device_index(), torch.cuda.current_device())
        print(torch.ones(1, device="cuda").device)
    """, 2),
]

GRADIENTS = [
    program("requires_grad_then_move_is_not_leaf", """
        a = torch.ones(2, requires_grad=True)
        b = a.cuda()
        (b * b).sum().backward()
        print(b.is_leaf, b.requires_grad, a.grad, a.grad.device)
        print(b.grad)
    """),
    program("move_then_requires_grad", """
        a = torch.ones(2).cuda().requires_grad_()
        (a * 3).sum().backward()
        print(a.is_leaf, a.grad)
    """),
    program("requires_grad_in_factory", """
        a = torch.ones(2, device="cuda", requires_grad=True)
        print(a.is_leaf, a.grad_fn, a.cuda() is a, a.cpu().is_leaf)
    """),
    program("move_has_grad_fn", """
        a = torch.ones(2, requires_grad=True)
        print(type(a.cuda().grad_fn).__name__, type((a.cuda() + 1).grad_fn).__name__)
    """),
    program("no_grad_move", """
        a = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            b = a.cuda()
        print(b.requires_grad, b.is_leaf)
        with torch.inference_mode():
            c = torch.ones(2, device="cuda")
        print(c.is_inference(), c.requires_grad)
    """),
    program("inference_tensor_in_autograd", """
        with torch.inference_mode():
            x = torch.ones(2, device="cuda")
        w = torch.ones(2, device="cuda", requires_grad=True)
        (x * w).sum()
    """),
    program("gradient_moves_with_module", """
        layer = torch.nn.Linear(2, 1)
        layer(torch.ones(1, 2)).sum().backward()
        layer.cuda()
        print(layer.weight.grad, layer.bias.grad.device)
    """),
    program("copy_is_differentiable", """
        a = torch.ones(3, requires_grad=True)
        b = torch.zeros(3, device="cuda")
        b.copy_(a * 2)
        b.sum().backward()
        print(b.requires_grad, a.grad)
    """),
    program("dtype_move_gradient_dtype", """
        a = torch.ones(2, requires_grad=True)
        (a.to("cuda", torch.half) * 2).sum().backward()
        print(a.grad, a.grad.dtype)
    """),
]

MODULES = [
    program("module_to_returns_itself", """
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
        before = [id(p) for p in net.parameters()]
        buffers = [id(b) for b in net.buffers()]
        print(net.cuda() is net, [id(p) for p in net.parameters()] == before)
        print([id(b) for b in net.buffers()] == buffers)
        print({str(t.device) for t in net.state_dict().values()})
    """),
    program("module_parameter_types", """
        layer = torch.nn.Linear(2, 2).cuda()
        print(type(layer.weight) is torch.nn.Parameter, layer.weight.is_leaf, layer.weight.is_cuda)
        print(isinstance(layer.weight, torch.Tensor), isinstance(layer.weight, torch.nn.Parameter))
    """),
    program("module_made_on_gpu", """
        layer = torch.nn.Linear(2, 2, device="cuda", dtype=torch.half)
        norm = torch.nn.BatchNorm1d(2, device="cuda")
        print(layer.weight.device, layer.bias.dtype, norm.running_mean, norm.num_batches_tracked)
    """),
    program("module_half_and_back", """
        layer = torch.nn.Linear(2, 2).cuda().half()
        print(layer.weight.dtype, layer(torch.ones(1, 2).cuda().half()).dtype)
        print(layer.float().weight.dtype, layer.double().bias.dtype, layer.bfloat16().bias.dtype)
    """),
    program("module_to_dtype_keeps_integer_buffers", """
        norm = torch.nn.BatchNorm1d(2).to("cuda", torch.half)
        print(norm.weight.dtype, norm.running_mean.dtype, norm.num_batches_tracked.dtype)
        print(norm.num_batches_tracked.device)
    """),
    program("module_cuda_then_cpu", """
        layer = torch.nn.Linear(2, 2)
        weight = layer.weight
        before = weight.detach().clone()
        layer.cuda().cpu()
        print(layer.weight is weight, weight.device, torch.equal(weight, before))
    """),
    program("buffer_alias_left_behind", """
        norm = torch.nn.BatchNorm1d(2)
        buffer, parameter = norm.running_mean, norm.weight
        norm.cuda()
        print(buffer is norm.running_mean, buffer.device)
        print(parameter is norm.weight, parameter.device)
    """),
    program("register_buffer_moves", """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.ones(2))
                self.register_buffer("cache", torch.zeros(1), persistent=False)
                self.register_buffer("nothing", None)
                self.plain = torch.ones(1)

        net = Net().cuda()
        print(net.mean.device, net.cache.device, net.nothing, net.plain.device)
        print(list(net.state_dict()))
    """),
    program("parameter_list_and_dict_move", """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.items = torch.nn.ParameterList([torch.ones(1), torch.zeros(2)])
                self.named = torch.nn.ParameterDict({"a": torch.nn.Parameter(torch.ones(1))})
                self.layers = torch.nn.ModuleList([torch.nn.Linear(1, 1)])

        net = Net().cuda()
        print([str(p.device) for p in net.items], net.named["a"].device, net.layers[0].bias.device)
        print([name for name, _ in net.named_parameters()])
    """),
    program("tied_weights_stay_tied", """
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = torch.nn.Embedding(5, 3)
                self.out = torch.nn.Linear(3, 5, bias=False)
                self.out.weight = self.embed.weight

        net = Tied().cuda()
        print(net.out.weight is net.embed.weight, len(list(net.parameters())))
        net.out(net.embed(torch.tensor([1], device="cuda"))).sum().backward()
        print(net.embed.weight.grad is net.out.weight.grad, net.embed.weight.grad.shape)
    """),
    program("frozen_parameters_stay_frozen", """
        net = torch.nn.Linear(2, 2)
        net.weight.requires_grad_(False)
        net.cuda()
        print(net.weight.requires_grad, net.bias.requires_grad)
    """),
    program("weakref_to_parameter_during_move", """
        import weakref
        layer = torch.nn.Linear(2, 2)
        ref = weakref.ref(layer.weight)
        layer.cuda()
        print(ref() is layer.weight, ref().device)
    """),
    program("weakref_dictionary_of_parameters", """
        import weakref
        layer = torch.nn.Linear(2, 2)
        names = weakref.WeakKeyDictionary({layer: "layer"})
        held = weakref.WeakValueDictionary({"w": layer.weight})
        layer.cuda()
        print(names[layer], held["w"] is layer.weight, held["w"].device)
    """),
    program("to_empty_from_meta", """
        layer = torch.nn.Linear(2, 3, device="meta")
        layer.to_empty(device="cuda")
        torch.nn.init.constant_(layer.weight, 2.0)
        torch.nn.init.zeros_(layer.bias)
        print(layer(torch.ones(1, 2, device="cuda")))
    """),
    program("meta_module_to_gpu", 'torch.nn.Linear(2, 3, device="meta").to("cuda")'),
    program("deepcopy_of_gpu_module", """
        import copy
        layer = torch.nn.Linear(2, 2).cuda()
        twin = copy.deepcopy(layer)
        twin.weight.data.zero_()
        print(twin.weight.device, type(twin.weight).__name__, twin.weight is layer.weight)
        print(bool(layer.weight.abs().sum() > 0), twin.weight.requires_grad)
    """),
    program("deepcopy_of_tensors", """
        import copy
        x = torch.arange(4.0, device="cuda")
        y, v = copy.deepcopy((x, x[1:]))
        print(y, v, y.data_ptr() == x.data_ptr())
        print(y.untyped_storage().data_ptr() == v.untyped_storage().data_ptr(), copy.copy(x) is x)
    """),
    program("deepcopy_of_nonleaf", """
        import copy
        copy.deepcopy(torch.ones(1, device="cuda", requires_grad=True) * 2)
    """),
    program("module_apply_and_init", """
        def init(module):
            if isinstance(module, torch.nn.Linear):
                torch.nn.init.constant_(module.weight, 0.5)
                torch.nn.init.zeros_(module.bias)

        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)).cuda().apply(init)
        print(net(torch.ones(1, 2, device="cuda")))
    """),
    program("module_device_idiom", """
        net = torch.nn.Linear(2, 2).cuda()
        device = next(net.parameters()).device
        print(device, net(torch.ones(1, 2, device=device)).device)
    """),
    program("device_agnostic_idiom", """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        print(device, torch.ones(1).to(device).device, torch.ones(1, device=device).is_cuda)
    """),
    program("accelerator_idiom", """
        device = torch.accelerator.current_accelerator()
        print(device, torch.accelerator.is_available(), torch.ones(1, device=device).device)
        print(torch.accelerator.current_accelerator(check_available=True).type)
    """),
    program("parametrized_module_moves", """
        layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2)).cuda()
        print(layer.weight.device, layer(torch.ones(1, 2, device="cuda")).shape)
        print([name for name, _ in layer.named_parameters()])
    """),
    program("parameters_to_vector", """
        net = torch.nn.Linear(2, 1).cuda()
        vector = torch.nn.utils.parameters_to_vector(net.parameters())
        torch.nn.utils.vector_to_parameters(torch.arange(3.0, device="cuda"), net.parameters())
        print(vector.shape, vector.device, net.weight.tolist(), net.bias.tolist())
    """),
    program("lazy_module_on_gpu", """
        layer = torch.nn.LazyLinear(2).cuda()
        print(layer(torch.ones(1, 3, device="cuda")).device, layer.weight.shape)
    """),
    program("swa_copy_on_gpu", """
        net = torch.nn.Linear(2, 2).cuda()
        average = torch.optim.swa_utils.AveragedModel(net)
        average.update_parameters(net)
        print(average.n_averaged.item(), average.module.weight.device, average.n_averaged.device)
    """),
]

CHECKPOINTS = [
    program("state_dict_holds_gpu_tensors", """
        layer = torch.nn.Linear(2, 2).cuda()
        state = layer.state_dict()
        print({name: (str(t.device), t.requires_grad) for name, t in state.items()})
        print(state["weight"].data_ptr() == layer.weight.data_ptr(), type(state["weight"]).__name__)
    """),
    program("load_cpu_state_into_gpu_module", """
        source, target = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).cuda()
        weight = target.weight
        print(target.load_state_dict(source.state_dict()))
        print(target.weight is weight, weight.device, torch.equal(weight.cpu(), source.weight))
    """),
    program("load_gpu_state_into_cpu_module", """
        source, target = torch.nn.Linear(2, 2).cuda(), torch.nn.Linear(2, 2)
        target.load_state_dict(source.state_dict())
        print(target.weight.device, torch.equal(target.weight, source.weight.cpu()))
    """),
    program("load_state_dict_assign", """
        source, target = torch.nn.Linear(2, 2).cuda(), torch.nn.Linear(2, 2)
        target.load_state_dict(source.state_dict(), assign=True)
        print(target.weight.device, target.weight.data_ptr() == source.weight.data_ptr())
    """),
    program("save_and_load_state_dict", """
        import io
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).cuda()
        buffer = io.BytesIO()
        torch.save(net.state_dict(), buffer)
        for location in (None, "cpu", "cuda", "cuda:0", torch.device("cpu"), torch.device("cuda")):
            buffer.seek(0)
            state = torch.load(buffer, map_location=location)
            print(location, {str(t.device) for t in state.values()}, type(state).__name__)
    """),
    program("map_location_dict_and_callable", """
        import io
        buffer = io.BytesIO()
        torch.save({"x": torch.arange(2, device="cuda"), "step": 3}, buffer)
        for location in ({"cuda:0": "cpu"}, {"cuda:1": "cpu"}, lambda storage, where: storage):
            buffer.seek(0)
            print(torch.load(buffer, map_location=location))
    """),
    program("map_location_callable_sees_tag", """
        import io
        buffer = io.BytesIO()
        torch.save([torch.ones(1, device="cuda"), torch.ones(1)], buffer)
        seen = []
        buffer.seek(0)
        torch.load(buffer, map_location=lambda storage, where: seen.append(where) or storage)
        print(seen)
    """),
    program("map_location_callable_to_gpu", """
        import io
        buffer = io.BytesIO()
        torch.save(torch.ones(2), buffer)
        buffer.seek(0)
        print(torch.load(buffer, map_location=lambda storage, where: storage.cuda()))
    """),
    program("saved_views_share_storage", """
        import io
        x = torch.arange(4, device="cuda")
        buffer = io.BytesIO()
        torch.save({"all": x, "tail": x[2:]}, buffer)
        buffer.seek(0)
        loaded = torch.load(buffer)
        loaded["all"][2] = 9
        print(loaded, loaded["tail"].storage_offset())
    """),
    program("save_keeps_properties", """
        import io
        items = [
            torch.ones(2, device="cuda", requires_grad=True),
            torch.nn.Parameter(torch.ones(1, device="cuda")),
            torch.arange(6, device="cuda").view(2, 3).t(),
            torch.ones(2, dtype=torch.bfloat16, device="cuda"),
        ]
        buffer = io.BytesIO()
        torch.save(items, buffer)
        buffer.seek(0)
        for item in torch.load(buffer):
            print(type(item).__name__, item.requires_grad, item.stride(), item.dtype, item.device)
    """),
    program("save_to_file_on_disk", """
        import os, tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            torch.save(torch.nn.Linear(2, 2).cuda().state_dict(), path)
            print(sorted(os.listdir(folder)), torch.load(path)["bias"].device)
            print(torch.load(path, map_location="cpu", mmap=True)["bias"].device)
    """),
    program("whole_module_saved", """
        import io
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).cuda()
        buffer = io.BytesIO()
        torch.save(net, buffer)
        buffer.seek(0)
        again = torch.load(buffer, weights_only=False)
        x = torch.ones(1, 2, device="cuda")
        print(type(again).__name__, torch.equal(again(x), net(x)))
        buffer.seek(0)
        on_cpu = torch.load(buffer, weights_only=False, map_location="cpu")
        print(next(on_cpu.parameters()).device)
    """),
    program("checkpoint_with_optimizer", """
        import io
        net = torch.nn.Linear(2, 2).cuda()
        adam = torch.optim.Adam(net.parameters())
        net(torch.ones(1, 2, device="cuda")).sum().backward()
        adam.step()
        buffer = io.BytesIO()
        torch.save({"net": net.state_dict(), "adam": adam.state_dict(), "epoch": 1}, buffer)
        buffer.seek(0)
        loaded = torch.load(buffer, map_location="cpu")
        twin = torch.nn.Linear(2, 2).cuda()
        twin.load_state_dict(loaded["net"])
        again = torch.optim.Adam(twin.parameters())
        again.load_state_dict(loaded["adam"])
        state = again.state[twin.weight]
        print(state["exp_avg"].device, state["step"].device, state["step"].item())
        print(loaded["adam"]["state"][0]["exp_avg"].device, loaded["epoch"])
    """),
    program("optimizer_state_devices", """
        p = torch.nn.Parameter(torch.ones(2, device="cuda"))
        p.grad = torch.ones_like(p)
        for make in (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
            optimizer = make([p], lr=0.0)
            optimizer.step()
            print(make.__name__, {k: str(v.device) for k, v in sorted(optimizer.state[p].items())})
    """),
    program("move_optimizer_state_by_hand", """
        net = torch.nn.Linear(2, 2)
        adam = torch.optim.Adam(net.parameters(), foreach=False)
        net(torch.ones(1, 2)).sum().backward()
        adam.step()
        net.cuda()
        for state in adam.state.values():
            for key in ("exp_avg", "exp_avg_sq"):
                state[key] = state[key].cuda()
        adam.step()
        print(adam.state[net.weight]["exp_avg"].device, adam.state[net.weight]["step"].item())
    """),
    program("pickle_of_gpu_tensor", """
        import pickle
        x = torch.arange(3, device="cuda")
        y = pickle.loads(pickle.dumps(x))
        print(y, y.device, y.data_ptr() == x.data_ptr())
    """),
    program("pickle_of_gpu_module", """
        import pickle
        net = pickle.loads(pickle.dumps(torch.nn.Linear(2, 2).cuda()))
        print(net.weight.device, type(net.weight).__name__, net.weight.requires_grad)
    """),
    program("load_onto_other_gpu", """
        import io
        buffer = io.BytesIO()
        torch.save(torch.ones(2, device="cuda:1"), buffer)
        for location in (None, "cuda:0", {"cuda:1": "cuda:0"}, "cuda"):
            buffer.seek(0)
            print(torch.load(buffer, map_location=location).device)
    """, 2),
    program("pickle_keeps_gpu_index", """
        import copy, pickle
        x = torch.ones(2, device="cuda:1")
        print(pickle.loads(pickle.dumps(x)).device, copy.deepcopy(x).device)
    """, 2),
]

PROGRAMS = [*TENSORS, *GRADIENTS, *MODULES, *CHECKPOINTS]
