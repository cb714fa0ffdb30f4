from collections.abc import Sequence

import pytest

from ortrim.base.command import Completed
from ortrim.devices.device import check_pinning, pinned
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


@pytest.mark.parametrize(
    ("cores", "words"),
    [((), ()), ((0,), ("taskset", "1")), ((4, 5, 6, 7), ("taskset", "f0")), ((7, 7, 4), ("taskset", "90"))],
)
def test_masks(cores: tuple[int, ...], words: tuple[str, ...]) -> None:
    """Cores become a mask in hexadecimal."""
    assert pinned(cores) == words


def test_pinning_is_tried_before() -> None:
    """A harmless command is pinned first; without cores nothing is tried."""
    machine = Machine()
    check_pinning(machine, (4, 5), "adb:x")
    check_pinning(machine, (), "adb:x")
    assert machine.calls == [("taskset", "30", "cat", "/proc/self/status")]


def test_cores_that_are_partly_there() -> None:
    """`taskset` takes them; the report would name cores that nothing ran on."""
    check_pinning(Machine(status="Name:\tcat\nCpus_allowed_list:\t4-5\n"), (5, 4), "adb:x")
    error = refused(UsageError, check_pinning, Machine(status="Cpus_allowed_list:\t4-5\n"), (4, 5, 6, 7), "adb:x")
    assert (error.code, error.why) == ("cannot-pin", "of these it has 4-5 alone")


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
