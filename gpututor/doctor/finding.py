"""What a diagnosis is made of."""

from __future__ import annotations

from dataclasses import dataclass

VERDICTS = ("build", "driver", "visibility", "architecture", "usability", "fine")
CONFIDENCES = ("certain", "likely", "possible")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or that all is well.

    Attributes
    ----------
    verdict : str
        ``"build"``, ``"driver"``, ``"visibility"``, ``"architecture"``, ``"usability"``, or
        ``"fine"``: a GPU works.
    summary : str
        What it is, in one sentence.
    evidence : tuple of str
        The facts that say so.
    advice : tuple of str
        What to do on this platform; the first sentence first.
    confidence : str
        ``"certain"``, ``"likely"`` or ``"possible"``.
    """

    verdict: str
    summary: str
    evidence: tuple[str, ...]
    advice: tuple[str, ...]
    confidence: str
