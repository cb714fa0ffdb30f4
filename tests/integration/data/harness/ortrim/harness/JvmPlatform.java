package ortrim.harness;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A plain Java virtual machine in the place of Android: JvmPlatform ASSETS NATIVE WORK RESULTS... */
public final class JvmPlatform implements Platform {
  private final String[] words;

  private JvmPlatform(String[] words) {
    this.words = words;
  }

  public static void main(String[] words) throws Exception {
    String problem = Harness.carryOut(new JvmPlatform(words));
    System.err.println(problem);
    System.exit(problem.isEmpty() ? 0 : 1);
  }

  @Override
  public InputStream open(String asset) throws IOException {
    return new FileInputStream(new File(words[0], asset));
  }

  @Override
  public File nativeFolder() {
    return new File(words[1]);
  }

  @Override
  public File workFolder() {
    return new File(words[2]);
  }

  @Override
  public List<File> resultFolders() {
    List<File> folders = new ArrayList<>();
    for (int n = 3; n < words.length; n++) {
      folders.add(new File(words[n]));
    }
    return folders;
  }

  @Override
  public Map<String, String> facts() {
    Map<String, String> facts = new LinkedHashMap<>();
    facts.put("system", System.getProperty("os.name"));
    facts.put("release", System.getProperty("os.version"));
    facts.put("machine", System.getProperty("os.arch"));
    facts.put("cpu", Files.text(new File("/proc/cpuinfo")));
    facts.put("memory", Files.text(new File("/proc/meminfo")));
    facts.put("present", Files.text(new File("/sys/devices/system/cpu/present")));
    facts.put("properties", Files.text(new File("/nowhere")));
    return facts;
  }

  @Override
  public int thermalStatus() {
    return Integer.getInteger("thermal", -1);
  }

  @Override
  public String base64(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }

  @Override
  public void progress(String line) {
    log("progress: " + line);
  }

  @Override
  public void log(String line) {
    System.out.println("11-21 12:00:00.000  1234  1256 I ORTRIM  : " + line);
  }
}
