"""What compiles for a target: the pinned hermetic toolchain, or a compiler of the system."""
