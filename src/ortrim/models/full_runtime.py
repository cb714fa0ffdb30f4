"""The full ONNX Runtime of exactly one version: what converts models and what the trimmed library is compared with.

A converter newer than the runtime is the field's most common failure (upstream's issues 20670, 10951), so the
version has to match to the last digit.
"""

import mmap
import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn

from ortrim.base import scripts
from ortrim.base.scripts import OWN, SCRIPTS, TIMEOUT_SECONDS, Interpreter, Python, find_interpreter, packages_folder
from ortrim.errors import ToolError
from ortrim.models import refusals

DISTRIBUTION: Final = "onnxruntime"
MINIMAL_BUILD_WORDS: Final = b"ONNX format model is not supported in this build"
"""What only a minimal build holds: `inference_session.cc` compiles it in when models in ONNX format cannot load."""
LIBRARY_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {"Linux": "libonnxruntime.so.{}", "Darwin": "libonnxruntime.{}.dylib", "Windows": "onnxruntime.dll"}
)
"""The library in the official wheel's folder `capi`, by `platform.system()`, with the version where the name has it."""
EXTENSION_MODULE: Final = "onnxruntime_pybind11_state.*"
"""The extension module beside the library: a `.so` on Linux and on Macs, a `.pyd` on Windows."""
FIRST_SHUT_OUT: Final = (3, 14)
"""The first Python that versions older than `FIRST_FOR_ALL` have no wheels for, as the package index lists them."""
FIRST_FOR_ALL: Final = (1, 24, 1)
SERVED_BY_ALL: Final = ((3, 13), (3, 12), (3, 11))
"""Pythons that every version has wheels for, which we can convert with."""
NO_WHEEL_WORDS: Final = ("No matching distribution", "not a supported wheel")


@dataclass(frozen=True, kw_only=True)
class FullRuntime:
    """A Python with the full ONNX Runtime.

    `words` and `environment` start that Python, which is `python`; `packages` is the folder its packages lie in;
    `library` is ONNX Runtime's library in the wheel, the baseline of all comparisons.
    """

    version: str
    words: tuple[str, ...]
    environment: Mapping[str, str]
    packages: Path
    library: Path
    python: Interpreter = OWN


def full_runtime(version: str, requirements: str | None) -> FullRuntime:
    """Return the full runtime of exactly `version`: the installed one if it is that, else one of its own.

    `requirements` is the text of a requirements file with hashes; None when there are no pins for the version.
    Raises `ToolError`, `converter-not-full` for a minimal build (upstream's issue 7547) among others.
    """
    if installed := _folder_of(version, sys.path):
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        runtime = _runtime(version, (sys.executable,), environment, installed)
    else:
        runtime = _separate(version, requirements)
    for binary in (runtime.library, *sorted(runtime.library.parent.glob(EXTENSION_MODULE))):
        _check_full(binary, version)
    return runtime


def _separate(version: str, requirements: str | None) -> FullRuntime:
    if requirements is None:
        why = "it is not the installed version, and there are no pins for it"
        _unavailable(version, why, "choose a pinned version, or run: invoke pins.update")
    python = converter_python(version)
    try:
        packages = packages_folder(f"{DISTRIBUTION}-{version}", requirements, python=python)
    except ToolError as error:
        if error.code == "install-failed" and any(words in error.why for words in NO_WHEEL_WORDS):
            named = ".".join(map(str, python.version))
            hint = "use a Python from 3.11 to 3.13, or choose another ONNX Runtime version"
            _unavailable(version, f"there is no wheel of it for Python {named}\n{error.why}", hint)
        raise
    if _folder_of(version, [str(packages)]) is None:
        hint = "run: invoke pins.update"
        _unavailable(version, f"the pinned requirements do not install {DISTRIBUTION} {version}", hint)
    return _runtime(version, python.isolated, scripts.environment_with(packages), packages, python)


