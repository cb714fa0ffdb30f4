package ortrim.harness;

import android.app.Activity;
import android.os.Bundle;
import android.view.WindowManager;

/** An empty screen. An app in the foreground has all cores; the runner, a child of it, has them too. */
public final class StartActivity extends Activity {
    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        getWindow().addFlags(WindowManager.LayoutParams.FLAG_KEEP_SCREEN_ON);
    }
}
