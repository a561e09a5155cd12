"""Run the course as a class does: many kernels at once on one machine.

``python scripts/crowd.py 20`` starts 20 learners. Each runs every notebook of ``notebooks/`` from
top to bottom, in kernels of its own, and all of them begin each notebook together. On a machine
with a GPU they share it; elsewhere, or under ``GPUTUTOR_SIMULATE``, each has a simulated one.
It says for each notebook how long the slowest learner took. With ``--times 6`` one learner runs
each notebook alone first, and the crowd may take 6 times as long.
It fails where a cell failed, or a learner had to wait too long.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "notebooks"

#: Run one notebook in this process's kernel client; nothing is written back.
LEARNER = """
import sys
from pathlib import Path
import nbformat
from nbclient import NotebookClient
path = Path(sys.argv[1])
notebook = nbformat.read(path, as_version=4)
options = {"metadata": {"path": str(path.parent)}}
NotebookClient(notebook, timeout=float(sys.argv[2]), resources=options).execute()
"""


def learn(path: Path, limit: float) -> tuple[float, str]:
    """Run a notebook once.

    Returns
    -------
    float
        Seconds that it took.
    str
        The last line of what went wrong; empty where nothing did.
    """
    command = [sys.executable, "-W", "ignore", "-c", LEARNER, str(path), str(limit)]
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, errors = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return time.monotonic() - start, f"was not done after {limit:g} s"
    lines = errors.strip().splitlines()
    why = (lines[-1] if lines else "no message") if child.returncode else ""
    return time.monotonic() - start, why


def compared(learners: int, together: float, alone: float) -> str:
    """Return how long a crowd took, and what that is beside one learner's time if it is known."""
    took = f"{learners} at once {together:.0f} s"
    if alone:
        took += f", one {alone:.0f} s, {together / alone:.1f} times as long"
    return took


def main() -> int:
    """Run the crowd; return 1 where a learner failed or had to wait too long."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("learners", type=int, help="how many run each notebook at once")
    parser.add_argument("notebooks", nargs="*", type=Path, help="all if none is named")
    parser.add_argument("--times", type=float, help="how many times one learner's time is allowed")
    parser.add_argument("--limit", type=float, default=600, help="seconds for one notebook")
    options = parser.parse_args()
    if options.learners < 1:
        parser.error(f"learners must be 1 or more, not {options.learners}")
    bad = 0
    alone = crowd = 0.0
    for path in options.notebooks or sorted(FOLDER.glob("*.ipynb")):
        first, why = learn(path, options.limit) if options.times else (0.0, "")
        with ThreadPoolExecutor(options.learners) as pool:
            runs = [pool.submit(learn, path, options.limit) for _ in range(options.learners)]
            found = [run.result() for run in runs]
        slowest = max(seconds for seconds, _ in found)
        alone, crowd = alone + first, crowd + slowest
        failures = [text for text in [why, *(text for _, text in found)] if text]
        bad += len(failures)
        print(f"{path.name}: {compared(options.learners, slowest, first)}; {len(failures)} failed")
        for text in sorted(set(failures)):
            print(f"  {text}")
        sys.stdout.flush()
    print(f"all: {compared(options.learners, crowd, alone)}")
    late = bool(options.times) and crowd > options.times * alone
    if late:
        print(f"that is more than {options.times:g} times as long")
    return 1 if bad or late else 0


if __name__ == "__main__":
    sys.exit(main())
