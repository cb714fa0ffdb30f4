"""The apps that run for us on farms' devices and on iPhones: what they carry, under which names, and what is taken.

They are asked to run the runner's command lines, each in a process of its own, and leave how each run ended and what
the device says of itself, in files or in the device's log.
"""

import binascii
import dataclasses
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from ortrim.base.command import Completed
from ortrim.base.files import storage_errors
from ortrim.base.json import read_json, to_json
from ortrim.base.tools import MOST_PRINTED_BYTES
from ortrim.devices.device import NOT_STARTED, Outcome, not_startable, outcome
from ortrim.devices.facts import SECTION, adb_host, adb_thermal
from ortrim.devices.remote import DIGITS, copy_files, digest_of, make_payload, signalled, text_of
from ortrim.errors import VerifyError
from ortrim.parity import runner
from ortrim.parity.measurements import HostFacts

RUNNER_LIBRARY: Final = "libortrim_runner.so"
"""Of programs, an app may only start what is named as a library and was put there by the installer."""
ASSETS: Final = "ortrim"
"""The folder of the app's assets that is ours."""
REQUESTS_ASSET: Final = f"{ASSETS}/requests.json"
PROJECT_ASSET: Final = f"{ASSETS}/project.sha256"
"""The digest of all but what the app carries, so that an app of an older ortrim is not taken for today's."""


@dataclass(frozen=True, kw_only=True)
class HarnessContent:
    """What the app carries: the text of its requests, its libraries by file name, and other files by asset name."""

    requests: str
    libraries: Mapping[str, Path]
    assets: Mapping[str, Path]


@dataclass(frozen=True, kw_only=True)
class PhoneApp:
    """A compiled and signed app for iPhones, a folder, and what the phone knows it by."""

    path: Path
    identifier: str


NATIVE: Final = "/@native"
FILES: Final = "/@files"
RUN: Final = "/@run"
"""What command lines name folders by that the app alone knows: its libraries, its files, and the run's own."""
REQUESTED_OUTPUTS: Final = f"{RUN}/outputs"
REPORT: Final = "report.json"
START_SECONDS: Final = 10.0
"""For opening the library, loading the model and warming up, on a slow phone."""
LEAST_SECONDS: Final = 300.0
MOST_SECONDS: Final = 2100.0
"""For all runs together. Firebase ends what takes more than 45 minutes on a phone, installing included, and a run that
a farm ends has no results: five minutes stay unused, besides those for installing."""


def batch_seconds(requests: Sequence[runner.RunRequest]) -> float:
    """Return how long requests may take together on a device, in seconds."""
    longest = sum(START_SECONDS + len(request.cases) * request.repetition.seconds for request in requests)
    return min(MOST_SECONDS, max(LEAST_SECONDS, longest))


def portable(request: runner.RunRequest) -> runner.RunRequest:
    """Return a request without what it says of this machine's folders: where its outputs go here."""
    return dataclasses.replace(request, outputs=Path(REQUESTED_OUTPUTS) if request.outputs else None)


def harness_content(requests: Sequence[runner.RunRequest]) -> HarnessContent:
    """Return what the app has to carry for these requests, in their order, all of one runner.

    The same requests on the same files give the same bytes. Files lie in the app under their digests, so that no name
    of a model's or a case's file meets what Android's packaging leaves out or renames.
    """
    payload_of = cache(lambda request: make_payload(request, FILES, REQUESTED_OUTPUTS))
    libraries: dict[str, Path] = {}
    files: dict[str, Path] = {}
    there = []
    for payload in (payload_of(portable(request)) for request in requests):
        request = payload.request
        # A library is named by its digest, since ours and the baseline's are called alike; a companion keeps its name.
        name = f"libortrim_{request.library.parent.name}.so"
        in_files = {path: path.relative_to(FILES).as_posix() for path in (request.library, *request.companions)}
        libraries[RUNNER_LIBRARY] = payload.files[payload.executable]
        libraries[name] = payload.files[in_files[request.library]]
        libraries.update({path.name: payload.files[in_files[path]] for path in request.companions})
        installed = {payload.executable, *in_files.values()}
        files.update({path: file for path, file in payload.files.items() if path not in installed})
        run = dataclasses.replace(
            request,
            runner=Path(NATIVE) / RUNNER_LIBRARY,
            library=Path(NATIVE) / name,
            companions=tuple(Path(NATIVE) / path.name for path in request.companions),
        )
        there.append(run)
    return content_of(requests, there, libraries=libraries, files=files)


