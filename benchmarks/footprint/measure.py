"""What `invoke measure.footprint` does: builds the libraries, lets them run in turn, and shows what came of it."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from records import write_results

from footprint.contenders import chosen_profiles
from footprint.plot import picture
from footprint.record import Record
from footprint.report import markdown, tables
from footprint.rounds import Session, one_by_one
from footprint.subject import built_subject, libraries_of
from footprint.summary import summaries
from ortrim.base.console import Console
from ortrim.base.files import require_writable, write_atomically
from ortrim.devices.host import Host

BUILDSPECS: Final = Path(__file__).resolve().parents[2] / "buildspecs"
SPECS: Final = tuple(
    BUILDSPECS / f"{name}.toml"
    for name in (
        "silero-vad", "models/page-orientation", "models/text-recognition", "transformer", "models/turn-detection",
    )
)  # fmt: skip
"""Speech; vision, convolutional; OCR; a transformer; one whose weights and activations have 8 bits."""
NAME: Final = "footprint"


def measure(
    console: Console,
    *,
    specs: Sequence[Path],
    profiles: str,
    rounds: int,
    jobs: int | None,
    output: Path,
    rest_seconds: float,
) -> Record:
    """Measure what is wanted and not measured yet, show and write the summary, and return the record."""
    chosen = chosen_profiles(profiles)
    require_writable(output)
    empty = Record(machine=Host().facts())
    session = Session(output / f"{NAME}.json", empty, rounds=rounds, rest_seconds=rest_seconds, console=console)

    def measure_one(spec: Path) -> None:
        subject = built_subject(spec, chosen, jobs, output, console)
        with console.step(f"sizes and outputs of {subject.name}"), closing(Host()) as device:
            session.keep(session.record.with_spec(subject.name, libraries_of(subject, device), subject.kinds()))
        session.run(subject.contests())

    one_by_one(specs or SPECS, measure_one, lambda: _show(session.record, output, console))
    return session.record


def _show(record: Record, output: Path, console: Console) -> None:
    if not (found := summaries(record)):
        return
    for title, table in tables(found):
        console.note(title)
        console.render(table.terminal(rule=False))
    write_results(output, NAME, record, markdown(found, record), console)
    if drawn := picture(found):
        write_atomically(output / "footprint-latency.svg", drawn)
