"""The Xcode project of the app that runs our requests on phones and at farms, and the app that Xcode makes of it."""

import json
import plistlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ortrim.base.files import shipped_folder, storage_errors
from ortrim.buildspec.targets import APPLE_ARCHITECTURES
from ortrim.compiling.plan import BuildJob
from ortrim.devices.devicectl import ARCHIVE
from ortrim.devices.harness import PROJECT_ASSET, REQUESTS_ASSET, HarnessContent, PhoneApp
from ortrim.errors import VerifyError
from ortrim.package.manifest import PackagedFile
from ortrim.package.package import check_paths, project_files, project_paths, stamp_of, write_in_place

TEMPLATES: Final = "apple/harness"
MAIN: Final = "Harness"
"""All below it is ours; what Xcode keeps beside it stays, so that it compiles no more than what changed."""
RUNNER: Final = f"{MAIN}/runner"
LIBRARIES: Final = f"{MAIN}/libraries"
HEADERS: Final = f"{MAIN}/include"
TESTS: Final = f"{MAIN}/tests/"
KINDS: Final[Mapping[str, str]] = MappingProxyType({".c": "sourcecode.c.c", ".m": "sourcecode.c.objc"})
"""Xcode's words for what is compiled."""
RUNNER_FLAGS: Final = "-Dmain=ortrim_runner_main -D_exit=ortrim_runner_exit -Dexit=ortrim_runner_exit"
"""In an app the runner is no program: see `embedding.h`."""
DERIVED: Final = "build"
PRODUCTS: Final = f"{DERIVED}/Build/Products/Release-iphoneos"
APP: Final = f"{PRODUCTS}/Harness.app"
TEST: Final = f"{PRODUCTS}/HarnessUITests-Runner.app"
COMMAND: Final = (
    "xcodebuild build-for-testing -project Harness.xcodeproj -scheme Harness -destination generic/platform=iOS "
    f"-derivedDataPath {DERIVED} -allowProvisioningUpdates DEVELOPMENT_TEAM=YOUR_TEAM_ID"
)
LARGEST_STAMP: Final = 16 << 20


@dataclass(frozen=True, kw_only=True)
class PhoneHarness:
    """What the app is made from: what it carries, the headers of the runtime that the runner needs, the target's.

    `architecture` is Apple's word. With `linked`, the content's libraries are static ones that become part of the app.
    """

    content: HarnessContent
    headers: Mapping[str, Path]
    architecture: str
    minimum: str
    linked: bool


def make_phone_harness(inputs: PhoneHarness, destination: Path) -> Path:
    """Write the project into the folder `destination` and return that.

    The same inputs give the same bytes; files that are the same already are left alone, and what Xcode keeps there
    stays. Raises `PackageError` and `StorageError`.
    """
    project = (*_project(inputs), *_runner())
    files = (*project, *_carried(inputs, project))
    check_paths(file.path for file in files)
    write_in_place(destination, files, MAIN)
    return destination


def job_app(job: BuildJob, headers: Path, content: HarnessContent, folder: Path) -> PhoneApp:
    """Write the project for what a job built, and return the app that Xcode made of it.

    `headers` is the folder of the runtime's headers. Raises as `make_phone_harness` and `find_app` do.
    """
    assert job.apple is not None
    inputs = PhoneHarness(
        content=content,
        headers={path.name: path for path in sorted(headers.glob("*.h"))},
        architecture=APPLE_ARCHITECTURES[job.target.architecture],
        minimum=job.apple.deployment_target,
        linked=ARCHIVE in content.libraries,
    )
    return find_app(make_phone_harness(inputs, folder))