def content_of(
    requests: Sequence[runner.RunRequest],
    there: Sequence[runner.RunRequest],
    *,
    libraries: Mapping[str, Path],
    files: Mapping[str, Path],
) -> HarnessContent:
    """Return what an app carries, from libraries by their names in it and files by theirs on the device.

    `there` are the requests in the device's paths, as `Requests.java` and `Run.m` read them.
    """
    digest = cache(digest_of)
    assets = {path: f"{ASSETS}/files/{digest(file)[:DIGITS]}" for path, file in sorted(files.items())}
    document = {
        "schema": "ortrim-requests/1",
        "seconds": batch_seconds(requests),
        "libraries": [{"name": name, "sha256": digest(libraries[name])} for name in sorted(libraries)],
        "contents": [{"asset": asset, "path": path, "sha256": digest(files[path])} for path, asset in assets.items()],
        "runs": [
            {
                "words": [*runner.runner_words(each), "--json", f"{RUN}/{REPORT}"],
                "seconds": each.repetition.timeout_seconds,
            }
            for each in there
        ],
    }
    return HarnessContent(
        requests=to_json(document),
        libraries=MappingProxyType(dict(libraries)),
        assets=MappingProxyType({asset: files[path] for path, asset in assets.items()}),
    )


CRASH: Final = re.compile(r"FATAL EXCEPTION|Fatal signal|UnsatisfiedLinkError|Abort message|has died|ANR in")
MOST_LINES: Final = 3
MOST_LETTERS: Final = 200


def crash(log: Path) -> str:
    """Return the last lines of a device's log that tell of a crash; empty when there are none, or there is no log."""
    lines = [line.strip()[:MOST_LETTERS] for line in text_of(log).splitlines() if CRASH.search(line)]
    return "\n".join(lines[-MOST_LINES:])


RESULTS: Final = "results.json"
RUNS: Final = "runs"
MOST_RESULTS_BYTES: Final = 64 << 20


@dataclass(frozen=True, kw_only=True)
class HarnessRun:
    """How one process ended: `code` is a shell's exit code, `thermal` Android's status after it, -1 when unknown.

    `stdout` and `stderr` are the last of what it printed; for one that did not start, the reason is in `stderr`.
    """

    how: Literal["exit", "timeout", "endless", "not-started"]
    code: int
    stdout: str
    stderr: str
    seconds: float
    thermal: int


