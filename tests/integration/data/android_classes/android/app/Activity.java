package android.app;

public class Activity extends android.content.Context {
    protected void onCreate(android.os.Bundle state) {}
    public android.view.Window getWindow() { return null; }
}
