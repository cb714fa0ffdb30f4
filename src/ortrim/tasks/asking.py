"""Questions to who sits at the terminal."""

import sys

from ortrim.github.records import Run


def wants_cancel(run: Run) -> bool:
    """Ask whether a run is to be cancelled; no, when nobody is there or the answer is anything but yes."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(f"\nCancel the run {run.id}? Otherwise it goes on without us. [y/N] ")
    sys.stderr.flush()
    try:
        return sys.stdin.readline().strip().lower() in {"y", "yes"}
    except KeyboardInterrupt:
        return False
