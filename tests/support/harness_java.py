"""The app for device farms on this machine: compiled by the real compiler, packed as Gradle packs it, run by Java."""

import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from android_root import SUITE
from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.command import Completed, run
from ortrim.base.files import shipped_folder
from ortrim.devices.farms.farm import FarmJob, FarmRun, Tell
from ortrim.devices.harness import HarnessContent
from ortrim.devices.harness_projects import APK, TEST_APK, find_apks, make_harness
from ortrim.errors import SourcesError
from ortrim.platforms.android.jni import Jdk
from ortrim.sources.debian import DebianPackage, PackageRequest, fetch_packages

DATA: Final = Path(__file__).parents[1] / "integration" / "data"
SOURCES: Final = shipped_folder("package") / "android" / "harness" / "app" / "src"
ON_ANDROID: Final = ("AndroidPlatform.java", "StartActivity.java")
PACKAGES: Final = ("libandroid-json-java", "junit4")
OLD_SUITE: Final = "bullseye"
LAYOUT: Final = "1"
ABI: Final = "x86_64"


def java_root() -> Path:
    """Return the folder that the packages were unpacked into; made when the cache has none."""
    folder = cache_folder("test-roots") / f"{SUITE}-harness-java-{LAYOUT}"
    publish_folder(folder, lambda temporary: _fetch(temporary, PACKAGES, SUITE))
    return folder


def jar(name: str) -> Path:
    return java_root() / "usr" / "share" / "java" / name


def plain_sources() -> list[Path]:
    """Return the Java files that know nothing of Android."""
    return sorted(path for path in (SOURCES / "main" / "java").rglob("*.java") if path.name not in ON_ANDROID)


@dataclass(frozen=True, kw_only=True)
class JavaHarness:
    """The app's classes, and the virtual machine that runs them."""

    java: Path
    classes: Path

    def words(self, *folders: Path, thermal: int = -1) -> tuple[str | Path, ...]:
        """Return the command line that carries out what lies in the assets: see `JvmPlatform.java` for the folders."""
        classpath = f"{self.classes}{os.pathsep}{jar('com.android.json.jar')}"
        return (self.java, "-classpath", classpath, f"-Dthermal={thermal}", "ortrim.harness.JvmPlatform", *folders)

    def run(self, *folders: Path, thermal: int = -1) -> Completed:
        return run(self.words(*folders, thermal=thermal), timeout_seconds=300)


def compiled_harness(jdk: Jdk, folder: Path) -> JavaHarness:
    """Compile what a plain Java virtual machine can run, for the version of Java that Android has."""
    stand_in = DATA / "harness" / "ortrim" / "harness" / "JvmPlatform.java"
    words = ("-Xlint:all,-options", "-Werror", "--release", "8", "-classpath", jar("com.android.json.jar"))
    done = run((jdk.javac, *words, "-d", folder, *plain_sources(), stand_in))
    assert done.returncode == 0, done.stdout + done.stderr
    return JavaHarness(java=jdk.javac.with_name("java"), classes=folder)


def compile_for_android(jdk: Jdk, folder: Path, android: Path | None = None) -> Completed:
    """Compile everything, the instrumentation too, against Android's own classes, or stand-ins for them."""
    api = ("-source", "8", "-target", "8", "-bootclasspath", android) if android else ("--release", "8")
    libraries = ("junit4.jar",) if android else ("junit4.jar", "com.android.json.jar")
    classpath = os.pathsep.join(str(jar(name)) for name in libraries)
    words = ("-Xlint:all,-options,-path", *api, "-classpath", classpath, "-d", folder / "classes")
    stand_ins = DATA / "android_classes" / ("androidx" if android else "")
    return run((jdk.javac, *words, *sorted(SOURCES.rglob("*.java")), *sorted(stand_ins.rglob("*.java"))))


def android_jar() -> Path | None:
    """Return Android 6's classes, of API level 23; None when Debian's mirrors have that old suite no more."""
    folder = cache_folder("test-roots") / f"{OLD_SUITE}-android-23-{LAYOUT}"
    try:
        publish_folder(folder, lambda temporary: _fetch(temporary, ("libandroid-23-java",), OLD_SUITE))
    except SourcesError:
        return None
    return folder / "usr" / "lib" / "android-sdk" / "platforms" / "android-23" / "android.jar"


class JavaFarm:
    """A farm whose phone is this machine: it installs the app from its APK and runs what the instrumentation would."""

    name = "firebase"

    def __init__(self, harness: JavaHarness, folder: Path) -> None:
        self.harness = harness
        self.folder = folder
        self.thermal = 0
        self.printed = ""

    def make_apks(self, content: HarnessContent) -> tuple[Path, Path]:
        project = make_harness(content, self.folder / "project", abi=ABI, api=24)
        pack(project)
        return find_apks(project)

    def run(self, job: FarmJob, tell: Tell) -> FarmRun:
        tell("running")
        assets, native = install(job.app, self.folder / "phone")
        done = self.harness.run(assets, native, self.folder / "phone" / "work", job.destination, thermal=self.thermal)
        assert done.returncode in {0, 1}, done.stderr
        self.printed = done.stdout
        return FarmRun(device="", folder=job.destination, log=None, url="")


def pack(project: Path) -> None:
    main = project / "app" / "src" / "main"
    for name in (APK, TEST_APK):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(project / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.write(main / "AndroidManifest.xml", "AndroidManifest.xml")
            for folder, inside in ((main / "assets", "assets"), (main / "jniLibs", "lib")):
                for path in sorted(folder.rglob("*")) if name == APK else ():
                    archive.write(path, f"{inside}/{path.relative_to(folder).as_posix()}")


def install(apk: Path, folder: Path) -> tuple[Path, Path]:
    """Lay an app out as the installer does: its assets, and its libraries, which alone can be executed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with zipfile.ZipFile(apk) as archive:
        archive.extractall(folder)
    native = folder / "lib" / ABI
    for path in native.iterdir():
        path.chmod(0o755)
    return folder / "assets", native


def _fetch(folder: Path, names: tuple[str, ...], suite: str) -> None:
    def accept(_package: DebianPackage, file: Path) -> None:
        done = run(("dpkg-deb", "--extract", file, folder))
        assert done.returncode == 0, done.stderr

    fetch_packages(PackageRequest(names=names, suite=suite, architecture="amd64"), accept)
