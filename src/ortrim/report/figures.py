"""Numbers as text for reading; `report.json` holds them exactly."""

import math
from typing import Final

from ortrim.base.console import printable
from ortrim.parity.measurements import Unit


def number_text(milliseconds: float | None) -> str:
    """Write milliseconds without their unit, for a column that names it."""
    return ms_text(milliseconds).removesuffix(" ms")


NONE: Final = "\N{EN DASH}"
ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"
SIGNIFICANT: Final = 3


def bytes_text(value: float | None) -> str:
    """Write a number of bytes in decimal units with three significant digits: `640 B`, `1.59 MB`."""
    return _scaled(value, " B", SIGNIFICANT)


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


def instructions_text(value: float | None) -> str:
    """Write a number of instructions with four significant digits, since it varies by no more: `12.34 M`."""
    return _scaled(value, "", SIGNIFICANT + 1)


def quantity_text(value: float | None, unit: Unit) -> str:
    """Write a measured value in its unit."""
    match unit:
        case "bytes":
            return bytes_text(value)
        case "ms":
            return ms_text(value)
        case "runs":
            return runs_text(value)
        case "instructions":
            return instructions_text(value)


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


def _scaled(value: float | None, unit: str, digits: int) -> str:
    """Write a whole number with a decimal prefix: from 1,000 on, as it is rounded, `k`, then `M`, then `G`."""
    number = _number(value)
    if number is None or not math.isfinite(number):
        return _unusual(number)
    for divisor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= (1 - 0.5 * 10**-digits) * divisor:
            return f"{_rounded(number / divisor, digits=digits)} {prefix}{unit.strip()}"
    return f"{number:.0f}{unit}"


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


NAME_LETTERS: Final = 72


def name_text(name: str) -> str:
    """Write a name so that it can neither steer a terminal nor fill a page."""
    return shortened(printable(name), NAME_LETTERS)


PLAIN: Final = 60
"""Characters up to which a name is shown as it is."""
LETTERS: Final = 90
LONGEST: Final = 10_000
"""How much of a name is looked at."""
PAIRS: Final = {"<": ">", "(": ")"}
KEPT: Final = "(anonymous namespace)"


def symbol_text(name: str) -> str:
    """Write a demangled name in at most `LETTERS` characters; short ones as they are."""
    shown = printable(name[:LONGEST])
    return shown if len(shown) <= PLAIN else shortened(_collapsed(shown), LETTERS)


def _collapsed(name: str) -> str:
    """Replace what stands in the outermost brackets by an ellipsis; `operator<` and the like are no brackets."""
    text, depth, closing = "", 0, ""
    for position, character in enumerate(name):
        if depth == 0 and character in PAIRS and not _literal(name, position):
            text, depth, closing = f"{text}{character}{ELLIPSIS}", 1, PAIRS[character]
        elif depth == 0:
            text += character
        elif character in PAIRS and PAIRS[character] == closing and not _literal(name, position):
            depth += 1
        elif character == closing and name[position - 1] != "-":
            depth -= 1
            text += character if depth == 0 else ""
    return text


def _literal(name: str, position: int) -> bool:
    """Whether the character is part of an operator's or of an unnamed namespace's name."""
    return name.startswith(KEPT, position) or name[:position].rstrip("<(").endswith("operator")
