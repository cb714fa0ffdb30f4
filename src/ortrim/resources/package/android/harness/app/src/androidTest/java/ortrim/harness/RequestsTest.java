package ortrim.harness;

import static org.junit.Assert.assertEquals;

import android.app.Instrumentation;
import android.content.Context;
import android.content.Intent;
import androidx.test.platform.app.InstrumentationRegistry;
import org.junit.Test;

/** What a farm starts. It fails when a request could not be carried out; what the runs say, ortrim judges. */
public final class RequestsTest {
    private static final long SCREEN_MILLISECONDS = 3_000;

    @Test
    public void carryOutTheRequests() throws Exception {
        Instrumentation instrumentation = InstrumentationRegistry.getInstrumentation();
        Context context = instrumentation.getTargetContext();
        context.startActivity(new Intent(context, StartActivity.class).addFlags(Intent.FLAG_ACTIVITY_NEW_TASK));
        Thread.sleep(SCREEN_MILLISECONDS);
        AndroidPlatform platform = new AndroidPlatform(instrumentation, InstrumentationRegistry.getArguments());
        assertEquals("", Harness.carryOut(platform));
    }
}
