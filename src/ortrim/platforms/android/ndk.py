"""An installed NDK: where it is, whether it is whole, and which version it is."""

import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.buildspec.targets import Architecture, Target, version_numbers
from ortrim.compiling.plan import Toolchain
from ortrim.compiling.toolchains import compiler_wrapper, launcher, tool_wrapper
from ortrim.errors import ToolError

PREBUILT: Final = {
    ("Linux", "x86_64"): "toolchains/llvm/prebuilt/linux-x86_64",
    ("Darwin", "x86_64"): "toolchains/llvm/prebuilt/darwin-x86_64",
    ("Darwin", "arm64"): "toolchains/llvm/prebuilt/darwin-x86_64",
}
"""Where the NDK for a machine has what differs from those for others: in plans `${ndk_prebuilt}`.

Programs for Macs are universal, whatever the folder is called.
"""
PROPERTIES: Final = "source.properties"
TOOLCHAIN_FILE: Final = "build/cmake/android.toolchain.cmake"
LEVELS: Final = "meta/platforms.json"
"""The lowest and the highest API level, as `min` and `max`."""
LIBRARIES: Final = "sysroot/usr/lib"
"""Below `${ndk_prebuilt}`, as the programs."""
PROGRAMS: Final = {name: f"bin/{name}" for name in ("clang", "clang++", "llvm-ar", "llvm-ranlib", "llvm-objcopy")}

RELEASES: Final = {"26": "26.3.11579264", "27": "27.2.12479018", "28": "28.0.13004108"}
"""The version that is meant by a major of which none is installed. Another NDK than the pinned one is taken unasked
only if its major is one of these."""

TRIPLES: Final = {
    Architecture.ARM64: "aarch64-none-linux-android", Architecture.ARM: "armv7-none-linux-androideabi",
    Architecture.X64: "x86_64-none-linux-android", Architecture.X86: "i686-none-linux-android",
}  # fmt: skip
"""What clang compiles for, spelled as in CMake's `Platform/Android-Determine.cmake`; the API level follows at once."""
LIBRARY_FOLDERS: Final = {
    Architecture.ARM64: "aarch64-linux-android", Architecture.ARM: "arm-linux-androideabi",
    Architecture.X64: "x86_64-linux-android", Architecture.X86: "i686-linux-android",
}  # fmt: skip
"""The folders below `LIBRARIES`."""

WITHOUT: Final = 'compile without it: android.toolchain = "zig", for which there is no c++_shared'
"""Advice for a machine without an NDK; zig compiles for Android on every host."""
VARIABLES: Final = ("ANDROID_NDK_HOME", "ANDROID_NDK_ROOT")
SDK_VARIABLES: Final = ("ANDROID_HOME", "ANDROID_SDK_ROOT")
"""An SDK has NDKs of several versions side by side, each in `ndk/VERSION`."""
PARTS: Final = (PROPERTIES, TOOLCHAIN_FILE)
PREBUILT_PARTS: Final = (*PROGRAMS.values(), LIBRARIES)
FOLDER: Final = re.compile(r"\d+\.\d+\.\d+")
REVISION: Final = re.compile(r"^Pkg\.Revision\s*=\s*(\d+\.\d+\.\d+(?:-\w+)?)\s*$", re.MULTILINE)
LARGEST_FILE: Final = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Ndk:
    """An NDK that is whole: its folder, its version, and the API levels that it knows, None when it does not say."""

    folder: Path
    version: str
    levels: tuple[int, int] | None

    @property
    def prebuilt(self) -> Path:
        """The folder with the programs and the sysroot for this machine."""
        return self.folder / _prebuilt()


_Place = tuple[str, Path]  # who says where an NDK is, and the folder that should be one


