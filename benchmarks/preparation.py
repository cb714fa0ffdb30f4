"""What the steps of a buildspec's models bring: size, memory and speed before and after, with real models.

Each spec is built twice, without the steps and with them; both run in turn.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final, Self

from footprint.contenders import Contender, Contest
from footprint.record import Library, Record
from footprint.report import figure_text
from footprint.rounds import Session, one_by_one
from footprint.subject import Model, Subject, agreements, build_first, built_of, contender_of, library_of, subject_of
from footprint.summary import mean_p50, ratio_between
from records import table_of, write_results

from ortrim.base.console import Console
from ortrim.base.files import require_writable, sha256_of, shipped_folder
from ortrim.buildspec.build_options import ProfileName
from ortrim.devices.device import ProgramDevice
from ortrim.devices.host import Host
from ortrim.errors import UsageError
from ortrim.models.operators import parse_config
from ortrim.parity.inputs import Case
from ortrim.planning.planned import Planned, looked_at, make_planned
from ortrim.planning.request import Request
from ortrim.report.figures import NONE, difference_text
from ortrim.report.table import Table
from ortrim.steps.report import PreparationReport

GIVEN: Final = "given"
"""The library for the models as the user gave them, with these models."""
PREPARED: Final = "prepared"
"""The library for the models after their steps, with these."""
PROFILE: Final[ProfileName] = "balanced"


@dataclass(frozen=True, kw_only=True)
class ModelFigures:
    """A model in numbers; `operator_types` are those that its required-operators configuration names."""

    onnx_bytes: int
    nodes: int
    operator_types: int
    ort_bytes: int


@dataclass(frozen=True, kw_only=True)
class Change:
    """What its steps made of a model of a spec; `key` is that of the rounds in which both were measured."""

    spec: str
    model: str
    key: str
    given: ModelFigures
    prepared: ModelFigures
    outputs: int
    outputs_agree: int
    largest_difference: float | None


@dataclass(frozen=True, kw_only=True)
class PreparationRecord(Record):
    """A record of rounds and libraries as `footprint` has it, with what changed in the models of each spec."""

    changes: tuple[Change, ...] = ()

    def with_changes(self, spec: str, changes: tuple[Change, ...]) -> Self:
        others = tuple(each for each in self.changes if each.spec != spec)
        return replace(self, changes=(*others, *changes))

    def library_bytes(self, spec: str, contender: str) -> int | None:
        found = (each.file_bytes for each in self.libraries if (each.spec, each.contender) == (spec, contender))
        return next(found, None)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Both builds of a spec; their models are in the same order, as are `reports`, None for a model without steps."""

    given: Subject
    prepared: Subject
    reports: tuple[PreparationReport | None, ...]

    @property
    def name(self) -> str:
        return self.given.name

    def contests(self) -> tuple[Contest, ...]:
        """Return what is to be measured of each model: both builds with the same cases, in the same runner."""
        both = zip(self.given.models, self.prepared.models, strict=True)
        return tuple(self._contest(given, prepared) for given, prepared in both)

    def _contest(self, given: Model, prepared: Model) -> Contest:
        return Contest(
            spec=self.name,
            model=given.prepared.name,
            runner=self.given.runner,
            runner_sha256=sha256_of(self.given.runner),
            cases=given.cases,
            contenders=(_contender(self.given, GIVEN, given), _contender(self.prepared, PREPARED, prepared)),
        )


