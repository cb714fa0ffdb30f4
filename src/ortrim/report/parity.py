"""The picture of how far each output is from its tolerance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from ortrim.console import printable
from ortrim.core.measurements import OutputParity
from ortrim.core.reports import DeviceReport
from ortrim.report.charts import FULL_WIDTH, LETTER
from ortrim.report.figures import difference_text
from ortrim.report.summary import rank, tolerance_share
from ortrim.report.svg import Canvas

PARITY_ROWS: Final = 40
ROW: Final = 24
LETTERS: Final = 40
DECADES: Final = (-6, 2)
"""The powers of ten of the tolerance that the picture can show."""


def parity_chart(device: DeviceReport) -> Markup:
    """Draw each output's differences in units of what is allowed, on a logarithmic axis.

    With more than `PARITY_ROWS` outputs only the worst are drawn.
    """
    worst = sorted(device.parity, key=lambda output: -_share(output))[:PARITY_ROWS]
    drawn = {id(output) for output in worst}
    shown = [output for output in device.parity if id(output) in drawn]
    if not shown:
        return Markup("")
    canvas = Canvas(FULL_WIDTH, ROW * len(shown) + 34, "differences of each output against its tolerance")
    names = _names(shown)
    axis = _Axis(left=40 + LETTER * min(LETTERS, max(map(len, names))), right=FULL_WIDTH - 150.0)
    axis.draw(canvas, ROW * len(shown) + 8)
    for row, (name, output) in enumerate(zip(names, shown, strict=True)):
        canvas.text(0, 24.5 + ROW * row, name, limit=LETTERS)
        _draw_row(canvas, axis, output, 20.0 + ROW * row)
    return canvas.markup()


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """Where a share of the tolerance lies: none at the far left, infinite or not a number at the far right."""

    left: float
    right: float

    def draw(self, canvas: Canvas, bottom: float) -> None:
        tolerance = self.place(1.0)
        canvas.rectangle(tolerance, 4, self.right - tolerance + 8, bottom - 4, "beyond")
        for decade in range(DECADES[0], DECADES[1] + 1):
            x = self.place(10.0**decade)
            canvas.line(x, 4, x, bottom, "limit" if decade == 0 else "grid")
            canvas.text(x, bottom + 16, _decade_text(decade), "tick strong" if decade == 0 else "tick")
        canvas.text(self.left, bottom + 16, "equal", "tick")

    def place(self, share: float) -> float:
        if math.isnan(share) or share == math.inf:
            return self.right
        if share <= 0:
            return self.left
        first, last = DECADES
        decade = min(last + 0.0, max(first - 0.5, math.log10(share)))
        return self.left + (self.right - self.left) * (decade - first + 1) / (last - first + 1.4)


def _draw_row(canvas: Canvas, axis: _Axis, output: OutputParity, y: float) -> None:
    canvas.line(axis.left, y, axis.right, y, "grid")
    style = output.verdict.name.lower()
    for label, difference, allowed, shape in (
        ("root mean square", output.rms, output.rms_allowed, "hollow"),
        ("largest of any element", output.difference, output.allowed, "filled"),
    ):
        if difference is not None and allowed is not None:
            tip = f"{label}: {difference_text(difference)}, {difference_text(allowed)} allowed"
            canvas.dot(axis.place(tolerance_share(difference, allowed)), y, 5, f"{shape} {style}", tip=tip)
    text = f"{difference_text(output.difference)} of {difference_text(output.allowed)}"
    canvas.text(FULL_WIDTH, y + 4.5, text, "figure end")


def _names(outputs: Sequence[OutputParity]) -> list[str]:
    """Name each output; with its model where there are several."""
    several = len({output.model for output in outputs}) > 1
    prefixes = (f"{output.model} · " if several else "" for output in outputs)
    return [printable(f"{prefix}{each.case} · {each.output}") for prefix, each in zip(prefixes, outputs, strict=True)]


def _share(output: OutputParity) -> float:
    shares = [tolerance_share(output.difference, output.allowed)]
    if output.rms is not None and output.rms_allowed is not None:
        shares.append(tolerance_share(output.rms, output.rms_allowed))
    return max(map(rank, shares))


def _decade_text(decade: int) -> str:
    if decade == 0:
        return "tolerance"
    return f"{10**decade}x" if decade > 0 else f"1/{10**-decade}" if decade > -4 else f"1e{decade}"
