from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ortrim.errors import ExitCode, UsageError
from ortrim.tools.command import Completed
from ortrim.verify.devices.pinning import check_pinning, pinned


class Machine:
    """A machine on which `taskset` ends as it is told to."""

    def __init__(self, returncode: int = 0) -> None:
        self.returncode = returncode
        self.calls: list[tuple[str, ...]] = []

    def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
        """Note the command."""
        assert timeout_seconds > 0
        self.calls.append(tuple(words))
        return Completed(argv=tuple(words), returncode=self.returncode, stdout="", stderr="taskset: Invalid argument")

    def push(self, files: Mapping[str, Path], folder: str) -> None:
        """Do nothing."""

    def pull(self, folder: str, destination: Path) -> None:
        """Do nothing."""


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
    assert machine.calls == [("taskset", "30", "true")]


@pytest.mark.parametrize("returncode", [1, 126, 127])
def test_machines_that_cannot_pin(returncode: int) -> None:
    """Without taskset, or without these cores, the machine's words are passed on."""
    with pytest.raises(UsageError) as caught:
        check_pinning(Machine(returncode), (9,), "adb:x")
    assert (caught.value.reference, caught.value.exit_code) == ("cannot-pin", ExitCode.USAGE)
    assert caught.value.why == "taskset: Invalid argument"


@pytest.mark.parametrize("cores", [(-1,), (0, 1024), (10**9,)])
def test_cores_that_no_machine_has(cores: tuple[int, ...]) -> None:
    """Numbers out of range are refused without a mask of a gigabyte."""
    machine = Machine()
    with pytest.raises(UsageError) as caught:
        check_pinning(machine, cores, "adb:x")
    assert (caught.value.reference, machine.calls) == ("cannot-pin", [])
