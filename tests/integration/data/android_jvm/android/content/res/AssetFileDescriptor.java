package android.content.res;

import android.os.ParcelFileDescriptor;
import java.io.Closeable;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;

/** A part of a file. */
public final class AssetFileDescriptor implements Closeable {
    private final FileInputStream file;
    private final long offset;
    private final long length;

    AssetFileDescriptor(FileInputStream file, long offset, long length) {
        this.file = file;
        this.offset = offset;
        this.length = length;
    }

    public FileDescriptor getFileDescriptor() throws IOException {
        return file.getFD();
    }

    public ParcelFileDescriptor getParcelFileDescriptor() throws IOException {
        return new ParcelFileDescriptor(file.getFD());
    }

    public long getStartOffset() {
        return offset;
    }

    public long getDeclaredLength() {
        return length;
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
