"""The projects of the apps that run our requests, and what Gradle and Xcode make of them.

The same inputs give the same bytes; files that are the same already are left alone, and what Gradle or Xcode keeps
beside ours stays, so that no more is compiled than what changed.
"""

import json
import plistlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ortrim.base.archives import open_zip
from ortrim.base.files import shipped_folder, storage_errors
from ortrim.buildspec.targets import ABIS, APPLE_ARCHITECTURES
from ortrim.compiling.plan import BuildJob
from ortrim.devices.devicectl import ARCHIVE
from ortrim.devices.harness import PROJECT_ASSET, REQUESTS_ASSET, HarnessContent, PhoneApp
from ortrim.errors import VerifyError
from ortrim.package.manifest import PackagedFile
from ortrim.package.package import check_paths, project_files, project_paths, stamp_of, write_in_place

HARNESS: Final = "harness"
"""The folder of a target's project, below the target's own."""
STAMPS: Final = (REQUESTS_ASSET, PROJECT_ASSET)
LARGEST_STAMP: Final = 16 << 20
GRADLE: Final = "android/harness"
SOURCES: Final = "app/src"
MAIN: Final = f"{SOURCES}/main"
VERSIONS: Final[Mapping[str, str]] = MappingProxyType({
    "plugin": "8.7.3", "gradle": "8.9", "sdk": "35", "jdk": "17",
    "runner": "1.6.2", "monitor": "1.7.2", "junit": "4.13.2",
})  # fmt: skip
"""Android's Gradle plugin, and what its release notes say that it needs at least; then libraries for the test alone."""
COMMANDS: Final = ("gradle assembleDebug", "gradle assembleDebugAndroidTest")
APK: Final = "app/build/outputs/apk/debug/app-debug.apk"
TEST_APK: Final = "app/build/outputs/apk/androidTest/debug/app-debug-androidTest.apk"


def job_apks(job: BuildJob, content: HarnessContent, folder: Path) -> tuple[Path, Path]:
    """Write the project for what a job built, and return the APKs that Gradle made of it, as `find_apks` does."""
    assert job.android is not None
    return find_apks(make_harness(content, folder, abi=ABIS[job.target.architecture], api=job.android.api))


def make_harness(content: HarnessContent, destination: Path, *, abi: str, api: int) -> Path:
    """Write the project into the folder `destination` and return that.

    `abi` and `api` are the ABI and the lowest API level of the package under test.
    """
    runs = len(json.loads(content.requests)["runs"])
    values = {
        "abi": abi,
        "api": api,
        "versions": VERSIONS,
        "commands": COMMANDS,
        "app": APK,
        "test": TEST_APK,
        "runs": "one process" if runs == 1 else f"{runs} processes",
    }
    project = project_files(GRADLE, values)
    parts = (
        *_in_folder(f"{MAIN}/jniLibs/{abi}", content.libraries),
        *_in_folder(f"{MAIN}/assets", content.assets),
    )
    stamp = PackagedFile(path=f"{MAIN}/assets/{PROJECT_ASSET}", content=stamp_of(project))
    return _written(destination, (*project, *parts, stamp), f"{MAIN}/assets", content, SOURCES)


def find_apks(harness: Path) -> tuple[Path, Path]:
    """Return the APKs that Gradle made of a project: the app, and its instrumentation."""
    app, test = harness / APK, harness / TEST_APK
    hint = f"run there: {'; '.join(COMMANDS)} (README.md says what they need)"
    for path in (app, test):
        if not path.is_file():
            what = "the app for device farms is not compiled"
            raise VerifyError("farm-apks-missing", what, where=str(harness), why=f"there is no {path}", hint=hint)
    with storage_errors(harness):
        wanted = [(harness / MAIN / "assets" / name).read_bytes() for name in STAMPS]
    with open_zip(app, str(app)) as archive:
        members = {name: archive.members.get(f"assets/{name}") for name in STAMPS}
        found = [
            archive.read(f"assets/{name}") if member and member.file_size <= LARGEST_STAMP else None
            for name, member in members.items()
        ]
    if found != wanted:
        what = "the compiled app is out of date"
        raise VerifyError("farm-apks-outdated", what, where=str(app), hint=hint)
    return app, test


XCODE: Final = "apple/harness"
OURS: Final = "Harness"
RUNNER: Final = f"{OURS}/runner"
LIBRARIES: Final = f"{OURS}/libraries"
KINDS: Final[Mapping[str, str]] = MappingProxyType({".c": "sourcecode.c.c", ".m": "sourcecode.c.objc"})
"""Xcode's words for what is compiled."""
RUNNER_FLAGS: Final = "-Dmain=ortrim_runner_main -D_exit=ortrim_runner_exit -Dexit=ortrim_runner_exit"
"""In an app the runner is no program: see `embedding.h`."""
DERIVED: Final = "build"
PRODUCTS: Final = f"{DERIVED}/Build/Products/Release-iphoneos"
APP: Final = f"{PRODUCTS}/Harness.app"
COMMAND: Final = (
    "xcodebuild build-for-testing -project Harness.xcodeproj -scheme Harness -destination generic/platform=iOS "
    f"-derivedDataPath {DERIVED} -allowProvisioningUpdates DEVELOPMENT_TEAM=YOUR_TEAM_ID"
)
COMPILE_HINT: Final = f"run there, on a Mac with Xcode: {COMMAND} (README.md says what it needs)"


