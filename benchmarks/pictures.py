"""Pictures that stand alone: points in a coordinate system that begins at 0, as SVG."""

from typing import Final

from ortrim.report.charts import Canvas, ticks

WIDTH, HEIGHT = 760.0, 420.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 700.0, 60.0, 370.0
COLOURS: Final = ("#bc4c00", "#0969da", "#1a7f37", "#8250df", "#9a6700", "#57606a")
"""Those of the styles `c0`, `c1` ..."""
STYLE: Final = """\
svg { background: #ffffff; font: 13px system-ui, sans-serif; }
text { fill: #1f2328; } .faint { stroke: #d8dee4; } .axis { stroke: #57606a; } .small { font-size: 11px; }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; } text { fill: #e6edf3; } .faint { stroke: #30363d; } .axis { stroke: #8b949e; }
}
"""


class Picture(Canvas):
    """Axes up to the largest values of a point; a level line at `marked` is drawn as an axis is."""

    def __init__(
        self, label: str, *, upward: str, rightward: str, most: tuple[float, float], marked: float | None = None
    ) -> None:
        super().__init__(WIDTH, HEIGHT, label)
        self._most = most
        self.text(LEFT, 18, upward)
        for value in ticks(0, most[1], 6):
            self.line(LEFT, self.y(value), RIGHT, self.y(value), "axis" if value == marked else "faint")
            self.text(LEFT - 34, self.y(value) + 4.5, f"{value:g}")
        for value in ticks(0, most[0], 8):
            self.text(self.x(value) - 8, BOTTOM + 20, f"{value:g}")
        self.line(LEFT, BOTTOM, RIGHT, BOTTOM, "axis")
        self.text(LEFT, BOTTOM + 42, rightward)

    def x(self, value: float) -> float:
        return LEFT + (RIGHT - LEFT) * value / self._most[0]

    def y(self, value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * value / self._most[1]

    def svg(self) -> str:
        """Return the picture with its styles."""
        colours = "".join(
            f".c{number} {{ fill: {colour}; stroke: {colour}; }}\n" for number, colour in enumerate(COLOURS)
        )
        opened = str(self.markup()).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        return opened.replace(">", f"><style>\n{STYLE}{colours}</style>", 1) + "\n"
