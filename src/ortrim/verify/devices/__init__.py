"""Where the runner runs: one module for each kind of device."""
