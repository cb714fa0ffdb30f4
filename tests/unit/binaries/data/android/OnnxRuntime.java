package ai.onnxruntime;

/** Stands in for upstream's class of this name in tests: compiled by javac 17 with --release 8. */
final class OnnxRuntime {
  private static final long LONG = 5_000_000_000L;

  static native int initialiseAPIBase();

  static native void overloaded(int number);

  static native void overloaded(String[] under_scored);

  static long plain() {
    return LONG;
  }
}
