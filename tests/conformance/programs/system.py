"""Processes, threads, loaders, flags and the questions one asks of torch.cuda itself."""

from __future__ import annotations

from ._program import in_group

# fmt: off
# A program's name and the opening of its text share a line.

program = in_group("system")

PROCESSES = [
    program("fork_after_use_os_fork", """
        import os
        torch.ones(1, device="cuda")
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                torch.ones(1, device="cuda")
                os.write(write, b"worked")
            except Exception as error:
                os.write(write, str(error).encode())
            os._exit(0)
        os.close(write)
        os.waitpid(pid, 0)
        print(os.read(read, 10000).decode().splitlines()[0])
    """),
    program("fork_before_use", """
        import os
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(write, str(torch.ones(2, device="cuda").sum().item()).encode())
            os._exit(0)
        os.close(write)
        os.waitpid(pid, 0)
        print(os.read(read, 100).decode(), torch.ones(1, device="cuda").device)
    """),
    program("fork_after_asking_only", """
        import os
        torch.cuda.is_available()
        torch.cuda.device_count()
        print(torch.cuda.is_initialized())
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(write, str(torch.ones(2, device="cuda").device).encode())
            except Exception as error:
                os.write(write, str(error).encode())
            os._exit(0)
        os.close(write)
        os.waitpid(pid, 0)
        print(os.read(read, 10000).decode().splitlines()[0])
    """),
    program("forked_child_may_use_the_cpu", """
        import os
        x = torch.ones(3, device="cuda")
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(write, f"{sum([1.0, 2.0])} {torch.cuda._is_in_bad_fork()}".encode())
            os._exit(0)
        os.close(write)
        os.waitpid(pid, 0)
        print(os.read(read, 100).decode(), x.sum().item(), torch.cuda._is_in_bad_fork())
    """),
    program("pool_of_forked_workers", """
        import multiprocessing
        torch.ones(1, device="cuda")

        def work(i):
            try:
                return torch.full((1,), float(i), device="cuda").item()
            except RuntimeError as error:
                return str(error).split(".")[0]

        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(set(pool.map(work, range(4))))
    """),
    program("spawned_child_sees_the_gpu", """
        from concurrent.futures import ProcessPoolExecutor
        import multiprocessing
        torch.ones(1, device="cuda")
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            print(pool.submit(torch.cuda.is_available).result(timeout=25))
    """),
    program("loader_workers_return_cpu_tensors", """
        data = torch.utils.data.TensorDataset(torch.arange(8.0).view(8, 1))
        torch.ones(1, device="cuda")
        loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, pin_memory=True)
        for (x,) in loader:
            print(x.is_pinned(), x.cuda(non_blocking=True).sum().item())
    """),
    program("loader_worker_touches_gpu", """
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 2

            def __getitem__(self, i):
                return torch.full((1,), float(i), device="cuda")

        torch.ones(1, device="cuda")
        try:
            for x in torch.utils.data.DataLoader(Data(), num_workers=1):
                print(x)
        except RuntimeError as error:
            print(str(error).splitlines()[0])
            print([line for line in str(error).splitlines() if "re-initialize" in line])
    """),
    program("loader_without_workers_may_use_gpu", """
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, i):
                return torch.full((2,), float(i), device="cuda")

        for x in torch.utils.data.DataLoader(Data(), batch_size=2):
            print(x)
    """),
    program("loader_pins_nested_batches", """
        def collate(items):
            return {"x": torch.stack(items), "names": ["a"], "n": (len(items), items[0])}

        loader = torch.utils.data.DataLoader(
            [torch.ones(2)] * 4, batch_size=2, collate_fn=collate, pin_memory=True
        )
        for batch in loader:
            print(batch["x"].is_pinned(), batch["names"], batch["n"][0], batch["n"][1].is_pinned())
    """),
    program("default_collate_of_gpu_tensors", """
        data = [(torch.ones(2, device="cuda"), i) for i in range(3)]
        for x, y in torch.utils.data.DataLoader(data, batch_size=3):
            print(x.device, x.shape, y.device)
    """),
    program("sampler_and_random_split", """
        data = torch.utils.data.TensorDataset(torch.arange(6).cuda())
        a, b = torch.utils.data.random_split(data, [4, 2])
        print(len(a), len(b), sorted(x.item() for part in (a, b) for (x,) in part))
    """),
]

