"""The app that device farms run for us: what it carries, under which names, and the two files that farms take.

Made by `package.android.harness` of what `verify.devices.farms` asks for.
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
