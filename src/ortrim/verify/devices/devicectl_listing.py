"""The phones and tablets that a Mac reaches, and which of them is meant. Pure.

Facts: what `xcrun devicectl list devices --json-output FILE` writes with Xcode 15 to 26; recorded in
`tests/unit/verify/data/devicectl`. Newer ones list simulators, too, and every one lists watches and televisions.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ortrim.core.serialization import from_json
from ortrim.errors import Diagnostic, UsageError, VerifyError

PLATFORMS: Final = frozenset({"iOS", "iPadOS"})
UNREACHABLE: Final = "unavailable"
CONNECT_HINT: Final = "connect one by cable and unlock it; then look at what this prints: xcrun devicectl list devices"
DEVELOPER_HINT: Final = "switch it on: Settings, Privacy & Security, Developer Mode, and restart the device"
PAIR_HINT: Final = "unlock it, and say that it trusts this Mac"
VERSION: Final = re.compile(r"(\d{1,3})(?:\.(\d{1,3}))?")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Connection(_Part):
    pairing: str = Field(default="", alias="pairingState")
    tunnel: str = Field(default="", alias="tunnelState")


class _Properties(_Part):
    name: str = ""
    version: str = Field(default="", alias="osVersionNumber")
    build: str = Field(default="", alias="osBuildUpdate")
    developer_mode: str = Field(default="", alias="developerModeStatus")


class _Processor(_Part):
    name: str = ""


class _Hardware(_Part):
    platform: str = ""
    reality: str = ""
    udid: str = ""
    product: str = Field(default="", alias="productType")
    marketing: str = Field(default="", alias="marketingName")
    board: str = Field(default="", alias="hardwareModel")
    processor: _Processor = Field(default=_Processor(), alias="cpuType")


class _Device(_Part):
    identifier: str = Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z-]{0,63}$")
    connection: _Connection = Field(default=_Connection(), alias="connectionProperties")
    properties: _Properties = Field(default=_Properties(), alias="deviceProperties")
    hardware: _Hardware = Field(default=_Hardware(), alias="hardwareProperties")


class _Result(_Part):
    devices: tuple[_Device, ...]


class _Listing(_Part):
    result: _Result


@dataclass(frozen=True, kw_only=True)
class Phone:
    """An iPhone or iPad. `problem` says why nothing can be run on it, with `hint`; both are empty when it can.

    `name` is its owner's for it, `model` Apple's for the kind, `product` Apple's identifier of the kind.
    """

    identifier: str
    udid: str
    name: str
    model: str
    product: str
    board: str
    processor: str
    system: str
    build: str
    problem: str = ""
    hint: str = ""


def read_phones(document: str) -> tuple[Phone, ...]:
    """Return the phones and tablets in what `devicectl list devices` wrote, those that can be used first.

    Raises `VerifyError` `phone-trouble` for what is no such list.
    """
    try:
        devices = from_json(_Listing, document).result.devices
    except ValidationError as error:
        what = "devicectl did not write a list of devices"
        why = "\n".join(str(error).splitlines()[:3])
        raise VerifyError("phone-trouble", what, where="devicectl", why=why, hint=CONNECT_HINT) from error
    phones = [_phone(each) for each in devices if _is_phone(each)]
    return tuple(sorted(phones, key=lambda phone: bool(phone.problem)))


def choose_phone(phones: Sequence[Phone], name: str) -> Phone:
    """Return the phone of a name, UDID or identifier, or the only one that can be used.

    Raises `UsageError` (`several-devices`, `unknown-device`), `VerifyError` (`no-device`, `device-not-ready`).
    """
    if name:
        return _ready(_named(phones, name))
    usable = [phone for phone in phones if not phone.problem]
    if len(usable) > 1:
        raise _several(usable)
    if not phones:
        raise VerifyError("no-device", "this Mac sees no phone", where="devicectl", hint=CONNECT_HINT)
    return _ready((usable or list(phones))[0])


def _is_phone(each: _Device) -> bool:
    return each.hardware.platform in PLATFORMS and each.hardware.reality in {"", "physical"}


def _phone(each: _Device) -> Phone:
    problem, hint = _problem(each)
    version = each.properties.version
    return Phone(
        identifier=each.identifier,
        udid=each.hardware.udid,
        name=each.properties.name.strip(),
        model=each.hardware.marketing or each.hardware.product,
        product=each.hardware.product,
        board=each.hardware.board,
        processor=each.hardware.processor.name,
        system=f"iOS {version}" if VERSION.match(version) else "",
        build=each.properties.build,
        problem=problem,
        hint=hint,
    )


def _problem(each: _Device) -> tuple[str, str]:
    if each.connection.pairing not in {"", "paired"}:
        return "does not trust this Mac yet", PAIR_HINT
    if each.connection.tunnel == UNREACHABLE:
        return "is known to this Mac, but not connected", CONNECT_HINT
    if each.properties.developer_mode == "disabled":
        return "has its developer mode switched off", DEVELOPER_HINT
    return "", ""


def _named(phones: Sequence[Phone], name: str) -> Phone:
    for phone in phones:
        if name in {phone.name, phone.udid, phone.identifier}:
            return phone
    hint = f"this Mac sees: {', '.join(phone.name or phone.udid for phone in phones)}" if phones else CONNECT_HINT
    raise UsageError("unknown-device", "this Mac sees no phone of that name", where=f"devicectl:{name}", hint=hint)


def _ready(phone: Phone) -> Phone:
    if phone.problem:
        where = f"devicectl:{phone.name or phone.udid}"
        raise VerifyError("device-not-ready", f"the phone {phone.problem}", where=where, hint=phone.hint)
    return phone


def _several(phones: Sequence[Phone]) -> Diagnostic:
    names = ", ".join(f"devicectl:{phone.name or phone.udid}" for phone in phones)
    what = f"this Mac sees {len(phones)} phones, and none was chosen"
    return UsageError("several-devices", what, where="devicectl", hint=f"name one or more of them: {names}")
