package android.os;

import java.io.FileDescriptor;
import java.lang.reflect.Field;

/** A file by its number, which Java keeps to itself: needs `--add-opens java.base/java.io=ALL-UNNAMED`. */
public final class ParcelFileDescriptor {
    private final FileDescriptor file;

    public ParcelFileDescriptor(FileDescriptor file) {
        this.file = file;
    }

    public int getFd() {
        try {
            Field number = FileDescriptor.class.getDeclaredField("fd");
            number.setAccessible(true);
            return number.getInt(file);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
