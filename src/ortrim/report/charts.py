"""Pictures as inline SVG, whose colours are the style sheet's, and the tiles of a library's treemap."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

from markupsafe import Markup

from ortrim.base.console import counted, printable
from ortrim.binaries.elf import LibrarySize
from ortrim.binaries.link_map import member_name
from ortrim.parity.measurements import Distribution, OutputParity, RunnerResult
from ortrim.report.content import components, measures_memory, measures_time, part_text, rank, tolerance_share
from ortrim.report.figures import bytes_text, difference_text, ms_text, name_text, share_text, shortened, symbol_text
from ortrim.size.accounting import GROUPINGS, Leaf, Share, by_symbol, shares
from ortrim.verify.reports import DeviceReport, VerifyReport


class Canvas:
    """A picture of `width` times `height` units, which are pixels when the page is wide enough.

    Text is escaped by the serialiser. `label` is what a screen reader says.
    """

    def __init__(self, width: float, height: float, label: str) -> None:
        box = f"0 0 {width:g} {height:g}"
        self._root = ET.Element("svg", {"viewBox": box, "role": "img", "aria-label": label, "width": f"{width:g}"})

    def rectangle(self, x: float, y: float, width: float, height: float, style: str, *, tip: str = "") -> None:
        """Draw a filled rectangle; `tip` shows when the pointer rests on it."""
        self._draw("rect", style, tip, x=x, y=y, width=max(0.0, width), height=max(0.0, height))

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str, *, tip: str = "") -> None:
        """Draw a straight line."""
        self._draw("line", style, tip, x1=x1, y1=y1, x2=x2, y2=y2)

    def dot(self, x: float, y: float, radius: float, style: str, *, tip: str = "") -> None:
        """Draw a circle."""
        self._draw("circle", style, tip, cx=x, cy=y, r=radius)

    def text(self, x: float, y: float, text: str, style: str = "", *, limit: int = 0) -> None:
        """Write text with its baseline at `y`, cut in the middle to `limit` characters; the tip has all of it."""
        shown = shortened(text, limit) if limit else text
        element = self._draw("text", style, text if shown != text else "", x=x, y=y)
        if len(element):
            element[0].tail = shown
        else:
            element.text = shown

    def markup(self) -> Markup:
        """Return the picture, safe to put into a page."""
        return Markup(ET.tostring(self._root, encoding="unicode"))  # noqa: S704 - escaped by the serialiser

    def _draw(self, tag: str, style: str, tip: str, **numbers: float) -> ET.Element:
        attributes = {name: f"{number:.2f}".rstrip("0").rstrip(".") for name, number in numbers.items()}
        element = ET.SubElement(self._root, tag, {"class": style, **attributes} if style else attributes)
        if tip:
            ET.SubElement(element, "title").text = tip
        return element


def ticks(low: float, high: float, count: int) -> Iterator[float]:
    """Yield about `count` round numbers between `low` and `high`."""
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield number * step


FULL_WIDTH: Final = 1000
HALF_WIDTH: Final = 480
ROW: Final = 26
BAR: Final = 16
HEADING: Final = 24
GAP: Final = 8
LETTER: Final = 7.2
"""About the width of a letter of a label."""


@dataclass(frozen=True, kw_only=True)
class ChartBar:
    """One bar: a `group` heading is written wherever it changes; `low` and `high` draw a whisker."""

    group: str = ""
    label: str
    value: float
    text: str
    style: str
    low: float = math.nan
    high: float = math.nan


def total_chart(report: VerifyReport) -> Markup:
    """Draw the sizes of our library and of the baseline's: as a file, loaded, and compressed."""
    ours, baseline = report.size, report.baseline_size
    sizes = (
        ("file", ours.file_bytes, baseline.file_bytes),
        ("loaded sections", ours.loadable_bytes, baseline.loadable_bytes),
        ("compressed", ours.compressed_bytes, baseline.compressed_bytes),
    )
    bars = []
    for name, our, their in sizes:
        share = f", {share_text(our / their)}" if their > 0 else ""
        bars.append(ChartBar(group=name, label="ours", value=our, text=f"{bytes_text(our)}{share}", style="ours"))
        if their > 0:  # a baseline of nothing was not measured
            text = bytes_text(their)
            bars.append(ChartBar(group=name, label="baseline", value=their, text=text, style="baseline"))
    return bar_chart("size of our library and the baseline's", bars, HALF_WIDTH)


def component_chart(report: VerifyReport) -> Markup:
    """Draw the bytes of each component of our library."""
    whole = max(1, report.size.file_bytes)
    bars = [
        ChartBar(label=name, value=size / whole, text=", ".join(part_text(report, size)), style="ours")
        for name, size in components(report)
    ]
    return bar_chart("size by component", bars, HALF_WIDTH)