def job_app(job: BuildJob, headers: Path, content: HarnessContent, folder: Path) -> PhoneApp:
    """Write the project for what a job built, and return the app that Xcode made of it."""
    assert job.apple is not None
    architecture = APPLE_ARCHITECTURES[job.target.architecture]
    minimum = job.apple.deployment_target
    return find_app(make_phone_harness(content, folder, headers=headers, architecture=architecture, minimum=minimum))


def make_phone_harness(
    content: HarnessContent, destination: Path, *, headers: Path, architecture: str, minimum: str
) -> Path:
    """Write the project into the folder `destination` and return that.

    `headers` is the folder of the runtime's headers, which the runner needs; `architecture` is Apple's word. A static
    library becomes part of the app.
    """
    shipped = sorted(path for path in shipped_folder("runner").iterdir() if path.suffix in {".c", ".h"})
    runner = tuple(PackagedFile(path=f"{RUNNER}/{path.name}", content=path) for path in shipped)
    # `transfer.c` is in both targets, and in the template by hand.
    compiled = [name for name in project_paths(XCODE) if Path(name).name != "transfer.c"]
    compiled += [file.path for file in runner]
    values = {
        "architecture": architecture,
        "minimum": minimum,
        "linked": ARCHIVE in content.libraries,
        "sources": [
            {
                "number": number,
                "name": Path(name).name,
                "path": name,
                "kind": KINDS[Path(name).suffix],
                "app": not name.startswith(f"{OURS}/tests/"),
                "flags": RUNNER_FLAGS if name.startswith(f"{RUNNER}/") else "",
            }
            for number, name in enumerate((each for each in compiled if Path(each).suffix in KINDS), start=1)
        ],
        "libraries": [{"name": name, "path": f"{LIBRARIES}/{name}"} for name in sorted(content.libraries)],
        "command": COMMAND,
        "app": APP,
        "products": PRODUCTS,
        "runs": len(json.loads(content.requests)["runs"]),
    }
    files = (
        *project_files(XCODE, values),
        *runner,
        *_in_folder(f"{OURS}/include", {path.name: path for path in headers.glob("*.h")}),
        *_in_folder(LIBRARIES, content.libraries),
        *_in_folder(OURS, content.assets),
    )
    stamp = PackagedFile(path=f"{OURS}/{PROJECT_ASSET}", content=stamp_of(files))
    return _written(destination, (*files, stamp), OURS, content, OURS)


def find_app(harness: Path) -> PhoneApp:
    """Return the app that Xcode made of a project, for phones."""
    app = harness / APP
    information = app / "Info.plist"
    if not information.is_file():
        what, why = "the app for phones is not compiled", f"there is no {information}"
        raise VerifyError("phone-app-missing", what, where=str(harness), why=why, hint=COMPILE_HINT)
    if any(_stamp(app / name) != _stamp(harness / OURS / name) for name in STAMPS):
        what = "the compiled app is out of date"
        raise VerifyError("phone-app-outdated", what, where=str(app), hint=COMPILE_HINT)
    with storage_errors(information):
        content = information.read_bytes()
    try:
        return PhoneApp(path=app, identifier=str(plistlib.loads(content)["CFBundleIdentifier"]))
    except (plistlib.InvalidFileException, ValueError, KeyError, TypeError, EOFError, IndexError) as error:
        what, hint = "the compiled app's name cannot be read", f"remove {DERIVED}; {COMPILE_HINT}"
        raise VerifyError("phone-app-missing", what, where=str(information), why=str(error), hint=hint) from error


def _stamp(path: Path) -> bytes | None:
    """Return a file's content, None when there is none, or one that is larger than ours can be."""
    with storage_errors(path):
        small = path.is_file() and path.stat().st_size <= LARGEST_STAMP
        return path.read_bytes() if small else None


def _in_folder(folder: str, files: Mapping[str, Path]) -> Iterable[PackagedFile]:
    return (PackagedFile(path=f"{folder}/{name}", content=files[name]) for name in sorted(files))


def _written(
    destination: Path, files: tuple[PackagedFile, ...], assets: str, content: HarnessContent, owned: str
) -> Path:
    """Write the files; the requests last, so that what was interrupted does not look finished."""
    requests = PackagedFile(path=f"{assets}/{REQUESTS_ASSET}", content=content.requests.encode())
    check_paths(file.path for file in (*files, requests))
    write_in_place(destination, (*files, requests), owned)
    return destination
