"""What is said of a history of builds; the forms only lay it out."""

from collections.abc import Sequence
from dataclasses import dataclass

from ortrim.console import printable
from ortrim.core.build_history import BuildEntry, Measure
from ortrim.core.measurements import Unit
from ortrim.report.figures import NONE, bytes_text, quantity_text
from ortrim.report.names import name_text


@dataclass(frozen=True, kw_only=True)
class Line:
    """A build as one line: its figures, and how its library differs from the build before of the same kind."""

    when: str
    spec: str
    target: str
    profile: str
    version: str
    plan: str
    library: str
    change: str
    package: str
    peak: str
    load: str
    p50: str
    verdict: str


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """When something was recorded, as a day, and what it was, for who points at it."""

    day: str
    tip: str


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One measure over builds or benches: `points` are (number of the build or bench, value)."""

    label: str
    unit: Unit
    points: tuple[tuple[int, float], ...]


Series = tuple[BuildEntry, ...]


def series(entries: Sequence[BuildEntry]) -> dict[tuple[str, str, str], Series]:
    """Return the builds of each spec, target and profile, in order; only those can be compared."""
    found: dict[tuple[str, str, str], list[BuildEntry]] = {}
    for entry in entries:
        found.setdefault((entry.spec, entry.target, entry.profile), []).append(entry)
    return {name: tuple(each) for name, each in found.items()}


def history_lines(entries: Sequence[BuildEntry]) -> tuple[Line, ...]:
    """Return a line for each build, in their order."""
    before: dict[tuple[str, str, str], BuildEntry] = {}
    lines = []
    for entry in entries:
        kind = (entry.spec, entry.target, entry.profile)
        lines.append(_line(entry, before.get(kind)))
        before[kind] = entry
    return tuple(lines)


def change_text(entry: BuildEntry, before: BuildEntry | None) -> str:
    """Write how a library differs in size from the one before: `+1,204 (+0.1 %)`, `same`; a dash for the first."""
    if before is None:
        return NONE
    difference = entry.file_bytes - before.file_bytes
    if not difference:
        return "same"
    percent = f" ({100 * difference / before.file_bytes:+.1f} %)" if before.file_bytes else ""
    return f"{difference:+,}{percent}"


def curves(entries: Series, measure: str) -> tuple[Curve, ...]:
    """Return what was measured over builds; of several cases of a model the one that takes longest."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    unit: Unit = "bytes"
    for number, entry in enumerate(entries):
        for each in entry.measures:
            if each.measure == measure:
                points = found.setdefault((each.device, each.model), {})
                points[number] = max(each.value, points.get(number, each.value))
                unit = each.unit
    return tuple(
        Curve(label=_curve_name(device, model), unit=unit, points=tuple(sorted(points.items())))
        for (device, model), points in sorted(found.items())
    )


def _curve_name(device: str, model: str) -> str:
    return name_text(f"{model}, {device}")


def _line(entry: BuildEntry, before: BuildEntry | None) -> Line:
    return Line(
        when=printable(entry.recorded_at.removesuffix("+00:00").replace("T", " ")),
        spec=name_text(entry.spec),
        target=name_text(entry.target),
        profile=name_text(entry.profile),
        version=printable(entry.ort_version),
        plan=printable(entry.plan_digest[:12]),
        library=f"{entry.file_bytes:,}",
        change=change_text(entry, before),
        package=bytes_text(entry.package_bytes),
        peak=_largest(entry, "peak memory"),
        load=_largest(entry, "load"),
        p50=_largest(entry, "p50"),
        verdict=name_text(entry.verdict),
    )


def _largest(entry: BuildEntry, measure: str) -> str:
    """Write the largest value of a measure on the build's first device; a dash when it was not measured."""
    found: list[Measure] = [each for each in entry.measures if each.measure == measure]
    values = [each.value for each in found if each.device == found[0].device]
    return quantity_text(max(values), found[0].unit) if found else NONE
