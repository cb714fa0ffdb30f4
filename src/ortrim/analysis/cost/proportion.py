"""How long a model should take, in proportion to a reference on the same device, and why it takes longer. Pure.

- How long the models of a buildspec should take, in proportion to its reference model where both were measured.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ortrim.analysis.cost.memory import ModelCost
from ortrim.base.console import Console
from ortrim.errors import VerifyError
from ortrim.planning.inputs import latest_of, plan_folder
from ortrim.planning.planned import looked_at
from ortrim.planning.request import Request, load
from ortrim.report.write import report_of
from ortrim.verify.operator_times import operator_times
from ortrim.verify.reports import DeviceReport, VerifyReport

POOR: Final = 1.5
"""A model that takes this many times as long as its arithmetic in the reference's pace is badly executed."""
ENOUGH: Final = 0.8
"""Named are the fewest operators that together make this part of what they are blamed for."""
MOST: Final = 5
PREFIXES: Final = ("Nhwc", "Fused")
"""What ONNX Runtime puts before the name of an operator that it has made of several, or laid out anew."""

LARGEST: Final = 2**63
"""More arithmetic than this only a damaged model has, and no float may hold it."""

Finding = Literal["not measured", "much arithmetic", "poor execution efficiency"]
Shares = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What a reference model takes on a device: its arithmetic in one case (x0), and the median of that (y0)."""

    device: str
    model: str
    case: str
    macs: int
    milliseconds: float

    def expected(self, macs: int) -> float:
        """Return the milliseconds in which a model should do its arithmetic: y = x / x0 * y0."""
        return min(macs, LARGEST) / self.macs * self.milliseconds


@dataclass(frozen=True, kw_only=True)
class Blamed:
    """An operator's part of a model's arithmetic and of its time; the latter is None without a profile."""

    operator: str
    arithmetic: float
    time: float | None


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """One case of a model on a device: what it should take, what it took, what follows, and which operators it is.

    With `blame_known` false no profile says which operators take longer than their arithmetic.
    """

    pace: Pace
    model: str
    case: str
    macs: int
    expected_ms: float
    measured_ms: float | None
    finding: Finding
    blamed: tuple[Blamed, ...]
    blame_known: bool

    @property
    def ratio(self) -> float | None:
        """How many times as long as expected it took."""
        return self.measured_ms / self.expected_ms if self.measured_ms is not None and self.expected_ms else None


def expectation(cost: ModelCost, pace: Pace, measured_ms: float | None, times: Shares | None) -> Expectation:
    """Compare a case of a model with the pace of the reference.

    `times` are the operators' parts of the model's time in a profile. A model without any arithmetic cannot be much of
    it: all its time is execution.
    """
    expected = pace.expected(cost.macs)
    finding = _finding(expected, measured_ms)
    arithmetic = {each.operator: each.macs / cost.macs for each in cost.operators if each.macs and cost.macs}
    inefficient = finding == "poor execution efficiency"
    known = not inefficient or times is not None
    return Expectation(
        pace=pace,
        model=cost.model,
        case=cost.case,
        macs=cost.macs,
        expected_ms=expected,
        measured_ms=measured_ms,
        finding=finding,
        blamed=_slow(arithmetic, times or {}) if inefficient else _heavy(arithmetic, times),
        blame_known=known,
    )


def merged_times(times: Mapping[str, float]) -> dict[str, float]:
    """Return operators' parts of all time, those that the runtime has made of others under the names of these."""
    total = sum(times.values())
    shares: dict[str, float] = {}
    for name, time in times.items():
        plain = _plain(name)
        shares[plain] = shares.get(plain, 0.0) + (time / total if total else 0.0)
    return shares


def _finding(expected: float, measured_ms: float | None) -> Finding:
    if measured_ms is None:
        return "not measured"
    return "poor execution efficiency" if measured_ms > POOR * expected else "much arithmetic"


def _heavy(arithmetic: Shares, times: Shares | None) -> tuple[Blamed, ...]:
    """Return the operators with most of the arithmetic."""
    return tuple(
        Blamed(operator=name, arithmetic=arithmetic[name], time=times.get(_plain(name)) if times is not None else None)
        for name in _fewest(arithmetic)
    )


