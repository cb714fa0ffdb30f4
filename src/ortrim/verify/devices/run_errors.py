"""Ends of a run that are alike on devices of every kind, and are not the runner's own."""

from typing import Final

from ortrim.errors import VerifyError

MOST_PRINTED_BYTES: Final = 64 << 20
"""A report of a million samples, of which each is three numbers, has about 30 MB. Output without an end would fill this
machine's memory long before the time limit."""
NOT_STARTED: Final = (126, 127)
"""What a shell gives for a program that it cannot execute, or that (or whose loader) is not there."""


def endless_output(where: str) -> VerifyError:
    """Return the diagnostic of a program that was ended because it printed too much."""
    what = f"more than {MOST_PRINTED_BYTES >> 20} MiB were printed, so it was stopped"
    hint = "the library may log too much, or in a circle; run it by hand and look at what it prints"
    return VerifyError("endless-output", what, where=where, hint=hint)


def not_startable(where: str, why: str, besides: str = "") -> VerifyError:
    """Return the diagnostic of a runner that the machine cannot start; `besides` is another thing to look at."""
    hints = ("build it for this machine's processor and C library", besides)
    what = "the machine cannot start the runner"
    return VerifyError("runner-not-startable", what, where=where, why=why, hint="; ".join(filter(None, hints)))
