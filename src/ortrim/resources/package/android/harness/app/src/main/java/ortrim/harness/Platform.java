package ortrim.harness;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.Map;

/** The machine below the runs: Android in the app, a plain Java virtual machine in ortrim's own tests. */
public interface Platform {
    /** Opens a file that lies in the app's assets. */
    InputStream open(String asset) throws IOException;

    /** Where the installer put the app's libraries, the only place from which an app may start programs. */
    File nativeFolder();

    /** A folder that is the app's alone. */
    File workFolder();

    /** Where the results may go; the first that can be written is taken. */
    List<File> resultFolders();

    /** What the machine says of itself, as ortrim's survey over adb names and writes it. */
    Map<String, String> facts();

    /** Android's thermal status, from 0 to 6; -1 when it is not known. */
    int thermalStatus();

    String base64(byte[] bytes);

    /** Says how far it is, in the log and to who started the instrumentation: a farm ends one that is silent. */
    void progress(String line);

    /** Writes a line into the device's log. */
    void log(String line);
}
