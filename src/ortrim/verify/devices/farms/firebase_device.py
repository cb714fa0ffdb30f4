"""Test Lab's devices: named as `MODEL-VERSION[-LOCALE-ORIENTATION]`, and looked up in gcloud's own catalogue. Pure."""

import json
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from ortrim.errors import VerifyError

NAME: Final = re.compile(
    r"(?P<model>[\w.+-]+?)-(?P<version>[A-Za-z0-9.]+)(?:-(?P<locale>[A-Za-z]\w*)-(?P<orientation>portrait|landscape))?",
    re.ASCII,
)
"""A model may have hyphens (`SH-01L`), a version and a locale (`en`, `de_DE`) have none."""
VIRTUAL_MINUTES: Final = 60
PHYSICAL_MINUTES: Final = 45
"""The longest runs, as `gcloud firebase test android run --help` has them."""
LEAST_SECONDS: Final = 60
"""gcloud takes no shorter time limit."""
LIST_HINT: Final = "gcloud firebase test android models list"


@dataclass(frozen=True, kw_only=True)
class FirebaseDevice:
    """One device in Test Lab's words; its folder in the bucket is called `axis`."""

    model: str
    version: str
    locale: str = "en"
    orientation: str = "portrait"

    @property
    def axis(self) -> str:
        """Name of the device in results."""
        return f"{self.model}-{self.version}-{self.locale}-{self.orientation}"

    @property
    def argument(self) -> str:
        """What `--device` of gcloud takes."""
        return f"model={self.model},version={self.version},locale={self.locale},orientation={self.orientation}"


def named_device(name: str) -> FirebaseDevice:
    """Return the device of a name such as `MediumPhone.arm-34`. Raises `VerifyError` (`farm-device-unknown`)."""
    match = NAME.fullmatch(name)
    if match is None:
        what = "is not named as a device of Test Lab is: MODEL-VERSION or MODEL-VERSION-LOCALE-ORIENTATION"
        hint = f"such as firebase:MediumPhone.arm-34; {LIST_HINT}"
        raise VerifyError("farm-device-unknown", what, where=f"firebase:{name}", hint=hint)
    return FirebaseDevice(**{key: value for key, value in match.groupdict().items() if value})


def check_device(catalogue: str, device: FirebaseDevice, timeout_seconds: float, where: str) -> None:
    """Compare a device and a time limit with the catalogue that gcloud printed as JSON.

    Raises `VerifyError`: `farm-device-unknown`, `farm-refused` for a time limit beyond the farm's, `farm-trouble` when
    what was printed is no catalogue.
    """
    models = _models(catalogue, where)
    model = models.get(device.model)
    if model is None:
        close = get_close_matches(device.model, models, n=3, cutoff=0.5)
        hint = f"{LIST_HINT}; alike: {', '.join(close)}" if close else LIST_HINT
        what = f"Test Lab has no model '{device.model}' for this project"
        raise VerifyError("farm-device-unknown", what, where=where, hint=hint)
    versions = [str(version) for version in model.get("supportedVersionIds") or ()]
    if device.version not in versions:
        what = f"Test Lab has no Android version {device.version} for the model '{device.model}'"
        hint = f"it has: {', '.join(versions) or 'none'} (API levels)"
        raise VerifyError("farm-device-unknown", what, where=where, hint=hint)
    _check_time(model.get("form") == "PHYSICAL", timeout_seconds, where)


def _check_time(physical: bool, timeout_seconds: float, where: str) -> None:  # noqa: FBT001 - one of two kinds
    minutes = PHYSICAL_MINUTES if physical else VIRTUAL_MINUTES
    if timeout_seconds > minutes * 60:
        kind = "a physical" if physical else "a virtual"
        what = f"Test Lab lets nothing run longer than {minutes} minutes on {kind} device"
        hint = "ask for less time, and verify fewer cases or runs at once"
        why = f"{timeout_seconds:g} seconds were asked for"
        raise VerifyError("farm-refused", what, where=where, why=why, hint=hint)


def _models(catalogue: str, where: str) -> dict[str, dict[str, Any]]:
    try:
        return {str(model["id"]): model for model in json.loads(catalogue)}
    except (ValueError, TypeError, KeyError) as error:
        what = "gcloud did not print a catalogue of devices"
        why = f"{error}: {catalogue[:200]}"
        raise VerifyError("farm-trouble", what, where=where, why=why, hint=f"try: {LIST_HINT}") from error
