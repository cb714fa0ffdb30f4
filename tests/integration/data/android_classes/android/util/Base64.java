package android.util;

public class Base64 {
    public static final int NO_WRAP = 0;
    public static String encodeToString(byte[] input, int flags) { return null; }
}
