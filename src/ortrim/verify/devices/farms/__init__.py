"""Device farms: an app and its instrumentation go there, and results come back. One module or folder for each farm."""
