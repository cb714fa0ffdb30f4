package ortrim.harness;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** The folder that is brought back. It is written after each run, so that a killed app leaves what was done. */
final class Results {
    private static final String FILE = "results.json";
    private static final String RUNS = "runs";

    final File folder;
    private final JSONObject json = new JSONObject();
    private final JSONArray runs = new JSONArray();

    /** Begins with the digest of the requests, by which these results are told from older ones. */
    Results(List<File> folders, String requestsSha256) throws IOException, JSONException {
        json.put("schema", "ortrim-results/1")
                .put("requests_sha256", requestsSha256)
                .put("problem", "")
                .put("complete", false)
                .put("runs", runs);
        folder = firstWritable(folders);
    }

    void facts(String key, Map<String, String> facts) throws IOException, JSONException {
        json.put(key, new JSONObject(facts));
        write();
    }

    /** Adds a run, and copies what it left. */
    void add(JSONObject run, File left) throws IOException, JSONException {
        File destination = new File(new File(folder, RUNS), String.format(Locale.ROOT, "%03d", runs.length()));
        Files.remove(destination);
        Files.copyAll(left, destination);
        runs.put(run);
        write();
    }

    void problem(String text) throws IOException, JSONException {
        json.put("problem", text);
        write();
    }

    void complete() throws IOException, JSONException {
        json.put("complete", true);
        write();
    }

    private File firstWritable(List<File> folders) throws IOException {
        IOException last = new IOException("there is no folder for results");
        for (File each : folders) {
            try {
                Files.makeFolder(each);
                Files.remove(new File(each, RUNS));
                Files.write(new File(each, FILE), bytes());
                return each;
            } catch (IOException error) {
                last = error;
            }
        }
        throw last;
    }

    private void write() throws IOException {
        Files.write(new File(folder, FILE), bytes());
    }

    private byte[] bytes() {
        return json.toString().getBytes(StandardCharsets.UTF_8);
    }
}
