"""What the tests of every lesson's exercises ask of a verdict."""

from typing import Any

import gpututor


def is_wrong(name: str, answer: Any, expected: str, seen: str) -> None:
    """Fail unless this answer is refused, and told what was expected and what was seen."""
    verdict = gpututor.check(name, answer)
    assert not verdict.passed
    assert expected in verdict.expected
    assert seen in verdict.seen


def is_right(name: str, answer: Any) -> None:
    """Fail unless this answer passes."""
    verdict = gpututor.check(name, answer)
    assert verdict.passed, verdict
