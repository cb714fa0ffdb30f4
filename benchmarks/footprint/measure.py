"""What `invoke measure.footprint` does: builds the libraries, lets them run in turn, and shows what came of it."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from build_time.record import this_machine

from footprint.contenders import chosen_profiles
from footprint.plot import picture
from footprint.record import Record, read_record, write_record
from footprint.report import markdown, tables
from footprint.rounds import Turns, measure_contest, one_by_one
from footprint.subject import Subject, built_subject, libraries_of
from footprint.summary import summaries
from ortrim.base.console import Console
from ortrim.base.files import require_writable, write_atomically
from ortrim.buildspec.build_options import ProfileName
from ortrim.devices.host import Host

__all__ = ["SPECS", "Wanted", "measure"]

BUILDSPECS: Final = Path(__file__).resolve().parents[2] / "buildspecs"
SPECS: Final = tuple(
    BUILDSPECS / f"{name}.toml"
    for name in (
        "silero-vad", "models/page-orientation", "models/text-recognition", "transformer", "models/turn-detection",
    )
)  # fmt: skip
"""Speech; vision, convolutional; OCR; a transformer; one whose weights and activations have 8 bits."""
RECORD: Final = "footprint.json"
REPORT: Final = "footprint.md"
PICTURE: Final = "footprint-latency.svg"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to measure: specs (`SPECS` when there are none) by profiles (names with commas; all), so many rounds."""

    specs: tuple[Path, ...] = ()
    profiles: str = ""
    rounds: int = 9
    jobs: int | None = None
    output: Path = Path("artifacts/benchmarks")
    rest_seconds: float = 180.0


def measure(wanted: Wanted, console: Console) -> Record:
    """Measure what is wanted and not measured yet, show and write the summary, and return the record."""
    profiles = chosen_profiles(wanted.profiles)
    require_writable(wanted.output)
    session = _Session(wanted, profiles, console)
    one_by_one(wanted.specs or SPECS, session.measure, session.show)
    return session.record


class _Session:
    def __init__(self, wanted: Wanted, profiles: tuple[ProfileName, ...], console: Console) -> None:
        self.record = read_record(wanted.output / RECORD, this_machine())
        self._wanted, self._profiles, self._console = wanted, profiles, console

    def measure(self, spec: Path) -> None:
        subject = built_subject(spec, self._profiles, self._wanted.jobs, self._wanted.output, self._console)
        self._prove(subject)
        turns = Turns(rounds=self._wanted.rounds, rest_seconds=self._wanted.rest_seconds)
        for contest in subject.contests():
            measure_contest(
                contest, self.record, turns, self._console, lambda new: self._keep(self.record.with_round(new))
            )

    def show(self) -> None:
        """Show what was measured, now and before, and write it down beside the record."""
        found = summaries(self.record)
        if not found:
            return
        for table in tables(found):
            self._console.render(table)
        write_atomically(self._wanted.output / REPORT, markdown(found, self.record))
        if drawn := picture(found):
            write_atomically(self._wanted.output / PICTURE, drawn)
        self._console.note(f"record: {self._wanted.output / RECORD}, report: {self._wanted.output / REPORT}")

    def _prove(self, subject: Subject) -> None:
        """Measure the libraries' sizes, and hold their outputs against the full runtime's."""
        with self._console.step(f"sizes and outputs of {subject.name}"), closing(Host()) as device:
            self._keep(self.record.with_spec(subject.name, libraries_of(subject, device), subject.kinds()))

    def _keep(self, record: Record) -> None:
        self.record = record
        write_record(self._wanted.output / RECORD, record)
