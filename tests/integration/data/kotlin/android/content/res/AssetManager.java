package android.content.res;

import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;

/** An app with one asset, which lies uncompressed in its APK from some offset to the end. */
public final class AssetManager {
  private final String apk;
  private final String name;
  private final long offset;

  public AssetManager(String apk, String name, long offset) {
    this.apk = apk;
    this.name = name;
    this.offset = offset;
  }

  public AssetFileDescriptor openFd(String asked) throws IOException {
    if (!asked.equals(name)) {
      throw new FileNotFoundException(asked);
    }
    return new AssetFileDescriptor(new FileInputStream(apk), offset);
  }
}
