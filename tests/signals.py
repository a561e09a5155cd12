"""A real interrupt of work that goes on in the main thread, as a kernel sends it."""

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any


def stopped(work: Callable[[], Any], after: float) -> bool:
    """Run work, and interrupt it after so many seconds; tell whether it came to that."""
    lost: list[Any] = []

    def unraisable(error: Any) -> None:
        # Python lets no exception out of a finaliser: a learner stops once more then.
        if not isinstance(error.exc_value, KeyboardInterrupt):
            lost.append(error.exc_value)

    hook, sys.unraisablehook = sys.unraisablehook, unraisable
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(after, _interrupt)
    try:
        timer.start()
        work()
        timer.cancel()
        timer.join()
        time.sleep(0)  # an interrupt that came late is heard here
        return False
    except KeyboardInterrupt:
        return True
    finally:
        timer.cancel()  # where work has raised something else
        timer.join()
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = hook
        assert not lost


def _interrupt() -> None:
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:  # Windows
        _thread.interrupt_main()
