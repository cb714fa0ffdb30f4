package ortrim.harness;

import org.json.JSONException;
import org.json.JSONObject;

/** How one run of the runner ended. */
final class Ended {
    static final String EXIT = "exit";
    static final String TIMEOUT = "timeout";
    static final String ENDLESS = "endless";
    static final String NOT_STARTED = "not-started";

    final String how;

    /** The exit code as a shell has it: 128 and the signal's number for a program that a signal ended. */
    final int code;
    final String stdout;
    final String stderr;
    final double seconds;

    Ended(String how, int code, String stdout, String stderr, double seconds) {
        this.how = how;
        this.code = code;
        this.stdout = stdout;
        this.stderr = stderr;
        this.seconds = seconds;
    }

    JSONObject json(int thermalStatus) throws JSONException {
        return new JSONObject()
                .put("how", how)
                .put("code", code)
                .put("stdout", stdout)
                .put("stderr", stderr)
                .put("seconds", seconds)
                .put("thermal", thermalStatus);
    }
}
