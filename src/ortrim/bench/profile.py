"""`profile`: the time of each operator and node in one inference, by ONNX Runtime's own profile.

- A profile of operators and nodes as compact tables for the terminal and plain logs.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ortrim.base.console import Console, counted, printable
from ortrim.base.files import require_writable, write_atomically
from ortrim.bench.subjects import BenchedModel, BenchSelection, base_point, request_at, subject_of
from ortrim.devices.host import Host
from ortrim.parity.runner import Repetition, RunRequest
from ortrim.parity.runner_output import TRACE
from ortrim.planning.request import require_known
from ortrim.report.figures import ms_text, plain_table, share_text, shortened
from ortrim.verify.measure import DeviceRuns
from ortrim.verify.operator_times import (
    Event,
    NodeTime,
    OperatorProfile,
    OperatorTime,
    one_inference,
    profiled,
    read_trace,
)

FOLDER: Final = "profile"
"""Where traces lie, in the folder of packages and reports."""
RUNS: Final = 20


@dataclass(frozen=True, kw_only=True)
class Profiled:
    """One profile, and the file with its inference of median length, which opens in Perfetto."""

    profile: OperatorProfile
    trace: Path


def profiles_of(asked: BenchSelection, names: Sequence[str], runs: int, console: Console) -> tuple[Profiled, ...]:
    """Run each case of each model, or those of these names, on this machine with a profile.

    Raises `UsageError` (`no-such-case`), `StorageError`, and as `subject_of`, `Device.run`, `read_trace` and `profiled`
    do.
    """
    folder = asked.request.output / FOLDER
    require_writable(folder)
    subject = subject_of(asked, console)
    known = tuple(dict.fromkeys(each.name for cases in subject.planned.cases for each in cases))
    require_known("no-such-case", "--case", names, known)
    requests = tuple(_requests(subject, names, runs))
    host, found = Host(asked.request.cores), []
    with console.step("profile") as step:
        progress = DeviceRuns(len(requests), step.progress)
        for model, request in requests:
            name = request.cases[0].name
            with progress.one(f"{model}, {name}"):
                events = _events(host, request, f"{model}, {name}")
            profile = profiled(events, model=model, case=name, measured_with=subject.library.name)
            found.append(_kept(profile, events, folder / f"{model}-{name}.trace.json"))
    return tuple(found)


def profile_of_trace(trace: Path, output: Path) -> Profiled:
    """Read a trace that was made before: on a device by `invoke verify --trace`, by the runner or by ONNX Runtime.

    Raises `VerifyError` (`trace-missing`, `trace-unreadable`, and as `profiled` does) and `StorageError`.
    """
    events = read_trace(trace, str(trace))
    profile = profiled(events, model=trace.stem, case="", measured_with=str(trace))
    return _kept(profile, events, output / FOLDER / f"{trace.stem}.trace.json")


def _requests(subject: BenchedModel, names: Sequence[str], runs: int) -> Iterator[tuple[str, RunRequest]]:
    for number, model in enumerate(subject.planned.models.prepared):
        for each in subject.planned.cases[number]:
            if not names or each.name in names:
                request = request_at(subject, number, base_point(subject, number), (each,))
                yield model.name, replace(request, repetition=Repetition(runs=runs, warmup=1, seconds=60.0))


def _events(host: Host, request: RunRequest, where: str) -> list[Event]:
    with tempfile.TemporaryDirectory(prefix="ortrim-profile-") as scratch:
        host.run(replace(request, outputs=Path(scratch), trace=True))
        return read_trace(Path(scratch) / TRACE, where)


def _kept(profile: OperatorProfile, events: Sequence[Event], path: Path) -> Profiled:
    title = f"{profile.model} {profile.case}".strip()
    write_atomically(path, json.dumps(one_inference(events, title)) + "\n")
    return Profiled(profile=profile, trace=path)


TOP: Final = 10
NAME_CELLS: Final = 34
BAR_CELLS: Final = 16


def profile_tables(profile: OperatorProfile, top: int | None) -> RenderableType:
    """Return the `top` operators and nodes by their time in one inference; it fits 80 columns."""
    most = top or TOP
    title = printable(f"{profile.model}, {profile.case}" if profile.case else profile.model)
    operators, nodes = _times(profile.operators, "operator", most), _times(profile.nodes, "node", most)
    return Group(Text(title, "bold"), Text(_about(profile), "dim"), Text(), operators, Text(), nodes)


def microseconds_text(value: float) -> str:
    """Write microseconds: `12.5 µs`, `3.20 ms`."""
    return ms_text(value / 1e3) if value >= 1000 else f"{ms_text(value).removesuffix(' ms')} µs"


def _about(profile: OperatorProfile) -> str:
    nodes = sum(node.microseconds for node in profile.nodes)
    of = f"{microseconds_text(nodes)} in nodes of {microseconds_text(profile.run_microseconds)} for an inference"
    return printable(f"{profile.measured_with}; median of {counted(profile.inferences, 'inference')}: {of}")


def _times(found: Sequence[OperatorTime | NodeTime], noun: str, most: int) -> Table:
    """Lay out nodes or operators, those that are too many in one line."""
    last = "nodes" if noun == "operator" else "operator"
    table = plain_table(f"by {noun}", "time", "share", "", "calls", last, fold=() if last == "nodes" else (last,))
    for each in found[:most]:
        name, more = (each.name, each.operator) if isinstance(each, NodeTime) else (each.operator, f"{each.nodes:,}")
        bar = ProgressBar(total=found[0].share or 1.0, completed=each.share, width=BAR_CELLS, complete_style="cyan")
        table.add_row(_shown(name), *_cells([each], bar), _shown(more))
    if rest := found[most:]:
        table.add_row(counted(len(rest), f"other {noun}"), *_cells(rest, ""), "", style="dim")
    return table


def _cells(found: Sequence[OperatorTime | NodeTime], bar: RenderableType) -> tuple[RenderableType, ...]:
    """Write what nodes or operators take together."""
    time, share = sum(each.microseconds for each in found), sum(each.share for each in found)
    return microseconds_text(time), share_text(share), bar, _calls(sum(each.calls for each in found))


def _calls(calls: float) -> str:
    return f"{calls:,.0f}" if calls == round(calls) else f"{calls:,.1f}"


def _shown(name: str) -> Text:
    return Text(shortened(printable(name), NAME_CELLS))
