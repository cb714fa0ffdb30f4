"""An installed Xcode: where it is, whether it is whole and ready, which version it is, and which SDKs it has.

Facts: `xcode-select(1)`, `xcodebuild(1)`; that a compiler ends with 69 until the licence is accepted is what Flutter's
and Briefcase's own checks of Xcode go by.
"""

import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.command import Completed, run
from ortrim.base.tools import CHOOSE, INSTALL
from ortrim.binaries.apple import ApplePlatform, AppleVariant, Slice, slice_of
from ortrim.buildspec.targets import OperatingSystem, Target
from ortrim.compiling.plan import Toolchain
from ortrim.compiling.toolchains import compiler_wrapper, tool_wrapper
from ortrim.errors import PackageError, ToolError

TOOLS: Final = "Toolchains/XcodeDefault.xctoolchain/usr/bin"
PROGRAMS: Final = {
    name: f"{TOOLS}/{name}"
    for name in ("clang", "clang++", "ar", "ranlib", "strip", "libtool", "dsymutil", "install_name_tool")
}
"""Program -> its place."""
SDKS: Final = {
    (ApplePlatform.IOS, AppleVariant.NONE): "iPhoneOS",
    (ApplePlatform.IOS, AppleVariant.SIMULATOR): "iPhoneSimulator",
    (ApplePlatform.IOS, AppleVariant.CATALYST): "MacOSX",
    (ApplePlatform.MACOS, AppleVariant.NONE): "MacOSX",
}
"""Platform and variant -> the name of the SDK's folder; `xcodebuild` writes the same in small letters."""


def sdk_folder(part: Slice) -> str:
    """Return the folder of the SDK that a slice is compiled with; Xcode links it to the version that it has."""
    name = SDKS[part.platform, part.variant]
    return f"Platforms/{name}.platform/Developer/SDKs/{name}.sdk"


VARIABLE: Final = "DEVELOPER_DIR"
"""Takes the place of what `xcode-select` chose, for all of Apple's tools."""
APPLICATIONS: Final = Path("/Applications")
FOLDER: Final = "Contents/Developer"
COMMAND_LINE_TOOLS: Final = "CommandLineTools"
VERSION: Final = re.compile(r"^Xcode (\d+(?:\.\d+){0,2})$", re.MULTILINE)
OLDEST: Final = (15, 0)
"""The first whose C++ library has what ONNX Runtime needs of C++20 on a Mac; upstream's own workflows went on to 16."""
NOT_AGREED: Final = 69
ANSWER_SECONDS: Final = 120
"""The first call of a tool after an update takes long."""
DARWIN: Final = "Darwin"


@dataclass(frozen=True, kw_only=True)
class Xcode:
    """An Xcode that is whole and ready: its `Contents/Developer` folder and its version."""

    folder: Path
    version: str


def on_a_mac() -> bool:
    """Whether this machine is a Mac."""
    return platform.system() == DARWIN


def find_xcode(version: str | None = None, environment: Mapping[str, str] = os.environ) -> Xcode:
    """Return the Xcode of a version, or the one that is chosen here.

    The chosen one is that of `DEVELOPER_DIR` or of `xcode-select`; another version is looked for beside it in
    `/Applications`.
    """
    if not on_a_mac():
        what, hint = "Xcode runs only on a Mac", "build on a Mac, or with --executor github"
        raise ToolError("xcode-unsupported-host", what, where="Xcode", hint=hint)
    chosen = _ready(_chosen(environment), environment)
    if version is None or chosen.version == version:
        return chosen
    for folder in _others(version):
        other = _ready(folder, environment)
        if other.version == version:
            return other
    what = f"is version {chosen.version}; the plan is for {version}"
    why = "another version has another compiler and other SDKs"
    hint = (
        f"install that one and choose it (sudo xcode-select -s, or {VARIABLE}), or say "
        f'apple.xcode = "{chosen.version}" in the buildspec'
    )
    raise ToolError("xcode-wrong-version", what, where=str(chosen.folder), why=why, hint=hint)


def require_sdks(xcode: Xcode, folders: Iterable[str]) -> None:
    """Refuse an Xcode that lacks one of these SDKs, folders as `sdk_folder` gives them."""
    missing = [Path(folder).stem for folder in folders if not (xcode.folder / folder).is_dir()]
    if missing:
        what = f"has no SDK {', '.join(dict.fromkeys(missing))}"
        hint = "run: xcodebuild -downloadPlatform iOS" if "MacOSX" not in missing else "install Xcode again"
        raise ToolError("xcode-sdk-missing", what, where=f"Xcode {xcode.version}", hint=hint)


