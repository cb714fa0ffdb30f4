package android.view;

public abstract class Window { public void addFlags(int flags) {} }
