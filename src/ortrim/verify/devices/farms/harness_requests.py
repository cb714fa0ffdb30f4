"""What the app on a farm's device is asked to run: the runner's command lines, and the files that go with them."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from ortrim.core.harness import ASSETS, RUNNER_LIBRARY, HarnessContent
from ortrim.core.serialization import to_json
from ortrim.storage.files import sha256_of, storage_errors
from ortrim.verify.devices.base import RunRequest, runner_words
from ortrim.verify.devices.payload import DIGITS, Payload, make_payload

NATIVE: Final = "/@native"
FILES: Final = "/@files"
RUN: Final = "/@run"
"""What command lines name folders by that the app alone knows: its libraries, its files, and the run's own."""
OUTPUTS: Final = f"{RUN}/outputs"
REPORT: Final = "report.json"
START_SECONDS: Final = 10.0
"""For opening the library, loading the model and warming up, on a slow phone."""
LEAST_SECONDS: Final = 300.0
MOST_SECONDS: Final = 2100.0
"""For all runs together. Firebase ends what takes more than 45 minutes on a phone, installing included, and a run that
a farm ends has no results: five minutes stay unused, besides those for installing."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestedFile:
    """A file that the app carries, and where on the device the runner looks for it."""

    asset: str
    path: str
    sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestedLibrary:
    """A library that the app carries, by its name."""

    name: str
    sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestedRun:
    """One process of the runner: its command line, and how long it may take."""

    words: tuple[str, ...]
    seconds: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestsDocument:
    """The file that `Requests.java` and `Run.m` read."""

    schema: Literal["ortrim-requests/1"] = "ortrim-requests/1"
    seconds: float
    libraries: tuple[RequestedLibrary, ...]
    contents: tuple[RequestedFile, ...]
    runs: tuple[RequestedRun, ...]


def batch_seconds(requests: Sequence[RunRequest]) -> float:
    """Return how long requests may take together on a device, in seconds."""
    longest = sum(START_SECONDS + len(request.cases) * request.repetition.seconds for request in requests)
    return min(MOST_SECONDS, max(LEAST_SECONDS, longest))


def told(request: RunRequest) -> RunRequest:
    """Return a request without what it says of this machine's folders: where its outputs go here."""
    return dataclasses.replace(request, outputs=Path(OUTPUTS) if request.outputs else None)


def harness_content(requests: Sequence[RunRequest]) -> HarnessContent:
    """Return what the app has to carry for these requests, in their order, all of one runner.

    The same requests on the same files give the same bytes. Files lie in the app under their digests, so that no name
    of a model's or a case's file meets what Android's packaging leaves out or renames. Raises `StorageError` for a
    file that cannot be read.
    """
    payload_of = cache(lambda request: make_payload(request, FILES, OUTPUTS))
    payloads = [payload_of(told(request)) for request in requests]
    return carried(
        requests,
        libraries={name: path for payload in payloads for name, path in _libraries(payload).items()},
        files={name: path for payload in payloads for name, path in _others(payload).items()},
        runs=tuple(_run(payload) for payload in payloads),
    )


def carried(
    requests: Sequence[RunRequest],
    *,
    libraries: Mapping[str, Path],
    files: Mapping[str, Path],
    runs: tuple[RequestedRun, ...],
) -> HarnessContent:
    """Return what an app carries, from libraries by their names in it and files by theirs on the device.

    Raises `StorageError` for a file that cannot be read.
    """
    digest_of = cache(_digest)
    contents = tuple(
        RequestedFile(asset=f"{ASSETS}/files/{digest_of(path)[:DIGITS]}", path=name, sha256=digest_of(path))
        for name, path in sorted(files.items())
    )
    document = RequestsDocument(
        seconds=batch_seconds(requests),
        libraries=tuple(RequestedLibrary(name=name, sha256=digest_of(libraries[name])) for name in sorted(libraries)),
        contents=contents,
        runs=runs,
    )
    return HarnessContent(
        requests=to_json(document),
        libraries=MappingProxyType(dict(libraries)),
        assets=MappingProxyType({content.asset: files[content.path] for content in contents}),
    )


def _digest(path: Path) -> str:
    with storage_errors(path):
        return sha256_of(path)


def _library_name(payload: Payload) -> str:
    """Return a library's name in the app, by its digest: ours and the baseline's are called alike."""
    return f"libortrim_{payload.request.library.parent.name}.so"


def _libraries(payload: Payload) -> dict[str, Path]:
    """Return what the installer puts among the app's libraries; a companion is needed by its own name."""
    return {
        RUNNER_LIBRARY: payload.files[payload.executable],
        _library_name(payload): payload.files[_named(payload.request.library)],
        **{path.name: payload.files[_named(path)] for path in payload.request.companions},
    }


def _others(payload: Payload) -> dict[str, Path]:
    request = payload.request
    libraries = {payload.executable, *map(_named, (request.library, *request.companions))}
    return {name: path for name, path in payload.files.items() if name not in libraries}


def _named(path: Path) -> str:
    """Return the name among a payload's files of a path in its request."""
    return path.relative_to(FILES).as_posix()


def _run(payload: Payload) -> RequestedRun:
    there = dataclasses.replace(
        payload.request,
        runner=Path(NATIVE) / RUNNER_LIBRARY,
        library=Path(NATIVE) / _library_name(payload),
        companions=tuple(Path(NATIVE) / path.name for path in payload.request.companions),
    )
    words = (*runner_words(there), "--json", f"{RUN}/{REPORT}")
    return RequestedRun(words=words, seconds=there.repetition.timeout_seconds)
