package ortrim.harness;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/** Prints a folder into the device's log, for farms that bring back nothing else. */
final class LogTransport {
    /** A multiple of three, so that the parts join to one base64 text; 3,000 letters fit into a line of the log. */
    private static final int PART_BYTES = 2250;
    private static final long MOST_BYTES = 32L << 20;

    /** Android drops lines of programs that log faster than the log is read. */
    private static final long PAUSE_MILLISECONDS = 2;

    private LogTransport() {}

    static void print(File folder, File temporary, Platform platform) throws IOException, InterruptedException {
        try (ZipOutputStream zip = new ZipOutputStream(new FileOutputStream(temporary))) {
            add(zip, folder, "");
        }
        long bytes = temporary.length();
        if (bytes > MOST_BYTES) {
            platform.log("ortrim-result-too-large " + bytes);
            return;
        }
        long total = (bytes + PART_BYTES - 1) / PART_BYTES;
        try (InputStream in = new FileInputStream(temporary)) {
            for (long part = 1; part <= total; part++) {
                platform.log("ortrim-result " + part + "/" + total + " " + platform.base64(next(in)));
                Thread.sleep(PAUSE_MILLISECONDS);
            }
        }
        platform.log("ortrim-result-end " + Files.sha256(temporary) + " " + bytes);
    }

    private static void add(ZipOutputStream zip, File file, String name) throws IOException {
        for (File each : Files.listed(file)) {
            String path = name.isEmpty() ? each.getName() : name + "/" + each.getName();
            if (each.isDirectory()) {
                add(zip, each, path);
            } else {
                zip.putNextEntry(new ZipEntry(path));
                Files.pour(new FileInputStream(each), zip);
                zip.closeEntry();
            }
        }
    }

    private static byte[] next(InputStream in) throws IOException {
        byte[] part = new byte[PART_BYTES];
        int filled = 0;
        for (int count = in.read(part); count > 0; count = in.read(part, filled, PART_BYTES - filled)) {
            filled += count;
        }
        return Arrays.copyOf(part, filled);
    }
}
