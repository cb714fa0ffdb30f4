package ortrim.harness;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.util.HashSet;
import java.util.List;
import java.util.Map;

/** Runs the runner once, to its end or to its limit. */
final class RunnerProcess {
    /** The runner's report goes to a file: what it prints besides is little, unless a library logs in a circle. */
    private static final long MOST_PRINTED_BYTES = 64L << 20;
    private static final long LAST_WORDS_MILLISECONDS = 5_000;

    private RunnerProcess() {}

    static Ended run(List<String> words, File folder, double limitSeconds) throws InterruptedException {
        long begin = System.nanoTime();
        Process process;
        try {
            process = started(words, folder);
        } catch (IOException error) {
            return new Ended(Ended.NOT_STARTED, -1, "", String.valueOf(error.getMessage()), since(begin));
        }
        Printed stdout = new Printed(process.getInputStream(), MOST_PRINTED_BYTES, process);
        Printed stderr = new Printed(process.getErrorStream(), MOST_PRINTED_BYTES, process);
        Thread waiting = waitingFor(process);
        waiting.join(Math.max(1, (long) (limitSeconds * 1000)));
        boolean late = waiting.isAlive();
        double seconds = since(begin);
        if (late) {
            kill(process);
            waiting.join(LAST_WORDS_MILLISECONDS);
        }
        stdout.join(LAST_WORDS_MILLISECONDS);
        stderr.join(LAST_WORDS_MILLISECONDS);
        boolean endless = stdout.endless() || stderr.endless();
        String how = endless ? Ended.ENDLESS : late ? Ended.TIMEOUT : Ended.EXIT;
        int code = waiting.isAlive() ? -1 : process.exitValue();
        return new Ended(how, code, stdout.last(), stderr.last(), seconds);
    }

    private static Process started(List<String> words, File folder) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(words).directory(folder);
        Map<String, String> environment = builder.environment();
        for (String name : new HashSet<>(environment.keySet())) {
            // Nothing of the app's favours one library; Bionic looks for its own files by ANDROID_ROOT and the like.
            if (!name.startsWith("ANDROID_") && !name.equals("PATH")) {
                environment.remove(name);
            }
        }
        Process process = builder.start();
        process.getOutputStream().close();
        return process;
    }

    private static Thread waitingFor(final Process process) {
        Thread thread = new Thread() {
            @Override
            public void run() {
                try {
                    process.waitFor();
                } catch (InterruptedException interrupted) {
                    interrupt();
                }
            }
        };
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** By name, since Android has `destroyForcibly` from API level 26 on; before, `destroy` is a SIGKILL. */
    static void kill(Process process) {
        try {
            Process.class.getMethod("destroyForcibly").invoke(process);
        } catch (NoSuchMethodException | IllegalAccessException | InvocationTargetException older) {
            process.destroy();
        }
    }

    private static double since(long begin) {
        return (System.nanoTime() - begin) / 1e9;
    }
}
