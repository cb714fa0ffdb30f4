"""An installed Xcode: where it is, whether it is whole and ready, which version it is, and which SDKs it has.

Facts: `xcode-select(1)`, `xcodebuild(1)`; that a compiler ends with 69 until the licence is accepted is what Flutter's
and Briefcase's own checks of Xcode go by.
"""

import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.xcode import PROGRAMS
from ortrim.errors import ToolError
from ortrim.tools.command import Completed, run

VARIABLE: Final = "DEVELOPER_DIR"
"""Takes the place of what `xcode-select` chose, for all of Apple's tools."""
APPLICATIONS: Final = Path("/Applications")
FOLDER: Final = "Contents/Developer"
COMMAND_LINE_TOOLS: Final = "CommandLineTools"
VERSION: Final = re.compile(r"^Xcode (\d+(?:\.\d+){0,2})$", re.MULTILINE)
OLDEST: Final = (15, 0)
"""The first whose C++ library has what ONNX Runtime asks of C++20 on a Mac; upstream's own workflows went on to 16."""
NOT_AGREED: Final = 69
ANSWER_SECONDS: Final = 120
"""The first call of a tool after an update takes long."""
CHOOSE: Final = "sudo xcode-select -s /Applications/Xcode.app"
INSTALL: Final = f"install Xcode from the App Store, then run: {CHOOSE}"
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
    `/Applications`. Raises `ToolError`: `xcode-unsupported-host`, `xcode-missing`, `xcode-tools-only` (the command line
    tools are chosen, which have no SDK for phones), `xcode-not-a-folder`, `xcode-incomplete`, `xcode-licence`,
    `xcode-first-launch`, `xcode-damaged` (it does not tell its version), `xcode-too-old`, `xcode-wrong-version`.
    """
    if not on_a_mac():
        what, hint = "Xcode runs on a Mac, and this is none", "build on a Mac, or with --executor github"
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
    """Refuse an Xcode that lacks one of these SDKs, folders as `core.xcode.sdk_folder` gives them.

    Raises `ToolError` `xcode-sdk-missing`.
    """
    missing = [Path(folder).stem for folder in folders if not (xcode.folder / folder).is_dir()]
    if missing:
        what = f"has no SDK {', '.join(dict.fromkeys(missing))}"
        hint = "run: xcodebuild -downloadPlatform iOS" if "MacOSX" not in missing else "install Xcode again"
        raise ToolError("xcode-sdk-missing", what, where=f"Xcode {xcode.version}", hint=hint)


def _chosen(environment: Mapping[str, str]) -> Path:
    """Return the folder that is chosen; an application's own is taken for the one inside."""
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
        if error.reference != "tool-missing":
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
        raise ToolError("xcode-incomplete", "is not a whole Xcode", where=str(folder), why=why, hint=hint)
    of_this_one = {**environment, VARIABLE: str(folder), "LC_ALL": "C"}
    _require_licence(folder, of_this_one)
    return Xcode(folder=folder, version=_version(folder, of_this_one))


def _require_licence(folder: Path, environment: Mapping[str, str]) -> None:
    """Refuse an Xcode that would stop at its first call."""
    done = run(("xcrun", "clang", "--version"), environment=environment, timeout_seconds=ANSWER_SECONDS)
    if done.returncode == NOT_AGREED or "license" in _said(done):
        what, hint = "waits for its licence to be accepted", "run: sudo xcodebuild -license accept"
        raise ToolError("xcode-licence", what, where=str(folder), why=_said(done), hint=hint)
    words = ("xcodebuild", "-checkFirstLaunchStatus")
    first = run(words, environment=environment, timeout_seconds=ANSWER_SECONDS)
    if first.returncode != 0:
        what, hint = "has not installed its own parts yet", "run: sudo xcodebuild -runFirstLaunch"
        raise ToolError("xcode-first-launch", what, where=str(folder), why=_said(first), hint=hint)


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
    """Return the end of what a program said."""
    return "\n".join((done.stderr or done.stdout).strip().splitlines()[-3:])[-300:]
