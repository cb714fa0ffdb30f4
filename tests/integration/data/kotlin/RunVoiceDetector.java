import android.content.Context;
import android.content.res.AssetManager;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Paths;

/** An app with the guide's class: RunVoiceDetector APK NAME OFFSET SAMPLES FRAME prints the probability of each frame. */
public final class RunVoiceDetector {
  public static void main(String[] words) throws Exception {
    AssetManager assets = new AssetManager(words[0], words[1], Long.parseLong(words[2]));
    ByteBuffer samples = ByteBuffer.wrap(Files.readAllBytes(Paths.get(words[3]))).order(ByteOrder.LITTLE_ENDIAN);
    try (VoiceDetector detector = new VoiceDetector(new Context(assets))) {
      while (samples.hasRemaining()) {
        float[] frame = new float[Integer.parseInt(words[4])];
        samples.asFloatBuffer().get(frame);
        samples.position(samples.position() + 4 * frame.length);
        System.out.println("probability " + detector.probability(frame));
      }
    }
  }
}