def memory_chart(device: DeviceReport) -> Markup:
    """Draw the peak resident memory of each model, median and range over the rounds; nothing where it means nothing."""
    if not measures_memory(device):
        return Markup("")
    return _runs_chart(device, "peak resident memory", lambda run: run.peak_rss_bytes, bytes_text)


def load_chart(device: DeviceReport) -> Markup:
    """Draw the load time of each model, median and range over the rounds; nothing where time means nothing."""
    if not measures_time(device):
        return Markup("")
    return _runs_chart(device, "time to load a model", lambda run: run.load_ms, ms_text)


def bar_chart(label: str, bars: Sequence[ChartBar], width: float) -> Markup:
    """Draw horizontal bars on one scale from zero; a value that is not a number gets its text and no bar."""
    if not bars:
        return Markup("")
    groups = sum(bar.group != before for bar, before in zip(bars, ["", *(bar.group for bar in bars)], strict=False))
    canvas = Canvas(width, ROW * len(bars) + (HEADING + GAP) * groups + 4, label)
    left, right = min(124.0, 24 + LETTER * max(len(bar.label) for bar in bars)), width - 112.0
    largest = max((finite for bar in bars for finite in (bar.value, bar.high) if math.isfinite(finite)), default=0.0)
    scale = (right - left) / largest if largest > 0 else 0.0
    y, group = 2.0, ""
    for bar in bars:
        if bar.group != group:
            y += GAP if group else 0
            canvas.text(0, y + 17, bar.group, "strong", limit=60)
            y, group = y + HEADING, bar.group
        _draw_bar(canvas, bar, left, y, scale)
        y += ROW
    return canvas.markup()


def _draw_bar(canvas: Canvas, bar: ChartBar, left: float, y: float, scale: float) -> None:
    middle = y + ROW / 2
    canvas.text(0, middle + 4.5, bar.label, limit=16)
    if not math.isfinite(bar.value):
        canvas.text(left + 6, middle + 4.5, bar.text, "figure")
        return
    end = left + max(1.5, bar.value * scale)
    canvas.rectangle(left, middle - BAR / 2, end - left, BAR, bar.style, tip=f"{bar.label}: {bar.text}")
    if math.isfinite(bar.low) and math.isfinite(bar.high):
        canvas.line(left + bar.low * scale, middle, left + bar.high * scale, middle, "whisker")
        end = max(end, left + bar.high * scale)
    canvas.text(end + 6, middle + 4.5, bar.text, "figure")


def _runs_chart(
    device: DeviceReport, label: str, measured: Callable[[RunnerResult], Distribution], text: Callable[[float], str]
) -> Markup:
    bars = []
    for run in sorted(device.runs, key=lambda run: (run.model, run.library != "ours")):
        found, name = measured(run), name_text(run.model)
        bars.append(
            ChartBar(
                group=name,
                label=run.library,
                value=found.p50,
                text=text(found.p50),
                style=run.library,
                low=found.minimum,
                high=found.maximum,
            )
        )
    return bar_chart(label, bars, HALF_WIDTH)


BINS: Final = 60
DRAWN: Final = 0.95
"""The share of the runs that a picture makes room for; slower ones may fall outside."""
HALF: Final = 62
"""Height of the tallest bar on either side of the axis."""


def latency_pictures(device: DeviceReport) -> tuple[tuple[str, str, Markup], ...]:
    """Draw the latency of each case of each model, ours above the axis; nothing where time means nothing."""
    if not measures_time(device):
        return ()
    cases = dict.fromkeys((run.model, case.case) for run in device.runs for case in run.cases)
    pictures = []
    for model, case in cases:
        ours, baseline = (_samples(device.runs, library, model, case) for library in ("ours", "baseline"))
        pictures.append((name_text(model), name_text(case), _latency(ours, baseline)))
    return tuple(pictures)


def _samples(runs: Iterable[RunnerResult], library: str, model: str, case: str) -> list[float]:
    found = (each for run in runs if (run.library, run.model) == (library, model) for each in run.cases)
    return sorted(value for each in found if each.case == case for value in each.samples_ms if math.isfinite(value))


def _latency(ours: Sequence[float], baseline: Sequence[float]) -> Markup:
    if not ours and not baseline:
        return Markup("")
    low = min(*ours[:1], *baseline[:1], math.inf)
    high = max(_quantile(values, DRAWN) for values in (ours, baseline) if values)
    margin = 0.1 * (high - low) or 0.05 * abs(high) or 1.0
    low, high = max(0.0, low - margin), high + margin
    canvas = Canvas(HALF_WIDTH, 2 * HALF + 58, "distribution of latency")
    middle = HALF + 18.0
    tallest = max(max(_counts(values, low, high)) / len(values) for values in (ours, baseline) if values)
    for values, style, direction in ((ours, "ours", -1), (baseline, "baseline", 1)):
        if values:
            _histogram(canvas, values, (low, high), (middle, direction * HALF / (tallest or 1.0)), style)
    _time_axis(canvas, low, high, middle)
    return canvas.markup()