def converter_python(version: str) -> Interpreter:
    """Return a Python that this version has wheels for: ortrim's own if it is one of these, else one of the machine."""
    if OWN.version < FIRST_SHUT_OUT or tuple(map(int, version.split(".")[:3])) >= FIRST_FOR_ALL:
        return OWN
    found = find_interpreter(SERVED_BY_ALL)
    if found is None:
        own, needed, first = (".".join(map(str, each)) for each in (OWN.version, SERVED_BY_ALL[0], FIRST_FOR_ALL))
        why = f"it has no wheel for Python {own}, and there is no Python on PATH that it has one for"
        hint = (
            f"install Python {needed}, in which the converter then runs, so that python{needed} is on PATH, for example"
            f' with: uv python install {needed}; or build {first} or newer: onnxruntime.version = "newest"'
        )
        _unavailable(version, why, hint)
    return found


def _folder_of(version: str, search: list[str]) -> Path | None:
    """Return the first folder of `search` that holds the distribution, when its version is the one wanted."""
    first: Distribution | None = next(iter(distributions(name=DISTRIBUTION, path=search)), None)
    return Path(str(first.locate_file(""))) if first is not None and first.version == version else None


def _runtime(
    version: str, words: tuple[str, ...], environment: Mapping[str, str], packages: Path, python: Interpreter = OWN
) -> FullRuntime:
    library = packages / DISTRIBUTION / "capi" / LIBRARY_NAMES[platform.system()].format(version)
    return FullRuntime(
        version=version, words=words, environment=environment, packages=packages, library=library, python=python
    )


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
    what = f"the full ONNX Runtime {version}, which converts the models, is not available here"
    raise ToolError("converter-unavailable", what, why=why, hint=hint)


WHEEL_PLATFORMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        architecture: tuple(f"manylinux{glibc}_{machine}" for glibc in ("_2_28", "_2_27", "_2_17", "2014"))
        for architecture, machine in (("arm64", "aarch64"), ("x64", "x86_64"))
    }
)
"""By the architecture's name in `spec.targets`; upstream publishes wheels for Linux for no other."""
MAC_PLATFORMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        architecture: tuple(
            f"macosx_{system}_{kind}" for system in ("14_0", "13_0", "11_0", "10_15") for kind in ("universal2", own)
        )
        for architecture, own in (("arm64", "arm64"), ("x64", "x86_64"))
    }
)
"""The wheels for Macs, of both kinds or of one, by the oldest system that any version was built for."""


def foreign_library(version: str, requirements: str | None, architecture: str, system: str = "Linux") -> Path | None:
    """Return the library of the official wheel for another machine, pinned by the same hashes as this one's.

    `system` is `Linux` or `Darwin`. None when there is no such wheel, or no `requirements` (the text of the version's
    pins).
    """
    platforms = (MAC_PLATFORMS if system == "Darwin" else WHEEL_PLATFORMS).get(architecture)
    entry = runtime_entry(requirements or "", version)
    if platforms is None or not entry:
        return None
    folder = packages_folder(f"{DISTRIBUTION}-{version}", entry, platforms=platforms)
    library = folder / DISTRIBUTION / "capi" / LIBRARY_NAMES[system].format(version)
    if not library.is_file() or library.stat().st_size == 0:
        hint = f"remove {folder}, then run the same command again"
        raise ToolError("baseline-incomplete", "the official wheel lacks its library", where=str(library), hint=hint)
    return library


def runtime_entry(requirements: str, version: str) -> str:
    """Return the runtime's own line of a requirements file, with the lines of hashes that continue it."""
    found = re.search(rf"^{DISTRIBUTION}=={re.escape(version)}(?: .*\\\n(?:.*\\\n)*.*)?$", requirements, re.MULTILINE)
    return f"{found[0]}\n" if found and "--hash=" in found[0] else ""


def run_script(
    runtime: FullRuntime,
    script: str,
    request: Mapping[str, object],
    *,
    folder: Path,
    where: str,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> dict[str, Any]:
    """Run `script` in the full runtime as `base.scripts.run_script` does; a crash is `ModelError` `crashes-runtime`."""
    python = Python(words=runtime.words, environment=runtime.environment)
    try:
        return scripts.run_script(python, SCRIPTS / script, request, folder=folder, timeout_seconds=timeout_seconds)
    except scripts.ScriptCrash as crash:
        raise refusals.crash(crash.ending, where, runtime.version, why=crash.last_lines) from crash
