"""`cost`: what one inference of a model takes, and how long it should take in proportion to a reference model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from ortrim.analysis.cost.graph import cost_of, open_dimensions
from ortrim.analysis.cost.memory import ModelCost
from ortrim.base.cache import cache_folder
from ortrim.base.console import Console
from ortrim.buildspec.buildspec import CaseSpec, ModelSpec
from ortrim.buildspec.load import name_from
from ortrim.buildspec.problems import nearest
from ortrim.errors import ModelError, OperatorsError, ToolError, UsageError, VerifyError
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.hot_operators import fewest
from ortrim.models.models import PreparedModel
from ortrim.models.prepare import FACTS_LAYOUT, files_named, prepare
from ortrim.parity.inputs import Case, input_shapes
from ortrim.parity.reference import cases_made
from ortrim.pins.runtime import NEWEST, exact_version, runtime_pins
from ortrim.planning.models import cases_of, found_for, ready_models
from ortrim.planning.planned import looked_at
from ortrim.planning.request import Request, is_buildspec, latest_of, load, plan_folder
from ortrim.planning.version_choice import version_to_judge
from ortrim.report.write import report_of
from ortrim.verify.operator_times import operator_times
from ortrim.verify.reports import DeviceReport


def check_sizes(words: Sequence[str], sizes: Mapping[str, int]) -> None:
    """Raise `UsageError` (`bad-option`) for the size of a dimension that no model leaves open, or beside a buildspec.

    Raises as `costs_of` does for what is no model.
    """
    if sizes and any(is_buildspec(Path(word)) for word in words):
        hint = "the buildspec's cases have the sizes; or give a model's file"
        raise UsageError("bad-option", "does not go with a buildspec", where="--dim", hint=hint)
    files = (each for word in words if sizes for each in files_named(word, exact_version(NEWEST)))
    known = tuple(dict.fromkeys(dim for name, file in files for dim in open_dimensions(file, name)))
    for name in sizes:
        if name not in known:
            hint = nearest(name, known, f"dynamic dimensions: {', '.join(known) or 'none'}")
            raise UsageError("bad-option", f"no model has a dynamic dimension {name!r}", where="--dim", hint=hint)


@dataclass(frozen=True, kw_only=True)
class CostsAsked:
    """How models are counted: with these sizes of open dimensions, or in the user's own cases, or in those found.

    `ort_version` is the version in which cases are found. A model with steps is counted after them, or as `given`.
    """

    dimensions: Mapping[str, int]
    cases: tuple[CaseSpec, ...] = ()
    ort_version: str | None = None
    given: bool = False


def costs_of(word: str, asked: CostsAsked, console: Console) -> tuple[ModelCost, ...]:
    """Return the costs of the models that a word names: of each case, or of the one run that its inputs allow.

    Cases whose inputs have the same shapes are counted once, for the first of them.
    """
    if is_buildspec(Path(word)):
        return _costs_of_buildspec(Path(word), asked, console)
    found: list[ModelCost] = []
    for name, file in files_named(word, exact_version(NEWEST)):
        own = _cases(name, file, asked, console)
        found += (
            costs_of_cases(*own, name=name)
            if own
            else [cost_of(file, name=name, where=name, dimensions=asked.dimensions)]
        )
    return tuple(found)


def _cases(name: str, file: Path, asked: CostsAsked, console: Console) -> tuple[PreparedModel, tuple[Case, ...]] | None:
    """Return a model with its cases: the user's own, or else those found if it leaves sizes open and none is given.

    None where there are none: it is then counted as far as that goes.
    """
    if not asked.cases and (asked.dimensions or not open_dimensions(file, name)):
        return None
    version = asked.ort_version or version_to_judge(str(file))
    spec, root = ModelSpec(name=name_from(file) or "model", path=file, cases=asked.cases), cache_folder("models")

    def runtime() -> FullRuntime:
        pins = runtime_pins(version)
        return full_runtime(pins.version, pins.converter_requirements)

    try:
        model = prepare(spec, base=Path(), root=root / FACTS_LAYOUT, ort_version=version, where=name)
        if not asked.cases:
            spec = replace(spec, cases=found_for(model, runtime(), console).cases)
    except (ModelError, OperatorsError, ToolError, VerifyError) as error:
        if asked.cases or error.code == "not-onnx":
            raise
        console.warn(f"no sizes were found for {name} ({error.what}): give --dim or --case")
        return None
    return model, cases_made(model, spec, Path(), runtime)


def _costs_of_buildspec(path: Path, asked: CostsAsked, console: Console) -> tuple[ModelCost, ...]:
    loaded = load(Request(spec=path, version=asked.ort_version))
    costs: list[ModelCost] = []
    for number, ready in enumerate(ready_models(loaded, console, given=asked.given)):
        if ready.steps:
            console.note(f"{ready.model.name} is counted after its steps: {', '.join(ready.steps)}")
        costs += costs_of_cases(ready.model, cases_of(ready, number, loaded))
    return tuple(costs)


def costs_of_cases(model: PreparedModel, cases: tuple[Case, ...], *, name: str = "") -> list[ModelCost]:
    """Return the cost of each case of a model; cases of the same shapes are counted once, for the first of them.

    It is shown by `name`, or else by its own. Raises `ModelError`.
    """
    by_shapes: dict[tuple[tuple[int, ...], ...], Case] = {}
    for case in cases:
        by_shapes.setdefault(input_shapes(model.facts, case), case)
    names = [info.name for info in model.facts.inputs]
    return [
        cost_of(
            model.path,
            name=name or model.name,
            where=f"model '{model.name}', case '{case.name}'",
            shapes=dict(zip(names, shapes, strict=True)),
            case=case.name,
        )
        for shapes, case in by_shapes.items()
    ]


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
POORLY: Final = "poor execution efficiency"
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
    inefficient = measured_ms is not None and measured_ms > POOR * expected
    arithmetic = {each.operator: each.macs / cost.macs for each in cost.operators if each.macs and cost.macs}
    return Expectation(
        pace=pace,
        model=cost.model,
        case=cost.case,
        macs=cost.macs,
        expected_ms=expected,
        measured_ms=measured_ms,
        finding="not measured" if measured_ms is None else POORLY if inefficient else "much arithmetic",
        blamed=_slow(arithmetic, times or {}) if inefficient else _heavy(arithmetic, times),
        blame_known=not inefficient or times is not None,
    )


def merged_times(times: Mapping[str, float]) -> dict[str, float]:
    """Return operators' parts of all time, those that the runtime has made of others under the names of these."""
    total = sum(times.values())
    shares: dict[str, float] = {}
    for name, time in times.items():
        plain = _plain(name)
        shares[plain] = shares.get(plain, 0.0) + (time / total if total else 0.0)
    return shares