THREADS = [
    program("thread_uses_gpu", """
        import threading
        results = []

        def work():
            results.append((torch.ones(3, device="cuda") * 2).sum().item())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        print(results)
    """),
    program("thread_first_to_use_gpu", """
        import threading
        seen = []
        thread = threading.Thread(target=lambda: seen.append(torch.ones(2, device="cuda")))
        thread.start()
        thread.join()
        print(torch.cuda.is_initialized(), seen[0].device, (seen[0] + 1).tolist())
    """),
    program("thread_pool_shares_tensors", """
        from concurrent.futures import ThreadPoolExecutor
        x = torch.arange(8.0, device="cuda")
        with ThreadPoolExecutor(4) as pool:
            print(list(pool.map(lambda i: (x[i] * 2).item(), range(8))))
            print(pool.submit(lambda: torch.ones(2).cuda().device).result())
            print(pool.submit(lambda: torch.zeros(1).to("cuda").is_cuda).result())
    """),
    program("thread_pool_error_is_raised_here", """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: torch.ones(2, device="cuda") + torch.ones(2)).result()
    """),
    program("current_device_is_per_thread", """
        import threading
        torch.cuda.set_device(1)
        seen = []

        def look():
            seen.append((torch.cuda.current_device(), str(torch.ones(1, device="cuda").device)))
            torch.cuda.set_device(0)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        print(seen, torch.cuda.current_device())
    """, 2),
    program("grad_mode_is_per_thread", """
        import threading
        x, seen = torch.ones(1, device="cuda", requires_grad=True), []
        with torch.no_grad():
            thread = threading.Thread(target=lambda: seen.append((x * 2).requires_grad))
            thread.start()
            thread.join()
            print(seen, (x * 2).requires_grad)
    """),
    program("default_device_is_per_thread", """
        import threading
        seen = []
        with torch.device("cuda"):
            thread = threading.Thread(target=lambda: seen.append(str(torch.ones(1).device)))
            thread.start()
            thread.join()
            print(seen, torch.ones(1).device)
    """),
    program("backward_in_threads", """
        from concurrent.futures import ThreadPoolExecutor

        def work(i):
            x = torch.full((3,), float(i), device="cuda", requires_grad=True)
            (x * x).sum().backward()
            return x.grad.tolist()

        with ThreadPoolExecutor(3) as pool:
            print(list(pool.map(work, range(4))))
    """),
    program("streams_in_threads", """
        from concurrent.futures import ThreadPoolExecutor

        def work(i):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                total = torch.full((1000,), float(i), device="cuda").sum()
            stream.synchronize()
            return total.item()

        with ThreadPoolExecutor(4) as pool:
            print(list(pool.map(work, range(6))))
    """),
    program("queue_between_threads", """
        import queue, threading
        q = queue.Queue(2)

        def produce():
            for i in range(4):
                q.put(torch.full((2,), float(i)).pin_memory().to("cuda", non_blocking=True))
            torch.cuda.current_stream().synchronize()
            q.put(None)

        threading.Thread(target=produce).start()
        items = []
        while (item := q.get()) is not None:
            items.append(item)
        print([item.tolist() for item in items])
    """),
    program("asyncio_with_gpu", """
        import asyncio

        async def work(i):
            x = torch.full((2,), float(i), device="cuda")
            await asyncio.sleep(0)
            return await asyncio.to_thread(lambda: (x + 1).sum().item())

        async def main():
            return await asyncio.gather(*(work(i) for i in range(3)))

        print(asyncio.run(main()))
    """),
]

