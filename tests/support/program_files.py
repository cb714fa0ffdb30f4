"""Programs of a test's own, written in the shell's language or in another."""

from pathlib import Path


def write_program(path: Path, text: str = "") -> Path:
    """Write a program where it may be started from, with its folder; the shell's unless `text` says itself whose."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path
