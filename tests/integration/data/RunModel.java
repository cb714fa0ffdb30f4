import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.OrtSession.SessionOptions.OptLevel;
import ai.onnxruntime.TensorInfo;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Runs a model as an app does: RunModel copied|mapped MODEL FOLDER NAME:TYPE:SHAPE... reads FOLDER/NAME.raw for each input and
 * leaves each output there. Numbers are little-endian; a shape is written 2,1,128 and may be empty. A mapped model stays in
 * its file and is read in place, as docs/start/android.md shows it.
 */
public final class RunModel {
  public static void main(String[] words) throws Exception {
    Path model = Paths.get(words[1]);
    Path folder = Paths.get(words[2]);
    OrtEnvironment environment = OrtEnvironment.getEnvironment();
    System.out.println("version " + environment.getVersion());
    try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      options.setOptimizationLevel(OptLevel.NO_OPT);
      options.setIntraOpNumThreads(1);
      options.addConfigEntry("session.load_model_format", "ORT");
      if (words[0].equals("copied")) {
        try (OrtSession session = environment.createSession(Files.readAllBytes(model), options)) {
          run(environment, session, folder, Arrays.copyOfRange(words, 3, words.length));
        }
        return;
      }
      options.addConfigEntry("session.use_ort_model_bytes_directly", "1");
      try (FileChannel channel = FileChannel.open(model)) {
        ByteBuffer bytes = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
        try (OrtSession session = environment.createSession(bytes, options)) {
          run(environment, session, folder, Arrays.copyOfRange(words, 3, words.length));
        }
        System.out.println("mapped " + bytes.capacity()); // the bytes outlive the session
      }
    }
  }

  private static void run(OrtEnvironment environment, OrtSession session, Path folder, String[] inputs)
      throws Exception {
    Map<String, OnnxTensor> tensors = new HashMap<>();
    for (String input : inputs) {
      String[] parts = input.split(":", -1);
      tensors.put(parts[0], tensor(environment, folder.resolve(parts[0] + ".raw"), parts[1], shape(parts[2])));
    }
    try (OrtSession.Result result = session.run(tensors)) {
      for (String name : session.getOutputNames()) {
        OnnxTensor output = (OnnxTensor) result.get(name).get();
        TensorInfo info = output.getInfo();
        ByteBuffer bytes = output.getByteBuffer();
        byte[] content = new byte[bytes.remaining()];
        bytes.get(content);
        Files.write(folder.resolve(name + ".raw"), content);
        System.out.println("output " + name + " " + info.type + " " + Arrays.toString(info.getShape()));
      }
    }
  }

  private static OnnxTensor tensor(OrtEnvironment environment, Path file, String type, long[] shape)
      throws IOException, ai.onnxruntime.OrtException {
    byte[] content = Files.readAllBytes(file);
    ByteBuffer bytes = ByteBuffer.allocateDirect(content.length).order(ByteOrder.nativeOrder());
    bytes.put(content).rewind();
    if (type.equals("int64")) {
      return OnnxTensor.createTensor(environment, bytes.asLongBuffer(), shape);
    }
    return OnnxTensor.createTensor(environment, bytes.asFloatBuffer(), shape);
  }

  private static long[] shape(String text) {
    return text.isEmpty() ? new long[0] : Arrays.stream(text.split(",")).mapToLong(Long::parseLong).toArray();
  }
}
