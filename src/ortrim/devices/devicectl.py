"""iPhones and iPads on a Mac's cable. A phone runs apps alone, so that an app of ours carries all that is to be run.

The answers of `xcrun devicectl` are documents in files: what it prints is for people and changes.
"""

import dataclasses
import json
import re
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from pydantic import AliasPath, BaseModel, ConfigDict, Field

from ortrim.base.command import Completed
from ortrim.base.files import storage_errors
from ortrim.base.json import read_json
from ortrim.base.tools import Program, causes, diagnose, find_xcrun
from ortrim.devices import harness, kinds
from ortrim.devices.device import Device, Outcome, not_startable, outcome
from ortrim.devices.facts import Thermal
from ortrim.devices.remote import LINKED, Payload, copy_files, make_payload, text_of
from ortrim.errors import Diagnostic, ToolError, UsageError, VerifyError
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import RunnerOutput, RunRequest, read_output, within_limits

DEVICECTL: Final = kinds.DEVICECTL.name
TERMINATED: Final = re.compile(r"\bApp terminated due to signal (\d{1,2})\b")
"""What `devicectl device process launch --console` prints at the end of an app that a signal ended."""
FAULTS: Final = causes("devicectl")
LOST: Final = next(fault for fault in FAULTS if fault.code == "device-lost")
MOST_LINES: Final = 6


def devicectl_error(said: str, where: str) -> Diagnostic:
    """Return the diagnostic of a command that failed, by what it printed and wrote; `phone-trouble` when none fits."""
    why = "\n".join(line.strip() for line in said.strip().splitlines()[-MOST_LINES:])
    hint = "try it by hand: xcrun devicectl list devices"
    unknown = VerifyError("phone-trouble", "devicectl failed", where=where, why=why, hint=hint)
    return diagnose(said, FAULTS, where, why, kind=VerifyError) or unknown


PLATFORMS: Final = frozenset({"iOS", "iPadOS"})
UNREACHABLE: Final = "unavailable"
CONNECT_HINT: Final = "connect one by cable and unlock it; then check: xcrun devicectl list devices"
DEVELOPER_HINT: Final = "switch it on: Settings, Privacy & Security, Developer Mode, and restart the device"
PAIR_HINT: Final = "unlock it, and let it trust this Mac"
VERSION: Final = re.compile(r"(\d{1,3})(?:\.(\d{1,3}))?")


def _at(*path: str) -> Any:
    return Field(default="", validation_alias=AliasPath(*path))


class Phone(BaseModel):
    """An iPhone or iPad, or another of Apple's devices, as devicectl lists it.

    `name` is its owner's for it, `product` Apple's identifier of the kind.
    """

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)
    identifier: str = Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z-]{0,63}$")
    pairing: str = _at("connectionProperties", "pairingState")
    tunnel: str = _at("connectionProperties", "tunnelState")
    name: str = _at("deviceProperties", "name")
    version: str = _at("deviceProperties", "osVersionNumber")
    build: str = _at("deviceProperties", "osBuildUpdate")
    developer_mode: str = _at("deviceProperties", "developerModeStatus")
    platform: str = _at("hardwareProperties", "platform")
    reality: str = _at("hardwareProperties", "reality")
    udid: str = _at("hardwareProperties", "udid")
    product: str = _at("hardwareProperties", "productType")
    marketing: str = _at("hardwareProperties", "marketingName")
    board: str = _at("hardwareProperties", "hardwareModel")
    processor: str = _at("hardwareProperties", "cpuType", "name")

    @property
    def is_phone(self) -> bool:
        """Whether it is one that can be held: no watch, and no simulator."""
        return self.platform in PLATFORMS and self.reality in {"", "physical"}

    @property
    def device(self) -> str:
        """Its name as a device."""
        return f"{DEVICECTL}:{self.name or self.udid}"

    @property
    def model(self) -> str:
        """Apple's word for the kind."""
        return self.marketing or self.product

    @property
    def system(self) -> str:
        """Name and version of its system; empty when devicectl does not say."""
        return f"iOS {self.version}" if VERSION.match(self.version) else ""

    @property
    def obstacle(self) -> tuple[str, str]:
        """Why nothing can be run on it, and a hint; both are empty when it can."""
        if self.pairing not in {"", "paired"}:
            return "does not trust this Mac yet", PAIR_HINT
        if self.tunnel == UNREACHABLE:
            return "is known to this Mac, but not connected", CONNECT_HINT
        if self.developer_mode == "disabled":
            return "has its developer mode switched off", DEVELOPER_HINT
        return "", ""


class _Listing(BaseModel):
    devices: tuple[Phone, ...] = Field(validation_alias=AliasPath("result", "devices"))


