"""Verification: a package's library against the full runtime, in size, memory, time and numbers."""