def _chosen(environment: Mapping[str, str]) -> Path:
    named = environment.get(VARIABLE) or _selected()
    folder = Path(named) / FOLDER if named.rstrip("/").endswith(".app") else Path(named)
    if COMMAND_LINE_TOOLS in folder.parts:
        what = "are chosen, and they have neither simulators nor SDKs for phones"
        raise ToolError("xcode-tools-only", what, where="the command line tools", why=str(folder), hint=INSTALL)
    return folder


def _selected() -> str:
    try:
        done = run(("xcode-select", "-p"), timeout_seconds=ANSWER_SECONDS)
    except ToolError as error:
        if error.code != "tool-missing":
            raise
        raise _missing("there is no xcode-select") from error
    if done.returncode != 0 or not done.stdout.strip():
        raise _missing(_said(done))
    return done.stdout.strip()


def _ready(folder: Path, environment: Mapping[str, str]) -> Xcode:
    if not folder.is_dir():
        what, hint = "there is no such folder", f"choose the Xcode that is here: {CHOOSE}"
        raise ToolError("xcode-not-a-folder", what, where=str(folder), hint=hint)
    missing = [program for program in PROGRAMS.values() if not (folder / program).is_file()]
    if missing:
        why, hint = f"not there: {', '.join(missing)}", "install Xcode again"
        raise ToolError("xcode-incomplete", "is not a complete Xcode", where=str(folder), why=why, hint=hint)
    environment = {**environment, VARIABLE: str(folder), "LC_ALL": "C"}
    done = run(("xcrun", "clang", "--version"), environment=environment, timeout_seconds=ANSWER_SECONDS)
    if done.returncode == NOT_AGREED or "license" in _said(done):
        what, hint = "waits for its licence to be accepted", "run: sudo xcodebuild -license accept"
        raise ToolError("xcode-licence", what, where=str(folder), why=_said(done), hint=hint)
    words = ("xcodebuild", "-checkFirstLaunchStatus")
    first = run(words, environment=environment, timeout_seconds=ANSWER_SECONDS)
    if first.returncode != 0:
        what, hint = "has not installed its additional components yet", "run: sudo xcodebuild -runFirstLaunch"
        raise ToolError("xcode-first-launch", what, where=str(folder), why=_said(first), hint=hint)
    return Xcode(folder=folder, version=_version(folder, environment))


def _version(folder: Path, environment: Mapping[str, str]) -> str:
    done = run(("xcodebuild", "-version"), environment=environment, timeout_seconds=ANSWER_SECONDS)
    found = VERSION.search(done.stdout)
    if done.returncode != 0 or found is None:
        what = f"does not say its version (exit code {done.returncode})"
        raise ToolError("xcode-damaged", what, where=str(folder), why=_said(done), hint="install Xcode again")
    version = found[1] if "." in found[1] else f"{found[1]}.0"
    if tuple(map(int, version.split("."))) < OLDEST:
        what = f"version {version} is too old, {'.'.join(map(str, OLDEST))} or newer is needed"
        raise ToolError("xcode-too-old", what, where=str(folder), hint="install a newer one from the App Store")
    return version


def _others(version: str) -> Iterator[Path]:
    """Yield where several versions lie side by side: GitHub's machines and `xcodes` name them so."""
    short = version.removesuffix(".0")
    for name in dict.fromkeys((f"Xcode_{version}.app", f"Xcode-{version}.app", f"Xcode_{short}.app", "Xcode.app")):
        if (APPLICATIONS / name / FOLDER).is_dir():
            yield APPLICATIONS / name / FOLDER


def _missing(why: str) -> ToolError:
    what = "Xcode is needed to compile for Apple's systems"
    return ToolError("xcode-missing", what, where="Xcode", why=why, hint=INSTALL)


def _said(done: Completed) -> str:
    return "\n".join((done.stderr or done.stdout).strip().splitlines()[-3:])[-300:]


