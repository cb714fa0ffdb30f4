package android.content;

import android.content.res.AssetManager;
import java.io.File;

/** An app whose assets lie in a folder. */
public final class Context {
    private final AssetManager assets;
    private final File media;

    public Context(File assets, File media) {
        this.assets = new AssetManager(assets);
        this.media = media;
    }

    public AssetManager getAssets() {
        return assets;
    }

    public File[] getExternalMediaDirs() {
        return new File[] {media};
    }
}