def read_phones(document: str) -> tuple[Phone, ...]:
    """Return the phones and tablets in what `devicectl list devices` wrote, those that can be used first."""
    what = "devicectl did not write a list of devices"
    damaged = VerifyError("phone-trouble", what, where=DEVICECTL, hint=CONNECT_HINT)
    phones = [phone for phone in read_json(_Listing, document, damaged).devices if phone.is_phone]
    return tuple(sorted(phones, key=lambda phone: phone.obstacle != ("", "")))


def choose_phone(phones: Sequence[Phone], name: str) -> Phone:
    """Return the phone of a name, UDID or identifier, or the only one that can be used."""
    usable = [phone for phone in phones if phone.obstacle == ("", "")]
    if name:
        chosen = [phone for phone in phones if name in {phone.name, phone.udid, phone.identifier}]
        if not chosen:
            seen = ", ".join(phone.name or phone.udid for phone in phones)
            what, where = "this Mac sees no phone of that name", f"{DEVICECTL}:{name}"
            hint = f"this Mac sees: {seen}" if seen else CONNECT_HINT
            raise UsageError("unknown-device", what, where=where, hint=hint)
    elif len(usable) > 1:
        what = f"this Mac sees {len(usable)} phones, and none was chosen"
        hint = f"name one or more of them: {', '.join(phone.device for phone in usable)}"
        raise UsageError("several-devices", what, where=DEVICECTL, hint=hint)
    elif not phones:
        raise VerifyError("no-device", "this Mac sees no phone", where=DEVICECTL, hint=CONNECT_HINT)
    else:
        chosen = [*usable, *phones]
    phone = chosen[0]
    problem, hint = phone.obstacle
    if problem:
        raise VerifyError("device-not-ready", f"the phone {problem}", where=phone.device, hint=hint)
    return phone


LIST_SECONDS: Final = 60.0
COPY_SECONDS: Final = 300.0
INSTALL_SECONDS: Final = 600.0
UNINSTALL_SECONDS: Final = 120.0


@dataclass(frozen=True, kw_only=True)
class DevicectlAnswer:
    """How a command ended, all that may tell why it failed, and the document that it wrote, if any."""

    returncode: int
    said: str
    document: str


def ask(xcrun: Program, words: Sequence[str], named: Sequence[str | Path], seconds: float) -> DevicectlAnswer:
    """Run a command of devicectl to its end; what it names comes last."""
    with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-") as place:
        path = Path(place) / "answer.json"
        done = xcrun.run(DEVICECTL, *words, "--json-output", path, *named, timeout_seconds=seconds)
        document = text_of(path)
    said = "\n".join(filter(None, (done.stdout, done.stderr, document)))
    return DevicectlAnswer(returncode=done.returncode, said=said, document=document)


def list_phones(xcrun: Program) -> tuple[Phone, ...]:
    """Return the phones that this Mac sees, ready or not."""
    answer = ask(xcrun, ("list", "devices"), (), LIST_SECONDS)
    if answer.returncode != 0:
        raise devicectl_error(answer.said, DEVICECTL)
    return read_phones(answer.document)


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


def read_end(
    launched: DevicectlAnswer, copied: DevicectlAnswer, place: Path, request: RunRequest, where: str
) -> tuple[Completed, RunEnd | None]:
    """Return how a run ended whose folder was copied below `place`, and bring its outputs to where they are wanted.

    That is as if the runner had been a program of its own; what the app wrote is None when it died.
    """
    found = sorted(place.rglob(END)) + sorted(place.rglob(STDERR))
    folder = next((path.parent for path in found if path.is_file() and not path.is_symlink()), place)
    written = text_of(folder / END)
    what, hint = f"{END} was not written by ortrim's app", "compile the app again"
    damaged = VerifyError("phone-trouble", what, where=where, hint=hint)
    end = read_json(RunEnd, written, damaged) if written else None
    signalled = TERMINATED.search(launched.said)
    if end is None and signalled is None:
        raise devicectl_error((launched if launched.returncode != 0 else copied).said, where)
    if end is not None and end.code == NOT_STARTED:
        raise not_startable(where, end.problem)
    if request.outputs and (folder / OUTPUTS).is_dir() and not (folder / OUTPUTS).is_symlink():
        copy_files(folder / OUTPUTS, request.outputs)
    code = end.code if end is not None else -int(signalled[1]) if signalled else 0
    return Completed(
        argv=(), returncode=code, stdout=harness.report_in(folder, request), stderr=text_of(folder / STDERR)
    ), end


ARCHIVE: Final = "libortrim.a"