ENVIRONMENT: Final = {
    "ORTRIM_COMPILER_C": "clang", "ORTRIM_COMPILER_CXX": "clang++", "ORTRIM_AR": "ar", "ORTRIM_RANLIB": "ranlib",
    "ORTRIM_STRIP": "strip", "ORTRIM_LIBTOOL": "libtool", "ORTRIM_DSYMUTIL": "dsymutil",
    "ORTRIM_INSTALL_NAME_TOOL": "install_name_tool",
}  # fmt: skip
SYSTEMS: Final = {OperatingSystem.IOS: "ios", OperatingSystem.MACOS: "macosx"}
ENVIRONMENTS: Final = {AppleVariant.NONE: "", AppleVariant.SIMULATOR: "-simulator", AppleVariant.CATALYST: "-macabi"}
"""What ends a triple of clang's."""
JOINING: Final = """\
#!/bin/sh
# {identity}
find "$ORTRIM_BUILD" -name '*.a' | LC_ALL=C sort | tr '\\n' '\\0' | xargs -0 {command} -r -nostdlib "$@"
"""
"""Links the given objects, and what they need of all static libraries of the build, into one object."""


def xcode_toolchain(target: Target, deployment_target: str, version: str) -> Toolchain:
    """Return the toolchain that compiles for an Apple target so that it runs on `deployment_target` and newer.

    Programs that lie beside a compiler of Apple's are found by `${xcode}`; `codesign` is the system's own.
    """
    triple = apple_triple(target, deployment_target)
    identity = f"xcode {version} {triple}"
    options = f'-target {triple} -isysroot "$ORTRIM_SDK"'
    cxx = f'"$ORTRIM_COMPILER_CXX" {options}'
    tools = {name.removeprefix("ORTRIM_").lower(): name for name in ENVIRONMENT if "COMPILER" not in name}
    return Toolchain(
        kind="xcode",
        version=version,
        triple=triple,
        environment=(
            *((name, f"${{xcode}}/{PROGRAMS[program]}") for name, program in ENVIRONMENT.items()),
            ("ORTRIM_CODESIGN", "codesign"),
            ("ORTRIM_SDK", f"${{xcode}}/{sdk_folder(slice_of(target))}"),
            ("DEVELOPER_DIR", "${xcode}"),
            ("ZERO_AR_DATE", "1"),
        ),
        wrappers=(
            ("cc", compiler_wrapper(identity, f'"$ORTRIM_COMPILER_C" {options}')),
            ("c++", compiler_wrapper(identity, cxx, precompiles=True)),
            *((name, tool_wrapper(identity, f'"${variable}"')) for name, variable in tools.items()),
            ("codesign", tool_wrapper(identity, '"$ORTRIM_CODESIGN"')),
            ("join", JOINING.format(identity=identity, command=cxx)),
        ),
    )


def apple_triple(target: Target, deployment_target: str) -> str:
    """Return clang's triple: `arm64-apple-ios15.1-simulator`."""
    own = slice_of(target)
    system = "ios" if own.variant is AppleVariant.CATALYST else SYSTEMS[target.system]
    return f"{own.architectures[0]}-apple-{system}{deployment_target}{ENVIRONMENTS[own.variant]}"


SIGN_SECONDS: Final = 600
"""A time stamp comes from a server of Apple's."""
VERIFY_SECONDS: Final = 120


def find_codesign(search_path: str | None = None) -> Path:
    """Return the program: from PATH, or from the folders of `search_path`. Raises `ToolError` `codesign-missing`."""
    found = shutil.which("codesign", path=search_path)
    if found is None:
        what = "Apple's codesign is needed to sign an xcframework"
        hint = "sign it on a Mac: codesign --timestamp --sign IDENTITY onnxruntime.xcframework"
        raise ToolError("codesign-missing", what, where="codesign", hint=hint)
    return Path(found)


def sign(codesign: Path, identity: str, path: Path) -> None:
    """Sign a bundle with an identity, by its name or its fingerprint, and check the signature."""
    signing = (codesign, "--force", "--timestamp", "--sign", identity, path)
    for command, seconds in ((signing, SIGN_SECONDS), ((codesign, "--verify", "--strict", path), VERIFY_SECONDS)):
        done = run(command, timeout_seconds=seconds)
        if done.returncode != 0:
            why = (done.stderr or done.stdout).strip()[-500:]
            hint = "run: security find-identity -v -p codesigning; it lists the identities of this Mac"
            raise PackageError("not-signed", "the xcframework could not be signed", where=path.name, why=why, hint=hint)