def find_app(harness: Path) -> PhoneApp:
    """Return the app that Xcode made of a project, for phones.

    Raises `VerifyError`: `phone-app-missing`, `phone-app-outdated` (it carries other requests than the project, or is
    of another ortrim); `StorageError` for an app that is damaged.
    """
    app = harness / APP
    information = app / "Info.plist"
    if not information.is_file():
        what = "the app for phones is not compiled"
        raise VerifyError("phone-app-missing", what, where=str(harness), why=f"there is no {information}", hint=_hint())
    stamps = (REQUESTS_ASSET, PROJECT_ASSET)
    if any(_stamp(app / name) != _stamp(harness / MAIN / name) for name in stamps):
        what = "the compiled app is out of date"
        raise VerifyError("phone-app-outdated", what, where=str(app), hint=_hint())
    return PhoneApp(path=app, identifier=_identifier(information))


def _hint() -> str:
    return f"run there, on a Mac with Xcode: {COMMAND} (README.md says what it needs)"


def _stamp(path: Path) -> bytes | None:
    """Return a file's content, None when there is none, or one that is larger than ours can be."""
    with storage_errors(path):
        small = path.is_file() and path.stat().st_size <= LARGEST_STAMP
        return path.read_bytes() if small else None


def _identifier(information: Path) -> str:
    with storage_errors(information):
        content = information.read_bytes()
    try:
        found = plistlib.loads(content)["CFBundleIdentifier"]
    except (plistlib.InvalidFileException, ValueError, KeyError, TypeError, EOFError, IndexError) as error:
        what = "the compiled app's name cannot be read"
        raise VerifyError(
            "phone-app-missing", what, where=str(information), why=str(error), hint=f"remove {DERIVED}; {_hint()}"
        ) from error
    return str(found)


def _project(inputs: PhoneHarness) -> tuple[PackagedFile, ...]:
    """Return the files that make a project, each from its template or as it is."""
    values = {
        "architecture": inputs.architecture,
        "minimum": inputs.minimum,
        "linked": inputs.linked,
        "sources": _sources(project_paths(TEMPLATES)),
        "libraries": [{"name": name, "path": f"{LIBRARIES}/{name}"} for name in sorted(inputs.content.libraries)],
        "command": COMMAND,
        "app": APP,
        "products": PRODUCTS,
        "runs": len(json.loads(inputs.content.requests)["runs"]),
    }
    return project_files(TEMPLATES, values)


def _sources(project: tuple[str, ...]) -> list[dict[str, object]]:
    """Return what is compiled, as the project's template names it; `transfer.c` is in both targets, and there by hand.

    The runner's files carry the flags that make it a part of the app.
    """
    ours = [name for name in project if Path(name).suffix in KINDS and Path(name).name != "transfer.c"]
    names = [*ours, *(file.path for file in _runner() if Path(file.path).suffix in KINDS)]
    return [
        {
            "number": number,
            "name": Path(name).name,
            "path": name,
            "kind": KINDS[Path(name).suffix],
            "app": not name.startswith(TESTS),
            "flags": RUNNER_FLAGS if name.startswith(f"{RUNNER}/") else "",
        }
        for number, name in enumerate(names, start=1)
    ]


def _runner() -> tuple[PackagedFile, ...]:
    folder = shipped_folder("runner")
    found = sorted(path for path in folder.iterdir() if path.suffix in {".c", ".h"})
    return tuple(PackagedFile(path=f"{RUNNER}/{path.name}", content=path) for path in found)


def _carried(inputs: PhoneHarness, project: tuple[PackagedFile, ...]) -> tuple[PackagedFile, ...]:
    """Return what the app carries; the requests last, so that what was interrupted does not look finished."""
    content = inputs.content
    parts = (
        *(PackagedFile(path=f"{HEADERS}/{name}", content=inputs.headers[name]) for name in sorted(inputs.headers)),
        *(PackagedFile(path=f"{LIBRARIES}/{name}", content=content.libraries[name])
          for name in sorted(content.libraries)),
        *(PackagedFile(path=f"{MAIN}/{name}", content=content.assets[name]) for name in sorted(content.assets)),
    )  # fmt: skip
    return (
        *parts,
        PackagedFile(path=f"{MAIN}/{PROJECT_ASSET}", content=stamp_of((*project, *parts))),
        PackagedFile(path=f"{MAIN}/{REQUESTS_ASSET}", content=content.requests.encode()),
    )
