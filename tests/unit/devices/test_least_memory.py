from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from device_samples import MACHINE, sample_request
from fake_machine import fake_machine, hungry_qemu
from ortrim.devices.qemu import LOWER_MIB, STEP_MIB, least_memory, tries
from ortrim.errors import VerifyError
from refusing import refused


class Board:
    """A machine on which a run ends well from `least` MiB on."""

    name = "board"

    def __init__(self, least: int, ceiling: int = 0, reference: str = "out-of-memory") -> None:
        self.least = least
        self.ceiling = ceiling
        self.reference = reference

    def with_memory(self, ceiling: int) -> "Board":
        return Board(self.least, ceiling, self.reference)

    def run(self, _request: object) -> None:
        if self.ceiling < self.least:
            raise VerifyError(self.reference, "no")

    def facts(self) -> object:
        return type(MACHINE)(**{**vars(MACHINE), "memory_bytes": self.ceiling * 2**20})


@given(st.integers(LOWER_MIB + 1, 256))
def test_the_least_is_found(least: int) -> None:
    """Whatever it is, the answer is enough, what is below it is not, and few runs were needed."""
    found = least_memory(Board(least), None, model="tiny")  # type: ignore[arg-type]
    assert found.too_little_mib < least <= found.enough_mib <= found.too_little_mib + STEP_MIB
    assert found.usable_bytes == found.enough_mib * 2**20
    assert len(found.tried) <= tries(256)
    assert all((said == "enough") is (ceiling >= least) for ceiling, said in found.tried)


def test_a_run_that_never_ends_well() -> None:
    """When the most memory is not enough, that run's own diagnostic is the answer."""
    error = refused(VerifyError, least_memory, Board(257), None, model="tiny")  # type: ignore[arg-type]
    assert error.code == "out-of-memory"


def test_other_failures_are_not_for_want_of_memory() -> None:
    """An illegal instruction or a qemu that was killed stops the search."""
    for reference in ("illegal-instruction", "machine-lost", "machine-not-startable"):
        error = refused(VerifyError, least_memory, Board(100, reference=reference), None, model="tiny")  # type: ignore[arg-type]
        assert error.code == reference


def test_bounds_and_progress() -> None:
    """Bounds and step are the caller's, and each ceiling is told before it is tried."""
    told: list[int] = []
    found = least_memory(
        Board(75),  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        model="tiny",
        lower_mib=60,
        upper_mib=80,
        step_mib=1,
        on_try=told.append,
    )
    assert (found.enough_mib, found.too_little_mib) == (75, 74)
    assert told == [ceiling for ceiling, _ in found.tried]
    assert told[0] == 80


def test_with_machines(tmp_path: Path) -> None:
    """With the device itself: a machine that is killed for want of memory below a ceiling."""
    device = fake_machine(tmp_path, hungry_qemu(tmp_path / "qemu", enough_mib=90))
    found = least_memory(device, sample_request(tmp_path / "request"), model="tiny")
    assert found.model == "tiny"
    assert found.too_little_mib < 90 <= found.enough_mib
    assert {said for _, said in found.tried} == {"enough", "out-of-memory"}


@given(st.integers(LOWER_MIB + 2, 16384), st.integers(1, 50), st.data())
def test_the_number_of_tries_is_known_beforehand(upper: int, step: int, data: st.DataObject) -> None:
    """At most that many, whatever the machine has and wherever the answer lies."""
    least = data.draw(st.integers(LOWER_MIB + 1, upper))
    found = least_memory(Board(least), None, model="tiny", upper_mib=upper, step_mib=step)  # type: ignore[arg-type]
    assert len(found.tried) <= tries(upper, step_mib=step)
