package android.app;

public class Instrumentation {
    public android.content.Context getTargetContext() { return null; }
    public void sendStatus(int code, android.os.Bundle results) {}
}
