"""What `invoke measure.preparation` does: builds each spec twice, lets both run in turn, and shows what came of it."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from build_time.machine import this_machine
from footprint.contenders import Contest
from footprint.one_by_one import one_by_one
from footprint.record import read_or_begin, write_record
from footprint.rounds import Turns, measure_contest

from ortrim.base.console import Console
from ortrim.base.files import require_writable, shipped_folder, write_atomically
from ortrim.devices.host import Host
from preparation.proof import proved
from preparation.record import PreparationRecord
from preparation.report import markdown, table
from preparation.subject import Pair, built_pair

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
