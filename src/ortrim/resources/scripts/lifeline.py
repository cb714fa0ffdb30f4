"""Runs a command in a container for as long as ortrim lives; the container's first program.

Arguments: a pipe that ortrim holds open and never writes to, then the command. When ortrim ends, however it does, the
pipe ends too, and this program with it; the kernel then ends all that runs in the container.
"""

import os
import signal
import subprocess
import sys
import threading

KILLED = 137
STARTED = "ortrim: the container runs"


def follow(pipe: str) -> None:
    """End with the pipe, also when nobody holds it any more by now: opening it must not wait for somebody."""
    try:
        descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(descriptor, True)
        os.read(descriptor, 1)
    finally:
        os._exit(KILLED)


def main() -> int:
    """Run the command; return its exit code as a shell tells it.

    Its two streams become one here, because engines that pass on both do not keep the order between them.
    """
    signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))
    threading.Thread(target=follow, args=(sys.argv[1],), daemon=True).start()
    sys.stdout.write(STARTED + "\n")
    sys.stdout.flush()
    code = subprocess.call(sys.argv[2:], stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
