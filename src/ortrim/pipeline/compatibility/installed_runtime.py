"""What is compiled into a runtime that users have, read from a package of it, a manifest, or a configuration."""

import json
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ortrim.advise.installed import InstalledRuntime
from ortrim.binaries.aar import read_aar
from ortrim.core.aar import AarManifest
from ortrim.core.artifacts import Manifest
from ortrim.core.buildspec import RuntimeSpec
from ortrim.core.kernel_table import WIDE_BLOCKS
from ortrim.core.plan import PlannedModel
from ortrim.core.serialization import from_json
from ortrim.core.targets import TARGETS, Architecture
from ortrim.errors import PackageError, UsageError
from ortrim.models.inspect import inspect_config
from ortrim.package.manifest import LARGEST_BYTES, MANIFEST, read_manifest
from ortrim.pins.runtime import supported_versions
from ortrim.storage.files import storage_errors

ZIP: Final = b"PK\x03\x04"
GZIP: Final = b"\x1f\x8b"
ELF: Final = b"\x7fELF"
ORT: Final = b"ORTM"
AAR_SCHEMA: Final = "ortrim-aar/1"
TAKEN: Final = f"give a package (.tar.gz, .aar or its folder), a {MANIFEST}, or an operator configuration (.config)"


def read_runtime(path: Path, ort_version: str | None = None) -> InstalledRuntime:
    """Return what is compiled into a runtime; `path` is a package, its folder or manifest, or a configuration.

    A configuration says nothing but the operators: `ort_version` is then the version, or the one that buildspecs have
    by default. Raises `UsageError` (`bad-option`) for an `ort_version` of anything else, `PackageError`
    (`package-missing`, `runtime-unknown` for what does not say its operators, and those of `read_manifest`),
    `OperatorsError`, and `BinaryError` or `StorageError` for a zip archive that is no AAR.
    """
    if ort_version not in {None, *supported_versions()}:
        raise _bad_version(ort_version, f"choose one of {', '.join(supported_versions())}")
    if not path.exists():
        raise PackageError("package-missing", "there is no such package", where=str(path), hint=TAKEN)
    head = _head(path)
    if path.is_dir() or path.name == MANIFEST:
        runtime = _from_manifest(path)
    elif head.startswith(GZIP):
        runtime = _of_package(read_manifest(path))
    elif head.startswith(ZIP):
        runtime = _from_aar(path)
    elif head.startswith(ELF) or head[4:8] == ORT or b"\0" in head:
        raise _unknown(path, "is no package, and does not say which operators are compiled into it")
    else:
        operators = inspect_config(path).required
        return InstalledRuntime(label=path.name, ort_version=ort_version or RuntimeSpec().version, operators=operators)
    if ort_version not in {None, runtime.ort_version}:
        raise _bad_version(ort_version, f"the package is of {runtime.ort_version}")
    return runtime


def _bad_version(version: str | None, hint: str) -> UsageError:
    return UsageError("bad-option", f"{version!r} is not possible here", where="--ort-version", hint=hint)


def _head(path: Path) -> bytes:
    if path.is_dir():
        return b""
    with storage_errors(path), path.open("rb") as file:
        return file.read(1024)


def _from_manifest(path: Path) -> InstalledRuntime:
    file = path / MANIFEST if path.is_dir() else path
    if _schema(file) != AAR_SCHEMA:
        return _of_package(read_manifest(path))
    try:
        return _of_aar(from_json(AarManifest, file.read_bytes()))
    except ValidationError as error:
        first = error.errors()[0]
        why = f"{'.'.join(str(part) for part in first['loc']) or 'the whole'}: {first['msg']}"
        raise PackageError("manifest-damaged", f"{MANIFEST} is not a manifest", where=str(file), why=why) from error


def _schema(path: Path) -> Any:
    """Return what a manifest says of its own kind; None when it is not there, or none."""
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(LARGEST_BYTES + 1))
    except (OSError, ValueError, RecursionError):
        return None
    return document.get("schema") if isinstance(document, dict) else None


def _from_aar(path: Path) -> InstalledRuntime:
    manifest = read_aar(path).manifest
    if manifest is None:
        raise _unknown(path, "was not made by ortrim, and does not say which operators are compiled into it")
    return _of_aar(manifest)


def _unknown(path: Path, what: str) -> PackageError:
    return PackageError("runtime-unknown", what, where=str(path), hint=TAKEN)


def _of_package(manifest: Manifest) -> InstalledRuntime:
    android = manifest.target.startswith("android-")
    return InstalledRuntime(
        label=manifest.name,
        ort_version=manifest.ort_version,
        operators=manifest.operators,
        targets=(manifest.target,),
        extended=_follows(manifest.arguments, "--minimal_build", "extended"),
        without=_without(manifest.arguments, android=android),
        channel_block=_channel_block(manifest),
        conversions=_conversions(manifest.models),
    )


def _of_aar(manifest: AarManifest) -> InstalledRuntime:
    """Return what every ABI of an AAR has: an app's users have one of them."""
    arguments = [abi.arguments for abi in manifest.abis]
    without = (_without(each, android=True) for each in arguments)
    return InstalledRuntime(
        label=manifest.name,
        ort_version=manifest.ort_version,
        operators=manifest.operators,
        targets=tuple(abi.target for abi in manifest.abis),
        extended=all(_follows(each, "--minimal_build", "extended") for each in arguments),
        without=tuple(sorted(set().union(*without))),
        conversions=_conversions(manifest.models),
    )


def _follows(arguments: tuple[str, ...], option: str, word: str) -> bool:
    """Whether a word is among those that follow an option, up to the next option."""
    if option not in arguments:
        return False
    for each in arguments[arguments.index(option) + 1 :]:
        if each.startswith("-"):
            return False
        if each == word:
            return True
    return False


def _without(arguments: tuple[str, ...], *, android: bool) -> tuple[str, ...]:
    """Return the kinds of types that are compiled out; upstream's `build.py` leaves 8-bit floats out on Android."""
    disabled = {kind for kind in ("float8", "sparsetensor") if _follows(arguments, "--disable_types", kind)}
    return tuple(sorted(disabled | ({"float8"} if android else set())))


def _channel_block(manifest: Manifest) -> int | None:
    """Return how many channels lie in a block of a library; None where it has no such kernels (`layouts.py`)."""
    target = TARGETS.get(manifest.target)
    if target is None or target.architecture is not Architecture.X64:
        return None
    return 16 if any(WIDE_BLOCKS in argument for argument in manifest.arguments) else 8


def _conversions(models: tuple[PlannedModel, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys((model.style, model.level) for model in models))
