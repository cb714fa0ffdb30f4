"""What `invoke measure.preparation` does: builds each spec twice, lets both run in turn, and shows what came of it."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from build_time.record import this_machine
from footprint.contenders import Contest
from footprint.record import Library, Round, Sample, read_or_begin, write_record
from footprint.report import figure_text
from footprint.rounds import Turns, measure_contest, one_by_one
from footprint.subject import Model, agreements, library_of
from footprint.summary import Figure, mean_p50, ratio_between
from rich.table import Table

from ortrim.base.console import Console, printable
from ortrim.base.files import require_writable, shipped_folder, write_atomically
from ortrim.devices.device import ProgramDevice
from ortrim.devices.host import Host
from ortrim.models.operators import parse_config
from ortrim.report.figures import NONE, difference_text
from ortrim.report.table import Table as ReportTable
from ortrim.report.table import columns
from ortrim.steps.report import PreparationReport
from preparation.record import Change, ModelFigures, PreparationRecord
from preparation.subject import GIVEN, PREPARED, Pair, built_pair


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


def rows(record: PreparationRecord) -> tuple[tuple[str, ...], ...]:
    """Return the cells of each model, in the order of the record; what was not measured yet is a dash."""
    return tuple(_row(record, change) for change in record.changes)


def table(record: PreparationRecord) -> Table:
    shown = Table(title=TITLE, title_justify="left", box=None, collapse_padding=True, pad_edge=False)
    for heading in HEADINGS:
        shown.add_column(heading, justify="left" if heading == "model" else "right", overflow="fold")
    for row in rows(record):
        shown.add_row(*map(printable, row))
    return shown


def markdown(record: PreparationRecord) -> str:
    """Return the table as Markdown, with how it is to be read and the machine that it is of."""
    machine = f"{record.machine.cpu}, {record.machine.cores} cores, {record.machine.system}."
    headings = (*columns("text", HEADINGS[0]), *columns("number", *HEADINGS[1:]))
    table = ReportTable(columns=headings, rows=tuple(rows(record))).markdown()
    parts = (f"# {TITLE}", FOREWORD.strip(), machine, table)
    return "\n\n".join(parts) + "\n"


def _row(record: PreparationRecord, change: Change) -> tuple[str, ...]:
    rounds = record.of(change.spec, change.model, change.key)
    before, after = change.given, change.prepared
    libraries = (record.library_bytes(change.spec, name) for name in (GIVEN, PREPARED))
    return (
        _name(change, rounds),
        _both(before.onnx_bytes, after.onnx_bytes),
        _both(before.nodes, after.nodes),
        _both(before.operator_types, after.operator_types),
        _both(before.ort_bytes, after.ort_bytes),
        _both(*libraries),
        *(figure_text(ratio_between(rounds, PREPARED, GIVEN, figure)) for figure in FIGURES),
        f"{change.outputs_agree} of {change.outputs}",
        NONE if change.largest_difference is None else difference_text(change.largest_difference),
        str(len(rounds)),
    )


def _load(sample: Sample) -> float:
    return sample.load_ms


def _peak_rss(sample: Sample) -> float:
    return sample.peak_rss_bytes


FIGURES: Final[tuple[Figure, ...]] = (_load, mean_p50, _peak_rss)


def _name(change: Change, rounds: Sequence[Round]) -> str:
    name = change.model if change.model == change.spec else f"{change.spec}: {change.model}"
    return f"{name}*" if any(each.disturbed for each in rounds) else name


def _both(before: int | None, after: int | None) -> str:
    return " → ".join(NONE if each is None else f"{each:,}" for each in (before, after))


SPECS: Final = tuple(
    shipped_folder("buildspecs") / f"{name}.toml"
    for name in (
        "models/turn-detection", "models/text-detection", "models/text-recognition", "models/page-orientation",
        "models/file-type", "models/page-layout", "models/wake-word", "transformer",
    )
)  # fmt: skip
RECORD: Final = "preparation.json"
REPORT: Final = "preparation.md"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to measure: specs (`SPECS` when there are none), so many rounds."""

    specs: tuple[Path, ...] = ()
    rounds: int = 9
    jobs: int | None = None
    output: Path = Path("artifacts/benchmarks")
    rest_seconds: float = 180.0


def measure(wanted: Wanted, console: Console) -> PreparationRecord:
    """Measure what is wanted and not measured yet, show and write the table, and return the record."""
    require_writable(wanted.output)
    session = _Session(wanted, console)
    one_by_one(wanted.specs or SPECS, session.measure, session.show)
    return session.record


class _Session:
    def __init__(self, wanted: Wanted, console: Console) -> None:
        self.record = read_or_begin(wanted.output / RECORD, PreparationRecord(machine=this_machine()))
        self._wanted, self._console = wanted, console

    def measure(self, spec: Path) -> None:
        pair = built_pair(spec, self._wanted.jobs, self._wanted.output, self._console)
        contests = pair.contests()
        self._prove(pair, contests)
        turns = Turns(rounds=self._wanted.rounds, rest_seconds=self._wanted.rest_seconds)
        for contest in contests:
            measure_contest(
                contest, self.record, turns, self._console, lambda new: self._keep(self.record.with_round(new))
            )

    def show(self) -> None:
        """Show what was measured, now and before, and write it down beside the record."""
        if not self.record.changes:
            return
        self._console.render(table(self.record))
        write_atomically(self._wanted.output / REPORT, markdown(self.record))
        self._console.note(f"record: {self._wanted.output / RECORD}, report: {self._wanted.output / REPORT}")

    def _prove(self, pair: Pair, contests: Sequence[Contest]) -> None:
        """Measure sizes, and hold the prepared models' outputs against the full runtime's."""
        with self._console.step(f"sizes and outputs of {pair.name}"), closing(Host()) as device:
            libraries, changes = proved(pair, contests, device)
        known = self.record.with_spec(pair.name, libraries, pair.prepared.kinds())
        self._keep(known.with_changes(pair.name, changes))

    def _keep(self, record: PreparationRecord) -> None:
        self.record = record
        write_record(self._wanted.output / RECORD, record)
