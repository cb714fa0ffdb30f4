package android.app;

/** As much of Android's class as an instrumentation uses. */
public final class Activity {
    public static final int RESULT_OK = -1;
}
