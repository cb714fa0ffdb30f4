package android.content;

public class Context {
    public static final String POWER_SERVICE = "power";
    public android.content.res.AssetManager getAssets() { return null; }
    public android.content.pm.ApplicationInfo getApplicationInfo() { return null; }
    public java.io.File getFilesDir() { return null; }
    public java.io.File getExternalFilesDir(String type) { return null; }
    public Object getSystemService(String name) { return null; }
    public Intent registerReceiver(BroadcastReceiver receiver, IntentFilter filter) { return null; }
    public void startActivity(Intent intent) {}
}
