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

CLASSES: Final = {
    "android/app/Activity": """
        public class Activity extends android.content.Context {
            protected void onCreate(android.os.Bundle state) {}
            public android.view.Window getWindow() { return null; }
        }""",
    "android/app/Instrumentation": """
        public class Instrumentation {
            public android.content.Context getTargetContext() { return null; }
            public void sendStatus(int code, android.os.Bundle results) {}
        }""",
    "android/content/Context": """
        public class Context {
            public static final String POWER_SERVICE = "power";
            public android.content.res.AssetManager getAssets() { return null; }
            public android.content.pm.ApplicationInfo getApplicationInfo() { return null; }
            public java.io.File getFilesDir() { return null; }
            public java.io.File getExternalFilesDir(String type) { return null; }
            public Object getSystemService(String name) { return null; }
            public Intent registerReceiver(BroadcastReceiver receiver, IntentFilter filter) { return null; }
            public void startActivity(Intent intent) {}
        }""",
    "android/content/BroadcastReceiver": "public abstract class BroadcastReceiver {}",
    "android/content/Intent": """
        public class Intent {
            public static final String ACTION_BATTERY_CHANGED = "";
            public static final int FLAG_ACTIVITY_NEW_TASK = 0;
            public Intent(Context context, Class<?> type) {}
            public Intent addFlags(int flags) { return this; }
            public boolean hasExtra(String name) { return false; }
            public boolean getBooleanExtra(String name, boolean otherwise) { return otherwise; }
            public int getIntExtra(String name, int otherwise) { return otherwise; }
        }""",
    "android/content/IntentFilter": "public class IntentFilter { public IntentFilter(String action) {} }",
    "android/content/pm/ApplicationInfo": "public class ApplicationInfo { public String nativeLibraryDir; }",
    "android/content/res/AssetManager": """
        public final class AssetManager {
            public java.io.InputStream open(String name) throws java.io.IOException { return null; }
        }""",
    "android/os/BatteryManager": """
        public class BatteryManager {
            public static final String EXTRA_PRESENT = "";
            public static final String EXTRA_TEMPERATURE = "";
        }""",
    "android/os/Build": """
        public class Build {
            public static final String BOARD = "", FINGERPRINT = "", HARDWARE = "", MANUFACTURER = "", MODEL = "";
            public static final String[] SUPPORTED_ABIS = {};
            public static class VERSION {
                public static final String RELEASE = "";
                public static final int SDK_INT = 0;
            }
        }""",
    "android/os/Bundle": """
        public final class Bundle {
            public String getString(String key) { return null; }
            public void putString(String key, String value) {}
        }""",
    "android/os/PowerManager": "public final class PowerManager {}",
    "android/system/Os": "public final class Os { public static long sysconf(int name) { return 0; } }",
    "android/system/OsConstants": "public final class OsConstants { public static final int _SC_PAGESIZE = 0; }",
    "android/text/TextUtils": """
        public class TextUtils {
            public static String join(CharSequence delimiter, Object[] tokens) { return null; }
        }""",
    "android/util/Base64": """
        public class Base64 {
            public static final int NO_WRAP = 0;
            public static String encodeToString(byte[] input, int flags) { return null; }
        }""",
    "android/util/Log": "public final class Log { public static int i(String tag, String message) { return 0; } }",
    "android/view/Window": "public abstract class Window { public void addFlags(int flags) {} }",
    "android/view/WindowManager": """
        public interface WindowManager {
            class LayoutParams { public static final int FLAG_KEEP_SCREEN_ON = 0; }
        }""",
    "androidx/test/platform/app/InstrumentationRegistry": """
        public final class InstrumentationRegistry {
            public static android.app.Instrumentation getInstrumentation() { return null; }
            public static android.os.Bundle getArguments() { return null; }
        }""",
}


def write_stand_ins(folder: Path, begin: str = "") -> list[Path]:
    files = []
    for name, declaration in CLASSES.items():
        if not name.startswith(begin):
            continue
        path = folder / f"{name}.java"
        path.parent.mkdir(parents=True, exist_ok=True)
        package = name.rpartition("/")[0].replace("/", ".")
        path.write_text(f"package {package};\n{declaration}\n")
        files.append(path)
    return files


STAND_INS: Final = Path(__file__).parents[1] / "integration" / "data" / "harness"
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
    stand_in = STAND_INS / "ortrim" / "harness" / "JvmPlatform.java"
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
    stand_ins = write_stand_ins(folder / "stand-ins", "androidx/" if android else "")
    return run((jdk.javac, *words, *sorted(SOURCES.rglob("*.java")), *stand_ins))


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
