package android.content;

public class Intent {
    public static final String ACTION_BATTERY_CHANGED = "";
    public static final int FLAG_ACTIVITY_NEW_TASK = 0;
    public Intent(Context context, Class<?> type) {}
    public Intent addFlags(int flags) { return this; }
    public boolean hasExtra(String name) { return false; }
    public boolean getBooleanExtra(String name, boolean otherwise) { return otherwise; }
    public int getIntExtra(String name, int otherwise) { return otherwise; }
}