def _histogram(
    canvas: Canvas, values: Sequence[float], span: tuple[float, float], vertical: tuple[float, float], style: str
) -> None:
    """Draw one histogram from the axis at `vertical[0]`; `vertical[1]` units of height stand for all values."""
    (low, high), (axis, scale) = span, vertical
    width = HALF_WIDTH / BINS
    for number, count in enumerate(_counts(values, low, high)):
        height = scale * count / len(values)
        if count:
            canvas.rectangle(number * width + 0.5, min(axis, axis + height), width - 1, abs(height), style)
    median = _quantile(values, 0.5)
    x = HALF_WIDTH * (median - low) / (high - low)
    end = axis + math.copysign(HALF + 4, scale)
    canvas.line(x, axis, x, end, f"median {style}-line", tip=f"median of {style}: {ms_text(median)}")
    label_y = 11 if scale < 0 else 2 * HALF + 36
    beyond = sum(value > high for value in values)
    more = f", {beyond} of {counted(len(values), 'run')} slower than shown" if beyond else ""
    canvas.text(0, label_y, f"{style}: median {ms_text(median)}{more}", f"{style}-text")


def _time_axis(canvas: Canvas, low: float, high: float, middle: float) -> None:
    canvas.line(0, middle, HALF_WIDTH, middle, "axis")
    for tick in ticks(low, high, 5):
        x = HALF_WIDTH * (tick - low) / (high - low)
        canvas.line(x, middle - 3, x, middle + 3, "axis")
        if 28 < x < HALF_WIDTH - 28:
            canvas.text(x, 2 * HALF + 54, f"{tick:.4g} ms", "tick")


def _counts(values: Sequence[float], low: float, high: float) -> list[int]:
    counts = [0] * BINS
    for value in values:
        if low <= value <= high:
            counts[min(BINS - 1, int(BINS * (value - low) / (high - low)))] += 1
    return counts


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


PARITY_ROWS: Final = 40
PARITY_ROW: Final = 24
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
    canvas = Canvas(FULL_WIDTH, PARITY_ROW * len(shown) + 34, "difference of each output as a share of its tolerance")
    several = len({output.model for output in shown}) > 1
    names = [printable(f"{f'{each.model} · ' if several else ''}{each.case} · {each.output}") for each in shown]
    axis = _Axis(left=40 + LETTER * min(LETTERS, max(map(len, names))), right=FULL_WIDTH - 150.0)
    axis.draw(canvas, PARITY_ROW * len(shown) + 8)
    for row, (name, output) in enumerate(zip(names, shown, strict=True)):
        canvas.text(0, 24.5 + PARITY_ROW * row, name, limit=LETTERS)
        _draw_row(canvas, axis, output, 20.0 + PARITY_ROW * row)
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


def _share(output: OutputParity) -> float:
    shares = [tolerance_share(output.difference, output.allowed)]
    if output.rms is not None and output.rms_allowed is not None:
        shares.append(tolerance_share(output.rms, output.rms_allowed))
    return max(map(rank, shares))


def _decade_text(decade: int) -> str:
    if decade == 0:
        return "tolerance"
    return f"{10**decade}x" if decade > 0 else f"1/{10**-decade}" if decade > -4 else f"1e{decade}"


RUNTIME: Final = "ONNX Runtime"
KERNELS: Final = "kernels"
LIBRARIES: Final = "its libraries"
LANGUAGE: Final = "C++ library and compiler"
LINKER: Final = "tables, strings, padding"
UNTOLD: Final = "code and data together"
STYLES: Final = {
    RUNTIME: "family-runtime", KERNELS: "family-kernels", LIBRARIES: "family-libraries",
    LANGUAGE: "family-language", UNTOLD: "family-untold", LINKER: "family-linker",
}  # fmt: skip
"""The classes of the style sheet."""
FAMILIES: Final = tuple(STYLES)
"""In the order in which they are shown."""
OTHERS: Final = {
    **dict.fromkeys(("mlas", "providers"), KERNELS),
    **dict.fromkeys(("onnx", "protobuf", "abseil", "flatbuffers", "re2", "cpuinfo", "xnnpack"), LIBRARIES),
    **dict.fromkeys(("libc++", "libc++abi", "libstdc++", "C++ library", "libunwind", "compiler-rt", "libc"), LANGUAGE),
    **dict.fromkeys(("code", "data", "read-only data"), UNTOLD),
    **dict.fromkeys((
        "relocation tables", "dynamic symbols", "dynamic linking", "unwind tables", "string literals", "constants",
        "notes", "symbol table", "debug information", "padding", "ELF headers", "not loaded", "other",
    ), LINKER),
}  # fmt: skip


