"""Programs on this Mac that have to be ended and are nobody's children any more."""

import os
import re
import signal
from contextlib import suppress
from typing import Final

from ortrim.errors import Diagnostic
from ortrim.tools.command import run
from ortrim.verify.devices.local_run import ENVIRONMENT

LIST: Final = ("ps", "-axww", "-o", "pid=,args=")
LIST_SECONDS: Final = 20.0
LINE: Final = re.compile(r"^\s*(\d{1,9}) (.*)$", re.MULTILINE)


def kill_with(word: str) -> None:
    """Kill every program that has a word, which nobody else can know, in its command line. Raises nothing."""
    with suppress(Diagnostic):
        listed = run(LIST, environment=ENVIRONMENT, timeout_seconds=LIST_SECONDS).stdout
        for number, words in LINE.findall(listed):
            if word in words:
                with suppress(OSError):
                    os.kill(int(number), signal.SIGKILL)
