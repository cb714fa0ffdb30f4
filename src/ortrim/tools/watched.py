"""Programs that run for long and say how far they are: heard while they run, and to their last word when stopped."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ortrim.errors import ToolError
from ortrim.tools.captured import Captured, TooMuchOutput
from ortrim.tools.command import ASKED_SECONDS, Completed, started, stop
from ortrim.tools.stopping import stop_request

LAST_WORDS_SECONDS: Final = 1.0
"""How long is read from a program that has ended; more comes only from a child that left its session."""


def watch(
    argv: Sequence[str | Path],
    hear: Callable[[str], None],
    check: Callable[[], None],
    *,
    environment: Mapping[str, str] | None = None,
    most_bytes: int,
) -> Completed:
    """Run a program to its end like `command.run`, handing over each line of its standard error as it comes.

    `check` is called several times a second. When it or `hear` raises, when the thread is asked to stop, or on Ctrl-C,
    SIGTERM and SIGHUP, the program is asked to end, `hear` gets what it says meanwhile, and the exception goes on.
    Raises `ToolError` (`tool-missing`, `tool-not-startable`, `tool-endless`).
    """
    words = tuple(str(word) for word in argv)
    try:
        with started(words, None, environment) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            with Captured((process.stdout, process.stderr), most_bytes) as captured:
                lines = _Lines(captured, hear)
                try:
                    _follow(captured, lines, check)
                    process.wait()
                except BaseException:
                    stop(process)
                    lines.hear_the_last()
                    raise
                lines.hear_the_last()
                stdout, stderr = captured.texts()
    except TooMuchOutput as error:
        what = f"printed more than {most_bytes} bytes and was stopped"
        raise ToolError("tool-endless", what, where=words[0], why=" ".join(words)) from error
    return Completed(argv=words, returncode=process.returncode, stdout=stdout, stderr=stderr)


class _Lines:
    """Hands over the lines of the second of two streams, each once."""

    def __init__(self, captured: Captured, hear: Callable[[str], None]) -> None:
        self._captured = captured
        self._hear = hear
        self._heard = 0

    def hear_new(self) -> None:
        """Hand over the lines that have ended since."""
        self._hear_from(self._captured.texts()[1].split("\n")[:-1])

    def hear_the_last(self) -> None:
        """Hand over what is still to be read, also a last line without an end."""
        ends = time.monotonic() + LAST_WORDS_SECONDS
        with suppress(TooMuchOutput):
            while time.monotonic() < ends and not self._captured.read(ASKED_SECONDS):
                pass
        text = self._captured.texts()[1].removesuffix("\n")
        self._hear_from(text.split("\n") if text else [])

    def _hear_from(self, lines: list[str]) -> None:
        new, self._heard = lines[self._heard :], max(self._heard, len(lines))
        for line in new:
            self._hear(line)


def _follow(captured: Captured, lines: _Lines, check: Callable[[], None]) -> None:
    request = stop_request()
    while not captured.read(ASKED_SECONDS):
        lines.hear_new()
        check()
        if request is not None:
            request.check()
