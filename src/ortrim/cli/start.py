"""Where the program `ortrim` begins: its version is said before Invoke and the rest are imported."""

import sys
from contextlib import suppress
from importlib.metadata import version


def main() -> None:
    """Run the program on the command line's arguments and exit."""
    if sys.argv[1:] in (["--version"], ["-V"]) and sys.stdout is not None:
        with suppress(OSError):  # the whole program says what is wrong with standard output
            print(f"ortrim {version('ortrim')}", flush=True)  # noqa: T201 - the console imports what is not needed
            return
    from ortrim.cli.program import main as run  # noqa: PLC0415 - it imports Invoke, which takes longer than the answer

    run()
