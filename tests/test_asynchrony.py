"""Launches return at once, backward keeps its stream, and nothing ever hangs."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from signals import stopped
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from gpututor import Machine
from gpututor.simulator.errors import NotSimulatedError

pytestmark = pytest.mark.usefixtures("simulated")

LIMIT = 5.0  # seconds in which everything here ends


def test_a_matmul_returns_before_it_is_done() -> None:
    x = torch.randn(2048, 2048)
    y = x.cuda()
    (y @ y).sum().item()
    fractions = []
    for _ in range(3):
        start = time.perf_counter()
        z = y @ y
        launched = time.perf_counter()
        torch.cuda.synchronize()
        done = time.perf_counter()
        fractions.append((launched - start) / (done - launched))
    assert sorted(fractions)[1] < 0.1
    total = (y @ y).sum().item()
    assert total == pytest.approx((x @ x).sum().item(), rel=1e-3, abs=1.0)
    torch.testing.assert_close(z.cpu(), x @ x, rtol=1e-4, atol=1e-3)


def test_event_time_is_the_model_and_the_same_every_time() -> None:
    x = torch.randn(1024, 1024, device="cuda")
    found = set()
    for _ in range(4):
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(3):
            x @ x
        end.record()
        end.synchronize()
        found.add(round(start.elapsed_time(end), 6))
    assert len(found) == 1
    product = 2 * 1024**3 / 8.1e12 * 50 * 1e3  # milliseconds: T4's float32 peak at 1/50
    assert found.pop() == pytest.approx(3 * product, rel=0.02)


def test_backward_runs_on_the_stream_of_its_forward() -> None:
    x = torch.randn(512, 512, device="cuda", requires_grad=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x
        for _ in range(8):
            y = y @ x
        loss = y.sum()
    torch.cuda.synchronize()
    marks = {name: torch.cuda.Event(enable_timing=True) for name in ("main", "side", "end")}
    marks["main"].record()
    marks["side"].record(side)
    (gradient,) = torch.autograd.grad(loss, x)
    after_main, after_side = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    after_side.record(side)
    after_main.record()
    torch.cuda.synchronize()
    busy = marks["side"].elapsed_time(after_side)
    product = 2 * 512**3 / 8.1e12 * 50 * 1e3
    assert busy > 14 * product  # sixteen products of backward, and all of them on `side`
    # The stream that called backward waits for it.
    assert marks["main"].elapsed_time(after_main) >= busy * 0.99
    host = x.detach().cpu().requires_grad_()
    y = host
    for _ in range(8):
        y = y @ host
    (right,) = torch.autograd.grad(y.sum(), host)
    torch.testing.assert_close(
        gradient.cpu(), right, rtol=1e-3, atol=1.0 + right.abs().max() * 1e-4
    )


def test_host_random_numbers_are_undisturbed() -> None:
    torch.manual_seed(5)
    expected = [torch.rand(3) for _ in range(4)]
    torch.manual_seed(5)
    found = [torch.rand(3)]
    drop = nn.LSTM(4, 4, 2, dropout=0.5).cuda()
    torch.manual_seed(5)
    found = [torch.rand(3)]
    torch.randn(100, device="cuda")
    found.append(torch.rand(3))
    nn.functional.dropout(torch.ones(50, device="cuda"), 0.5)
    torch.rand_like(torch.ones(3, device="cuda"))
    found.append(torch.rand(3))
    drop(torch.ones(3, 2, 4, device="cuda"))[0].sum().backward()
    torch.cuda.synchronize()
    found.append(torch.rand(3))
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


def _recurrent(kind: type[nn.RNNBase]) -> float:
    layer = kind(4, 5, 2, dropout=0.3, bidirectional=True).cuda()
    packed = nn.utils.rnn.pack_padded_sequence(torch.ones(6, 3, 4, device="cuda"), [6, 4, 2])
    output = layer(packed)[0]
    values, _ = nn.utils.rnn.pad_packed_sequence(output)
    values.sum().backward()
    return float(layer.weight_ih_l0.grad.sum().item())


def _compile() -> object:
    with pytest.raises(NotSimulatedError, match=r"torch\.compile"):
        torch.compile(lambda x: x + 1)(torch.ones(2, device="cuda"))
    return None


def _failing_kernel() -> object:
    x = torch.ones(4, device="cuda")
    x[torch.tensor([9], device="cuda")]
    with pytest.raises(RuntimeError, match="device-side assert triggered"):
        torch.cuda.synchronize()
    with pytest.raises(RuntimeError, match="device-side assert triggered"):
        torch.ones(3, device="cuda")
    return None


class _Deadly:
    """Work that takes the thread that does it down with it."""

    def start(self) -> None:
        raise ValueError("wrong")

    def finish(self) -> None:
        """Do nothing."""

    def failed(self, error: BaseException) -> None:
        raise SystemExit("the worker dies")


def _dying_worker() -> object:
    from gpututor.simulator import runtime

    x = torch.ones(4, device="cuda")
    torch.cuda.synchronize()
    engine = runtime.current().engine
    engine.submit(engine.now(), engine.now(), _Deadly())
    x + 1
    with pytest.raises(RuntimeError, match="the worker dies"):
        torch.cuda.synchronize()
    return None


def _thread_pool() -> object:
    with ThreadPoolExecutor(4) as pool:
        futures = [
            pool.submit(lambda k=k: (torch.full((3,), float(k), device="cuda") * 2).sum().item())
            for k in range(16)
        ]
        return [future.result() for future in futures] == [6.0 * k for k in range(16)] or 1 / 0


def _loader(**options: object) -> object:
    data = TensorDataset(torch.arange(32.0).view(16, 2))
    total = 0.0
    for (batch,) in DataLoader(data, batch_size=4, **options):  # type: ignore[arg-type]
        if options.get("pin_memory"):
            assert batch.is_pinned()
        total += batch.to("cuda", non_blocking=True).sum().item()
    assert total == 496.0
    return total


def _in_child(queue: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    try:
        torch.ones(1, device="cuda")
        queue.put("no error")
    except RuntimeError as error:
        queue.put(str(error))


def _fork() -> object:
    torch.ones(1, device="cuda")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert "Cannot re-initialize CUDA in forked subprocess" in queue.get(timeout=LIMIT)
    child.join()
    return None


def _interrupt() -> object:
    torch.cuda._sleep(50_000_000)  # 1.6 s in slow motion
    assert stopped(torch.cuda.synchronize, 0.2)
    torch.cuda.synchronize()
    assert (torch.ones(2, device="cuda") + 1).tolist() == [2, 2]
    return None


END_IN_TIME: dict[str, Callable[[], object]] = {
    "lstm": lambda: _recurrent(nn.LSTM),
    "gru": lambda: _recurrent(nn.GRU),
    "rnn": lambda: _recurrent(nn.RNN),
    "compile": _compile,
    "failing kernel": _failing_kernel,
    "dying worker": _dying_worker,
    "thread pool": _thread_pool,
    "loader": lambda: _loader(),
    "loader with workers": lambda: _loader(num_workers=2),
    "loader with pinning": lambda: _loader(pin_memory=True),
    "loader with both": lambda: _loader(num_workers=2, pin_memory=True),
    "fork": _fork,
    "interrupt": _interrupt,
}


@pytest.mark.parametrize("case", END_IN_TIME)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_it_ends(case: str) -> None:
    if case == "fork" and sys.platform == "win32":
        pytest.skip("Windows has no fork")
    done = threading.Event()
    if case != "interrupt":  # a signal reaches the main thread only
        failure: list[BaseException] = []

        def run() -> None:
            try:
                END_IN_TIME[case]()
            except BaseException as error:
                failure.append(error)
            done.set()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(LIMIT)
        assert done.is_set(), f"{case} did not end in {LIMIT} s"
        if failure:
            raise failure[0]
        return
    start = time.perf_counter()
    END_IN_TIME[case]()
    assert time.perf_counter() - start < LIMIT


def test_the_process_ends_with_work_pending() -> None:
    code = """
        import torch, gpututor
        gpututor.start(simulate="T4")
        x = torch.randn(2048, 2048, device="cuda")
        for _ in range(50):
            x = x @ x
    """
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - start < 30


@pytest.mark.parametrize(
    ("cycles", "error", "message"),
    [
        (10**27, ValueError, "Overflow"),
        (1.5, RuntimeError, "expected 'int'"),
        (True, RuntimeError, "expected 'int'"),
        ("many", RuntimeError, "expected 'int'"),
    ],
)
def test_a_sleep_takes_what_cuda_takes(
    simulated: Machine, cycles: object, error: type[Exception], message: str
) -> None:
    """Beyond 64 bits the simulated clock would stand still after it, and the host hang."""
    with pytest.raises(error, match=message):
        torch.cuda._sleep(cycles)  # type: ignore[arg-type]
    torch.cuda._sleep(1000)
    assert torch.ones(3, device="cuda").sum().item() == 3
