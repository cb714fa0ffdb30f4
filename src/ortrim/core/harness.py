"""The apps that run for us on farms' devices and on iPhones: what they carry, under which names, and what is taken.

Made by `package.android.harness` and `package.apple.harness` of what `verify.devices` asks for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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
class HarnessApks:
    """The compiled app, and its instrumentation."""

    app: Path
    test: Path


@dataclass(frozen=True, kw_only=True)
class PhoneApp:
    """A compiled and signed app for iPhones, a folder, and what the phone knows it by."""

    path: Path
    identifier: str
