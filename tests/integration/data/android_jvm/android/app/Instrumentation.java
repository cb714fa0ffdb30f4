package android.app;

import android.content.Context;
import android.os.Bundle;
import java.io.File;

/** Runs an app's instrumentation on a plain Java virtual machine: Instrumentation CLASS ASSETS RESULTS. */
public class Instrumentation {
    private static Context context;

    public static void main(String[] words) throws Exception {
        context = new Context(new File(words[1]), new File(words[2]));
        ((Instrumentation) Class.forName(words[0]).getConstructor().newInstance()).onCreate(new Bundle());
    }

    public void onCreate(Bundle arguments) {}

    public void start() {
        onStart();
    }

    public void onStart() {}

    public Context getTargetContext() {
        return context;
    }

    /** Prints what `am instrument` does. */
    public void finish(int code, Bundle results) {
        System.out.println("INSTRUMENTATION_CODE: " + code);
    }
}
