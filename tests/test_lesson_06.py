"""What lesson 06 shows is so, on the simulator and on a real GPU where there is one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

NOTEBOOK = Path(__file__).parents[1] / "notebooks/06_manage_gpu_memory.ipynb"
MIB = 2**20


def test_empty_cache_gives_back_whole_segments_and_nothing_that_is_held(
    lesson: Callable[..., dict[str, Any]],
) -> None:
    names = lesson("tools", "cache-measure")
    names["clean"]()
    there = names["memory"].numbers().cached  # beside tensors of a library, on a real GPU
    assert names["given_back"](False) == (there + 60 * MIB, 0, 20 * MIB)
    assert names["given_back"](True) == (there + 60 * MIB, 60 * MIB, 20 * MIB)


def test_what_is_cached_is_there_without_emptying_the_cache(
    lesson: Callable[..., dict[str, Any]],
) -> None:
    names = lesson("tools")
    names["clean"]()
    before = torch.cuda.memory_stats().get("num_alloc_retries", 0)
    with names["memory"].limit(120 * MIB):
        pieces = [names["buffer"](20) for _ in range(5)]
        del pieces
        assert names["buffer"](110).nbytes == 110 * MIB
    assert torch.cuda.memory_stats()["num_alloc_retries"] == before + 1


def test_parts_of_a_batch_take_less_and_give_the_same_gradient(
    lesson: Callable[..., dict[str, Any]],
) -> None:
    names = lesson("tools", "less-setup")
    peak, whole, parts = names["memory"].peak, names["whole"], names["parts"]
    net, data = names["mlp"](), names["host"].to("cuda")
    once = peak(lambda: whole(net, data))
    assert peak(lambda: parts(net, data)) < 0.4 * once
    assert peak(lambda: whole(net, data[:1024])) < 0.4 * once
    gradients = []
    for options in ({"work": whole}, {"work": parts}, {"work": parts, "divide": False}):
        options.pop("work")(net, data, **options)
        gradients.append(net[0].weight.grad.clone())
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-7)
    assert (gradients[2].norm() / gradients[0].norm()).item() == pytest.approx(4, rel=1e-3)


def test_the_last_section_leaves_nothing_to_an_earlier_one_that_is_run_again(
    lesson: Callable[..., dict[str, Any]],
) -> None:
    lesson("tools")["clean"]()
    before = torch.cuda.memory_reserved()
    names = lesson("tools", "less-setup", "less", "less-same", "less-streamed")
    names["clean"]()
    assert torch.cuda.memory_reserved() == before


def test_streaming_saves_where_no_graph_is_kept(lesson: Callable[..., dict[str, Any]]) -> None:
    names = lesson("tools", "less-setup", "less-streamed")
    peak, tower, host = names["memory"].peak, names["tower"], names["host"]
    once, streamed = peak(lambda: tower(host.to("cuda"))), peak(names["streamed"])
    with torch.inference_mode():
        quiet, both = peak(lambda: tower(host.to("cuda"))), peak(names["streamed"])
    assert both < 0.25 * quiet < 0.25 * 0.4 * once
    assert streamed > 0.8 * once


def test_a_retry_fits_outside_the_except_block_and_not_inside(
    lesson: Callable[..., dict[str, Any]],
) -> None:
    names = lesson("tools", "recover-forms", "recover-survives")
    names["clean"]()
    done = {
        form: sum(names["survives"](names[form], 100, 120) for _ in range(20))
        for form in ("inside", "outside")
    }
    assert done == {"inside": 0, "outside": 20}


def test_the_context_is_outside_the_allocator(gpu: str) -> None:
    torch.zeros(1, device="cuda")
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    outside = total - free - torch.cuda.memory_reserved()
    assert outside == 0 if gpu == "simulated" else outside > 100 * MIB
