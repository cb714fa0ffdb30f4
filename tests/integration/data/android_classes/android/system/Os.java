package android.system;

public final class Os { public static long sysconf(int name) { return 0; } }
