package android.content;

import android.content.res.AssetManager;

/** As much of Android's class as the guide's snippet uses, on a plain Java virtual machine. */
public final class Context {
  private final AssetManager assets;

  public Context(AssetManager assets) {
    this.assets = assets;
  }

  public AssetManager getAssets() {
    return assets;
  }
}
