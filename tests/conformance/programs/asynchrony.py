"""Errors that a kernel finds on the device: they surface late, and nothing works afterwards.

A launch has succeeded when the host goes on; the failure comes with the next synchronisation. Such
an error ruins the process's context, so each program needs a process of its own.
"""

from __future__ import annotations

from ._program import in_group

# fmt: off
# A program's name and the opening of its text share a line.

program = in_group("asynchrony")


def _asserts(name: str, setup: str, launch: str) -> list:
    """Return the program that launches a failing kernel and then synchronises."""
    code = "\n".join([setup, launch, 'print("launched")', "torch.cuda.synchronize()"])
    return program(name, code)


PROGRAMS = [
    *(
        _asserts(f"assert_{name}", setup, launch)
        for name, setup, launch in (
            (
                "index_two_dimensional",
                'x, i = torch.ones(3, 3, device="cuda"), torch.tensor([0, 5], device="cuda")',
                "y = x[:, i]",
            ),
            (
                "index_negative_too_far",
                'x, i = torch.ones(3, device="cuda"), torch.tensor([-4], device="cuda")',
                "y = x[i]",
            ),
            (
                "index_put",
                'x, i = torch.ones(3, device="cuda"), torch.tensor([7], device="cuda")',
                "x[i] = 1.0",
            ),
            (
                "gather",
                'x, i = torch.ones(2, 3, device="cuda"), torch.tensor([[3], [0]], device="cuda")',
                "y = x.gather(1, i)",
            ),
            (
                "scatter",
                'x, i = torch.zeros(3, device="cuda"), torch.tensor([3], device="cuda")',
                "x.scatter_(0, i, 1.0)",
            ),
            (
                "scatter_add",
                'x, i = torch.zeros(3, device="cuda"), torch.tensor([-1], device="cuda")',
                'x.scatter_add_(0, i, torch.ones(1, device="cuda"))',
            ),
            (
                "index_select",
                'x, i = torch.ones(3, device="cuda"), torch.tensor([3], device="cuda")',
                "y = x.index_select(0, i)",
            ),
            (
                "index_add",
                'x, i = torch.ones(3, device="cuda"), torch.tensor([3], device="cuda")',
                'x.index_add_(0, i, torch.ones(1, device="cuda"))',
            ),
            (
                "take",
                'x, i = torch.ones(3, device="cuda"), torch.tensor([3], device="cuda")',
                "y = x.take(i)",
            ),
            (
                "embedding",
                'table, i = torch.nn.Embedding(4, 2).cuda(), torch.tensor([4], device="cuda")',
                "y = table(i)",
            ),
            (
                "embedding_negative",
                'table, i = torch.nn.Embedding(4, 2).cuda(), torch.tensor([-1], device="cuda")',
                "y = table(i)",
            ),
            (
                "cross_entropy",
                'x, t = torch.ones(2, 3, device="cuda"), torch.tensor([0, 3], device="cuda")',
                "y = torch.nn.functional.cross_entropy(x, t)",
            ),
            (
                "cross_entropy_negative",
                'x, t = torch.ones(2, 3, device="cuda"), torch.tensor([0, -1], device="cuda")',
                "y = torch.nn.functional.cross_entropy(x, t)",
            ),
            (
                "nll_loss_of_images",
                'x, t = torch.zeros(1, 2, 2, 2).cuda(), torch.full((1, 2, 2), 2, device="cuda")',
                "y = torch.nn.functional.nll_loss(x, t)",
            ),
            (
                "binary_cross_entropy",
                'x, t = torch.full((2,), 1.5, device="cuda"), torch.ones(2, device="cuda")',
                "y = torch.nn.functional.binary_cross_entropy(x, t)",
            ),
            (
                "one_hot",
                't = torch.tensor([0, 5], device="cuda")',
                "y = torch.nn.functional.one_hot(t, 3)",
            ),
            (
                "bernoulli",
                'p = torch.tensor([1.5], device="cuda")',
                "y = torch.bernoulli(p)",
            ),
            (
                "multinomial_negative",
                'p = torch.tensor([1.0, -1.0], device="cuda")',
                "y = torch.multinomial(p, 1)",
            ),
            (
                "assert_async",
                'ok = torch.zeros(1, dtype=torch.bool, device="cuda")',
                "torch._assert_async(ok)",
            ),
        )
    ),
    program("surfaces_at_item", """
        x = torch.ones(3, device="cuda")
        y = x[torch.tensor([3], device="cuda")]
        print("launched", y.shape, y.dtype)
        y.item()
    """),
    program("surfaces_at_cpu", """
        y = torch.ones(3, device="cuda")[torch.tensor([3], device="cuda")]
        y.cpu()
    """),
    program("surfaces_at_print", """
        y = torch.ones(3, device="cuda")[torch.tensor([3], device="cuda")]
        print(y)
    """),
    program("surfaces_at_stream_synchronize", """
        y = torch.ones(3, device="cuda")[torch.tensor([3], device="cuda")]
        torch.cuda.current_stream().synchronize()
    """),
    program("surfaces_at_event_synchronize", """
        y = torch.ones(3, device="cuda")[torch.tensor([3], device="cuda")]
        event = torch.cuda.Event()
        event.record()
        event.synchronize()
    """),
    program("surfaces_at_backward", """
        table = torch.nn.Embedding(4, 2).cuda()
        loss = table(torch.tensor([9], device="cuda")).sum()
        torch.cuda._sleep(1000)
        try:
            torch.cuda.synchronize()
        except Exception as error:
            print(type(error).__name__)
        loss.backward()
    """),
    program("surfaces_on_another_stream", """
        s = torch.cuda.Stream()
        x, i = torch.ones(3, device="cuda"), torch.tensor([3], device="cuda")
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            y = x[i]
        s.synchronize()
    """),
    *(
        program(f"after_an_assert_{name}", f"""
            x = torch.ones(3, device="cuda")
            healthy = torch.ones(3)
            x[torch.tensor([3], device="cuda")]
            try:
                torch.cuda.synchronize()
            except Exception as error:
                print(type(error).__name__, isinstance(error, RuntimeError))
            print(healthy.sum().item(), x.shape, torch.cuda.is_available())
            {line}
        """)
        for name, line in (
            ("add", "x + 1"),
            ("synchronize", "torch.cuda.synchronize()"),
            ("upload", "healthy.cuda()"),
            ("download", "x.cpu()"),
            ("matmul", "x @ x"),
            ("empty_cache", "torch.cuda.empty_cache()"),
            ("new_stream", "torch.cuda.Stream().synchronize()"),
            ("memory_allocated", "print(torch.cuda.memory_allocated())"),
            ("delete", "del x; print('deleted')"),
            ("seed", "torch.cuda.manual_seed(0); print('seeded')"),
        )
    ),
    program("the_message_explains", """
        x = torch.ones(3, device="cuda")
        x[torch.tensor([3], device="cuda")]
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            print(type(error).__module__, type(error).__mro__[1].__name__)
            print("CUDA_LAUNCH_BLOCKING=1" in str(error), "asynchronously reported" in str(error))
    """),
    program("out_of_range_number_is_found_on_the_host", """
        x = torch.ones(3, device="cuda")
        try:
            x[3]
        except IndexError as error:
            print(error)
        print((x + 1).tolist())
    """),
    program("out_of_range_cpu_index", """
        x = torch.ones(3, device="cuda")
        y = x[torch.tensor([3])]
        torch.cuda.synchronize()
    """),
    program("out_of_range_list_index", """
        x = torch.ones(3, device="cuda")
        y = x[[0, 3]]
        torch.cuda.synchronize()
    """),
    program("other_errors_do_not_poison", """
        x = torch.ones(3, device="cuda")
        for mistake in (lambda: x + torch.ones(3), lambda: x.view(7), lambda: x.to("cuda:9"),
                        lambda: x @ torch.ones(4, device="cuda"), lambda: x.numpy(),
                        lambda: torch.empty(2**40, device="cuda"), lambda: x.sum(5)):
            try:
                mistake()
            except Exception as error:
                print(type(error).__name__)
        torch.cuda.synchronize()
        print((x + 1).tolist())
    """),
    program("integer_division_by_zero_passes", """
        x = torch.ones(3, dtype=torch.long, device="cuda")
        y = x // torch.zeros(3, dtype=torch.long, device="cuda")
        torch.cuda.synchronize()
        print(y.shape, (x + 1).tolist())
    """),
    program("assert_on_one_gpu_reaches_the_other", """
        x, y = torch.ones(3, device="cuda:0"), torch.ones(3, device="cuda:1")
        x[torch.tensor([3], device="cuda:0")]
        try:
            torch.cuda.synchronize(0)
        except Exception as error:
            print(type(error).__name__)
        (y + 1).cpu()
    """, 2),
]