QUESTIONS = [
    program("is_initialized_life", """
        print(torch.cuda.is_available(), torch.cuda.is_initialized())
        torch.cuda.init()
        print(torch.cuda.is_initialized())
        torch.cuda.init()
        print(torch.cuda.is_initialized())
    """),
    program("what_initialises", """
        torch.device("cuda:0"), torch.cuda.is_available(), torch.cuda.device_count()
        torch.cuda.manual_seed(0), torch.cuda.memory_allocated(), torch.cuda.Event()
        torch.cuda.empty_cache(), torch.manual_seed(0), torch.cuda.device(0)
        print(torch.cuda.is_initialized())
        print(torch.cuda.current_device(), torch.cuda.is_initialized())
    """),
    program("pinning_initialises_context_lazily", """
        x = torch.ones(2).pin_memory()
        print(x.is_pinned(), torch.ones(1, device="cuda").device)
    """),
    program("counts_and_types", """
        print(type(torch.cuda.device_count()).__name__, torch.cuda.device_count() >= 1)
        print(type(torch.cuda.get_device_name()).__name__, len(torch.cuda.get_device_name(0)) > 0)
        print([type(v).__name__ for v in torch.cuda.get_device_capability()])
        print(torch.cuda.get_device_name("cuda") == torch.cuda.get_device_name(0))
        print(torch.cuda.get_device_name(None) == torch.cuda.get_device_properties("cuda:0").name)
    """),
    program("device_properties", """
        p = torch.cuda.get_device_properties(0)
        print(type(p).__name__, p.name == torch.cuda.get_device_name(0), p.total_memory > 2**28)
        print((p.major, p.minor) == torch.cuda.get_device_capability(), p.multi_processor_count > 0)
        print(p.warp_size, type(p.total_memory).__name__, p.max_threads_per_multi_processor > 0)
        print(hasattr(p, "uuid"), hasattr(p, "is_integrated"), "total_memory" in str(p))
    """),
    program("device_properties_unknown", "torch.cuda.get_device_properties(0).cores"),
    program("torch_version_types", """
        print(type(torch.version.cuda).__name__, torch.version.hip, torch.cuda.is_available())
        print(torch.backends.cuda.is_built(), torch.backends.cudnn.is_available())
        print(type(torch.backends.cudnn.version()).__name__, torch.cuda.is_bf16_supported())
        print(len(torch.cuda.get_arch_list()) > 0, type(torch.cuda.get_arch_list()[0]).__name__)
    """),
    program("cudnn_flags", """
        b = torch.backends
        print(b.cudnn.enabled, b.cudnn.benchmark, b.cudnn.deterministic, b.cudnn.allow_tf32)
        b.cudnn.benchmark, b.cudnn.deterministic = True, True
        print(b.cudnn.benchmark, b.cudnn.deterministic)
        with b.cudnn.flags(enabled=False):
            y = torch.nn.Conv1d(1, 1, 1).cuda()(torch.ones(1, 1, 3).cuda())
            print(b.cudnn.enabled, y.shape)
        print(b.cudnn.enabled)
    """),
    program("matmul_precision_flags", """
        print(torch.backends.cuda.matmul.allow_tf32, torch.get_float32_matmul_precision())
        torch.set_float32_matmul_precision("high")
        print(torch.backends.cuda.matmul.allow_tf32, torch.get_float32_matmul_precision())
        torch.backends.cuda.matmul.allow_tf32 = False
        print(torch.get_float32_matmul_precision())
        print(torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction)
    """),
    program("sdpa_flags", """
        from torch.nn.attention import SDPBackend, sdpa_kernel
        cuda = torch.backends.cuda
        print(cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled())
        q = torch.ones(1, 1, 4, 8, device="cuda")
        with sdpa_kernel(SDPBackend.MATH):
            print(cuda.flash_sdp_enabled(), cuda.math_sdp_enabled())
            print(torch.nn.functional.scaled_dot_product_attention(q, q, q).sum().item())
        print(cuda.flash_sdp_enabled())
    """),
    program("deterministic_algorithms", """
        torch.use_deterministic_algorithms(True)
        print(torch.are_deterministic_algorithms_enabled())
        x = torch.zeros(3, device="cuda")
        print(x.index_add_(0, torch.tensor([0, 0], device="cuda"), torch.ones(2, device="cuda")))
        torch.nn.functional.interpolate(
            torch.ones(1, 1, 1, 2, 2, device="cuda", requires_grad=True), scale_factor=2,
            mode="trilinear",
        ).sum().backward()
    """),
    program("deterministic_cumsum_warns_only", """
        torch.use_deterministic_algorithms(True, warn_only=True)
        print(torch.arange(3.0, device="cuda").histc(3).tolist())
        print(torch.is_deterministic_algorithms_warn_only_enabled())
    """),
    program("sync_debug_mode", """
        print(torch.cuda.get_sync_debug_mode())
        torch.cuda.set_sync_debug_mode("error")
        x = torch.ones(3, device="cuda")
        y = x + 1
        print(torch.cuda.get_sync_debug_mode())
        y.sum().item()
    """),
    program("sync_debug_mode_warns", """
        torch.cuda.set_sync_debug_mode("warn")
        print(torch.ones(3, device="cuda").sum().item(), torch.cuda.get_sync_debug_mode())
        torch.cuda.set_sync_debug_mode("default")
    """),
    program("nvtx_ranges", """
        torch.cuda.nvtx.mark("start")
        with torch.cuda.nvtx.range("step"):
            x = torch.ones(2, device="cuda")
        print(torch.cuda.nvtx.range_push("a"), torch.cuda.nvtx.range_pop(), x.sum().item())
    """),
    program("legacy_amp", """
        with torch.cuda.amp.autocast():
            print((torch.ones(2, 2).cuda() @ torch.ones(2, 2).cuda()).dtype)
        scaler = torch.cuda.amp.GradScaler()
        print(scaler.get_scale(), type(scaler).__mro__[1].__name__)
        with torch.cuda.amp.autocast(dtype=torch.bfloat16):
            print(torch.get_autocast_gpu_dtype())
    """),
    program("legacy_amp_custom_function", """
        class Double(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
            def forward(ctx, x):
                print(x.dtype, torch.is_autocast_enabled("cuda"))
                return x * 2

            @staticmethod
            @torch.amp.custom_bwd(device_type="cuda")
            def backward(ctx, grad):
                return grad * 2

        x = torch.ones(2, device="cuda", dtype=torch.half, requires_grad=True)
        with torch.autocast("cuda"):
            Double.apply(x).sum().backward()
        print(x.grad)
    """),
    program("caching_allocator_names", """
        print(torch.cuda.memory.get_allocator_backend(), torch.cuda.get_allocator_backend())
        address = torch.cuda.caching_allocator_alloc(1000)
        print(type(address).__name__, torch.cuda.memory_allocated())
        torch.cuda.caching_allocator_delete(address)
        print(torch.cuda.memory_allocated())
    """),
    program("ipc_collect_and_host_cache", """
        print(torch.cuda.ipc_collect(), torch.cuda.empty_cache(), torch.cuda.synchronize())
    """),
    program("peers", """
        print(torch.cuda.can_device_access_peer("cuda:1", 0))
        torch.cuda.can_device_access_peer(0, 0)
    """, 2),
    program("visible_devices_changed_too_late", """
        import os
        torch.ones(1, device="cuda")
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        print(torch.cuda.is_available(), torch.ones(1, device="cuda").device)
    """),
    program("visible_devices_changed_in_time", """
        import os
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        print(torch.cuda.is_available(), torch.cuda.device_count())
        torch.ones(1, device="cuda")
    """),
    program("accelerator_questions", """
        a = torch.accelerator
        print(a.is_available(), a.current_accelerator(), a.current_device_index())
        with a.device_index(0):
            print(torch.ones(1, device=a.current_accelerator()).device)
        a.set_device_index(9)
    """),
    program("benchmark_timer_synchronises", """
        from torch.utils.benchmark import Timer
        x = torch.ones(16, device="cuda")
        m = Timer("x + 1", globals={"x": x}).timeit(10)
        print(type(m).__name__, m.median > 0, m.number_per_run)
    """),
    program("parameter_counts", """
        net = torch.nn.Sequential(torch.nn.Linear(10, 5), torch.nn.Linear(5, 2)).cuda()
        print(sum(p.numel() for p in net.parameters()), all(p.is_cuda for p in net.parameters()))
        print(sum(p.numel() * p.element_size() for p in net.parameters()))
    """),
    program("flop_counter", """
        from torch.utils.flop_counter import FlopCounterMode
        a = torch.ones(8, 16, device="cuda")
        with FlopCounterMode(display=False) as counter:
            a @ a.T
        print(counter.get_total_flops())
    """),
    program("dlpack_round_trip", """
        x = torch.arange(3.0, device="cuda")
        y = torch.from_dlpack(x)
        y += 1
        print(x.tolist(), x.__dlpack_device__()[1], y.device)
    """),
]

PROGRAMS = [*PROCESSES, *THREADS, *QUESTIONS]
