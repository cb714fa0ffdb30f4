package androidx.test.platform.app;

public final class InstrumentationRegistry {
    public static android.app.Instrumentation getInstrumentation() { return null; }
    public static android.os.Bundle getArguments() { return null; }
}
