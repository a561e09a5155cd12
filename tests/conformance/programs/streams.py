"""Streams and events: what is ordered, who waits for whom, and which objects are equal.

Every program waits where it must, so that it prints the same whatever the speed of the device.
"""

from __future__ import annotations

from ._program import in_group

# fmt: off
# A program's name and the opening of its text share a line.

program = in_group("streams")

OBJECTS = [
    program("current_is_default_at_first", """
        print(torch.cuda.current_stream() == torch.cuda.default_stream())
        print(torch.cuda.default_stream() == torch.cuda.default_stream(0))
        print(torch.cuda.default_stream().cuda_stream, torch.cuda.default_stream().query())
    """),
    program("stream_equality_and_hash", """
        a, b = torch.cuda.Stream(), torch.cuda.Stream()
        print(a == a, a == b, a != b, a == torch.cuda.default_stream(), a == None, a == 1)
        with torch.cuda.stream(a):
            current = torch.cuda.current_stream()
        print(current == a, current is a, hash(current) == hash(a), len({a, current}))
        print(a.stream_id != b.stream_id, a.cuda_stream != b.cuda_stream)
    """),
    program("stream_attributes", """
        s = torch.cuda.Stream()
        print(s.device, s.device_index, s.device_type == torch.cuda.default_stream().device_type)
        print(type(s).__name__, isinstance(s, torch.Stream), s.priority, s.query())
        print(torch.cuda.Stream(device="cuda:0").device, torch.cuda.Stream(0).device)
    """),
    program("stream_priorities", """
        low, high = torch.cuda.Stream.priority_range()
        print(low >= high, low, torch.cuda.Stream(priority=-1).priority)
        s = torch.cuda.Stream(priority=high)
        with torch.cuda.stream(s):
            x = torch.ones(3, device="cuda") * 2
        s.synchronize()
        print(x, torch.cuda.Stream(priority=5).priority)
    """),
    program("stream_context_nests_and_restores", """
        a, b = torch.cuda.Stream(), torch.cuda.Stream()
        names = {torch.cuda.default_stream(): "default", a: "a", b: "b"}
        seen = [names[torch.cuda.current_stream()]]
        with torch.cuda.stream(a):
            seen.append(names[torch.cuda.current_stream()])
            with torch.cuda.stream(b):
                seen.append(names[torch.cuda.current_stream()])
            seen.append(names[torch.cuda.current_stream()])
            with torch.cuda.stream(torch.cuda.default_stream()):
                seen.append(names[torch.cuda.current_stream()])
        seen.append(names[torch.cuda.current_stream()])
        print(seen)
    """),
    program("stream_context_restores_after_error", """
        s = torch.cuda.Stream()
        try:
            with torch.cuda.stream(s):
                torch.ones(2, device="cuda") + torch.ones(3, device="cuda")
        except RuntimeError:
            print(torch.cuda.current_stream() == torch.cuda.default_stream())
    """),
    program("stream_context_reused", """
        s = torch.cuda.Stream()
        context = torch.cuda.stream(s)
        for _ in range(2):
            with context:
                print(torch.cuda.current_stream() == s)
        print(torch.cuda.current_stream() == s)
    """),
    program("set_stream", """
        s = torch.cuda.Stream()
        torch.cuda.set_stream(s)
        print(torch.cuda.current_stream() == s)
        torch.cuda.set_stream(torch.cuda.default_stream())
        print(torch.cuda.current_stream() == s)
    """),
    program("stream_as_context_manager", """
        s = torch.cuda.Stream()
        with s:
            print(torch.cuda.current_stream() == s)
        print(torch.cuda.current_stream() == s)
    """),
    program("streams_from_the_pool_repeat", """
        streams = [torch.cuda.Stream() for _ in range(64)]
        print(len(set(streams)), streams[32] == streams[0])
    """),
    program("current_stream_is_per_thread", """
        import threading
        s, seen = torch.cuda.Stream(), []

        def look():
            seen.append(torch.cuda.current_stream() == torch.cuda.default_stream())

        with torch.cuda.stream(s):
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
        print(seen)
    """),
    program("event_attributes", """
        e = torch.cuda.Event(enable_timing=True, blocking=True)
        print(isinstance(e, torch.Event), type(e).__name__, e.query())
        e.record()
        e.synchronize()
        print(e.query(), e.device)
    """),
    program("record_event_makes_one", """
        s = torch.cuda.Stream()
        e = s.record_event()
        print(type(e).__name__, s.record_event(e) is e)
        e.synchronize()
        print(e.query())
    """),
    program("event_reused", """
        e, f = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for _ in range(3):
            e.record()
            torch.ones(100, device="cuda").sum()
            f.record()
            f.synchronize()
            print(e.elapsed_time(f) > 0, f.query())
    """),
    program("generic_stream_and_event", """
        s = torch.Stream(device="cuda")
        e = torch.Event(device="cuda", enable_timing=True)
        print(s.device, type(s).__name__, e.device, type(e).__name__)
        s.record_event(e)
        e.synchronize()
        print(e.query(), s.query())
    """),
    program("generic_stream_context", """
        s = torch.Stream(device="cuda")
        with s:
            print(torch.accelerator.current_stream() == s)
            x = torch.ones(4, device="cuda") * 3
        s.synchronize()
        print(x.sum().item(), torch.accelerator.current_stream() == s)
    """),
    program("generic_events_time", """
        a, b = (torch.Event("cuda", enable_timing=True) for _ in range(2))
        a.record()
        torch.ones(100, device="cuda").sum()
        b.record()
        torch.accelerator.synchronize()
        print(a.elapsed_time(b) > 0)
    """),
    program("accelerator_streams", """
        s = torch.cuda.Stream()
        torch.accelerator.set_stream(s)
        print(torch.cuda.current_stream() == s, torch.accelerator.current_stream() == s)
        print(torch.accelerator.current_device_index())
    """),
    program("stream_of_other_gpu", """
        s = torch.cuda.Stream(device=1)
        print(s.device, torch.cuda.current_device())
        with torch.cuda.stream(s):
            print(torch.cuda.current_device(), torch.ones(1, device="cuda").device)
            print(torch.cuda.current_stream() == s, torch.cuda.current_stream(0) == s)
        print(torch.cuda.current_device(), torch.cuda.current_stream(1) == s)
    """, 2),
    program("default_streams_of_two_gpus", """
        a, b = torch.cuda.default_stream(0), torch.cuda.default_stream(1)
        print(a == b, a.device, b.device)
        with torch.cuda.device(1):
            print(torch.cuda.current_stream() == b, torch.cuda.Stream().device)
    """, 2),
]

