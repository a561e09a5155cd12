"""``python -m gpututor doctor`` says why there is no GPU."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from typing import NoReturn, TextIO

from .doctor import Facts, FactsError, class_table, report

USABLE, NOT_USABLE, BAD_INPUT = 0, 1, 2
NOT_WRITTEN = BAD_INPUT  # in both cases there is no verdict


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"gpututor: {message} (--help shows what is possible)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status.

    0 usable, 1 not, 2 bad input or an answer that cannot be written.
    """
    parser = _Parser(prog="python -m gpututor", description="Tools of the course.")
    commands = parser.add_subparsers(dest="command", required=True)
    doctor = commands.add_parser(
        "doctor",
        help="say why there is no GPU, and what to do",
        description="Say why there is no GPU, and what to do. Exit status: 0 if a GPU can be "
        "used, 1 if not, 2 for bad input.",
    )
    doctor.add_argument("facts", nargs="?", metavar="FACTS.json", help="another machine's facts")
    doctor.add_argument("--json", action="store_true", help="write facts and findings as JSON")
    doctor.add_argument(
        "--class", dest="folder", metavar="FOLDER", help="a table of many learners' facts"
    )
    options = parser.parse_args(arguments)
    if options.folder is not None and (options.facts is not None or options.json):
        doctor.error("--class stands alone: no FACTS.json and no --json with it")
    try:
        if options.folder is not None:
            table, usable, problems = class_table(options.folder)
            for problem in problems:
                _write(sys.stderr, f"gpututor: {problem}\n")
            return _answer(
                f"{table}\n", BAD_INPUT if problems else USABLE if usable else NOT_USABLE
            )
        found = report(None if options.facts is None else Facts.load(options.facts))
        text = found.to_json() if options.json else f"{found!r}\n"
        return _answer(text, USABLE if found.usable else NOT_USABLE)
    except FactsError as error:
        _write(sys.stderr, f"gpututor: {error}\n")
        return BAD_INPUT


def _answer(text: str, status: int) -> int:
    """Write the answer; return the exit status."""
    try:
        _write(sys.stdout, text)
        sys.stdout.flush()  # a full disk shows here, and not when Python ends
    except OSError as error:
        with contextlib.suppress(OSError):  # or the rest would fail once more when Python ends
            sys.stdout.close()
        if isinstance(error, BrokenPipeError):  # who reads it has read enough, as `head` does
            return status
        why = error.strerror or type(error).__name__
        _write(
            sys.stderr,
            f"gpututor: the answer could not be written: {why}. Free some space, or write it to "
            "another folder.\n",
        )
        return NOT_WRITTEN
    return status


def _write(stream: TextIO, text: str) -> None:
    """Write a text whatever letters the terminal has."""
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))


if __name__ == "__main__":
    sys.exit(main())
