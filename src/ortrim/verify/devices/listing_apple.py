"""A Mac's simulators and the phones on its cable, as lines of the list of devices."""

from collections.abc import Iterator
from typing import Final

from ortrim.core.targets import APPLE_ARCHITECTURES, TARGETS, OperatingSystem, Target
from ortrim.errors import Diagnostic, VerifyError
from ortrim.tools.xcrun import find_xcrun
from ortrim.verify.devices.devicectl_client import DEVICECTL, list_phones
from ortrim.verify.devices.devicectl_listing import CONNECT_HINT, Phone
from ortrim.verify.devices.listed_device import ListedDevice, absent
from ortrim.verify.devices.runnable import is_simulated, simulated_here
from ortrim.verify.devices.simctl import SIMCTL, list_simulators
from ortrim.verify.devices.simulator_listing import RUNTIME_HINT

SIMULATOR_FORM: Final = f"{SIMCTL}:[NAME]"
PHONE_FORM: Final = f"{DEVICECTL}:[NAME]"


def listed_simulators() -> ListedDevice:
    """Return the form of simulators' names, with which one is taken without a name."""
    targets = [target for target in TARGETS.values() if is_simulated(target)]
    here = [target for target in targets if simulated_here(target)] or targets
    try:
        found, problem, remedy = _simulated(here[0]), "", ""
    except Diagnostic as error:
        found, problem, remedy = "", f"{error.where} {error.what}", error.hint.removeprefix("run: ")
    names = tuple(target.identifier for target in here)
    return ListedDevice(
        name=SIMULATOR_FORM, targets=names, memory=False, time=False, found=found, problem=problem, remedy=remedy
    )


def _simulated(target: Target) -> str:
    """Say which simulators run a target. Raises `VerifyError` `no-simulator`, and as `list_simulators` does."""
    found = list_simulators(find_xcrun(SIMCTL), APPLE_ARCHITECTURES[target.architecture])
    if found.ready:
        first = found.ready[0]
        return f"{first.name} ({first.system})" + (f" and {len(found.ready) - 1} more" if found.ready[1:] else "")
    if found.model:
        return f"none yet; {found.model.name} would be made"
    raise VerifyError("no-simulator", "has no iOS for simulators", where="Xcode", hint=RUNTIME_HINT)


def listed_phones() -> Iterator[ListedDevice]:
    """Yield each phone that this Mac sees, or why it sees none. Raises nothing for what is missing."""
    try:
        seen = list_phones(find_xcrun(DEVICECTL))
    except Diagnostic as error:
        yield absent(PHONE_FORM, f"{error.where} {error.what}", error.hint.removeprefix("run: "), _phone_targets())
        return
    yield from map(_phone, seen)
    if not seen:
        yield absent(PHONE_FORM, "this Mac sees no phone", CONNECT_HINT, _phone_targets())


def _phone(phone: Phone) -> ListedDevice:
    found = " · ".join(filter(None, (phone.model, phone.system)))
    name = f"{DEVICECTL}:{phone.name or phone.udid}"
    return ListedDevice(
        name=name,
        targets=_phone_targets(),
        memory=True,
        time=True,
        found=found,
        problem=phone.problem,
        remedy=phone.hint,
    )


def _phone_targets() -> tuple[str, ...]:
    phones = (target for target in TARGETS.values() if target.system is OperatingSystem.IOS)
    return tuple(target.identifier for target in phones if not is_simulated(target))
