import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fake_machine
from device_samples import MACHINE, sample_request
from failing_runs import run_refused
from ortrim.devices.qemu import LOWER_MIB, STEP_MIB, QemuSystem, least_memory, tries
from ortrim.errors import VerifyError
from ortrim.parity.runner import RunRequest
from refusing import refused


@pytest.fixture
def request_(tmp_path: Path) -> RunRequest:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    return dataclasses.replace(sample_request(tmp_path / "request"), outputs=outputs)


def device_with(place: Path, answer: bytes = b"", console: str = "", then: str = "exit 0") -> QemuSystem:
    return fake_machine.fake_machine(
        place, fake_machine.fake_qemu(place / "qemu", answer=answer, console=console, then=then)
    )


@pytest.mark.parametrize(
    ("answer", "console"),
    [
        (fake_machine.answer_of(fake_machine.FACTS, [137]), fake_machine.OUT_OF_MEMORY),
        (b"@@BEGIN\n", fake_machine.OUT_OF_MEMORY),
        (b"@@BEGIN\n@@EXIT 137\n", fake_machine.OUT_OF_MEMORY),
        (b"", fake_machine.DEADLOCK),
        (fake_machine.answer_of(fake_machine.FACTS, [126]), "[    0.6] Initramfs unpacking failed: write error"),
    ],
)
def test_too_little_memory_is_a_verdict(tmp_path: Path, request_: RunRequest, answer: bytes, console: str) -> None:
    """Whichever way the kernel tells of it, it is told in its words, with the ceiling."""
    error = run_refused(device_with(tmp_path, answer, console), request_)
    assert error.code == "out-of-memory"
    assert error.why.splitlines() == [console, "the machine has 256 MiB, of which its kernel takes about 30"]


@pytest.mark.parametrize(
    ("answer", "console", "why"),
    [
        (b"", fake_machine.PANIC, "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"),
        (b"", "last words", "last words"),
        (b"", "", ""),
        (b"@@BEGIN\n", "gone", "gone"),
        (fake_machine.answer_of(fake_machine.GOOD_FILES)[:300], "cut", "cut"),
    ],
)
def test_a_machine_that_ends_early(tmp_path: Path, request_: RunRequest, answer: bytes, console: str, why: str) -> None:
    """Without an answer to its end it is a crash of the machine, and the console says what can be said."""
    error = run_refused(device_with(tmp_path, answer, console), request_)
    assert (error.code, error.why) == ("machine-crashed", why)
    assert "qemu-system:cortex-a53" in error.where
    assert not list((tmp_path / "outputs").iterdir())


def test_a_machine_can_be_asked_without_a_run(tmp_path: Path) -> None:
    device = device_with(tmp_path, fake_machine.answer_of(fake_machine.FACTS, []))
    assert device.facts() == device.facts()
    assert device.facts().cores == 1


def test_a_machine_that_cannot_be_asked(tmp_path: Path) -> None:
    assert refused(VerifyError, device_with(tmp_path, b"", fake_machine.PANIC).facts).code == "machine-crashed"


def test_another_ceiling_is_another_device(tmp_path: Path) -> None:
    """The ceiling is in the name unless it is the usual one, and reaches qemu."""
    device = fake_machine.fake_machine(tmp_path, fake_machine.fake_tool(tmp_path / "qemu", "exit 0"))
    assert device.name == "qemu-system:cortex-a53"
    smaller = device.with_memory(64)
    assert (smaller.name, smaller.machine.memory_mib) == ("qemu-system:cortex-a53@64", 64)
    assert smaller.machine.program == device.machine.program


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


@given(st.integers(LOWER_MIB + 2, 16384), st.integers(1, 50), st.data())
def test_the_number_of_tries_is_known_beforehand(upper: int, step: int, data: st.DataObject) -> None:
    """At most that many, whatever the machine has and wherever the answer lies."""
    least = data.draw(st.integers(LOWER_MIB + 1, upper))
    found = least_memory(Board(least), None, model="tiny", upper_mib=upper, step_mib=step)  # type: ignore[arg-type]
    assert len(found.tried) <= tries(upper, step_mib=step)
