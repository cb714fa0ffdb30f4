"""The simulators that a Mac has, and which of them is meant. Pure.

Facts: what `xcrun simctl list -j` prints with Xcode 13 to 26; recorded in `tests/unit/verify/data/simctl`.
"""

import re
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ortrim.core.serialization import from_json
from ortrim.errors import UsageError, VerifyError

BOOTED: Final = "Booted"
PREFIX: Final = "com.apple.CoreSimulator.SimRuntime."
IOS: Final = re.compile(r"iOS-(\d{1,4}(?:-\d{1,4})*)")
RUNTIME_HINT: Final = "run: xcodebuild -downloadPlatform iOS"
LIST_HINT: Final = "this lists them: xcrun simctl list devices available"


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Type(_Answer):
    identifier: str
    name: str = ""
    product_family: str = Field(default="", alias="productFamily")


class _Runtime(_Answer):
    identifier: str
    available: bool = Field(default=False, alias="isAvailable")
    architectures: tuple[str, ...] = Field(default=(), alias="supportedArchitectures")
    types: tuple[_Type, ...] = Field(default=(), alias="supportedDeviceTypes")


class _Device(_Answer):
    udid: str = Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z-]{0,63}$")
    name: str
    state: str
    available: bool = Field(default=False, alias="isAvailable")


class _Listing(_Answer):
    devices: dict[str, tuple[_Device, ...]]
    runtimes: tuple[_Runtime, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """A simulated iPhone or iPad that is there. `version` is iOS's."""

    udid: str
    name: str
    version: tuple[int, ...]
    booted: bool

    @property
    def system(self) -> str:
        """Name and version of its system: `iOS 18.2`."""
        return f"iOS {'.'.join(map(str, self.version))}"


@dataclass(frozen=True, kw_only=True)
class Model:
    """What a simulator can be made of: identifiers of a kind of iPhone and of a version of iOS, which it supports."""

    device_type: str
    runtime: str
    name: str
    version: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Simulators:
    """What is there, newest iOS first, and what could be made, None without any iOS."""

    ready: tuple[Simulator, ...]
    model: Model | None


def read_simulators(printed: str, architecture: str) -> Simulators:
    """Return what `simctl list -j` printed, as far as it runs programs for Apple's word for an architecture.

    Raises `VerifyError` `simulator-trouble` for what is no such list.
    """
    try:
        listing = from_json(_Listing, printed)
    except ValidationError as error:
        what = "simctl did not print a list of simulators"
        why = "\n".join(str(error).splitlines()[:3])
        raise VerifyError("simulator-trouble", what, where="simctl", why=why, hint=LIST_HINT) from error
    runtimes = {runtime.identifier: runtime for runtime in listing.runtimes if _runs(runtime, architecture)}
    found = [
        Simulator(udid=device.udid, name=device.name, version=_version(runtime), booted=device.state == BOOTED)
        for runtime, devices in listing.devices.items()
        for device in devices
        if runtime in runtimes and device.available
    ]
    return Simulators(ready=tuple(sorted(found, key=_order)), model=_newest(tuple(runtimes.values())))


def choose_simulator(found: Simulators, name: str) -> Simulator | Model:
    """Return the simulator of a name or UDID; without one the best that is there, or what one can be made of.

    The best is a booted one, then an iPhone, each of the newest iOS. Of several of one name the newest counts. Raises
    `UsageError` `unknown-device`, `VerifyError` `no-simulator`.
    """
    if name:
        named = [each for each in found.ready if name in {each.udid, each.name}]
        if not named:
            near = ", ".join(dict.fromkeys(each.name for each in found.ready[:6]))
            hint = f"there are: {near}; {LIST_HINT}" if near else RUNTIME_HINT
            raise UsageError("unknown-device", f"there is no simulator {name!r}", where=f"simctl:{name}", hint=hint)
        return min(named, key=lambda each: not each.booted)
    if found.ready:
        return found.ready[0]
    if found.model is None:
        what = "Xcode has no iOS for simulators that runs this target"
        raise VerifyError("no-simulator", what, where="simctl", hint=RUNTIME_HINT)
    return found.model


def _order(each: Simulator) -> tuple[bool, bool, tuple[int, ...], str]:
    return (not each.booted, "iPhone" not in each.name, tuple(-part for part in each.version), each.name)


def _runs(runtime: _Runtime, architecture: str) -> bool:
    """Whether a runtime is an iOS that runs an architecture; older Xcodes do not say which ones theirs run."""
    known = runtime.architectures or (architecture,)
    return runtime.available and bool(_version(runtime.identifier)) and architecture in known


def _version(runtime: str) -> tuple[int, ...]:
    """Return the version in an identifier of iOS; empty for another system's."""
    found = IOS.fullmatch(runtime.removeprefix(PREFIX))
    return tuple(map(int, found[1].split("-"))) if found else ()


def _newest(runtimes: tuple[_Runtime, ...]) -> Model | None:
    for runtime in sorted(runtimes, key=lambda each: _version(each.identifier), reverse=True):
        for kind in runtime.types:
            if kind.product_family == "iPhone" or kind.name.startswith("iPhone"):
                version = _version(runtime.identifier)
                return Model(device_type=kind.identifier, runtime=runtime.identifier, name=kind.name, version=version)
    return None
