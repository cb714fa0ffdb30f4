"""The Gradle project of the app that runs our requests on device farms, and the APKs that Gradle makes of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ortrim.base.archives import open_zip
from ortrim.base.files import storage_errors
from ortrim.buildspec.targets import ABIS
from ortrim.compiling.plan import BuildJob
from ortrim.devices.harness import PROJECT_ASSET, REQUESTS_ASSET, HarnessApks, HarnessContent
from ortrim.errors import VerifyError
from ortrim.package.manifest import PackagedFile
from ortrim.package.package import check_paths, project_files, stamp_of, write_in_place

TEMPLATES: Final = "android/harness"
SOURCES: Final = "app/src"
"""All below it is ours; what Gradle keeps beside it stays, so that it compiles no more than what changed."""
MAIN: Final = f"{SOURCES}/main"
VERSIONS: Final[Mapping[str, str]] = MappingProxyType({
    "plugin": "8.7.3", "gradle": "8.9", "sdk": "35", "jdk": "17",
    "runner": "1.6.2", "monitor": "1.7.2", "junit": "4.13.2",
})  # fmt: skip
"""Android's Gradle plugin, and what its release notes say that it needs at least; then libraries for the test alone."""
COMMANDS: Final = ("gradle assembleDebug", "gradle assembleDebugAndroidTest")
APP: Final = "app/build/outputs/apk/debug/app-debug.apk"
TEST: Final = "app/build/outputs/apk/androidTest/debug/app-debug-androidTest.apk"
LARGEST_STAMP: Final = 16 << 20


@dataclass(frozen=True, kw_only=True)
class HarnessInputs:
    """What the app is made from: what it carries, and the ABI and the lowest API level of the package under test."""

    content: HarnessContent
    abi: str
    api: int


def make_harness(inputs: HarnessInputs, destination: Path) -> Path:
    """Write the project into the folder `destination` and return that.

    The same inputs give the same bytes; files that are the same already are left alone, and what Gradle keeps there
    stays. Raises `PackageError` and `StorageError`.
    """
    project = _project(inputs)
    files = (*project, *_carried(inputs, project))
    check_paths(file.path for file in files)
    write_in_place(destination, files, SOURCES)
    return destination


def job_apks(job: BuildJob, content: HarnessContent, folder: Path) -> HarnessApks:
    """Write the project for what a job built, and return the APKs that Gradle made of it.

    Raises as `make_harness` and `find_apks` do.
    """
    assert job.android is not None
    inputs = HarnessInputs(content=content, abi=ABIS[job.target.architecture], api=job.android.api)
    return find_apks(make_harness(inputs, folder))


def find_apks(harness: Path) -> HarnessApks:
    """Return the APKs that Gradle made of a project.

    Raises `VerifyError`: `farm-apks-missing`, `farm-apks-outdated` (they carry other requests than the project, or are
    of another ortrim); `StorageError` for an APK that is damaged.
    """
    apks = HarnessApks(app=harness / APP, test=harness / TEST)
    for path in (apks.app, apks.test):
        if not path.is_file():
            what = "the app for device farms is not compiled"
            raise VerifyError("farm-apks-missing", what, where=str(harness), why=f"there is no {path}", hint=_hint())
    stamps = (REQUESTS_ASSET, PROJECT_ASSET)
    with storage_errors(harness):
        wanted = [(harness / MAIN / "assets" / name).read_bytes() for name in stamps]
    if _read(apks.app, *(f"assets/{name}" for name in stamps)) != wanted:
        what = "the compiled app is out of date"
        raise VerifyError("farm-apks-outdated", what, where=str(apks.app), hint=_hint())
    return apks


def _hint() -> str:
    return f"run there: {'; '.join(COMMANDS)} (README.md says what they need)"


def _project(inputs: HarnessInputs) -> tuple[PackagedFile, ...]:
    """Return the files that make a project, each from its template or as it is."""
    values = {
        "abi": inputs.abi,
        "api": inputs.api,
        "versions": VERSIONS,
        "commands": COMMANDS,
        "app": APP,
        "test": TEST,
        "runs": _counted(len(json.loads(inputs.content.requests)["runs"])),
    }
    return project_files(TEMPLATES, values)


def _counted(runs: int) -> str:
    return "one process" if runs == 1 else f"{runs} processes"


def _carried(inputs: HarnessInputs, project: tuple[PackagedFile, ...]) -> tuple[PackagedFile, ...]:
    """Return what the app carries; the requests last, so that what was interrupted does not look finished."""
    content = inputs.content
    return (
        *(PackagedFile(path=f"{MAIN}/jniLibs/{inputs.abi}/{name}", content=content.libraries[name])
          for name in sorted(content.libraries)),
        *(PackagedFile(path=f"{MAIN}/assets/{name}", content=content.assets[name]) for name in sorted(content.assets)),
        PackagedFile(path=f"{MAIN}/assets/{PROJECT_ASSET}", content=stamp_of(project)),
        PackagedFile(path=f"{MAIN}/assets/{REQUESTS_ASSET}", content=content.requests.encode()),
    )  # fmt: skip


def _read(apk: Path, *names: str) -> list[bytes | None]:
    """Return members of an APK, None for those that it has not, or that are larger than ours can be."""
    with open_zip(apk, str(apk)) as archive:
        sizes = {name: archive.members[name].file_size for name in names if name in archive.members}
        return [archive.read(name) if sizes.get(name, LARGEST_STAMP + 1) <= LARGEST_STAMP else None for name in names]