ORDER = [
    program("one_stream_is_in_order", """
        x = torch.zeros(1000, device="cuda")
        for _ in range(100):
            x += 1
        print(x.sum().item())
    """),
    program("one_side_stream_is_in_order", """
        s = torch.cuda.Stream()
        with torch.cuda.stream(s):
            x = torch.zeros(1000, device="cuda")
            torch.cuda._sleep(1_000_000)
            for i in range(10):
                x.mul_(2).add_(1)
            total = x[0].item()
        print(total)
    """),
    program("wait_stream_before_and_after", """
        s = torch.cuda.Stream()
        x = torch.zeros(1000, device="cuda")
        torch.cuda._sleep(20_000_000)
        x.fill_(3)
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            torch.cuda._sleep(20_000_000)
            y = x * 2
        torch.cuda.current_stream().wait_stream(s)
        print((y + 1).sum().item())
    """),
    program("wait_event_orders", """
        a, b = torch.cuda.Stream(), torch.cuda.Stream()
        done = torch.cuda.Event()
        x = torch.zeros(1000, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(a):
            torch.cuda._sleep(20_000_000)
            x.fill_(1)
            done.record()
        with torch.cuda.stream(b):
            b.wait_event(done)
            x.add_(1)
        b.synchronize()
        print(x.sum().item())
    """),
    program("event_wait_and_record_on_stream", """
        s, done = torch.cuda.Stream(), torch.cuda.Event()
        x = torch.zeros(10, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(s):
            torch.cuda._sleep(20_000_000)
            x.add_(5)
        done.record(s)
        done.wait()
        x.mul_(2)
        print(x.tolist())
    """),
    program("event_captures_only_earlier_work", """
        done = torch.cuda.Event()
        x = torch.ones(10, device="cuda")
        done.record()
        torch.cuda._sleep(1_000_000_000)
        done.synchronize()
        print(done.query(), torch.cuda.current_stream().query())
        torch.cuda.synchronize()
        print(torch.cuda.current_stream().query())
    """),
    program("event_rerecorded_means_latest", """
        done = torch.cuda.Event()
        done.record()
        done.synchronize()
        print(done.query())
        torch.cuda._sleep(1_000_000_000)
        done.record()
        print(done.query())
        torch.cuda.synchronize()
        print(done.query())
    """),
    program("streams_do_not_wait_for_each_other", """
        s = torch.cuda.Stream()
        torch.ones(4, device="cuda") + 1
        torch.cuda.synchronize()
        torch.cuda._sleep(1_000_000_000)
        with torch.cuda.stream(s):
            y = torch.ones(4, device="cuda") + 1
        s.synchronize()
        print(s.query(), torch.cuda.default_stream().query())
    """),
    program("item_waits_for_its_own_stream", """
        x = torch.zeros(10, device="cuda")
        torch.cuda._sleep(20_000_000)
        x += 7
        print(x[0].item(), x.cpu()[1].item(), x.tolist()[2], int(x[3]))
        print(torch.cuda.current_stream().query())
    """),
    program("launches_return_at_once", """
        import time
        torch.ones(1, device="cuda").add_(1)
        torch.cuda.synchronize()
        torch.cuda._sleep(1_000_000_000)
        start = time.perf_counter()
        x = torch.ones(1, device="cuda").add_(1)
        launch = time.perf_counter() - start
        start = time.perf_counter()
        torch.cuda.synchronize()
        wait = time.perf_counter() - start
        print(launch < wait, x.item())
    """),
    program("synchronise_forms", """
        s = torch.cuda.Stream()
        for wait in (torch.cuda.synchronize, s.synchronize, torch.accelerator.synchronize,
                     lambda: torch.cuda.synchronize("cuda"), lambda: torch.cuda.synchronize(0),
                     lambda: s.record_event().synchronize()):
            with torch.cuda.stream(s):
                torch.cuda._sleep(1_000_000)
            wait()
            print(s.query())
    """),
    program("default_stream_of_current_device_waits", """
        s = torch.cuda.Stream()
        x = torch.zeros(10, device="cuda")
        s.wait_stream(torch.cuda.default_stream())
        with torch.cuda.stream(s):
            torch.cuda._sleep(20_000_000)
            x.fill_(4)
        torch.cuda.default_stream().wait_stream(s)
        print(x.sum().item())
    """),
    program("record_stream_returns_nothing", """
        s = torch.cuda.Stream()
        x = torch.ones(10, device="cuda")
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            y = x * 2
        print(x.record_stream(s))
        del x
        torch.cuda.current_stream().wait_stream(s)
        print(y.sum().item())
    """),
    program("record_stream_protects", """
        s = torch.cuda.Stream()
        host = torch.empty(1 << 20, pin_memory=True)
        x = torch.full((1 << 20,), 1.0, device="cuda")
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            torch.cuda._sleep(50_000_000)
            host.copy_(x, non_blocking=True)
        x.record_stream(s)
        del x
        other = torch.full((1 << 20,), 9.0, device="cuda")
        torch.cuda.synchronize()
        print(host[0].item(), host[-1].item(), other[0].item())
    """),
    program("prefetch_pipeline", """
        copy, compute = torch.cuda.Stream(), torch.cuda.current_stream()
        hosts = [torch.full((1000,), float(i)).pin_memory() for i in range(5)]
        results = []
        for host in hosts:
            with torch.cuda.stream(copy):
                x = host.to("cuda", non_blocking=True)
            compute.wait_stream(copy)
            x.record_stream(compute)
            results.append((x * x).sum())
        print(torch.stack(results).tolist())
    """),
    program("pinned_round_trip_with_event", """
        s, done = torch.cuda.Stream(), torch.cuda.Event()
        a, b = torch.arange(1000.0).pin_memory(), torch.empty(1000, pin_memory=True)
        with torch.cuda.stream(s):
            x = a.to("cuda", non_blocking=True)
            x.mul_(2)
            b.copy_(x, non_blocking=True)
            done.record()
        done.synchronize()
        print(torch.equal(b, a * 2))
    """),
    program("changing_a_pageable_source_is_safe", """
        a = torch.ones(100_000)
        torch.cuda._sleep(20_000_000)
        x = a.to("cuda", non_blocking=True)
        a.fill_(2)
        print(x.sum().item())
    """),
    program("backward_runs_on_the_forward_stream", """
        s = torch.cuda.Stream()
        x = torch.ones(1000, device="cuda", requires_grad=True)
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            torch.cuda._sleep(20_000_000)
            y = (x * 3).sum()
            y.backward()
        torch.cuda.current_stream().wait_stream(s)
        print(x.grad.sum().item())
    """),
    program("backward_from_default_stream", """
        s = torch.cuda.Stream()
        x = torch.ones(1000, device="cuda", requires_grad=True)
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            y = x * 3
        torch.cuda.current_stream().wait_stream(s)
        y.sum().backward()
        torch.cuda.synchronize()
        print(x.grad.sum().item())
    """),
    program("hook_sees_forward_stream", """
        s, seen = torch.cuda.Stream(), []
        x = torch.ones(3, device="cuda", requires_grad=True)
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            y = x * 3
            y.register_hook(lambda g: seen.append(torch.cuda.current_stream() == s))
            z = y * 2
        torch.cuda.current_stream().wait_stream(s)
        z.sum().backward()
        torch.cuda.synchronize()
        print(seen)
    """),
    program("train_on_a_side_stream", """
        torch.manual_seed(0)
        s = torch.cuda.Stream()
        net = torch.nn.Linear(1, 1).cuda()
        x = torch.linspace(-1, 1, 32, device="cuda")[:, None]
        sgd = torch.optim.SGD(net.parameters(), lr=0.5)
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            for _ in range(60):
                sgd.zero_grad()
                torch.nn.functional.mse_loss(net(x), 2 * x).backward()
                sgd.step()
        torch.cuda.current_stream().wait_stream(s)
        print(round(net.weight.item(), 2))
    """),
    program("many_streams_each_with_work", """
        streams, parts = [torch.cuda.Stream() for _ in range(4)], []
        x = torch.arange(4000.0, device="cuda")
        for s, part in zip(streams, x.chunk(4)):
            s.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(s):
                parts.append(part.sum())
        for s in streams:
            torch.cuda.current_stream().wait_stream(s)
        print(torch.stack(parts).tolist())
    """),
    program("copies_between_gpus_are_ordered", """
        x = torch.zeros(1000, device="cuda:0")
        torch.cuda._sleep(20_000_000)
        x += 5
        y = x.to("cuda:1")
        y += 1
        x.copy_(y)
        print(x.sum().item(), y.sum().item())
    """, 2),
    program("events_across_gpus", """
        done = torch.cuda.Event()
        x = torch.zeros(10, device="cuda:0")
        torch.cuda._sleep(20_000_000)
        x.fill_(2)
        done.record()
        with torch.cuda.device(1):
            torch.cuda.current_stream().wait_event(done)
            y = torch.ones(10, device="cuda")
        torch.cuda.synchronize(1)
        print(done.query(), x.sum().item() + y.sum().item())
    """, 2),
    program("synchronize_one_gpu_only", """
        for i in range(2):
            torch.ones(1, device=f"cuda:{i}")
        torch.cuda.synchronize(0), torch.cuda.synchronize(1)
        with torch.cuda.device(1):
            torch.cuda._sleep(1_000_000_000)
        torch.cuda.synchronize(0)
        print(torch.cuda.current_stream(0).query(), torch.cuda.current_stream(1).query())
        torch.cuda.synchronize(1)
        print(torch.cuda.current_stream(1).query())
    """, 2),
    program("synchronise_uses_current_device", """
        torch.ones(1, device="cuda:1")
        torch.cuda.synchronize(1)
        with torch.cuda.device(1):
            torch.cuda._sleep(50_000_000)
            torch.cuda.synchronize()
            print(torch.cuda.current_stream().query())
    """, 2),
    program("elapsed_time_two_gpus", """
        a = torch.cuda.Event(enable_timing=True)
        b = torch.cuda.Event(enable_timing=True)
        a.record(torch.cuda.current_stream(0))
        b.record(torch.cuda.current_stream(1))
        torch.cuda.synchronize(0), torch.cuda.synchronize(1)
        a.elapsed_time(b)
    """, 2),
]

PROGRAMS = [*OBJECTS, *ORDER]
