package ortrim.harness;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.json.JSONException;

/** Carries out the requests one after the other and leaves their results; what they say is ortrim's to judge. */
public final class Harness {
    private final Platform platform;
    private final Layout layout;

    private Harness(Platform platform) {
        this.platform = platform;
        layout = new Layout(platform);
    }

    /** Returns why something could not be carried out; nothing when all was, whatever the runs ended with. */
    public static String carryOut(Platform platform) throws IOException, JSONException, InterruptedException {
        return new Harness(platform).carryOut();
    }

    private String carryOut() throws IOException, JSONException, InterruptedException {
        byte[] document = Files.read(platform.open(Requests.ASSET));
        Results results = new Results(platform.resultFolders(), Files.sha256(document));
        platform.log("results go to " + results.folder);
        results.facts("facts", platform.facts());
        String problem;
        try {
            problem = run(new Requests(new String(document, StandardCharsets.UTF_8)), results);
        } catch (IOException | JSONException error) {
            problem = String.valueOf(error.getMessage());
        }
        results.problem(problem);
        results.facts("facts_after", platform.facts());
        results.complete();
        layout.clear();
        File zip = new File(platform.workFolder(), "results.zip");
        LogTransport.print(results.folder, zip, platform);
        Files.remove(zip);
        return problem;
    }

    private String run(Requests requests, Results results) throws IOException, JSONException, InterruptedException {
        layout.prepare(requests);
        String problem = "";
        long begin = System.nanoTime();
        for (int n = 0; n < requests.runs.size(); n++) {
            Requests.Run request = requests.runs.get(n);
            double left = requests.seconds - (System.nanoTime() - begin) / 1e9;
            if (left <= 0) {
                return "after " + n + " of " + requests.runs.size() + " runs their time was used up";
            }
            platform.progress("run " + (n + 1) + " of " + requests.runs.size());
            Ended ended = RunnerProcess.run(layout.words(request), layout.run, Math.min(left, request.seconds));
            results.add(ended.json(platform.thermalStatus()), layout.run);
            if (ended.how.equals(Ended.NOT_STARTED)) {
                problem = ended.stderr;
            }
        }
        return problem;
    }
}
