"""Running the runner as a child of this process: on this machine itself, or under qemu's user emulation."""

import dataclasses
import os
import secrets
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ortrim.errors import ToolError, VerifyError
from ortrim.tools.command import Completed, run
from ortrim.verify.devices.base import RunRequest
from ortrim.verify.devices.run_errors import MOST_PRINTED_BYTES, endless_output, not_startable
from ortrim.verify.devices.shell_script import VARIABLE
from ortrim.verify.runner_output import never_ended, place_of

ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
"""All that the runner sees besides our mark, so that no variable of the user's shell favours one library."""


def run_locally(words: Sequence[str], request: RunRequest, *, cwd: Path | None = None) -> Completed:
    """Run the runner to its end. Whatever else happens, it is ended, and with it all that it started.

    Raises `VerifyError`: `runner-timeout`, `endless-output`, `runner-not-startable`.
    """
    mark = f"@@{secrets.token_hex(8)}"
    try:
        return run(
            words,
            cwd=cwd,
            environment={**ENVIRONMENT, VARIABLE: mark},
            timeout_seconds=request.repetition.timeout_seconds,
            most_bytes=MOST_PRINTED_BYTES,
        )
    except ToolError as error:
        _kill(mark)
        raise _not_run(error, request) from error
    except BaseException:  # Ctrl-C must not leave a runner's children behind either
        _kill(mark)
        raise


def absolute(request: RunRequest) -> RunRequest:
    """Return a request that holds in every working folder."""
    cases = tuple(dataclasses.replace(case, folder=case.folder.absolute()) for case in request.cases)
    return dataclasses.replace(
        request,
        runner=request.runner.absolute(),
        model=request.model.absolute(),
        cases=cases,
        outputs=request.outputs.absolute() if request.outputs else None,
    )


def _kill(mark: str) -> None:
    """Kill what carries the mark: a child in a session of its own is not among those that `run` stops.

    Only Linux tells of the environments of processes.
    """
    carried = f"{VARIABLE}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if carried in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)


def _not_run(error: ToolError, request: RunRequest) -> VerifyError:
    """Return the diagnostic of a runner that was not started, or not left to its end."""
    if error.reference == "tool-timeout":
        return never_ended(request)
    if error.reference == "tool-endless":
        return endless_output(place_of(request))
    return not_startable(str(request.runner), error.why)