@dataclass(frozen=True, kw_only=True)
class HarnessResults:
    """All that came back. `problem` is why there are fewer runs than were asked for; not `complete`, the app died."""

    schema: Literal["ortrim-results/1"]
    requests_sha256: str
    problem: str
    complete: bool
    runs: tuple[HarnessRun, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    facts_after: Mapping[str, str] = field(default_factory=dict)

    @property
    def host(self) -> HostFacts:
        """The machine as it described itself after the runs, and its thermal state before them."""
        # As the shell of an Android device prints them.
        before, after = (
            "".join(f"\n{SECTION}{name}\n{text}\n" for name, text in facts.items())
            for facts in (self.facts, self.facts_after or self.facts)
        )
        return dataclasses.replace(adb_host(after), thermal_before=adb_thermal(before).status)


def read_results(folder: Path, content: HarnessContent, where: str, log: Path | None = None) -> HarnessResults:
    """Return the results in a folder that are those of `content`; where there are none, `log` may tell of a crash."""
    path = folder / RESULTS
    if not path.is_file() or path.is_symlink():
        what, hint = "the run has no results", "look at the device's log at the farm"
        raise VerifyError("farm-results-missing", what, where=where, why=crash(log) if log else "", hint=hint)
    what = f"{RESULTS} was not written by ortrim's app"
    hint = "look at the device's log at the farm, and verify again"
    unreadable = VerifyError("farm-results-unreadable", what, where=where, hint=hint)
    with storage_errors(path):
        if path.stat().st_size > MOST_RESULTS_BYTES:
            unreadable.why = f"it has more than {MOST_RESULTS_BYTES >> 20} MiB"
            raise unreadable
        results = read_json(HarnessResults, path.read_bytes(), unreadable)
    if results.requests_sha256 != hashlib.sha256(content.requests.encode()).hexdigest():
        what = "these are the results of other requests"
        hint = "the farm returned files of an older run; verify again"
        raise VerifyError("farm-results-foreign", what, where=where, hint=hint)
    return results


def folder_of_run(folder: Path, number: int) -> Path | None:
    """Return the folder of what a run left, None when it is not there or, through a link, is somewhere else."""
    inner = Path(RUNS) / f"{number:03}"
    found = folder / inner
    return found if found.is_dir() and found.resolve() == folder.resolve() / inner else None


OUTPUTS: Final = "outputs"
EARLY_SECONDS: Final = 1.0
"""A run that was stopped so long before its limit was stopped at another: that of all runs together."""


def outcomes(
    requests: Sequence[runner.RunRequest], results: HarnessResults, folder: Path, *, device: str, where: str
) -> Iterator[Outcome]:
    """Yield what each request ended with, as on any other device; `where` names the device and the run at the farm.

    Of those that were not carried out, since the app or its time ended before, that is `farm-run-missing`.
    """

    def missing(number: int) -> VerifyError:
        died = "" if results.complete else "the app ended before it, because memory or time ran out"
        what = f"run {number + 1} of {len(requests)} was not carried out"
        return VerifyError("farm-run-missing", what, where=where, why=results.problem or died)

    def ended(number: int, request: runner.RunRequest) -> runner.RunnerOutput:
        if number >= len(results.runs):
            raise missing(number)
        place = folder_of_run(folder, number)
        if request.outputs and place and not (place / OUTPUTS).is_symlink():
            copy_files(place / OUTPUTS, request.outputs)
        run: HarnessRun = results.runs[number]
        match run.how:
            case "timeout":
                early = run.seconds < request.repetition.timeout_seconds - EARLY_SECONDS
                raise missing(number) if early else runner.never_ended(request)
            case "endless":
                raise runner.endless_output(runner.place_of(request))
            case "not-started":
                raise not_startable(device, run.stderr)
            case "exit" if run.code in NOT_STARTED:  # Java gives to a shell what the system cannot execute
                raise not_startable(device, run.stderr.strip())
            case "exit":
                report = report_in(place, request) or run.stdout
                done = Completed(argv=(), returncode=signalled(run.code), stdout=report, stderr=run.stderr)
                return runner.read_output(done, request)

    return (outcome(partial(ended, number), request) for number, request in enumerate(requests))


def report_in(folder: Path | None, request: runner.RunRequest) -> str:
    """Return the runner's report in a run's folder; empty when there is none."""
    path = folder / REPORT if folder else None
    if path is None or not path.is_file():
        return ""
    if path.stat().st_size > MOST_PRINTED_BYTES:
        raise runner.endless_output(runner.place_of(request))
    return text_of(path)


PART: Final = re.compile(r"\bortrim-result ([0-9]{1,6})/([0-9]{1,6}) ([A-Za-z0-9+/]*={0,2})[ \t\r]*$")
END: Final = re.compile(r"\bortrim-result-end ([0-9a-f]{64}) ([0-9]{1,12})[ \t\r]*$")
TOO_LARGE: Final = re.compile(r"\bortrim-result-too-large ([0-9]{1,12})[ \t\r]*$")
MOST_BYTES: Final = 64 << 20
MOST_NAMED: Final = 5

Parts = dict[int, dict[int, str]]
"""Of each total that was announced, the parts by their numbers: other payloads' parts mostly have other totals."""


class BrokenTransport(Exception):
    """A log holds parts of results, but not all of them; the words say what is missing."""


def decode(lines: Iterable[str]) -> bytes | None:
    """Return the payload that a log carries, None when there is no trace of one.

    Of several the last that is whole counts.
    """
    parts: Parts = {}
    found: bytes | None = None
    broken = ""
    for line in lines:
        if part := PART.search(line):
            at, total = int(part[1]), int(part[2])
            if 1 <= at <= total:
                parts.setdefault(total, {})[at] = part[3]
        elif end := END.search(line):
            payload = _joined(parts, int(end[2]), end[1])
            found, broken = (payload, "") if isinstance(payload, bytes) else (found, payload)
        elif large := TOO_LARGE.search(line):
            broken = f"the results are too large for the log: {int(large[1]):,} bytes"
    if found is None and (broken or parts):
        raise BrokenTransport(broken or "the log ends in the middle of the results")
    return found


def _joined(parts: Parts, size: int, digest: str) -> bytes | str:
    """Return the payload of that size and digest, or what is wrong with what there is."""
    if size > MOST_BYTES:
        return f"the log announces {size:,} bytes of results, more than the {MOST_BYTES:,} that are taken"
    if hashlib.sha256(b"").hexdigest() == digest:
        return b""
    for total, texts in parts.items():
        if len(texts) == total:
            with suppress(binascii.Error):
                whole = "".join(texts[number] for number in range(1, total + 1))
                payload = binascii.a2b_base64(whole, strict_mode=True)
                if len(payload) == size and hashlib.sha256(payload).hexdigest() == digest:
                    return payload
    # What is missing is of the payload that was begun last.
    total, texts = next(reversed(parts.items()), (0, {}))
    lost = total - len(texts)
    if not lost:
        return "the results in the log do not have the digest that the device gave them"
    missing = islice((number for number in range(1, total + 1) if number not in texts), MOST_NAMED)
    named = ", ".join(str(number) for number in missing)
    more = f" and {lost - MOST_NAMED:,} more" if lost > MOST_NAMED else ""
    return f"the log lost {lost:,} of the {total:,} lines that carry the results: {named}{more}"
