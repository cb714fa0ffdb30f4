"""How a run in an emulated machine ended: by the runner, for want of memory, at the time limit, or with the machine.

Pure but for what `Boot` holds already.
"""

from ortrim.errors import VerifyError
from ortrim.tools.command import Completed
from ortrim.verify.devices.base import RunRequest
from ortrim.verify.devices.machine import Boot
from ortrim.verify.devices.run_errors import NOT_STARTED, not_startable
from ortrim.verify.devices.shell_script import signalled
from ortrim.verify.runner_output import never_ended, out_of_memory, place_of


def completed_run(booted: Boot, request: RunRequest, *, device: str, memory_mib: int) -> Completed:
    """Return what the one command of a machine ended with, and what it printed.

    Raises `VerifyError`: `out-of-memory`, `runner-timeout`, `runner-not-startable`, `machine-crashed` (the
    machine ended before the runner).
    """
    codes = booted.answer.exit_codes
    files = booted.answer.files
    if booted.out_of_memory and (codes != (0,) or files is None):
        ceiling = f"the machine has {memory_mib} MiB, of which its kernel takes about 30"
        raise out_of_memory(request, f"{booted.out_of_memory}\n{ceiling}")
    if booted.answer.late:
        raise never_ended(request)
    if not codes or files is None:
        raise _not_ended(booted, request, device)
    if codes[0] in NOT_STARTED:
        raise not_startable(device, booted.complaints.strip().rpartition("\n")[2])
    stdout = files.get("0", b"").decode("utf-8", errors="replace")
    return Completed(argv=(device,), returncode=signalled(codes[0]), stdout=stdout, stderr=booted.complaints)


def _not_ended(booted: Boot, request: RunRequest, device: str) -> VerifyError:
    if booted.timed_out and booted.answer.begun and not booted.answer.exit_codes:
        return never_ended(request)
    what = "the machine did not come to its end in time" if booted.timed_out else "the machine ended by itself"
    why = booted.panic or "\n".join(booted.console.strip().splitlines()[-5:])
    hint = "try again with more memory, such as @256"
    return VerifyError("machine-crashed", what, where=f"{device}, {place_of(request)}", why=why, hint=hint)
