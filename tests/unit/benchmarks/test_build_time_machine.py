"""The machine and the checkout: names, rest, commits."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from build_time.machine import LOOK_SECONDS, busy_processors, commit_of, cpu_model, this_machine, wait_for_rest

from ortrim.base.command import run
from ortrim.errors import ToolError

CPUINFO = "processor\t: 0\nvendor_id\t: X\nmodel name\t: A Processor @ 2.5 GHz\n\nprocessor\t: 1\nmodel name\t: B\n"


def test_this_machine_is_described() -> None:
    """What a reader of the record needs."""
    machine = this_machine()
    assert machine.cores == len(os.sched_getaffinity(0))
    assert machine.memory_bytes > 10**8
    assert machine.cpu
    assert machine.system.startswith("Linux ")
    assert machine.identity.load_average == 0.0


@pytest.mark.parametrize("text", ["", "processor : 0\nFeatures : fp asimd\n", "model name"])
def test_a_processor_without_a_name_is_called_by_its_architecture(tmp_path: Path, text: str) -> None:
    """Arm's list has no model names."""
    (tmp_path / "cpuinfo").write_text(text)
    assert cpu_model(tmp_path / "cpuinfo") == (os.uname().machine if "model name" not in text else "")


def test_the_first_processor_names_all(tmp_path: Path) -> None:
    """They are of one kind."""
    (tmp_path / "cpuinfo").write_text(CPUINFO)
    assert cpu_model(tmp_path / "cpuinfo") == "A Processor @ 2.5 GHz"


def test_without_a_list_of_processors_there_is_the_architecture(tmp_path: Path) -> None:
    """A container may hide it."""
    assert cpu_model(tmp_path / "none") == os.uname().machine


class Load:
    """Processors at work, as somebody sees them who looks again and again."""

    def __init__(self, *values: float) -> None:
        self.values: Iterator[float] = iter(values)
        self.said: list[float] = []

    def wait(self, patience: float) -> float:
        """Wait for it to fall."""
        return wait_for_rest(patience, self.said.append, busy=lambda: next(self.values))


def test_a_machine_at_rest_is_not_waited_for() -> None:
    """What is at work then is returned as it is."""
    load = Load(0.5)
    assert (load.wait(180), load.said) == (0.5, [])


def test_a_busy_machine_is_waited_for() -> None:
    """And the user is told why nothing happens."""
    load = Load(2.0, 0.9, 0.3)
    assert (load.wait(180), load.said) == (0.3, [2.0, 0.9])


def test_patience_ends() -> None:
    """The measurement is then marked by what is returned."""
    assert Load(2.0, 2.1, 2.2, 2.3).wait(3 * LOOK_SECONDS) == 2.2


def test_no_patience_is_one_look() -> None:
    """Someone who tries the benchmark out need not sit there."""
    load = Load(2.0, 0.1)
    assert (load.wait(0), load.said) == (2.0, [])


def test_this_machines_processors_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a difference of what they have done since the start."""
    seconds = iter((100.0, 104.5))
    times = iter((10.0, 13.0))
    monkeypatch.setattr("build_time.machine.busy_seconds", lambda: next(seconds))
    monkeypatch.setattr("build_time.machine.time", SimpleNamespace(monotonic=lambda: next(times), sleep=lambda _: None))
    assert busy_processors() == 1.5


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a git checkout with one commit."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "x")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "x@example.com")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("a")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        assert run(("git", "-C", tmp_path, *words)).returncode == 0
    return tmp_path


@pytest.mark.needs("git")
def test_a_clean_checkout_is_its_commit(checkout: Path) -> None:
    """Files outside `src` do not matter: buildspecs and cases are in the digests of the plan."""
    (checkout / "notes.txt").write_text("x")
    head = run(("git", "-C", checkout, "rev-parse", "HEAD")).stdout
    assert commit_of(checkout) == head[:12]


@pytest.mark.needs("git")
def test_changes_are_part_of_the_name(checkout: Path) -> None:
    """What was measured with one state of the sources is not taken for another's."""
    names = {commit_of(checkout)}
    (checkout / "src" / "a.py").write_text("b")
    names.add(commit_of(checkout))
    (checkout / "src" / "a.py").write_text("c")
    names.add(commit_of(checkout))
    (checkout / "src" / "new.py").write_text("c")
    names.add(commit_of(checkout))
    assert len(names) == 4
    assert len({name.partition("+")[0] for name in names}) == 1


def test_without_a_repository_the_commit_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unpacked archive can be measured too."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit_of(tmp_path) == "unknown"
    assert commit_of(tmp_path / "none") == "unknown"


def test_without_git_the_commit_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git is not needed to build."""

    def absent(*_: object, **__: object) -> None:
        raise ToolError("tool-missing", "is not installed")

    monkeypatch.setattr("build_time.machine.run", absent)
    assert commit_of(tmp_path) == "unknown"
