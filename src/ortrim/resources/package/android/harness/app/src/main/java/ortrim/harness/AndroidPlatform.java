package ortrim.harness;

import android.app.Instrumentation;
import android.content.Context;
import android.content.Intent;
import android.content.IntentFilter;
import android.os.BatteryManager;
import android.os.Build;
import android.os.Bundle;
import android.os.PowerManager;
import android.system.Os;
import android.system.OsConstants;
import android.text.TextUtils;
import android.util.Base64;
import android.util.Log;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** An Android device, seen from the app. */
public final class AndroidPlatform implements Platform {
    private static final String TAG = "ORTRIM";

    /** What farms name the folder by that they bring back; androidx.test and Gradle know it as well. */
    private static final String OUTPUT_ARGUMENT = "additionalTestOutputDir";

    /** What test runners take for news of a test under way, and no test's end. */
    private static final int IN_PROGRESS = 2;

    private final Instrumentation instrumentation;
    private final Context context;
    private final Bundle arguments;

    public AndroidPlatform(Instrumentation instrumentation, Bundle arguments) {
        this.instrumentation = instrumentation;
        this.context = instrumentation.getTargetContext();
        this.arguments = arguments;
    }

    @Override
    public InputStream open(String asset) throws IOException {
        return context.getAssets().open(asset);
    }

    @Override
    public File nativeFolder() {
        return new File(context.getApplicationInfo().nativeLibraryDir);
    }

    @Override
    public File workFolder() {
        return new File(context.getFilesDir(), "ortrim");
    }

    @Override
    public List<File> resultFolders() {
        List<File> folders = new ArrayList<>();
        String asked = arguments.getString(OUTPUT_ARGUMENT);
        if (asked != null && !asked.isEmpty()) {
            folders.add(new File(asked));
        }
        File external = context.getExternalFilesDir("ortrim");
        if (external != null) {
            folders.add(external);
        }
        folders.add(new File(context.getFilesDir(), "ortrim-results"));
        return folders;
    }

    @Override
    public Map<String, String> facts() {
        Map<String, String> facts = new LinkedHashMap<>();
        facts.put("system", System.getProperty("os.name", ""));
        facts.put("release", System.getProperty("os.version", ""));
        facts.put("machine", System.getProperty("os.arch", ""));
        facts.put("page", String.valueOf(Os.sysconf(OsConstants._SC_PAGESIZE)));
        facts.put("cpu", Files.text(new File("/proc/cpuinfo")));
        facts.put("memory", Files.text(new File("/proc/meminfo")));
        facts.put("present", Files.text(new File("/sys/devices/system/cpu/present")));
        facts.put("properties", properties());
        facts.put("thermal", "Thermal Status: " + thermalStatus());
        facts.put("battery", battery());
        return facts;
    }

    /** By name, since `getCurrentThermalStatus` is there from API level 29 on. */
    @Override
    public int thermalStatus() {
        try {
            PowerManager power = (PowerManager) context.getSystemService(Context.POWER_SERVICE);
            return (Integer) PowerManager.class.getMethod("getCurrentThermalStatus").invoke(power);
        } catch (ReflectiveOperationException older) {
            return -1;
        }
    }

    @Override
    public String base64(byte[] bytes) {
        return Base64.encodeToString(bytes, Base64.NO_WRAP);
    }

    @Override
    public void progress(String line) {
        Bundle status = new Bundle();
        status.putString("stream", "\n" + line);
        instrumentation.sendStatus(IN_PROGRESS, status);
        log(line);
    }

    @Override
    public void log(String line) {
        Log.i(TAG, line);
    }

    /** As `getprop` prints them. */
    private static String properties() {
        Map<String, String> named = new LinkedHashMap<>();
        named.put("ro.product.manufacturer", Build.MANUFACTURER);
        named.put("ro.product.model", Build.MODEL);
        named.put("ro.product.cpu.abilist", TextUtils.join(",", Build.SUPPORTED_ABIS));
        named.put("ro.build.version.release", Build.VERSION.RELEASE);
        named.put("ro.build.version.sdk", String.valueOf(Build.VERSION.SDK_INT));
        named.put("ro.build.fingerprint", Build.FINGERPRINT);
        named.put("ro.hardware", Build.HARDWARE);
        named.put("ro.board.platform", Build.BOARD);
        named.put("ro.soc.manufacturer", since31("SOC_MANUFACTURER"));
        named.put("ro.soc.model", since31("SOC_MODEL"));
        StringBuilder text = new StringBuilder();
        for (Map.Entry<String, String> each : named.entrySet()) {
            text.append('[').append(each.getKey()).append("]: [").append(each.getValue()).append("]\n");
        }
        return text.toString();
    }

    /** By name, since the field is there from API level 31 on. */
    private static String since31(String field) {
        try {
            return String.valueOf(Build.class.getField(field).get(null));
        } catch (ReflectiveOperationException older) {
            return "";
        }
    }

    private String battery() {
        Intent state = context.registerReceiver(null, new IntentFilter(Intent.ACTION_BATTERY_CHANGED));
        if (state == null || !state.hasExtra(BatteryManager.EXTRA_TEMPERATURE)) {
            return "";
        }
        return "  present: " + state.getBooleanExtra(BatteryManager.EXTRA_PRESENT, true)
                + "\n  temperature: " + state.getIntExtra(BatteryManager.EXTRA_TEMPERATURE, 0);
    }
}
