"""Who waits for whom on one machine: two verifications at once would measure each other and write the same files."""

import threading
from pathlib import Path

import pytest

from fake_sources import private_cache
from ortrim.devices.kinds import DeviceName
from ortrim.verify.measure import alone, in_turn


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private_cache(tmp_path, monkeypatch)


def second(folder: Path, *devices: DeviceName) -> tuple[threading.Thread, list[str]]:
    """Begin a verification in another thread; the list holds what it said, and `verified` in the end."""
    said: list[str] = []

    def verify() -> None:
        with in_turn(folder, devices, said.append):
            said.append("verified")

    thread = threading.Thread(target=verify)
    thread.start()
    return thread, said


@pytest.mark.parametrize(
    ("first", "other", "same", "words"),
    [
        ("host", "host", False, ["waits for another measurement on this machine", "verified"]),
        ("host", "qemu-user", False, ["waits for another measurement on this machine", "verified"]),
        ("adb", "adb", True, ["waits for another verification in the same folder", "verified"]),
        ("adb", "host", False, ["verified"]),
        ("host", "firebase", False, ["verified"]),
    ],
)
def test_only_those_that_disturb_each_other_wait(
    tmp_path: Path,
    first: str,
    other: str,
    same: bool,  # noqa: FBT001
    words: list[str],
) -> None:
    """For this machine's cores, or for the folder of the outputs; a phone's are its own."""
    with in_turn(tmp_path / "a", [DeviceName(kind=first)], lambda _: None):
        thread, said = second(tmp_path / ("a" if same else "b"), DeviceName(kind=other))
        thread.join(0.5)
        assert said == words[:1]
    thread.join()
    assert said == words


def test_a_bench_and_a_verification_wait_for_each_other(tmp_path: Path) -> None:
    """Both measure on this machine's cores."""
    with alone(lambda _: None):
        thread, said = second(tmp_path, DeviceName(kind="host"))
        thread.join(0.5)
        assert said == ["waits for another measurement on this machine"]
    thread.join()
    assert said == ["waits for another measurement on this machine", "verified"]
