"""One run in a process of its own, to be interrupted: `interrupted_run.py FILE`, a pickled opening and request."""

import pickle
import signal
import sys
from contextlib import closing
from pathlib import Path

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    opening, request = pickle.loads(Path(sys.argv[1]).read_bytes())  # noqa: S301 - the test's own file
    try:
        with closing(opening()) as device:
            device.run(request)
    except SystemExit:  # what SIGTERM and SIGHUP raise is a KeyboardInterrupt, too
        raise
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
