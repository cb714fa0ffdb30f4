package android.os;

public final class PowerManager {}
