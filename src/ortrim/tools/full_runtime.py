"""The full ONNX Runtime of exactly one version: what converts models and what the trimmed library is held against.

A converter newer than the runtime is the field's most common failure (upstream's issues 20670, 10951), so the
version has to match to the last digit.
"""

import mmap
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final, NoReturn

from ortrim.errors import ToolError
from ortrim.tools.environments import ISOLATED_PYTHON, environment_with, packages_folder

DISTRIBUTION: Final = "onnxruntime"
MINIMAL_BUILD_WORDS: Final = b"ONNX format model is not supported in this build"
"""What only a minimal build holds: `inference_session.cc` compiles it in when models in ONNX format cannot load."""
NO_WHEEL_WORDS: Final = ("No matching distribution", "not a supported wheel")


@dataclass(frozen=True, kw_only=True)
class FullRuntime:
    """A Python with the full ONNX Runtime.

    `words` and `environment` start that Python; `packages` is the folder its packages lie in; `library` is the
    wheel's `libonnxruntime.so`, the baseline of all comparisons.
    """

    version: str
    words: tuple[str, ...]
    environment: Mapping[str, str]
    packages: Path
    library: Path


def full_runtime(version: str, requirements: str | None) -> FullRuntime:
    """Return the full runtime of exactly `version`: the installed one if it is that, else one of its own.

    `requirements` is the text of a requirements file with hashes; None when there are no pins for the version.
    Raises `ToolError`: `converter-unavailable` (no pins, no wheel for this Python), `converter-not-full` (a
    minimal build, upstream's issue 7547), `converter-incomplete` (the wheel lacks its library),
    `install-failed`.
    """
    runtime = _installed(version) or _separate(version, requirements)
    for binary in (runtime.library, *sorted(runtime.library.parent.glob("onnxruntime_pybind11_state*.so"))):
        _check_full(binary, version)
    return runtime


def _installed(version: str) -> FullRuntime | None:
    """Return the runtime in this Python's own packages, if it is the right one."""
    packages = _folder_of(version, sys.path)
    if packages is None:
        return None
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    return _runtime(version, (sys.executable,), environment, packages)


def _separate(version: str, requirements: str | None) -> FullRuntime:
    """Return the runtime in a folder of its own, installed there first when needed."""
    if requirements is None:
        why = "it is not the installed version, and there are no pins for it"
        _unavailable(version, why, "choose a pinned version, or run: invoke pins.update")
    try:
        packages = packages_folder(f"{DISTRIBUTION}-{version}", requirements)
    except ToolError as error:
        if error.reference == "install-failed" and any(words in error.why for words in NO_WHEEL_WORDS):
            python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
            hint = "use a Python from 3.11 to 3.13, or choose another ONNX Runtime version"
            _unavailable(version, f"there is no wheel of it for this {python}\n{error.why}", hint)
        raise
    if _folder_of(version, [str(packages)]) is None:
        hint = "run: invoke pins.update"
        _unavailable(version, f"the pinned requirements do not install {DISTRIBUTION} {version}", hint)
    return _runtime(version, ISOLATED_PYTHON, environment_with(packages), packages)


def _folder_of(version: str, search: list[str]) -> Path | None:
    """Return the first folder of `search` that holds the distribution, when its version is the one wanted."""
    first: Distribution | None = next(iter(distributions(name=DISTRIBUTION, path=search)), None)
    return Path(str(first.locate_file(""))) if first is not None and first.version == version else None


def _runtime(version: str, words: tuple[str, ...], environment: Mapping[str, str], packages: Path) -> FullRuntime:
    library = packages / DISTRIBUTION / "capi" / f"libonnxruntime.so.{version}"
    return FullRuntime(version=version, words=words, environment=environment, packages=packages, library=library)


def _check_full(binary: Path, version: str) -> None:
    """Refuse a library that is absent, empty, or compiled without what converting needs."""
    if not binary.is_file() or binary.stat().st_size == 0:
        hint = f"install it again: pip install --force-reinstall {DISTRIBUTION}=={version}"
        raise ToolError("converter-incomplete", "the full runtime lacks its library", where=str(binary), hint=hint)
    if is_minimal(binary):
        what = "is a minimal build, which cannot read models in ONNX format"
        hint = f"install the official wheel: pip install --force-reinstall {DISTRIBUTION}=={version}"
        raise ToolError("converter-not-full", what, where=str(binary), hint=hint)


def is_minimal(binary: Path) -> bool:
    """Say whether a library that is not empty was built without reading models in ONNX format."""
    with binary.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(MINIMAL_BUILD_WORDS) != -1


def _unavailable(version: str, why: str, hint: str) -> NoReturn:
    what = f"the full ONNX Runtime {version}, which converts the models, cannot be had here"
    raise ToolError("converter-unavailable", what, why=why, hint=hint)
