package android.os;

/** What an instrumentation is given and gives. */
public final class Bundle {}
