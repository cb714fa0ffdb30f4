package ortrim.app;

import ai.onnxruntime.OrtException;
import android.app.Activity;
import android.app.Instrumentation;
import android.content.res.AssetFileDescriptor;
import android.content.res.AssetManager;
import android.os.Bundle;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;

/** Runs every case of each model of the AAR through Java and through C++, and leaves the outputs to be judged. */
public final class RunModels extends Instrumentation {
    static {
        System.loadLibrary("models");
    }

    @Override
    public void onCreate(Bundle arguments) {
        super.onCreate(arguments);
        start();
    }

    @Override
    public void onStart() {
        try {
            for (String model : getTargetContext().getAssets().list("requests")) {
                run(model);
            }
        } catch (IOException | OrtException error) {
            throw new IllegalStateException(error);
        }
        finish(Activity.RESULT_OK, new Bundle());
    }

    private void run(String model) throws IOException, OrtException {
        AssetManager assets = getTargetContext().getAssets();
        byte[] request = read(assets.open("requests/" + model));
        try (AssetFileDescriptor file = assets.openFd("models/" + model + ".ort")) {
            long offset = file.getStartOffset();
            long length = file.getDeclaredLength();
            write(model + ".java", new JavaApi(request).run(file.getFileDescriptor(), offset, length));
            write(model + ".cpp", runInCpp(file.getParcelFileDescriptor().getFd(), offset, length, request));
        }
    }

    private static native byte[] runInCpp(int file, long offset, long length, byte[] request);

    private static byte[] read(InputStream stream) throws IOException {
        try (InputStream content = stream) {
            ByteArrayOutputStream whole = new ByteArrayOutputStream();
            byte[] part = new byte[1 << 16];
            for (int count = content.read(part); count > 0; count = content.read(part)) {
                whole.write(part, 0, count);
            }
            return whole.toByteArray();
        }
    }

    /** Where adb may read, with or without root. */
    private void write(String name, byte[] content) throws IOException {
        File folder = getTargetContext().getExternalMediaDirs()[0];
        try (FileOutputStream file = new FileOutputStream(new File(folder, name))) {
            file.write(content);
        }
    }
}
