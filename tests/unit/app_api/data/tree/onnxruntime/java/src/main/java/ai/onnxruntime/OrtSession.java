package ai.onnxruntime;
public class OrtSession implements AutoCloseable {
  static { OnnxRuntime.init(); System.out.println(buildInfo()); }
  private final long handle = makeHandle(OnnxRuntime.ortApiHandle);
  public Result run(Map<String, OnnxTensor> inputs) throws OrtException { return run(handle, inputs.size()); }
  public long getInputCount() { return countInputs(handle); }
  public void startProfiling(String path) { enableProfiling(path); }
  @Override public void close() { closeSession(handle); }
  private static native long makeHandle(long api);
}
