"""The allocator's counters after simple allocations, without any operator's workspace."""

from __future__ import annotations

from ._program import in_group

# fmt: off
# A program's name and the opening of its text share a line.

program = in_group("memory_simple")

PROGRAMS = [
    program("nothing_before_use", """
        print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
        print(torch.cuda.memory_stats())
        print(torch.cuda.max_memory_allocated(), torch.cuda.is_initialized())
    """),
    program("rounds_to_512_bytes", """
        kept = []
        for n in (1, 128, 129, 1000, 5000):
            kept.append(torch.empty(n, device="cuda"))
            print(n, torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
    """),
    program("empty_tensor_costs_nothing", """
        x = torch.empty(0, 5, device="cuda")
        print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), x.data_ptr())
    """),
    program("segment_sizes", """
        kib = 1024
        for n in (kib, 512 * kib, 1024 * kib, 1024 * kib + 1, 5000 * kib, 10240 * kib - 1,
                  10240 * kib, 10241 * kib, 33333 * kib):
            x = torch.empty(n, dtype=torch.uint8, device="cuda")
            print(n, torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
            del x
            torch.cuda.empty_cache()
    """),
    program("small_pool_grows_by_2_mib", """
        kept = []
        for _ in range(5):
            kept.append(torch.empty(700 * 1024, dtype=torch.uint8, device="cuda"))
            print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
    """),
    program("large_pool_splits_20_mib", """
        kept = []
        for _ in range(5):
            kept.append(torch.empty(6 << 20, dtype=torch.uint8, device="cuda"))
            print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
    """),
    program("delete_keeps_reserved", """
        x = torch.empty(4 << 20, dtype=torch.uint8, device="cuda")
        del x
        print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
        torch.cuda.empty_cache()
        print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
    """),
    program("freed_block_is_reused", """
        x = torch.empty(1 << 20, device="cuda")
        address = x.data_ptr()
        del x
        y = torch.empty(1 << 20, device="cuda")
        print(y.data_ptr() == address, torch.cuda.memory_reserved())
    """),
    program("stale_contents_in_reused_block", """
        x = torch.full((1 << 20,), 7.0, device="cuda")
        del x
        y = torch.empty(1 << 20, device="cuda")
        print(y.min().item(), y.max().item())
    """),
    program("addresses_are_aligned_and_contiguous", """
        a, b, c = (torch.empty(100, device="cuda") for _ in range(3))
        print(a.data_ptr() % 512, b.data_ptr() - a.data_ptr(), c.data_ptr() - b.data_ptr())
    """),
    program("view_keeps_the_whole_block", """
        x = torch.zeros(1 << 20, device="cuda")
        v = x[:1]
        del x
        print(torch.cuda.memory_allocated())
        v = v.clone()
        print(torch.cuda.memory_allocated())
    """),
    program("views_cost_nothing", """
        x = torch.zeros(1 << 18, device="cuda")
        before = torch.cuda.memory_allocated()
        views = [x.view(512, 512), x.view(512, 512).t(), x[10:], x.detach(), x.expand(9, 1 << 18)]
        print(torch.cuda.memory_allocated() - before)
        y = x.view(512, 512).t().contiguous()
        print(torch.cuda.memory_allocated() - before)
    """),
    program("temporary_is_freed", """
        x = torch.ones(1 << 18, device="cuda")
        torch.cuda.reset_peak_memory_stats()
        y = (x + 1) * 2
        print(torch.cuda.memory_allocated() >> 20, torch.cuda.max_memory_allocated() >> 20)
        x.add_(1).mul_(2)
        print(torch.cuda.memory_allocated() >> 20, torch.cuda.max_memory_allocated() >> 20)
    """),
    program("assignment_holds_old_and_new", """
        x = torch.ones(1 << 20, device="cuda")
        torch.cuda.reset_peak_memory_stats()
        x = x + 1
        print(torch.cuda.memory_allocated() >> 20, torch.cuda.max_memory_allocated() >> 20)
    """),
    program("peak_and_reset", """
        x = torch.empty(8 << 20, dtype=torch.uint8, device="cuda")
        del x
        print(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()
        print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
        torch.cuda.empty_cache()
        torch.cuda.reset_max_memory_allocated()
        print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
    """),
    program("dtype_sizes", """
        sizes = []
        for dtype in (torch.bool, torch.half, torch.bfloat16, torch.float32, torch.float64,
                      torch.complex64, torch.int64):
            before = torch.cuda.memory_allocated()
            x = torch.empty(1000, dtype=dtype, device="cuda")
            sizes.append(torch.cuda.memory_allocated() - before)
            del x
        print(sizes)
    """),
    program("parameters_gradients_and_adam", """
        net = torch.nn.Linear(1024, 1024, bias=False, device="cuda")
        mib = lambda: torch.cuda.memory_allocated() >> 20
        print(mib())
        net.weight.grad = torch.ones_like(net.weight)
        print(mib())
        adam = torch.optim.Adam(net.parameters())
        print(mib())
        adam.step()
        print(mib())
        adam.zero_grad()
        print(mib())
        del adam
        print(mib())
    """),
    program("sgd_state_with_and_without_momentum", """
        p = torch.nn.Parameter(torch.ones(1 << 20, device="cuda"))
        p.grad = torch.ones_like(p)
        for momentum in (0.0, 0.9):
            sgd = torch.optim.SGD([p], lr=0.1, momentum=momentum)
            sgd.step()
            print(torch.cuda.memory_allocated() >> 20)
    """),
    program("graph_keeps_activations", """
        x = torch.ones(1 << 20, device="cuda", requires_grad=True)
        y = x.exp().exp()
        print(torch.cuda.memory_allocated() >> 20)
        with torch.no_grad():
            z = x.exp().exp()
        print(torch.cuda.memory_allocated() >> 20)
        del y
        print(torch.cuda.memory_allocated() >> 20)
    """),
    program("backward_frees_the_graph", """
        x = torch.ones(1 << 20, device="cuda", requires_grad=True)
        loss = (x.exp() * x.sin()).sum()
        print(torch.cuda.memory_allocated() >> 20)
        loss.backward()
        print(torch.cuda.memory_allocated() >> 20)
        x.grad = None
        print(torch.cuda.memory_allocated() >> 20)
    """),
    program("keeping_losses_keeps_graphs", """
        x = torch.ones(1 << 18, device="cuda", requires_grad=True)
        kept = []
        for _ in range(3):
            kept.append((x.exp() * 2).sum())
        print(torch.cuda.memory_allocated() >> 20)
        kept = [loss.item() > 0 for loss in kept]
        print(torch.cuda.memory_allocated() >> 20)
    """),
    program("dropout_saves_a_mask", """
        x = torch.ones(1 << 20, device="cuda", requires_grad=True)
        y = torch.nn.functional.dropout(x, 0.5)
        print(torch.cuda.memory_allocated() - 8 * (1 << 20))
        z = torch.relu(x)
        print(torch.cuda.memory_allocated() - 12 * (1 << 20))
    """),
    program("reference_cycle_keeps_memory", """
        import gc
        gc.disable()
        class Holder:
            pass
        h = Holder()
        h.me, h.x = h, torch.zeros(1 << 20, device="cuda")
        del h
        print(torch.cuda.memory_allocated() >> 20)
        gc.collect()
        print(torch.cuda.memory_allocated() >> 20)
    """),
    program("exception_keeps_locals_alive", """
        def step():
            x = torch.zeros(1 << 20, device="cuda")
            raise ValueError("stop")

        try:
            step()
        except ValueError:
            print(torch.cuda.memory_allocated() >> 20)
        print(torch.cuda.memory_allocated() >> 20)
    """),
    program("module_move_frees_gpu", """
        net = torch.nn.Linear(1024, 1024, bias=False).cuda()
        print(torch.cuda.memory_allocated() >> 20)
        net.half()
        print(torch.cuda.memory_allocated() >> 20)
        net.cpu()
        print(torch.cuda.memory_allocated() >> 20)
    """),
    program("side_stream_has_its_own_blocks", """
        s = torch.cuda.Stream()
        x = torch.empty(1 << 20, device="cuda")
        del x
        with torch.cuda.stream(s):
            y = torch.empty(1 << 20, device="cuda")
        print(torch.cuda.memory_allocated() >> 20, torch.cuda.memory_reserved() >> 20)
    """),
    program("statistics_keys", """
        x = torch.ones(10, device="cuda")
        stats = torch.cuda.memory_stats()
        for key in ("allocated_bytes.all.current", "allocated_bytes.small_pool.peak",
                    "reserved_bytes.all.current", "active_bytes.all.current", "segment.all.current",
                    "allocation.all.allocated", "inactive_split_bytes.all.current",
                    "num_alloc_retries", "num_ooms", "requested_bytes.all.current"):
            print(key, stats[key])
        print(torch.cuda.memory_stats_as_nested_dict()["segment"]["all"]["current"])
    """),
    program("requested_and_allocated_differ", """
        x = torch.ones(10, device="cuda")
        y = torch.ones(200, device="cuda")
        stats = torch.cuda.memory_stats()
        print(stats["requested_bytes.all.current"], stats["allocated_bytes.all.current"])
        print(stats["inactive_split_bytes.all.current"], stats["inactive_split.all.current"])
    """),
    program("accumulated_statistics", """
        for _ in range(3):
            x = torch.empty(1000, device="cuda")
            del x
        stats = torch.cuda.memory_stats()
        print(stats["allocation.all.allocated"], stats["allocation.all.freed"])
        print(stats["allocated_bytes.all.allocated"], stats["segment.all.allocated"])
        torch.cuda.reset_accumulated_memory_stats()
        print(torch.cuda.memory_stats()["allocation.all.allocated"])
    """),
    program("mem_get_info", """
        free, total = torch.cuda.mem_get_info()
        print(type(free).__name__, 0 < free <= total)
        print(total == torch.cuda.get_device_properties(0).total_memory)
        x = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
        free, again = torch.cuda.mem_get_info("cuda")
        print(0 < free <= again, again == total)
    """),
    program("summary_is_text", """
        x = torch.ones(10, device="cuda")
        text = torch.cuda.memory_summary()
        print(type(text).__name__, "CUDA memory summary" in text, "Allocated memory" in text)
        print(len(torch.cuda.memory_summary(abbreviated=True)) < len(text))
        print(type(torch.cuda.list_gpu_processes).__name__)
    """),
    program("snapshot_structure", """
        x = torch.ones(1 << 18, device="cuda")
        y = torch.ones(10, device="cuda")
        for segment in sorted(torch.cuda.memory_snapshot(), key=lambda s: s["total_size"]):
            print(segment["device"], segment["segment_type"], segment["total_size"],
                  segment["allocated_size"], segment["stream"], segment["address"] % 512)
            print([(block["size"], block["state"]) for block in segment["blocks"]])
    """),
    program("snapshot_after_delete", """
        a, b, c = (torch.empty(1 << 20, device="cuda") for _ in range(3))
        del b
        for segment in torch.cuda.memory_snapshot():
            print([(block["size"], block["state"]) for block in segment["blocks"]])
        del a, c
        print([(s["total_size"], len(s["blocks"])) for s in torch.cuda.memory_snapshot()])
    """),
    program("out_of_memory_is_caught", """
        try:
            torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError as error:
            print(str(error).split(". ")[0], isinstance(error, RuntimeError))
        print(torch.ones(3, device="cuda").sum().item(), torch.cuda.memory_stats()["num_ooms"])
    """),
    program("out_of_memory_by_fraction", """
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(64 * 2**20 / total)
        x = torch.empty(40 << 20, dtype=torch.uint8, device="cuda")
        try:
            y = torch.empty(30 << 20, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError as error:
            print(str(error).split(". ")[1])
        del x
        y = torch.empty(30 << 20, dtype=torch.uint8, device="cuda")
        print(torch.cuda.memory_allocated() >> 20, torch.cuda.memory_reserved() >> 20)
        print(torch.cuda.memory_stats()["num_alloc_retries"], torch.cuda.memory_stats()["num_ooms"])
    """),
    program("nonsense_sizes", 'torch.empty(-1, device="cuda")'),
    program("oversized_shape", 'torch.empty(2**40, 2**40, device="cuda")'),
    program("memory_of_devices_apart", """
        x = torch.empty(1000, device="cuda:1")
        print(torch.cuda.memory_allocated(0), torch.cuda.memory_allocated(1))
        print(torch.cuda.memory_allocated("cuda:1"), torch.cuda.memory_reserved(x.device))
        with torch.cuda.device(1):
            print(torch.cuda.memory_allocated())
    """, 2),
    program("accelerator_memory", """
        x = torch.empty(1000, device="cuda")
        print(torch.accelerator.memory_allocated(), torch.accelerator.memory_reserved())
        del x
        torch.accelerator.empty_cache()
        print(torch.accelerator.memory_reserved(), torch.accelerator.max_memory_allocated())
    """),
    program("cublas_workspace_is_counted_once", """
        a = torch.ones(4, 4, device="cuda")
        first = torch.cuda.memory_allocated()
        b = a @ a
        second = torch.cuda.memory_allocated()
        c = a @ a
        print(second - first > 512, torch.cuda.memory_allocated() - second)
    """),
]