def _heavy(arithmetic: Shares, times: Shares | None) -> tuple[Blamed, ...]:
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


def _fewest(parts: Shares) -> Iterator[str]:
    return islice(fewest(parts, ENOUGH), MOST)


def _plain(name: str) -> str:
    """Return an operator's name without its domain and what the runtime put before it."""
    plain = name.rpartition(":")[2]
    for prefix in PREFIXES:
        plain = plain.removeprefix(prefix)
    return plain


Costs = Sequence[ModelCost]


def has_reference(spec: Path) -> bool:
    """Say whether a buildspec has a reference model."""
    return any(model.reference for model in load(Request(spec=spec)).models)


def expectations_of(request: Request, costs: Costs, console: Console) -> tuple[Expectation, ...]:
    """Return what each case of each other model should take on each device on which the reference was measured.

    The figures are those of the reports in the output folder; without one there is nothing, which is reported.
    """
    reference = next(model.name for model in load(request).models if model.reference)
    inputs = looked_at(request, console)
    try:
        latest = latest_of(inputs, request.output)
    except VerifyError as error:
        for target in inputs.loaded.targets:
            console.note(f"{target.id}: {error.what}, so that no latency can be expected; {error.hint}")
        return ()
    found: list[Expectation] = []
    for target in inputs.loaded.targets:
        folder = plan_folder(inputs.loaded.name, latest.plan, request.output) / target.id
        try:
            devices = report_of(folder).devices
        except VerifyError as error:
            console.note(f"{folder.name}: {error.what}, so that no latency can be expected; {error.hint}")
            continue
        for device in devices:
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


def _pace(device: DeviceReport, reference: str, costs: Costs) -> Pace | None:
    """Return the reference's pace in the case with the most arithmetic of those that were measured."""
    if device.host is not None and not device.host.time_meaningful:
        return None
    own = (cost for cost in costs if cost.model == reference and cost.macs)
    timed = [(cost, median) for cost in own if (median := _median(device, reference, cost.case))]
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