def find_ndk(
    version: str, *, named: Path | None = None, api: int | None = None, environment: Mapping[str, str] = os.environ
) -> Ndk:
    """Return the NDK of a version: in the folder that was `named`, or else where the environment says.

    Of several places the first that has the version is taken; when none has, the first is reported.
    """
    _prebuilt()
    places = tuple(_places(named, environment))
    if not places:
        raise _missing(version, f"there is no --ndk, and none of {', '.join((*VARIABLES, *SDK_VARIABLES))} says where")
    ndk = _first(places, lambda place: _of_version(place, version))
    if api is not None and ndk.levels is not None and not ndk.levels[0] <= api <= ndk.levels[1]:
        what = f"knows the API levels {ndk.levels[0]} to {ndk.levels[1]}, not {api}"
        raise ToolError("ndk-api-level", what, where=str(ndk.folder), hint="choose one of them: android.api")
    return ndk


def names_ndk(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment says where an NDK is, of whichever version: itself, or as part of an SDK."""
    return any(True for _ in _places(None, environment))


def installed_ndk(environment: Mapping[str, str] = os.environ) -> Ndk:
    """Return the first whole NDK that the environment names, of whichever version."""
    _prebuilt()
    places = tuple(_places(None, environment))
    if not places:
        raise _missing("VERSION", f"none of {', '.join((*VARIABLES, *SDK_VARIABLES))} says where it is")
    return _first(places, _read)


def _first(places: Sequence[_Place], taken: Callable[[_Place], Ndk]) -> Ndk:
    errors = []
    for place in places:
        try:
            return taken(place)
        except ToolError as error:
            errors.append(error)
    raise errors[0]


def installed_versions(named: Path | None, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the versions of all NDKs that `find_ndk` would find, those that cannot be used left out."""
    found = []
    for place in _places(named, environment):
        with suppress(ToolError):
            found.append(_read(place).version)
    return tuple(found)


def chosen_version(wanted: str | None, pinned: str | None, installed: Iterable[str]) -> str | None:
    """Return the version that a plan is made for, None when none can be named.

    An exact one that is `wanted` is taken as it is. Of a major, or when none is, the `pinned` one is, unless others
    that would do are installed and it is not: then the newest of these.
    """
    if wanted is not None and "." in wanted:
        return wanted
    majors = RELEASES if wanted is None else (wanted,)
    fitting = [version for version in installed if FOLDER.fullmatch(version) and _major(version) in majors]
    if pinned is not None and (wanted is None or _major(pinned) == wanted) and (pinned in fitting or not fitting):
        return pinned
    return max(fitting, key=version_numbers, default=RELEASES.get(wanted or ""))


def _major(version: str) -> str:
    return version.partition(".")[0]


def _places(named: Path | None, environment: Mapping[str, str]) -> Iterator[_Place]:
    if named is not None:
        yield "--ndk", named
        return
    for name in VARIABLES:
        if environment.get(name):
            yield name, Path(environment[name])
    for name in SDK_VARIABLES:
        if environment.get(name):
            folder = Path(environment[name], "ndk")
            for version in _versions_below(folder):
                yield name, folder / version


def _versions_below(folder: Path) -> list[str]:
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return []
    return sorted(filter(FOLDER.fullmatch, names), key=version_numbers, reverse=True)


def _prebuilt() -> str:
    here = (platform.system(), platform.machine())
    if here not in PREBUILT:
        hosts = ", ".join(map(" ".join, PREBUILT))
        what = f"Google publishes NDKs for {hosts}, not for {' '.join(here)}"
        hint = f"{WITHOUT}; or build on such a machine. invoke plan shows the plan on any"
        raise ToolError("ndk-unsupported-host", what, where="NDK", hint=hint)
    return PREBUILT[here]


def _read(place: _Place) -> Ndk:
    where, not_one = f"{place[0]} {place[1]}", f"give the folder that holds {PROPERTIES}"
    try:
        folder = place[1].resolve(strict=True)
    except (OSError, ValueError) as error:
        raise ToolError("ndk-not-a-folder", "there is no such folder", where=where, hint=not_one) from error
    if not folder.is_dir():
        raise ToolError("ndk-not-a-folder", "is a file, not the folder of an NDK", where=where, hint=not_one)
    parts = (*PARTS, *(f"{_prebuilt()}/{part}" for part in PREBUILT_PARTS))
    missing = [part for part in parts if not (folder / part).exists()]
    if missing:
        why, hint = f"not there: {', '.join(missing)}", "install it again: the one for this machine, 23 or newer"
        raise ToolError("ndk-incomplete", "is not a whole NDK", where=where, why=why, hint=hint)
    properties = _text(folder / PROPERTIES)
    found = REVISION.search(properties)
    if found is None:
        why = f"{PROPERTIES} has no line such as Pkg.Revision = 27.2.12479018; it begins {properties[:40]!r}"
        raise ToolError("ndk-damaged", "does not say its version", where=where, why=why, hint="install it again")
    return Ndk(folder=folder, version=found[1], levels=_levels(folder / LEVELS))


def _levels(file: Path) -> tuple[int, int] | None:
    try:
        content = json.loads(_text(file))
        return int(content["min"]), int(content["max"])
    except (ValueError, KeyError, TypeError):
        return None


def _text(file: Path) -> str:
    """Return the beginning of a small file; nothing when it cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(LARGEST_FILE).decode("utf-8", "replace")
    except OSError:
        return ""


def _of_version(place: _Place, version: str) -> Ndk:
    ndk = _read(place)
    if ndk.version != version:
        what = f"is version {ndk.version}; the plan is for {version}"
        why = "another version has another compiler and another C++ library"
        hint = f'install that one ({_install(version)}), or say android.ndk = "{ndk.version}" in the buildspec'
        raise ToolError("ndk-wrong-version", what, where=f"{place[0]} {place[1]}", why=why, hint=hint)
    return ndk


def _missing(version: str, why: str) -> ToolError:
    what = "Android's NDK is not found"
    hint = f"install it ({_install(version)}), then give its folder with --ndk or in {VARIABLES[0]}; or {WITHOUT}"
    return ToolError("ndk-missing", what, where="NDK", why=why, hint=hint)


def _install(version: str) -> str:
    return f"Android Studio, or: sdkmanager 'ndk;{version}'"


ENVIRONMENT: Final = {
    "ORTRIM_COMPILER_C": "clang", "ORTRIM_COMPILER_CXX": "clang++", "ORTRIM_AR": "llvm-ar",
    "ORTRIM_RANLIB": "llvm-ranlib", "ORTRIM_OBJCOPY": "llvm-objcopy",
}  # fmt: skip


def ndk_toolchain(target: Target, api: int, version: str) -> Toolchain:
    """Return the toolchain that compiles for an Android target so that it loads on an API level and newer."""
    triple = f"{TRIPLES[target.architecture]}{api}"
    identity = f"ndk {version} {triple}"
    cxx = f'"$ORTRIM_COMPILER_CXX" --target={triple}'
    return Toolchain(
        kind="ndk",
        version=version,
        triple=triple,
        environment=tuple((name, f"${{ndk_prebuilt}}/{PROGRAMS[program]}") for name, program in ENVIRONMENT.items()),
        wrappers=(
            ("cc", compiler_wrapper(identity, f'"$ORTRIM_COMPILER_C" --target={triple}')),
            ("c++", compiler_wrapper(identity, cxx, precompiles=True)),
            ("ar", tool_wrapper(identity, '"$ORTRIM_AR"')),
            ("ranlib", tool_wrapper(identity, '"$ORTRIM_RANLIB"')),
            ("objcopy", tool_wrapper(identity, '"$ORTRIM_OBJCOPY"')),
            ("launch-cc", launcher(identity, "cc")),
            ("launch-c++", launcher(identity, "c++")),
        ),
    )


REPOSITORY: Final = "https://dl.google.com/android/repository"
"""Where Google publishes the SDK's packages."""
