"""The clock of the simulated machine, and the one thread that does its work.

Every piece of device work gets its modelled start and end when the host launches it: streams,
events, copy engines and multiprocessors are then plain arithmetic on times, and an event's time
is known at once and is the same in every run. What is left to do is to make the work *happen* at
those times: read inputs at the start, show results at the end. One thread does that for all
devices and streams, in the order of the modelled times, and never before the wall clock has
reached them. Where the CPU is slower than the model, the simulated clock waits.

Simulated time is ``time.perf_counter()`` minus a lag; both in seconds, in slow motion.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from heapq import heappop, heappush
from typing import Protocol

import torch

#: A host that is at most this late (in seconds) is not counted as late: the simulated clock waits
#: for it. Python's own hiccups would otherwise show up in event times.
HOST_SLACK = 5e-3

#: What keeps the host busy for longer (in seconds) is not waited for: the simulated clock jumps.
LONGEST_BUSY = 0.5

#: Seconds after which a waiting thread looks again by itself: an interrupt of the host can fall
#: between the queue and the bell.
_PATIENCE = 0.2
_log = logging.getLogger("gpututor")
_MAIN = threading.main_thread().ident
_FINISH, _START = 0, 1  # at equal times a result is shown before the next kernel reads it


class Work(Protocol):
    """Something a device does between two simulated times."""

    def start(self) -> None:
        """Do what happens when the modelled time begins."""

    def finish(self) -> None:
        """Do what happens when the modelled time ends."""

    def failed(self, error: BaseException) -> None:
        """Take what either of them raised. Must not raise."""


class _Worker(threading.local):
    """How far one thread of the host has come; None until it has launched something."""

    at: float | None = None


class Engine:
    """Runs work at its simulated time, and tells the host's side of that time.

    Attributes
    ----------
    workers : int
        Threads that share the interpreter while the main thread waits for them: what one of them
        does on the host takes so many times as long. Set by `collectives`.
    """

    def __init__(self) -> None:
        #: What failed first on any device. As on CUDA, no device of the process works after it.
        self.failure: str | None = None
        self.told = False  # whether the host has been told
        self._lag = 0.0
        self._jumped = 0.0
        self.workers = 1
        self._host = 0.0  # how far the host's main thread has come, in simulated seconds
        self._worker = _Worker()
        self._workers_host = 0.0  # how far the furthest of its other threads has come
        self._queue: list[tuple[float, int, int, Work]] = []
        self._order = itertools.count()
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)  # the thread waits here for work
        #: The host waits here for results: locks that the thread opens. An interrupt of the host
        #: falls into such a wait, so it must not hold `_lock` there, as a condition would.
        self._bells: list[threading.Lock] = []
        self._sleeping_until: float | None = None
        self._running: float | None = None
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    # -- the host's side ---------------------------------------------------------------------

    def now(self) -> float:
        """Return the simulated time: the wall clock's, held back where work is late."""
        now = time.perf_counter() - self._lag
        pending = self._running
        if pending is None:
            queue = self._queue
            if not queue:
                return now
            pending = queue[0][0]
        return now if now < pending else pending

    def spend(self, cost: float) -> float:
        """Count `cost` seconds of the calling thread's work; return when it is done.

        The main thread goes on from where the furthest thread is. Every other thread begins where
        the main thread is: it does not matter in which order threads get to run.
        """
        now = self.now()
        if threading.get_ident() == _MAIN:
            host = max(self._host, self._workers_host)
        else:
            cost *= self.workers
            at = self._worker.at
            host = self._host if at is None else at
        if now - host > HOST_SLACK:
            host = now
        host += cost
        self._reach(host)
        return host

    def _reach(self, host: float) -> None:
        if threading.get_ident() == _MAIN:
            self._host = host
        else:
            self._worker.at = host
            with self._lock:
                self._workers_host = max(self._workers_host, host)

    def busy(self, seconds: float) -> None:
        """Keep the host busy for `seconds`; a long time passes at once, as its clock jumps."""
        end = self.spend(seconds)
        if seconds > LONGEST_BUSY:
            self.jump(end)
        self.wait(end)

    def ready(self, start: float) -> float:
        """Return the time work can really start that should start at `start`.

        A little late is the host's hiccup, and the clock waits for it.
        """
        late = time.perf_counter() - self._lag - start
        if late <= 0:
            return start
        if self._running is not None or (self._queue and self._queue[0][0] <= start):
            return start  # the thread itself is behind: it will come to this in its order
        if late <= HOST_SLACK:
            with self._lock:
                self._lag += late
            return start
        return start + late

    def submit(self, start: float, end: float, work: Work, *, copies: bool = False) -> None:
        """Queue `work`; times in simulated seconds. A copy has nothing to do at its start."""
        with self._lock:
            first = end if copies else start
            if not copies:
                heappush(self._queue, (start, _START, next(self._order), work))
            heappush(self._queue, (end, _FINISH, next(self._order), work))
            if self._thread is None:
                self._begin()
            sleeping = self._sleeping_until
            if sleeping is not None and first < sleeping:
                self._wake.notify()

    def hold(self, seconds: float) -> None:
        """Hold the host for `seconds` of the wall clock; the clock of an idle machine waits too."""
        begin = time.perf_counter()
        idle = self._running is None and not self._queue
        time.sleep(seconds)
        with self._lock:
            if idle and self._running is None and not self._queue:
                self._lag += time.perf_counter() - begin

    def reached(self, when: float) -> bool:
        """Tell whether everything up to the simulated time `when` has happened."""
        if self._error is not None:
            self._check_thread()
        if self._running is not None and self._running <= when:
            return False
        queue = self._queue
        if queue and queue[0][0] <= when:
            return False
        return time.perf_counter() - self._lag >= when

    def wait(self, when: float) -> None:
        """Block the host until everything up to `when` has happened; it then is at `when`."""
        while True:
            with self._lock:
                busy = (self._running is not None and self._running <= when) or (
                    bool(self._queue) and self._queue[0][0] <= when
                )
                if busy:
                    self._check_thread()
                    bell = threading.Lock()
                    bell.acquire()
                    self._bells.append(bell)
                remaining = when + self._lag - time.perf_counter()
            if busy:
                bell.acquire(timeout=_PATIENCE)
                continue
            if remaining <= 0:
                break
            time.sleep(min(remaining, _PATIENCE))
        before = self._host if threading.get_ident() == _MAIN else self._worker.at
        if before is None or when > before:
            self._reach(when)

    def jump(self, when: float) -> None:
        """Set the clock forward to `when`; work until then is caught up with at once."""
        with self._lock:
            self._lag = min(self._lag, time.perf_counter() - when)
            self._jumped = when

    # -- the thread's side -------------------------------------------------------------------

    def _check_thread(self) -> None:
        if self._error is not None:
            self.told = True
            raise RuntimeError(f"the simulator's own thread failed: {self._error!r}")
        if self._thread is None:
            self._begin()
        elif self._stopped:
            raise RuntimeError("the simulated GPU was stopped while work was pending")

    def lose_thread(self) -> None:
        """Stop in a forked child: it has no thread, and its parent's may have held the lock."""
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._stopped = True

    def _ring(self) -> None:
        while self._bells:
            self._bells.pop().release()

    def _begin(self) -> None:
        threading.Thread(target=self._run, name="simulated-gpu", daemon=True).start()

    def _run(self) -> None:
        with self._lock:
            if self._thread is not None:
                return  # an interrupt of the host fell into `_begin`, so that it was called again
            self._thread = threading.current_thread()
        try:
            with torch.no_grad():
                self._loop()
        except BaseException as error:  # raised to the host at its next wait
            with self._lock:
                self._error = error
                self._running = None
                self._ring()

    def _loop(self) -> None:
        lock, queue = self._lock, self._queue
        while True:
            with lock:
                while True:
                    if self._stopped:
                        return
                    if not queue:
                        self._sleeping_until = float("inf")
                        self._wake.wait(_PATIENCE)
                    else:
                        remaining = queue[0][0] + self._lag - time.perf_counter()
                        if remaining <= 0:
                            break
                        self._sleeping_until = queue[0][0]
                        self._wake.wait(min(remaining, _PATIENCE))
                    self._sleeping_until = None
                when, phase, _, work = heappop(queue)
                self._running = when
            try:
                if phase == _START:
                    work.start()
                else:
                    work.finish()
            except BaseException as error:
                work.failed(error)
            del work
            with lock:
                self._running = None
                if not queue or queue[0][0] > when:
                    if not queue:  # the CPU was slower than the model: the clock waits for it
                        latest = max(when, self._jumped)
                        self._lag = max(self._lag, time.perf_counter() - latest)
                    self._ring()

    def stop(self) -> None:
        """End the thread; pending work is dropped, a failure that nobody was told of is logged."""
        failure = self.failure or (repr(self._error) if self._error is not None else None)
        if failure is not None and not self.told:
            _log.error("the simulated GPU failed and nothing waited for it: %s", failure)
        with self._lock:
            self._stopped = True
            self._queue.clear()
            self._wake.notify_all()
            self._ring()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=60)
