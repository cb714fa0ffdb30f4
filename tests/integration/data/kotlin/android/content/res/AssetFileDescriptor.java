package android.content.res;

import java.io.Closeable;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;

/** A part of a file. */
public final class AssetFileDescriptor implements Closeable {
  private final FileInputStream file;
  private final long offset;

  AssetFileDescriptor(FileInputStream file, long offset) {
    this.file = file;
    this.offset = offset;
  }

  public FileDescriptor getFileDescriptor() throws IOException {
    return file.getFD();
  }

  public long getStartOffset() {
    return offset;
  }

  public long getDeclaredLength() throws IOException {
    return file.getChannel().size() - offset;
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
