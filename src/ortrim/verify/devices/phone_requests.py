"""What the app on an iPhone carries: its requests, the library, models and cases. See `farms.harness_requests`."""

import dataclasses
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from ortrim.core.harness import HarnessContent
from ortrim.verify.devices.base import RunRequest, runner_words
from ortrim.verify.devices.farms.harness_requests import (
    FILES,
    NATIVE,
    OUTPUTS,
    REPORT,
    RUN,
    RequestedRun,
    carried,
    told,
)
from ortrim.verify.devices.payload import LINKED, Payload, make_payload

ARCHIVE: Final = "libortrim.a"


def phone_content(requests: Sequence[RunRequest]) -> HarnessContent:
    """Return what the app has to carry for these requests, in their order.

    The same requests on the same files give the same bytes. The runner is compiled into the app, whose library is one
    of its frameworks, or a part of it when it is static. Raises `StorageError` for a file that cannot be read.
    """
    payload_of = cache(lambda request: make_payload(request, FILES, OUTPUTS))
    payloads = [(request, payload_of(told(request))) for request in requests]
    return carried(
        requests,
        libraries={_library_name(request, payload): request.library for request, payload in payloads},
        files={name: path for _, payload in payloads for name, path in _files(payload).items()},
        runs=tuple(_run(request, payload) for request, payload in payloads),
    )


def _is_static(request: RunRequest) -> bool:
    return request.library.suffix == Path(LINKED).suffix


def _library_name(request: RunRequest, payload: Payload) -> str:
    """Return a library's name in the project, by its digest for one that is opened."""
    return ARCHIVE if _is_static(request) else f"libortrim_{payload.request.library.parent.name}.dylib"


def _files(payload: Payload) -> dict[str, Path]:
    """Return what the runner reads: neither itself nor the library."""
    left = {payload.executable, payload.request.library.relative_to(FILES).as_posix()}
    return {name: path for name, path in payload.files.items() if name not in left}


def _run(request: RunRequest, payload: Payload) -> RequestedRun:
    there = payload.request
    if not _is_static(request):
        there = dataclasses.replace(there, library=Path(NATIVE) / _library_name(request, payload))
    words = (*runner_words(there), "--json", f"{RUN}/{REPORT}")
    return RequestedRun(words=words, seconds=there.repetition.timeout_seconds)
