"""The files through which a step tells GitHub's runner something: its outputs, and its part of the run's summary."""

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ortrim.errors import StorageError
from ortrim.storage.files import storage_errors

OUTPUT: Final = "GITHUB_OUTPUT"
SUMMARY: Final = "GITHUB_STEP_SUMMARY"
SUMMARY_BYTES: Final = 1 << 20
"""What GitHub shows of one step's summary; a larger one is refused as a whole."""
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
CUT: Final = "\n\n…and more, which GitHub would not show: it is in the report of the delivery.\n"


def write_output(name: str, value: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Hand a value to later jobs as an output of this step; outside a workflow nothing is written.

    Whatever is in the value, it cannot end it and begin another output: it stands between two lines of chance. Returns
    whether it was written. Raises `StorageError`.
    """
    assert NAME.fullmatch(name)
    mark = f"ortrim-{secrets.token_hex(16)}"
    return _append(environment.get(OUTPUT), f"{name}<<{mark}\n{value}\n{mark}\n")


def append_summary(text: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Add Markdown to this step's summary, cut where GitHub would refuse it; outside a workflow nothing is written.

    Returns whether it was written. Raises `StorageError`.
    """
    content = text.encode()
    room = SUMMARY_BYTES - len(CUT.encode())
    if len(content) > SUMMARY_BYTES:
        whole_lines = content[:room].rpartition(b"\n")[0]
        text = whole_lines.decode() + CUT
    return _append(environment.get(SUMMARY), text)


def _append(file: str | None, text: str) -> bool:
    if not file:
        return False
    path = Path(file)
    with storage_errors(path):
        if not path.is_file():
            hint = "it is the runner that makes this file and names it in the environment"
            raise StorageError("no-runner-file", "there is no such file", where=file, hint=hint)
        with path.open("a", encoding="utf-8") as opened:
            opened.write(text)
    return True
