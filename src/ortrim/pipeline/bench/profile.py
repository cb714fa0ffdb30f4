"""`profile`: what each operator and each node takes of one inference, as ONNX Runtime itself tells it."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.console import Console
from ortrim.core.operator_profile import OperatorProfile
from ortrim.errors import UsageError
from ortrim.pipeline.bench.planning import base_point, request_at
from ortrim.pipeline.bench.subjects import Asked, Subject, subject_of
from ortrim.storage.files import require_writable, write_atomically
from ortrim.verify.devices.base import Repetition, RunRequest
from ortrim.verify.devices.host import Host
from ortrim.verify.node_times import one_inference, profiled, read_trace
from ortrim.verify.operator_times import Event
from ortrim.verify.progress import Runs
from ortrim.verify.traces import TRACE

FOLDER: Final = "profile"
"""Where traces lie, in the folder of packages and reports."""
RUNS: Final = 20


@dataclass(frozen=True, kw_only=True)
class Profiled:
    """One profile, and the file with its inference of median length, which opens in Perfetto."""

    profile: OperatorProfile
    trace: Path


def profiles_of(asked: Asked, case: str, runs: int, console: Console) -> tuple[Profiled, ...]:
    """Run each case of each model, or the `case` of that name, on this machine with a profile.

    Raises `UsageError` (`no-such-case`), `StorageError`, and as `subject_of`, `Device.run`, `read_trace` and `profiled`
    do.
    """
    folder = asked.request.output / FOLDER
    require_writable(folder)
    subject = subject_of(asked, console)
    requests = tuple(_requests(subject, case, runs))
    if not requests:
        known = dict.fromkeys(each.name for cases in subject.planned.cases for each in cases)
        hint = f"there is: {', '.join(known)}"
        raise UsageError("no-such-case", f"no model has a case {case[:100]!r}", where="--case", hint=hint)
    host, found = Host(asked.request.cores), []
    with console.step("profile") as step:
        progress = Runs(len(requests), step.progress)
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


def _requests(subject: Subject, case: str, runs: int) -> Iterator[tuple[str, RunRequest]]:
    for number, model in enumerate(subject.planned.models.prepared):
        for each in subject.planned.cases[number]:
            if case in {"", each.name}:
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