def phone_content(requests: Sequence[RunRequest]) -> harness.HarnessContent:
    """Return what the app has to carry for these requests, in their order.

    The same requests on the same files give the same bytes. The runner is compiled into the app, whose library is one
    of its frameworks, or a part of it when it is static.
    """
    payload_of = cache(lambda request: make_payload(request, harness.FILES, harness.REQUESTED_OUTPUTS))
    libraries: dict[str, Path] = {}
    files: dict[str, Path] = {}
    runs = []
    for request in requests:
        payload: Payload = payload_of(harness.portable(request))
        there = payload.request
        is_static = request.library.suffix == Path(LINKED).suffix
        # By its digest for one that is opened.
        name = ARCHIVE if is_static else f"libortrim_{there.library.parent.name}.dylib"
        libraries[name] = request.library
        unread = {payload.executable, there.library.relative_to(harness.FILES).as_posix()}
        files.update((path, file) for path, file in payload.files.items() if path not in unread)
        if not is_static:
            there = dataclasses.replace(there, library=Path(harness.NATIVE) / name)
        runs.append(there)
    return harness.content_of(requests, runs, libraries=libraries, files=files)


START_SECONDS: Final = 30.0
"""For starting the app, besides the run itself."""
NONCE_BYTES: Final = 8

MakeApp = Callable[[harness.HarnessContent], harness.PhoneApp]
"""Makes the app that carries what it is given, or raises a `Diagnostic` that says how to make it."""


class PhoneDevice(Device):
    """A phone, which runs what our app carries; `close` removes that. Each run is a process of its own."""

    def __init__(self, xcrun: Program, phone: Phone, make_app: MakeApp) -> None:
        self.name = phone.device
        self._xcrun = xcrun
        self._phone = phone
        self._make_app = make_app
        self._app: harness.PhoneApp | None = None
        self._ends: list[RunEnd] = []

    def run_all(self, requests: Iterable[RunRequest]) -> Iterator[Outcome]:
        """Install the app that carries all requests, and start it for each."""
        asked = tuple(requests)
        self._app = app = self._make_app(phone_content(asked))
        self._change_app("install", app.path, INSTALL_SECONDS)
        for number, request in enumerate(asked):
            yield outcome(partial(self._run, app, number), request)

    def facts(self) -> HostFacts:
        """Describe the phone, as it was after the last run."""
        phone, last = self._phone, self._ends[-1] if self._ends else None
        return HostFacts(
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
            thermal_before=self._ends[0].status if last else None,
            thermal_after=last.status if last else None,
            time_meaningful=self.time_meaningful,
        )

    def _run(self, app: harness.PhoneApp, number: int, request: RunRequest) -> RunnerOutput:
        nonce = secrets.token_hex(NONCE_BYTES)
        environment = json.dumps({"ORTRIM_RUN": str(number), "ORTRIM_NONCE": nonce})
        # The app ends when devicectl does.
        options = ("--console", "--terminate-existing", "--environment-variables", environment)
        verb = ("device", "process", "launch", "--device", self._phone.identifier)
        limit = request.repetition.timeout_seconds + START_SECONDS
        with within_limits(request):
            answer = ask(self._xcrun, (*verb, *options), (app.identifier,), limit)
        with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-") as place:
            domain = ("--domain-type", "appDataContainer", "--domain-identifier", app.identifier)
            paths = ("--source", f"Documents/ortrim-{nonce}", "--destination", place)
            copied = self._patient(("device", "copy", "from"), (*domain, *paths), (), COPY_SECONDS)
            done, end = read_end(answer, copied, Path(place), request, self.name)
        if end is not None:
            self._ends.append(end)
            if not self.heat and end.thermal >= SERIOUS:
                self.heat = Thermal(status=end.status).throttles
                self.time_meaningful = False
        return read_output(done, request)

    def close(self) -> None:
        """Remove the app, and with it all that it wrote."""
        if self._app is not None:
            with suppress(Diagnostic):
                self._change_app("uninstall", self._app.identifier, UNINSTALL_SECONDS)
        self._app = None

    def _change_app(self, verb: str, app: str | Path, seconds: float) -> None:
        answer = self._patient(("device", verb, "app"), (), (app,), seconds)
        if answer.returncode != 0:
            raise devicectl_error(answer.said, self.name)

    def _patient(
        self, verb: Sequence[str], options: Sequence[str], named: Sequence[str | Path], seconds: float
    ) -> DevicectlAnswer:
        """Ask something of the phone; one that does not answer in time is lost."""
        try:
            return ask(self._xcrun, (*verb, "--device", self._phone.identifier, *options), named, seconds)
        except ToolError as error:
            if error.code != "tool-timeout":
                raise
            why = f"devicectl {' '.join(verb)} {error.what}"
            raise LOST.diagnostic(self.name, why, VerifyError) from error


def open_phone(name: str, make_app: MakeApp, *, xcrun: Program | None = None) -> PhoneDevice:
    """Return the phone of a name, UDID or identifier, or the only one that there is."""
    xcrun = xcrun or find_xcrun(DEVICECTL)
    return PhoneDevice(xcrun, choose_phone(list_phones(xcrun), name), make_app)
