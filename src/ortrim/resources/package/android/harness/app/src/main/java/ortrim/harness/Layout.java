package ortrim.harness;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Where things lie on the device, and that they are what was sent: Gradle strips libraries when it can. */
final class Layout {
    private final Platform platform;
    private final File files;

    /** Where a run writes, empty before it begins. */
    final File run;

    Layout(Platform platform) {
        this.platform = platform;
        files = new File(platform.workFolder(), "files");
        run = new File(platform.workFolder(), "run");
    }

    /** Brings everything into place. Throws IOException for what is absent, altered, or has no room. */
    void prepare(Requests requests) throws IOException {
        clear();
        for (Requests.Library library : requests.libraries) {
            File file = new File(platform.nativeFolder(), library.name);
            require(library.name, library.sha256, Files.sha256(file));
        }
        for (Requests.Content content : requests.contents) {
            File file = new File(files, content.path);
            Files.makeFolder(file.getParentFile());
            String found = Files.copy(platform.open(content.asset), new FileOutputStream(file));
            require(content.asset, content.sha256, found);
        }
    }

    /** Gives the next run its empty folder and returns its command line. */
    List<String> words(Requests.Run request) throws IOException {
        Files.remove(run);
        Files.makeFolder(new File(run, "outputs"));
        List<String> words = new ArrayList<>();
        for (String word : request.words) {
            words.add(word.replace("/@native", platform.nativeFolder().getPath())
                    .replace("/@files", files.getPath())
                    .replace("/@run", run.getPath()));
        }
        return words;
    }

    void clear() {
        Files.remove(files);
        Files.remove(run);
    }

    private static void require(String name, String expected, String found) throws IOException {
        if (!expected.equals(found)) {
            throw new IOException(name + " is not what was sent: SHA-256 " + found + ", not " + expected);
        }
    }
}
