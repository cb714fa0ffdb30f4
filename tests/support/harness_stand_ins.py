"""As much of Android's and androidx.test's classes as our app for device farms uses, to compile it against."""

from pathlib import Path
from typing import Final

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