def family(component: str) -> str:
    """Return the family of a component; what is named in no table is a part of ONNX Runtime."""
    if component.startswith("providers"):
        return KERNELS
    return OTHERS.get(component, LINKER if component.startswith(".") else RUNTIME)


LEAST_FILE: Final = 0.01
LEAST_SYMBOL: Final = 0.02
"""The part of what they lie in below which files and symbols are drawn together as one."""
NAMED: Final = 4
NAME_LETTERS: Final = 40
"""How many of the tiles that are drawn as one are named, and with how many letters."""
TIP_LETTERS: Final = 160


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A part with its parts; `label` is written on it, `tip` shows when the pointer rests on it."""

    label: str
    tip: str
    value: int
    style: str
    parts: tuple["Tile", ...] = ()


def leaf_tiles(leaves: Iterable[Leaf]) -> tuple[Tile, ...]:
    """Return the tiles of a library whose bytes are accounted for."""
    return _families([_component(share) for share in shares(leaves, GROUPINGS["component"])])


def report_tiles(size: LibrarySize) -> tuple[Tile, ...]:
    """Return the tiles of what a report knows: components, and in each those files that are among the largest."""
    return _families([_reported(size, part.component, part.size_bytes) for part in size.components])


def merged(tiles: Iterable[Tile], least_share: float) -> tuple[Tile, ...]:
    """Return the tiles, largest first, with those together in one that would be too small to see; none without size."""
    real = [tile for tile in tiles if tile.value > 0]
    least = least_share * sum(tile.value for tile in real)
    small = [tile for tile in real if tile.value < least]
    if len(small) > 1:
        names = ", ".join(shortened(tile.label, NAME_LETTERS) for tile in small[:NAMED])
        label, more = f"{len(small)} smaller", ", ..." if len(small) > NAMED else ""
        value, style = sum(tile.value for tile in small), small[0].style
        rest = Tile(label=label, tip=f"{label}: {names}{more}", value=value, style=style)
        real = [*(tile for tile in real if tile.value >= least), rest]
    return tuple(sorted(real, key=lambda tile: -tile.value))


def _families(components: Sequence[Tile]) -> tuple[Tile, ...]:
    found = []
    for name, style in STYLES.items():
        if parts := merged((tile for tile in components if tile.style == style), 0.0):
            value = sum(part.value for part in parts)
            found.append(Tile(label=name, tip=name, value=value, style=style, parts=parts))
    return tuple(found)


def _component(share: Share) -> Tile:
    name, style = name_text(share.name[0]), STYLES[family(share.name[0])]
    files = merged((_file(each, style) for each in shares(share.leaves, GROUPINGS["file"])), LEAST_FILE)
    return Tile(label=name, tip=name, value=share.size_bytes, style=style, parts=files)


def _file(share: Share, style: str) -> Tile:
    named = ((each.name[0], each.size_bytes) for each in shares(share.leaves, by_symbol))
    symbols = merged(
        (Tile(label=symbol_text(name), tip=_tip(name), value=size, style=style) for name, size in named), LEAST_SYMBOL
    )
    label = tip = symbols[0].label if len(symbols) == 1 else name_text(share.name[0].strip("()"))
    if share.leaves[0].file:
        label, tip = printable(_stem(share.name[0])), _tip(share.name[0])
    return Tile(label=label, tip=tip, value=share.size_bytes, style=style, parts=symbols)


def _stem(file: str) -> str:
    """Return an object's name without what all names end with: `session_state` of `libx.a(session_state.cc.o)`."""
    return member_name(file).removesuffix(".o").removesuffix(".cc").removesuffix(".cpp")


def _reported(size: LibrarySize, component: str, size_bytes: int) -> Tile:
    """Return the tile of a component with the files of it that are among the largest; older reports name none."""
    name, style = name_text(component), STYLES[family(component)]
    parts = [
        Tile(label=printable(_stem(file.name)), tip=_tip(file.name), value=file.size_bytes, style=style)
        for file in size.largest_files
        if file.component == component and file.size_bytes > 0
    ]
    rest = size_bytes - sum(part.value for part in parts)
    if rest > 0:
        label = "all else" if parts else ""
        parts.append(Tile(label=label, tip=f"{name}, all else", value=rest, style=style))
    return Tile(label=name, tip=name, value=size_bytes, style=style, parts=tuple(parts))


def _tip(name: str) -> str:
    return shortened(printable(name), TIP_LETTERS)
