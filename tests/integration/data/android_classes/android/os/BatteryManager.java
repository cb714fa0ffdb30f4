package android.os;

public class BatteryManager {
    public static final String EXTRA_PRESENT = "";
    public static final String EXTRA_TEMPERATURE = "";
}
