package android.system;

public final class OsConstants { public static final int _SC_PAGESIZE = 0; }
