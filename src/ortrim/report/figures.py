"""Numbers as text for reading; `report.json` holds them exactly."""

import math
from typing import Final

from ortrim.core.measurements import Unit

NONE: Final = "\N{EN DASH}"
ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"
SIGNIFICANT: Final = 3


def bytes_text(value: float | None) -> str:
    """Write a number of bytes in decimal units with three significant digits: `640 B`, `1.59 MB`."""
    number = _number(value)
    if number is None or not math.isfinite(number):
        return _unusual(number)
    for divisor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(number) >= 0.9995 * divisor:
            return f"{_rounded(number / divisor)} {unit}"
    return f"{number:.0f} B"


def ms_text(value: float | None) -> str:
    """Write milliseconds with three significant digits: `0.127 ms`, `16.2 ms`."""
    number = _number(value)
    return f"{_rounded(number)} ms" if number is not None and math.isfinite(number) else _unusual(number)


def runs_text(value: float | None) -> str:
    """Write a number of runs, which a median may halve: `1 run`, `0.5 runs`."""
    number = _number(value)
    if number is None or not math.isfinite(number):
        return _unusual(number)
    return f"{number:.3g} run" + ("" if number == 1 else "s")


def quantity_text(value: float | None, unit: Unit) -> str:
    """Write a measured value in its unit."""
    match unit:
        case "bytes":
            return bytes_text(value)
        case "ms":
            return ms_text(value)
        case "runs":
            return runs_text(value)


def share_text(ratio: float | None, spread: float | None = None) -> str:
    """Write a ratio as a percentage; with its relative `spread`, also the half-width in points: `108 % ± 2.3`."""
    number = _number(ratio)
    if number is None or not math.isfinite(number):
        return _unusual(number)
    text = f"{_rounded(100 * number, digits=2 if number < 0.1 else 3)} %"
    if not spread or not math.isfinite(spread):
        return text
    points = 100 * number * spread
    return f"{text} ± {points:.1f}" if points < 10 else f"{text} ± {points:.0f}"


def budget_text(budget: float | None, unit: Unit, *, is_ratio: bool) -> str:
    """Write a budget as its author would: `≤ 9 %`, `≤ 12 MB`."""
    if budget is None:
        return NONE
    text = share_text(budget) if is_ratio else quantity_text(budget, unit)
    number, _, word = text.partition(" ")
    return f"≤ {number.rstrip('0').rstrip('.') if '.' in number else number} {word}".rstrip()


def difference_text(value: float) -> str:
    """Write a difference or a tolerance: `0`, `0.02`, `1.2e-06`, `nan`."""
    number = _number(value)
    if not number or not math.isfinite(number) or 0.01 <= abs(number) < 1000:
        return "0" if number == 0 else f"{number:.2g}"
    return f"{number:.1e}".replace(".0e", "e")


def shape_text(shape: tuple[int, ...]) -> str:
    """Write a shape: `2x1x128`, `scalar`."""
    return "x".join(map(str, shape)) if shape else "scalar"


def shortened(text: str, limit: int) -> str:
    """Cut the middle out of a text that is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    head = limit // 2
    return text[:head] + ELLIPSIS + text[len(text) - (limit - 1 - head) :]


def _rounded(number: float, *, digits: int = SIGNIFICANT) -> str:
    """Round to significant digits; an exponent appears only far from any value that is measured."""
    text = f"{number:.{digits - 1}e}"
    exponent = int(text.rpartition("e")[2]) if math.isfinite(number) else 0
    if number == 0 or not math.isfinite(number) or not -7 < exponent < 15:
        return f"{number:.{digits}g}"
    return f"{float(text):.{max(0, digits - 1 - exponent)}f}"


def _number(value: float | None) -> float | None:
    """Return a float; a whole number too large for one, which only a forged report holds, is infinite."""
    try:
        return None if value is None else float(value)
    except OverflowError:
        return math.inf


def _unusual(number: float | None) -> str:
    return NONE if number is None else str(number)
