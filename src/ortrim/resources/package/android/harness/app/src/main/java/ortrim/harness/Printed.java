package ortrim.harness;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Reads what a program prints to its end and keeps the last of it; a program without an end is killed. */
final class Printed extends Thread {
    private static final int KEPT_BYTES = 16 << 10;

    private final InputStream stream;
    private final long most;
    private final Process process;
    private final ByteArrayOutputStream kept = new ByteArrayOutputStream();
    private long bytes;

    Printed(InputStream stream, long most, Process process) {
        this.stream = stream;
        this.most = most;
        this.process = process;
        setDaemon(true);
        start();
    }

    @Override
    public void run() {
        byte[] buffer = new byte[KEPT_BYTES];
        try {
            for (int count = stream.read(buffer); count >= 0; count = stream.read(buffer)) {
                keep(buffer, count);
                if (endless()) {
                    RunnerProcess.kill(process);
                    return;
                }
            }
        } catch (IOException closed) {
            // The program was killed, and the system closed its end.
        }
    }

    synchronized boolean endless() {
        return bytes > most;
    }

    synchronized String last() {
        byte[] all = kept.toByteArray();
        byte[] last = Arrays.copyOfRange(all, Math.max(0, all.length - KEPT_BYTES), all.length);
        return new String(last, StandardCharsets.UTF_8);
    }

    private synchronized void keep(byte[] buffer, int count) {
        bytes += count;
        if (kept.size() > KEPT_BYTES) {
            byte[] before = kept.toByteArray();
            kept.reset();
            kept.write(before, before.length - KEPT_BYTES, KEPT_BYTES);
        }
        kept.write(buffer, 0, count);
    }
}
