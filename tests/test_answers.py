"""The checks of the exercises take any right answer, and say what is wrong with the others."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

import gpututor
from gpututor import doctor, exercises
from gpututor.doctor import Facts
from gpututor.exercises.solutions import lesson_01

pytestmark = pytest.mark.usefixtures("two_devices")


@pytest.mark.parametrize("exercise", exercises.every(), ids=lambda exercise: exercise.name)
def test_the_reference_solution_is_right(exercise: exercises.Exercise) -> None:
    for _ in range(3):
        verdict = gpututor.check(exercise.name, exercise.solution)
        assert verdict.passed, verdict


# -- 00-stopwatch ----------------------------------------------------------------------------


def no_first_wait(function: Callable[[], None]) -> float:
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def no_second_wait(function: Callable[[], None]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def clock_read_before_the_wait(function: Callable[[], None]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    seconds = time.perf_counter() - start
    torch.cuda.synchronize()
    return seconds


def milliseconds(function: Callable[[], None]) -> float:
    return 1000 * exercises.find("00-stopwatch").solution(function)


# -- 01-pick-device --------------------------------------------------------------------------


def asks_is_available(facts: Facts) -> str:
    return "cuda" if facts.is_available else "mps" if facts.mps else "xpu" if facts.xpu else "cpu"


def asks_device_count(facts: Facts) -> str:
    return "cuda" if facts.device_count else "mps" if facts.mps else "xpu" if facts.xpu else "cpu"


def asks_for_cuda_build(facts: Facts) -> str:
    works = facts.torch_cuda and facts.tiny_op == "ok"
    return "cuda" if works else "mps" if facts.mps else "xpu" if facts.xpu else "cpu"


def forgets_other_makers(facts: Facts) -> str:
    return "cuda" if facts.tiny_op == "ok" else "cpu"


def every_mac_has_a_gpu(facts: Facts) -> str:
    if facts.tiny_op == "ok":
        return "cuda"
    return "mps" if "macOS" in str(facts.os) else "xpu" if facts.xpu else "cpu"


def no_timeout(facts: Facts) -> str:
    works = facts.tiny_op in ("ok", "timeout")
    return "cuda" if works else "mps" if facts.mps else "xpu" if facts.xpu else "cpu"


def as_torch_devices(facts: Facts) -> torch.device:
    kinds = {"cuda:0": facts.tiny_op == "ok", "mps": facts.mps, "xpu": facts.xpu, "cpu": True}
    return torch.device(next(kind for kind, works in kinds.items() if works))


# -- 01-order --------------------------------------------------------------------------------


def in_order(*names: str, proof: bool = True) -> Callable[[Facts], str]:
    def verdict(facts: Facts) -> str:
        if proof and facts.tiny_op == "ok":
            return "fine"
        return next((name for name in names if lesson_01.checks[name](facts)), "fine")

    return verdict


# -- 02-leftover -----------------------------------------------------------------------------


class LeftOnTheHost(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.offset = torch.arange(4.0)
        self.factors = torch.nn.ParameterList(torch.ones(4) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors[0] * self.factors[1] + self.offset


class HalfTrained(LeftOnTheHost):
    def __init__(self) -> None:
        super().__init__()
        del self.offset
        self.register_buffer("offset", torch.arange(4.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors[0].detach() * self.factors[1] + self.offset


class TrainedOffset(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.offset = torch.nn.Parameter(torch.arange(4.0))
        self.factors = torch.nn.ParameterList(torch.ones(4) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors[0] * self.factors[1] + self.offset


class MovedInForward(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.offset = torch.arange(4.0)
        self.factors = torch.nn.ParameterList(torch.ones(4) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors[0] * self.factors[1] + self.offset.to(x.device)


class AlwaysOnTheGpu(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offset", torch.arange(4.0, device="cuda"))
        self.factors = [torch.nn.Parameter(torch.ones(4, device="cuda")) for _ in range(2)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors[0] * self.factors[1] + self.offset


class Untrained(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offset", torch.arange(4.0))
        self.unused = torch.nn.ParameterList(torch.ones(4) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.offset


class OneMatrix(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offset", torch.arange(4.0))
        self.factors = torch.nn.Parameter(torch.ones(2, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors[0] * self.factors[1] + self.offset


# -- 02-fewer-copies -------------------------------------------------------------------------


def on_the_host(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    return sum(float((batch * weights).sum()) for batch in batches)


def item_in_the_loop(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    weights = weights.cuda()
    return sum((batch.cuda() * weights).sum().item() for batch in batches)


def weights_in_the_loop(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    result = torch.zeros((), device="cuda")
    for batch in batches:
        result += (batch.cuda() * weights.cuda()).sum()
    return result.item()


def still_a_tensor(batches: list[torch.Tensor], weights: torch.Tensor) -> torch.Tensor:
    return (torch.stack(batches).cuda() * weights.cuda()).sum()


def summed_on_the_host(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    return sum((batch * weights).sum() for batch in batches).to("cuda").item()


def copied_for_show(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    for batch in batches:
        batch.to("cuda")
    return sum(float((batch * weights).sum()) for batch in batches)


def made_anew(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    result = torch.zeros((), device="cuda")
    for batch in batches:
        new = torch.tensor(batch.tolist(), device="cuda")
        result += (new * torch.tensor(weights.tolist(), device="cuda")).sum()
    return result.item()


def all_at_once(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    return (torch.stack(batches).cuda() * weights.cuda()).sum().item()


# -- 02-move-batch ---------------------------------------------------------------------------


def only_dicts(batch: Any, device: str) -> Any:
    return {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in batch.items()}


def breaks_namedtuples(batch: Any, device: str) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {k: breaks_namedtuples(v, device) for k, v in batch.items()}
    if isinstance(batch, (list, tuple)):
        kind = list if isinstance(batch, list) else tuple
        return kind(breaks_namedtuples(v, device) for v in batch)
    return batch


def changes_the_batch(batch: Any, device: str) -> Any:
    if isinstance(batch, dict):
        for key, value in batch.items():
            batch[key] = changes_the_batch(value, device)
        return batch
    return exercises.find("02-move-batch").solution(batch, device)


def never_back(batch: Any, device: str) -> Any:
    return exercises.find("02-move-batch").solution(batch, "cuda")


def zeros(batch: Any, device: str) -> Any:
    moved = exercises.find("02-move-batch").solution(batch, device)
    return exercises.find("02-move-batch").solution(
        {k: torch.zeros_like(v) if isinstance(v, torch.Tensor) else v for k, v in moved.items()}
        if isinstance(moved, dict)
        else moved,
        device,
    )


def only_floats(batch: Any, device: str) -> Any:
    from torch.utils import _pytree

    return _pytree.tree_map(
        lambda v: v.to(device).float() if isinstance(v, torch.Tensor) else v, batch
    )


def nothing_from_nothing(batch: Any, device: str) -> Any:
    if isinstance(batch, dict):
        return {k: nothing_from_nothing(v, device) for k, v in batch.items()}
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    return exercises.find("02-move-batch").solution(batch, device) if batch else None


def with_tree_map(batch: Any, device: str) -> Any:
    from torch.utils import _pytree

    def to(value: Any) -> Any:
        return value.to(device) if isinstance(value, torch.Tensor) else value

    return _pytree.tree_map(to, batch)


# -- 04-benchmark ----------------------------------------------------------------------------


def timed(choose: Callable[[list[float]], float], warm_up: int = 3, runs: int = 11) -> Any:
    def benchmark(work: Callable[[], None]) -> float:
        for _ in range(warm_up):
            work()
        times = []
        for _ in range(runs):
            torch.cuda.synchronize()
            start = time.perf_counter()
            work()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        return choose(times)

    return benchmark


def never_synchronised(work: Callable[[], None]) -> float:
    times = []
    for _ in range(11):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def not_before(work: Callable[[], None]) -> float:
    times = []
    for _ in range(11):
        work()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def events_benchmark(work: Callable[[], None]) -> float:
    times = []
    work(), work(), work(), work()
    for _ in range(9):
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return statistics.median(times)


# -- 04-hidden-waits -------------------------------------------------------------------------


def waits_for_the_mask(batches: list[torch.Tensor]) -> tuple[float, float]:
    everything = [(batch[batch > 0].sum(), batch.max()) for batch in batches]
    return (
        torch.stack([total for total, _ in everything]).sum().item(),
        max(0.0, torch.stack([largest for _, largest in everything]).max().item()),
    )


def on_the_host_at_once(batches: list[torch.Tensor]) -> tuple[float, float]:
    x = torch.stack(list(batches)).cpu()
    return float(x.clamp(min=0).sum()), float(x.max())


def says_that_it_waits(batches: list[torch.Tensor]) -> tuple[float, float]:
    total, largest = torch.zeros((), device="cuda"), torch.zeros((), device="cuda")
    for batch in batches:
        total += batch.relu().sum()
        largest = torch.maximum(largest, batch.max())
        torch.cuda.synchronize()
    return total.item(), largest.item()


def tensors_returned(batches: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.stack(list(batches))
    return x.clamp(min=0).sum(), x.max()


def everything_at_once(batches: list[torch.Tensor]) -> tuple[float, ...]:
    x = torch.stack([batches[index] for index in range(len(batches))])
    return tuple(torch.stack([x.clamp(min=0).sum(), x.max().clamp(min=0)]).tolist())


# -- 04-launch-bound -------------------------------------------------------------------------


def by_hiding_the_launches(work: Callable[[], None]) -> bool:
    def seconds(hidden: bool) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        if hidden:
            torch.cuda._sleep(5_000_000)
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end))

    seconds(False)
    return seconds(True) < 0.75 * seconds(False)


# -- 03-race ---------------------------------------------------------------------------------


def answer_to_race(
    before: bool = True, after: bool = True, streams: int = 2, chained: bool = False
) -> Callable[..., torch.Tensor]:
    """Return an answer with or without the waits before and after, or without overlap."""

    def both(x: torch.Tensor, left: Any, right: Any) -> torch.Tensor:
        current = torch.cuda.current_stream()
        one, two = torch.cuda.Stream(), torch.cuda.Stream()
        two = two if streams == 2 else one
        if before:
            one.wait_stream(current)
            two.wait_stream(current)
        with torch.cuda.stream(one):
            a = left(x)
        if chained:
            two.wait_stream(one)
        with torch.cuda.stream(two):
            b = right(x)
        if after:
            current.wait_stream(one)
            current.wait_stream(two)
        return a + b

    return both


def only_one_side_waited_for(x: torch.Tensor, left: Any, right: Any) -> torch.Tensor:
    current, two = torch.cuda.current_stream(), torch.cuda.Stream()
    two.wait_stream(current)
    with torch.cuda.stream(two):
        b = right(x)
    return left(x) + b + 0 * x


def the_host_waits(x: torch.Tensor, left: Any, right: Any) -> torch.Tensor:
    torch.cuda.synchronize()
    result = answer_to_race()(x, left, right)
    torch.cuda.synchronize()
    return result


def with_one_stream_and_events(x: torch.Tensor, left: Any, right: Any) -> torch.Tensor:
    side, ready, done = torch.cuda.Stream(), torch.cuda.Event(), torch.cuda.Event()
    ready.record()
    with torch.cuda.stream(side):
        side.wait_event(ready)
        b = right(x)
        done.record()
    a = left(x)  # on the current stream
    torch.cuda.current_stream().wait_event(done)
    return a + b


# -- 03-pipeline -----------------------------------------------------------------------------


def in_chunks(chunks: int, streams: int = 3, joined: bool = True) -> Callable[..., None]:
    """Return an answer in so many chunks on so many streams."""

    def pipeline(host: torch.Tensor, back: torch.Tensor, work: Any) -> None:
        current = torch.cuda.current_stream()
        used = [torch.cuda.Stream() for _ in range(streams)]
        device = torch.empty_like(host, device="cuda")
        for stream in used:
            stream.wait_stream(current)
        parts = zip(host.chunk(chunks), device.chunk(chunks), back.chunk(chunks), strict=True)
        for number, (source, values, target) in enumerate(parts):
            with torch.cuda.stream(used[number % streams]):
                values.copy_(source, non_blocking=True)
                work(values)
                target.copy_(values, non_blocking=True)
        for stream in used if joined else ():
            current.wait_stream(stream)

    return pipeline


def a_stream_for_each_part(host: torch.Tensor, back: torch.Tensor, work: Any) -> None:
    current = torch.cuda.current_stream()
    into, out = torch.cuda.Stream(), torch.cuda.Stream()
    device = torch.empty_like(host, device="cuda")
    into.wait_stream(current)
    parts = zip(host.chunk(12), device.chunk(12), back.chunk(12), strict=True)
    for source, values, target in parts:
        with torch.cuda.stream(into):
            values.copy_(source, non_blocking=True)
            arrived = into.record_event()
        current.wait_event(arrived)
        work(values)
        out.wait_stream(current)
        with torch.cuda.stream(out):
            target.copy_(values, non_blocking=True)
    current.wait_stream(out)


def a_stream_for_each_part_without_waits(host: torch.Tensor, back: torch.Tensor, work: Any) -> None:
    into, out = torch.cuda.Stream(), torch.cuda.Stream()
    device = torch.empty_like(host, device="cuda")
    parts = zip(host.chunk(8), device.chunk(8), back.chunk(8), strict=True)
    for source, values, target in parts:
        with torch.cuda.stream(into):
            values.copy_(source, non_blocking=True)
        work(values)
        with torch.cuda.stream(out):
            target.copy_(values, non_blocking=True)
    torch.cuda.synchronize()


def in_one_piece(host: torch.Tensor, back: torch.Tensor, work: Any) -> None:
    device = host.to("cuda", non_blocking=True)
    work(device)
    back.copy_(device, non_blocking=True)


def work_on_the_host(host: torch.Tensor, back: torch.Tensor, work: Any) -> None:
    work(back.copy_(host))


# -- 03-explain ------------------------------------------------------------------------------

CAUSES = {"A": "slow host", "B": "pageable memory", "C": "full GPU", "D": "one stream"}


WRONG = [
    ("00-stopwatch", no_first_wait, "earlier work was still going on"),
    ("00-stopwatch", no_second_wait, "the work was still going on"),
    ("00-stopwatch", clock_read_before_the_wait, "about the time of its launch"),
    ("00-stopwatch", milliseconds, "more than went by"),
    ("00-stopwatch", lambda function: 1.0, "0 calls"),
    ("00-stopwatch", lambda function: None, "still to be written"),
    ("01-pick-device", asks_is_available, '"cuda"'),
    ("01-pick-device", asks_device_count, '"cuda"'),
    ("01-pick-device", asks_for_cuda_build, '"cpu"'),
    ("01-pick-device", forgets_other_makers, '"cpu"'),
    ("01-pick-device", every_mac_has_a_gpu, '"mps"'),
    ("01-pick-device", no_timeout, '"cuda"'),
    ("01-pick-device", lambda facts: facts.tiny_op == "ok", "True"),
    ("01-pick-device", lambda facts: "gpu", "'gpu'"),
    ("01-pick-device", lambda facts: None, "still to be written"),
    ("01-pick-device", lambda facts: facts.torch_cuda.split(".") and "cuda", "'NoneType' object"),
    (
        "01-order",
        in_order("usability", "architecture", "visibility", "driver", "build", proof=False),
        "usability on the Windows desktop, where it is build (and",
    ),
    (
        "01-order",
        in_order("build", "driver", "visibility", "architecture", "usability", proof=False),
        "driver on the other company, where it is fine (and 1 more)",
    ),
    (
        "01-order",
        in_order("driver", "build", "visibility", "architecture", "usability"),
        "driver on the laptop, where it is build",
    ),
    (
        "01-order",
        in_order("build", "visibility", "driver", "architecture", "usability"),
        "visibility on the old workstation, where it is driver (and 1 more)",
    ),
    (
        "01-order",
        in_order("build", "driver", "visibility", "usability", "architecture"),
        "usability on the new card, where it is architecture (and 1 more)",
    ),
    ("01-order", lambda facts: "fine", "fine on the Windows desktop"),
    ("01-order", lambda facts: None, "still to be written"),
    ("02-leftover", LeftOnTheHost, "after .to('cuda') the call failed: Expected all tensors"),
    ("02-leftover", HalfTrained, "none there"),
    ("02-leftover", Untrained, "[2.0, 3.0, 4.0, 5.0]"),
    ("02-leftover", TrainedOffset, "12 numbers as parameters"),
    ("02-leftover", MovedInForward, "not in there"),
    ("02-leftover", AlwaysOnTheGpu, "0 numbers as parameters"),
    ("02-leftover", torch.nn.Linear, "missing 2 required"),
    ("02-leftover", 3, "3"),
    ("02-fewer-copies", on_the_host, "no tensor was copied to it"),
    ("02-fewer-copies", item_in_the_loop, "8 copies to the host"),
    ("02-fewer-copies", weights_in_the_loop, "16 copies to the GPU"),
    ("02-fewer-copies", still_a_tensor, "a tensor on cuda:0"),
    ("02-fewer-copies", summed_on_the_host, "not all batches"),
    ("02-fewer-copies", copied_for_show, "not computed there"),
    ("02-fewer-copies", made_anew, "16 copies to the GPU"),
    ("02-fewer-copies", lambda batches, weights: 0.0, "0.0"),
    ("02-fewer-copies", lambda batches, weights: None, "still to be written"),
    ("02-move-batch", only_dicts, "cpu"),
    ("02-move-batch", breaks_namedtuples, "a tuple"),
    ("02-move-batch", changes_the_batch, "was changed"),
    ("02-move-batch", zeros, "0.0"),
    ("02-move-batch", never_back, "one is still on the GPU"),
    ("02-move-batch", only_floats, "torch.float32"),
    ("02-move-batch", nothing_from_nothing, "NoneType"),
    ("02-move-batch", lambda batch, device: batch, "on cpu"),
    ("02-move-batch", lambda batch, device: None, "still to be written"),
    ("02-move-batch", "move", "'str' object is not callable"),
    ("04-benchmark", never_synchronised, "what launching takes"),
    ("04-benchmark", timed(min), "the luckiest call"),
    ("04-benchmark", timed(statistics.mean), "slow calls pull a mean up"),
    ("04-benchmark", timed(statistics.median, warm_up=0, runs=6), "without warm-up"),
    ("04-benchmark", timed(statistics.median, runs=1), "4 calls"),
    ("04-benchmark", not_before, "still running"),
    ("04-benchmark", lambda work: "10 ms", "'10 ms'"),
    ("04-hidden-waits", waits_for_the_mask, "in: everything = [(batch[batch > 0]"),
    ("04-hidden-waits", on_the_host_at_once, "not computed there"),
    ("04-hidden-waits", says_that_it_waits, "waited for the GPU in between"),
    ("04-hidden-waits", tensors_returned, "tensor("),
    ("04-hidden-waits", lambda batches: (0.0, 0.0), "(0.0, 0.0)"),
    ("04-launch-bound", lambda work: True, "True"),
    ("04-launch-bound", lambda work: False, "False"),
    ("04-launch-bound", lambda work: 0.5, "0.5"),
    ("03-race", answer_to_race(False, False), "20 of 20 results were wrong"),
    ("03-race", answer_to_race(before=False), "20 of 20 results were wrong"),
    ("03-race", answer_to_race(after=False), "20 of 20 results were wrong"),
    ("03-race", only_one_side_waited_for, "results were wrong"),
    ("03-race", answer_to_race(streams=1), "for 0% of their time"),
    ("03-race", answer_to_race(chained=True), "for 0% of their time"),
    ("03-race", lambda x, left, right: left(x) + right(x), "for 0% of their time"),
    ("03-race", the_host_waits, "the host had waited"),
    ("03-race", lambda x, left, right: 5 * x, "0 and 0 calls"),
    ("03-race", lambda x, left, right: 1.0, "1.0"),
    ("03-race", lambda x, left, right: None, "still to be written"),
    ("03-pipeline", in_one_piece, "times as long, at best"),
    ("03-pipeline", in_chunks(4), "times as long, at best"),
    ("03-pipeline", in_chunks(64), "times as long, at best"),
    ("03-pipeline", in_chunks(12, streams=1), "times as long, at best"),
    ("03-pipeline", in_chunks(12, joined=False), "numbers in back were wrong"),
    ("03-pipeline", a_stream_for_each_part_without_waits, "numbers in back were wrong"),
    ("03-pipeline", work_on_the_host, "on cpu"),
    ("03-pipeline", lambda host, back, work: None, "still to be written"),
    ("03-explain", lambda: CAUSES | {"C": "one stream"}, "the timeline of C does not show that"),
    ("03-explain", lambda: CAUSES | {"A": "magic"}, "'magic' for A"),
    ("03-explain", lambda: {"A": "slow host"}, "none for B and C and D"),
    ("03-explain", lambda: "slow host", "slow host"),
    ("03-explain", lambda: None, "still to be written"),
]
RIGHT = [
    ("01-pick-device", as_torch_devices),
    # No machine is both hidden and without code, so these two checks may change places.
    ("01-order", in_order("build", "driver", "architecture", "visibility", "usability")),
    ("01-order", lambda facts: doctor.diagnose(facts)[0].verdict),
    ("02-leftover", OneMatrix),
    ("02-fewer-copies", all_at_once),
    ("02-move-batch", with_tree_map),
    ("04-benchmark", events_benchmark),
    ("04-hidden-waits", everything_at_once),
    ("04-launch-bound", by_hiding_the_launches),
    ("03-race", with_one_stream_and_events),
    ("03-pipeline", in_chunks(10, streams=4)),
    ("03-pipeline", a_stream_for_each_part),
    ("03-explain", lambda: dict(reversed(CAUSES.items()))),
]


@pytest.mark.parametrize(("name", "answer", "seen"), WRONG)
def test_a_wrong_answer_is_told_why(name: str, answer: Any, seen: str) -> None:
    for _ in range(3):  # a busy machine can hold a clock up
        verdict = gpututor.check(name, answer)
        if not verdict.passed and seen in verdict.seen:
            break
    assert not verdict.passed
    assert seen in verdict.seen and "and 0 more" not in verdict.seen
    # Every verdict says what a right answer does, but that of an answer still to be written.
    assert bool(verdict.expected) == (verdict.seen != exercises.UNWRITTEN)


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("02-leftover", HalfTrained, "a gradient for factors.0 on cuda"),
        ("02-fewer-copies", made_anew, "at most 9 copies to the GPU"),
        ("04-benchmark", timed(min), "about 10 ms"),
        ("04-hidden-waits", on_the_host_at_once, "the sums and the maxima on the GPU"),
    ],
)
def test_a_wrong_answer_is_told_what_a_right_one_does(
    name: str, answer: Any, expected: str
) -> None:
    assert expected in gpututor.check(name, answer).expected


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_another_right_answer_is_right(name: str, answer: Any) -> None:
    verdict = gpututor.check(name, answer)
    assert verdict.passed, verdict
