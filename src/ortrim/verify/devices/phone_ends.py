"""How a run in our app on a phone ended, from what it left in its folder; and what the phone says of itself.

It came from a phone, whose app may have died anywhere: it may be anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from pydantic import ValidationError

from ortrim.core.measurements import Host
from ortrim.core.serialization import from_json
from ortrim.errors import VerifyError
from ortrim.tools.command import Completed
from ortrim.verify.devices.base import RunRequest
from ortrim.verify.devices.devicectl_client import Answer
from ortrim.verify.devices.devicectl_errors import devicectl_error, signal_of
from ortrim.verify.devices.devicectl_listing import Phone
from ortrim.verify.devices.farms.harness_requests import REPORT
from ortrim.verify.devices.pulled_files import copy_files, text_of
from ortrim.verify.devices.run_errors import MOST_PRINTED_BYTES, endless_output, not_startable
from ortrim.verify.runner_output import place_of

END: Final = "end.json"
STDERR: Final = "stderr.txt"
OUTPUTS: Final = "outputs"
NOT_STARTED: Final = -1
"""The app's code for a request that it could not begin; `problem` says why."""
STATUSES: Final[Mapping[int, int]] = MappingProxyType({0: 0, 1: 1, 2: 3, 3: 4})
"""Apple's thermal states (nominal, fair, serious, critical) -> Android's (none, light, severe, critical)."""
SERIOUS: Final = 2
"""From here on Apple's documents say that the system takes performance away."""


@dataclass(frozen=True, kw_only=True)
class RunEnd:
    """What the app writes when the runner has ended: its exit code, and what the phone says."""

    schema: Literal["ortrim-end/1"]
    code: int
    problem: str
    seconds: float
    thermal: int
    cores: int
    memory_bytes: int
    page_bytes: int

    @property
    def status(self) -> int:
        """The phone's heat in Android's words."""
        return STATUSES.get(self.thermal, max(STATUSES.values()))

    @property
    def throttled(self) -> bool:
        """Whether the phone takes performance away for its heat."""
        return self.thermal >= SERIOUS


@dataclass(frozen=True, kw_only=True)
class PhoneRun:
    """The runner as if it had been a program of its own; `end` is None when the app died."""

    completed: Completed
    end: RunEnd | None


def read_end(launched: Answer, copied: Answer, place: Path, request: RunRequest, where: str) -> PhoneRun:
    """Return how a run ended whose folder was copied below `place`, and bring its outputs to where they are wanted.

    Raises `VerifyError`: `runner-not-startable` (the app could not begin), `endless-output`, and those of
    `devicectl_error` for an app that was not launched or whose folder did not come.
    """
    found = sorted(place.rglob(END)) + sorted(place.rglob(STDERR))
    folder = next((path.parent for path in found if path.is_file() and not path.is_symlink()), place)
    end = _end(folder / END, where)
    number = signal_of(launched.said)
    if end is None and number is None:
        raise devicectl_error((launched if launched.done.returncode != 0 else copied).said, where)
    if end is not None and end.code == NOT_STARTED:
        raise not_startable(where, end.problem)
    if request.outputs and (folder / OUTPUTS).is_dir() and not (folder / OUTPUTS).is_symlink():
        copy_files(folder / OUTPUTS, request.outputs)
    code = end.code if end is not None else -(number or 0)
    done = Completed(argv=(), returncode=code, stdout=_report(folder, request), stderr=text_of(folder / STDERR))
    return PhoneRun(completed=done, end=end)


def phone_host(phone: Phone, ends: Sequence[RunEnd]) -> Host:
    """Return what is known of a phone, after so many runs there."""
    last = ends[-1] if ends else None
    return Host(
        system="iOS",
        machine="arm64",
        cpu=phone.processor or "arm64",
        cores=last.cores if last else 1,
        memory_bytes=last.memory_bytes if last else 0,
        kind="physical",
        model=f"{phone.model} ({phone.product})" if phone.product else phone.model,
        soc=phone.board,
        abi="arm64",
        os_version=phone.system,
        fingerprint=phone.build,
        page_bytes=last.page_bytes if last else None,
        thermal_before=ends[0].status if ends else None,
        thermal_after=last.status if last else None,
    )


def _end(path: Path, where: str) -> RunEnd | None:
    text = text_of(path)
    if not text:
        return None
    try:
        return from_json(RunEnd, text)
    except ValidationError as error:
        what, why = f"{END} is not what our app writes", "\n".join(str(error).splitlines()[:3])
        raise VerifyError("phone-trouble", what, where=where, why=why, hint="compile the app anew") from error


def _report(folder: Path, request: RunRequest) -> str:
    path = folder / REPORT
    if path.is_file() and path.stat().st_size > MOST_PRINTED_BYTES:
        raise endless_output(place_of(request))
    return text_of(path)
