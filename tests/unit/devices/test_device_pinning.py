from collections.abc import Sequence

import pytest

from ortrim.base.command import Completed
from ortrim.devices.device import check_pinning
from ortrim.errors import ExitCode, UsageError
from refusing import refused


class Machine:
    """A machine on which `taskset` ends as it is told to."""

    def __init__(self, returncode: int = 0, status: str = "") -> None:
        self.returncode = returncode
        self.status = status
        self.calls: list[tuple[str, ...]] = []

    def __call__(self, words: Sequence[str], seconds: float) -> Completed:
        assert seconds > 0
        self.calls.append(tuple(words))
        stderr = "taskset: Invalid argument"
        return Completed(argv=tuple(words), returncode=self.returncode, stdout=self.status, stderr=stderr)


@pytest.mark.parametrize("returncode", [1, 126, 127])
def test_machines_that_cannot_pin(returncode: int) -> None:
    """Without taskset, or without these cores, the machine's words are passed on."""
    error = refused(UsageError, check_pinning, Machine(returncode), (9,), "adb:x")
    assert (error.code, error.exit_code) == ("cannot-pin", ExitCode.USAGE)
    assert error.why == "taskset: Invalid argument"


@pytest.mark.parametrize("cores", [(-1,), (0, 1024), (10**9,)])
def test_cores_that_no_machine_has(cores: tuple[int, ...]) -> None:
    """Numbers out of range are refused without a mask of a gigabyte."""
    machine = Machine()
    assert (refused(UsageError, check_pinning, machine, cores, "adb:x").code, machine.calls) == ("cannot-pin", [])
