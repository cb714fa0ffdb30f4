package ortrim.harness;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/** Files and their digests. Android has java.nio.file and java.util.Base64 since API level 26 only. */
final class Files {
    private static final int BUFFER_BYTES = 1 << 16;

    private Files() {}

    /** Copies a stream to its end and closes both; returns the SHA-256 of what went through, in hexadecimal. */
    static String copy(InputStream source, OutputStream destination) throws IOException {
        try (OutputStream out = destination) {
            return pour(source, out);
        }
    }

    /** Copies a stream to its end and closes that alone; returns the SHA-256 of what went through. */
    static String pour(InputStream source, OutputStream destination) throws IOException {
        MessageDigest digest = sha256();
        byte[] buffer = new byte[BUFFER_BYTES];
        try (InputStream in = source) {
            for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
                digest.update(buffer, 0, count);
                destination.write(buffer, 0, count);
            }
        }
        return hexadecimal(digest.digest());
    }

    static byte[] read(InputStream source) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        copy(source, bytes);
        return bytes.toByteArray();
    }

    /** Returns a text file's content; empty for what is absent or may not be read. */
    static String text(File file) {
        try {
            return new String(read(new FileInputStream(file)), StandardCharsets.UTF_8);
        } catch (IOException unreadable) {
            return "";
        }
    }

    static String sha256(File file) throws IOException {
        return copy(new FileInputStream(file), new ByteArrayOutputStream(0) {
            @Override
            public void write(byte[] bytes, int from, int count) {}
        });
    }

    static String sha256(byte[] bytes) {
        return hexadecimal(sha256().digest(bytes));
    }

    /** Writes a file so that whoever pulls it sees the old content or the new. */
    static void write(File file, byte[] content) throws IOException {
        File temporary = new File(file.getPath() + ".part");
        try (OutputStream out = new FileOutputStream(temporary)) {
            out.write(content);
        }
        if (!temporary.renameTo(file)) {
            throw new IOException("cannot rename " + temporary);
        }
    }

    /** Copies a file, or a folder with all that is in it; links are followed nowhere. */
    static void copyAll(File source, File destination) throws IOException {
        if (!source.isDirectory()) {
            copy(new FileInputStream(source), new FileOutputStream(destination));
            return;
        }
        makeFolder(destination);
        for (File each : listed(source)) {
            copyAll(each, new File(destination, each.getName()));
        }
    }

    static void makeFolder(File folder) throws IOException {
        if (!folder.isDirectory() && !folder.mkdirs() && !folder.isDirectory()) {
            throw new IOException("cannot make the folder " + folder);
        }
    }

    static void remove(File file) {
        for (File each : listed(file)) {
            remove(each);
        }
        file.delete();
    }

    static File[] listed(File folder) {
        File[] files = folder.listFiles();
        return files == null ? new File[0] : files;
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static String hexadecimal(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte each : bytes) {
            text.append(Character.forDigit(each >> 4 & 15, 16)).append(Character.forDigit(each & 15, 16));
        }
        return text.toString();
    }
}