def built_pair(spec: Path, jobs: int | None, output: Path, console: Console) -> Pair:
    """Build a spec for this machine without and with its models' steps; what was built before is taken as it is."""
    request = Request(spec=spec, profile=PROFILE, jobs=jobs, output=output)
    prepared_from = looked_at(request, console, to_run=True)
    loaded = prepared_from.loaded
    if not any(model.steps for model in loaded.models):
        what, hint = "no model of it has steps, so that there is nothing to measure", "see docs/guides/prepare.md"
        raise UsageError("no-steps", what, where=str(spec), hint=hint)
    as_given = replace(loaded, models=tuple(replace(model, steps=()) for model in loaded.models))
    given = make_planned(replace(prepared_from, loaded=as_given), request, console)
    prepared = make_planned(prepared_from, request, console)
    for model, before, after in zip(given.models.prepared, given.cases, prepared.cases, strict=True):
        require_same_cases(f"{spec}: model '{model.name}'", before, after)
    return Pair(
        given=_built(given, GIVEN, request, console),
        prepared=_built(prepared, PREPARED, request, console),
        reports=tuple(done.report if done else None for done in prepared.models.preparations),
    )


def require_same_cases(where: str, given: tuple[Case, ...], prepared: tuple[Case, ...]) -> None:
    """Raise `UsageError` (`cases-differ`) unless both have the same cases with the same inputs in the same order."""
    before, after = _inputs_by_case(given), _inputs_by_case(prepared)
    if before == after:
        return
    others = sorted(name for name in before | after if before.get(name) != after.get(name))
    raise UsageError(
        "cases-differ",
        "after its steps the model takes other inputs than before, so that the two cannot be compared",
        where=where,
        why=f"cases that differ: {', '.join(others)}",
        hint="measure a spec without the steps that change, reorder or drop inputs, and whose cases all stay",
    )


def _inputs_by_case(cases: tuple[Case, ...]) -> dict[str, dict[str, str]]:
    """Return the digests of the input files, which are in the model's order, whatever its inputs are called."""
    return {case.name: {file.name: sha256_of(file) for file in sorted(case.folder.glob("input_*"))} for case in cases}


def _built(planned: Planned, contender: str, request: Request, console: Console) -> Subject:
    library, runner = build_first(planned, request, f"with its models {contender}", console)
    return subject_of(planned, {contender: built_of(planned, library)}, runner, request.output)


def _contender(subject: Subject, name: str, model: Model) -> Contender:
    return contender_of(
        name, subject.libraries[name].path, (model.converted.path, model.converted.sha256), model.session
    )


def proved(
    pair: Pair, contests: Sequence[Contest], device: ProgramDevice
) -> tuple[tuple[Library, ...], tuple[Change, ...]]:
    """Return both libraries, and what changed in each model; every output of the prepared ones is checked."""
    given, prepared = pair.given, pair.prepared
    agree = [tuple(agreements(prepared, PREPARED, model, device)) for model in prepared.models]
    libraries = (
        library_of(given, GIVEN, given.libraries[GIVEN].path, ()),
        library_of(prepared, PREPARED, prepared.libraries[PREPARED].path, tuple(chain.from_iterable(agree))),
    )
    together = zip(contests, given.models, prepared.models, pair.reports, agree, strict=True)
    return libraries, tuple(_change(*each) for each in together)


def figures_of(model: Model) -> ModelFigures:
    """Return a model in numbers; an operator that it needs at several opsets is one type."""
    operators = parse_config(model.converted.config).operators
    return ModelFigures(
        onnx_bytes=model.prepared.facts.size_bytes,
        nodes=model.prepared.facts.node_count,
        operator_types=len({(operator.domain, operator.name) for operator in operators}),
        ort_bytes=model.converted.size_bytes,
    )


def largest_difference(report: PreparationReport | None) -> float | None:
    steps = report.steps if report else ()
    found = [step.largest_difference for step in steps if step.outcome != "left out"]
    return max((each for each in found if each is not None), default=None)


def _change(
    contest: Contest, given: Model, prepared: Model, report: PreparationReport | None, agree: tuple[bool, ...]
) -> Change:
    return Change(
        spec=contest.spec,
        model=contest.model,
        key=contest.key,
        given=figures_of(given),
        prepared=figures_of(prepared),
        outputs=len(agree),
        outputs_agree=sum(agree),
        largest_difference=largest_difference(report),
    )


