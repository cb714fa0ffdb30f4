"""Commands of gcloud that ask something and end soon."""

from pathlib import Path
from typing import Final

from ortrim.errors import ToolError
from ortrim.tools.command import Completed
from ortrim.tools.gcloud import Gcloud
from ortrim.verify.devices.farms.firebase_errors import gcloud_error, unreachable

ANSWER_SECONDS: Final = 420.0
"""gcloud asks the Testing API nine times again before it gives up, which took 253 seconds."""


def ask(gcloud: Gcloud, where: str, *words: str | Path, timeout_seconds: float = ANSWER_SECONDS) -> Completed:
    """Run a command that has to succeed.

    Raises `VerifyError`, `NetworkError` or `StorageError` by what it printed (`gcloud_error`), `NetworkError`
    (`farm-unreachable`) when it does not end, `ToolError`.
    """
    try:
        done = gcloud.run(*words, timeout_seconds=timeout_seconds)
    except ToolError as error:
        if error.reference != "tool-timeout":
            raise
        raise unreachable(f"gcloud {error.what}", where) from error
    if done.returncode != 0:
        raise gcloud_error(done.stderr, where)
    return done
