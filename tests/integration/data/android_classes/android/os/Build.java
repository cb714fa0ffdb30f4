package android.os;

public class Build {
    public static final String BOARD = "", FINGERPRINT = "", HARDWARE = "", MANUFACTURER = "", MODEL = "";
    public static final String[] SUPPORTED_ABIS = {};
    public static class VERSION {
        public static final String RELEASE = "";
        public static final int SDK_INT = 0;
    }
}
