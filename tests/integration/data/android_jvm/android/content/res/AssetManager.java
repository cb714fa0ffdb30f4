package android.content.res;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** Assets in a folder; one that is opened by its descriptor lies in the midst of a file, as in an APK. */
public final class AssetManager {
    /** zipalign promises a multiple of four. */
    private static final int OFFSET = 4100;

    private final File folder;

    public AssetManager(File folder) {
        this.folder = folder;
    }

    public String[] list(String path) {
        return new File(folder, path).list();
    }

    public InputStream open(String name) throws IOException {
        return new FileInputStream(new File(folder, name));
    }

    public AssetFileDescriptor openFd(String name) throws IOException {
        byte[] content = Files.readAllBytes(new File(folder, name).toPath());
        byte[] apk = new byte[OFFSET + content.length + OFFSET];
        System.arraycopy(content, 0, apk, OFFSET, content.length);
        Path file = Files.createTempFile("app", ".apk");
        Files.write(file, apk);
        FileInputStream opened = new FileInputStream(file.toFile());
        Files.delete(file);
        return new AssetFileDescriptor(opened, OFFSET, content.length);
    }
}