HEADINGS: Final = (
    "model", "ONNX, bytes", "nodes", "operator types", ".ort, bytes", "library, bytes", "load", "p50", "peak RSS",
    "outputs", "difference", "rounds",
)  # fmt: skip
TITLE: Final = "What the steps of the models bring"
FOREWORD: Final = """\
Before → after the steps, each by its own library of profile `balanced`. Load, p50 and peak RSS are after divided by
before: the median of the ratios within each round, and beside it the half-width of its 90 % interval; p50 is the
geometric mean over all cases. A spec's models share their library. `outputs`: how many of the prepared model's
outputs agree with the full runtime's. `difference`: the largest one from the original model's outputs after any step,
in the full runtime. `*`: something else was running.
"""


def table(record: PreparationRecord) -> Table:
    """Return a row for each model, in the order of the record; what was not measured yet is a dash."""
    return table_of(HEADINGS, [_row(record, change) for change in record.changes])


def markdown(record: PreparationRecord) -> str:
    """Return the table as Markdown, with how it is to be read and the machine that it is of."""
    machine = f"{record.machine.cpu}, {record.machine.cores} cores, {record.machine.os_version}."
    return "\n\n".join((f"# {TITLE}", FOREWORD.strip(), machine, table(record).markdown())) + "\n"


def _row(record: PreparationRecord, change: Change) -> tuple[str, ...]:
    rounds = record.of(change.spec, change.model, change.key)
    before, after = change.given, change.prepared
    libraries = (record.library_bytes(change.spec, name) for name in (GIVEN, PREPARED))
    return (
        _name(change) + ("*" if any(each.disturbed for each in rounds) else ""),
        _both(before.onnx_bytes, after.onnx_bytes),
        _both(before.nodes, after.nodes),
        _both(before.operator_types, after.operator_types),
        _both(before.ort_bytes, after.ort_bytes),
        _both(*libraries),
        *(
            figure_text(ratio_between(rounds, PREPARED, GIVEN, figure))
            for figure in (lambda sample: sample.load_ms, mean_p50, lambda sample: sample.peak_rss_bytes)
        ),
        f"{change.outputs_agree} of {change.outputs}",
        NONE if change.largest_difference is None else difference_text(change.largest_difference),
        str(len(rounds)),
    )


def _name(change: Change) -> str:
    return change.model if change.model == change.spec else f"{change.spec}: {change.model}"


def _both(before: int | None, after: int | None) -> str:
    return " → ".join(NONE if each is None else f"{each:,}" for each in (before, after))


SPECS: Final = tuple(
    shipped_folder("buildspecs") / f"{name}.toml"
    for name in (
        "models/turn-detection", "models/text-detection", "models/text-recognition", "models/page-orientation",
        "models/file-type", "models/page-layout", "models/wake-word", "transformer",
    )
)  # fmt: skip
NAME: Final = "preparation"


def measure(
    console: Console, *, specs: Sequence[Path], rounds: int, jobs: int | None, output: Path, rest_seconds: float
) -> PreparationRecord:
    """Measure what is wanted and not measured yet, show and write the table, and return the record."""
    require_writable(output)
    empty = PreparationRecord(machine=Host().facts())
    session = Session(output / f"{NAME}.json", empty, rounds=rounds, rest_seconds=rest_seconds, console=console)

    def measure_one(spec: Path) -> None:
        pair = built_pair(spec, jobs, output, console)
        contests = pair.contests()
        with console.step(f"sizes and outputs of {pair.name}"), closing(Host()) as device:
            libraries, changes = proved(pair, contests, device)
        known = session.record.with_spec(pair.name, libraries, pair.prepared.kinds())
        session.keep(known.with_changes(pair.name, changes))
        session.run(contests)

    one_by_one(specs or SPECS, measure_one, lambda: _show(session.record, output, console))
    return session.record


def _show(record: PreparationRecord, output: Path, console: Console) -> None:
    if record.changes:
        console.note(TITLE)
        console.render(table(record).terminal(rule=False))
        write_results(output, NAME, record, markdown(record), console)
