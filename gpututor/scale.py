"""Numbers on an axis: how they are written, where the ticks are, how far the axis reaches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

#: What a figure can show: beyond it, drawing overflows.
LARGEST, SMALLEST = 1e30, 1e-30
MOST_TICKS = 6
MOST_STOPS, CLOSEST = 10, 0.09  # of values that are ticks; what part of the axis a label takes


def number(value: float) -> str:
    """Write a number with three significant digits, as the figures do."""
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.3g}"
    if "e" in text and 1e-4 <= abs(value) < 1e6:
        text = f"{float(text):.0f}"
    return text


def amount(nbytes: float) -> str:
    """Write a number of bytes in the largest unit of 1024 that it fills."""
    units = ["bytes", "KiB", "MiB", "GiB"]
    while abs(nbytes) >= 1024 and len(units) > 1:
        nbytes /= 1024
        units.pop(0)
    return f"{number(nbytes)} {units[0]}"


def finite(value: object, where: str) -> float:
    """Return a value as a number that can be drawn.

    Raises
    ------
    TypeError, ValueError
        When it is no number, is not finite, or is too large or too small; the message says
        where it stands.
    """
    try:
        result = float(value)  # type: ignore[arg-type]  # the next line answers what has no float
    except (TypeError, ValueError):
        raise TypeError(f"{where} is {value!r}, which is not a number") from None
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ValueError(f"{where} is {result}: only finite numbers can be drawn")
    if result and not SMALLEST <= abs(result) <= LARGEST:
        raise ValueError(f"{where} is {result:g}: give numbers from {SMALLEST:g} to {LARGEST:g}")
    return result


def limits(values: Sequence[float], log: bool, from_zero: bool) -> tuple[float, float]:
    """Return how far an axis reaches, with some room at the ends.

    Parameters
    ----------
    values : sequence of float
        All that has to be on the axis.
    log : bool
        Whether it is logarithmic.
    from_zero : bool
        Whether a linear axis has to show zero, so that lengths on it can be compared.
    """
    low, high = min(values), max(values)
    if log:
        room = (high / low) ** 0.05 * 1.1
        return low / room, high * room
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
    if not from_zero:
        return low - room, high + room
    return low - room * (low < 0), high + room * (high > 0 or low == 0)


def ticks(low: float, high: float, log: bool, binary: bool) -> list[float]:
    """Return round numbers from `low` to `high`, about six.

    Parameters
    ----------
    low, high : float
        Where the axis begins and ends.
    log : bool
        Whether it is logarithmic: then powers, where at least three are on it, else also twice
        and five times each.
    binary : bool
        Whether round means powers of 2 and their multiples, as for bytes, instead of 10.
    """
    if log:
        base = 2.0 if binary else 10.0
        first = math.ceil(math.log(low, base) - 1e-9)
        last = math.floor(math.log(high, base) + 1e-9)
        if not binary and last - first < 2:
            powers = range(first - 1, last + 2)
            round_ones = [base**power * times for power in powers for times in (1, 2, 5)]
            found = [tick for tick in round_ones if low <= tick <= high]
            if len(found) > 2:
                return found
        if last - first >= 1:
            step = math.ceil((last - first + 1) / (MOST_TICKS + 1))
            return [base**power for power in range(first, last + 1, step)]
    width = _step((high - low) / MOST_TICKS, binary)
    return [width * count for count in range(math.ceil(low / width), math.floor(high / width) + 1)]


def stops(values: Sequence[float], low: float, high: float) -> list[float]:
    """Return the values themselves as ticks of a logarithmic axis, where few were chosen.

    Parameters
    ----------
    values : sequence of float
        Where on the axis something was measured.
    low, high : float
        Where the axis begins and ends.

    Returns
    -------
    list of float
        Each value once; none where they are fewer than three, too many or too close for their
        labels.
    """
    places = sorted(set(values))
    if not 3 <= len(places) <= MOST_STOPS:
        return []
    apart = CLOSEST * math.log(high / low)
    close = any(math.log(b / a) < apart for a, b in itertools.pairwise(places))
    return [] if close else places


def exact(value: float) -> str:
    """Write a number that was chosen, not measured: 4096 samples, not 4100."""
    whole = float(value).is_integer() and abs(value) < 1e6
    return f"{value:.0f}" if whole else number(value)


def _step(least: float, binary: bool) -> float:
    """Return the smallest round number that is not below `least`."""
    if binary:
        return max(1.0, 2.0 ** math.ceil(math.log2(least)))
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(power * times for times in (1, 2, 5, 10) if power * times >= least * (1 - 1e-9))