def _slow(arithmetic: Shares, times: Shares) -> tuple[Blamed, ...]:
    """Return the operators whose part of the time exceeds that of the arithmetic by most."""
    own: dict[str, float] = {}
    for name, share in arithmetic.items():
        own[_plain(name)] = own.get(_plain(name), 0.0) + share
    excess = {name: share - own.get(name, 0.0) for name, share in times.items() if share > own.get(name, 0.0)}
    return tuple(Blamed(operator=name, arithmetic=own.get(name, 0.0), time=times[name]) for name in _fewest(excess))


def _fewest(parts: Shares) -> Iterable[str]:
    """Yield the names with the largest parts, as many as make enough of the sum."""
    total, reached = sum(parts.values()), 0.0
    for name, part in sorted(parts.items(), key=lambda each: (-each[1], each[0]))[:MOST]:
        if reached >= ENOUGH * total:
            return
        reached += part
        yield name


def _plain(name: str) -> str:
    """Return an operator's name without its domain and what the runtime put before it."""
    plain = name.rpartition(":")[2]
    for prefix in PREFIXES:
        plain = plain.removeprefix(prefix)
    return plain


Costs = Sequence[ModelCost]


def has_reference(spec: Path) -> bool:
    """Say whether a buildspec has a reference model. Raises `SpecError`."""
    return any(model.reference for model in load(Request(spec=spec)).spec.models)


def expectations_of(request: Request, costs: Costs, console: Console) -> tuple[Expectation, ...]:
    """Return what each case of each other model should take on each device on which the reference was measured.

    The figures are those of the reports in the output folder; without one there is nothing, which is reported. Raises
    as planning and `report_of` do.
    """
    reference = next(model.name for model in load(request).spec.models if model.reference)
    inputs = looked_at(request, console)
    try:
        latest = latest_of(inputs, request.output)
    except VerifyError as error:
        for target in inputs.targets:
            console.note(f"{target.id}: {error.what}, so that no latency can be expected; {error.hint}")
        return ()
    found: list[Expectation] = []
    for target in inputs.targets:
        folder = plan_folder(inputs.loaded.spec.name, latest.plan, request.output) / target.id
        report = _report(folder, console)
        for device in report.devices if report else ():
            found += expectations_on(device, reference, costs, folder)
    return tuple(found)


def expectations_on(device: DeviceReport, reference: str, costs: Costs, folder: Path) -> Iterator[Expectation]:
    """Yield the expectations on one device; none where time means nothing or the reference was not measured."""
    pace = _pace(device, reference, costs)
    if pace is None:
        return
    for cost in costs:
        if cost.model != reference:
            yield expectation(cost, pace, _median(device, cost.model, cost.case), _times(device, cost.model, folder))


def _report(folder: Path, console: Console) -> VerifyReport | None:
    try:
        return report_of(folder)
    except VerifyError as error:
        console.note(f"{folder.name}: {error.what}, so that no latency can be expected; {error.hint}")
        return None


def _pace(device: DeviceReport, reference: str, costs: Costs) -> Pace | None:
    """Return the reference's pace in the case with the most arithmetic of those that were measured."""
    if device.host is not None and not device.host.time_meaningful:
        return None
    measured = [
        (cost, _median(device, reference, cost.case)) for cost in costs if cost.model == reference and cost.macs
    ]
    timed = [(cost, median) for cost, median in measured if median]
    if not timed:
        return None
    cost, median = max(timed, key=lambda each: each[0].macs)
    return Pace(device=device.device, model=reference, case=cost.case, macs=cost.macs, milliseconds=median)


def _median(device: DeviceReport, model: str, case: str) -> float | None:
    runs = (run for run in device.runs if run.model == model and run.library == "ours")
    return next((each.inference_ms.p50 for run in runs for each in run.cases if each.case == case), None)


def _times(device: DeviceReport, model: str, folder: Path) -> dict[str, float] | None:
    """Return the operators' parts of a model's time, when its profile is there."""
    for trace in device.traces:
        path = folder / trace
        if path.parent.name == model and path.is_file():
            return merged_times(operator_times(path, f"{device.device}, model '{model}'"))
    return None
