"""`invoke accept-build` and `invoke check-build` as a shell sees them."""

import json
from pathlib import Path

import pytest

from ortrim.report.history import NAME, Record, append
from program_runs import Run
from sample_builds import sample_entry


@pytest.fixture
def output(tmp_path: Path) -> str:
    append(tmp_path / "artifacts" / NAME, Record(build=sample_entry()))
    return str(tmp_path / "artifacts")


def test_accept_then_grow_then_check(ortrim: Run, output: str) -> None:
    accepted = ortrim("accept-build", "--output", output, "--note", "release 1")
    assert accepted.code == 0
    assert ortrim("check-build", "--output", output).code == 0
    append(Path(output) / NAME, Record(build=sample_entry(file_bytes=2_000_000)))
    worse = ortrim("check-build", "--output", output)
    assert worse.code == 5
    assert "+17.4 %" in worse.out
    assert "release 1" in worse.out
    assert "error: regression" in worse.err
    document = ortrim("check-build", "--output", output, "--json").document()
    assert document["errors"][0]["exit_code"] == 5
    assert [line["outcome"] for line in document["checks"][0]["lines"][:3]] == ["regressed", "within", "within"]


def test_a_target_may_be_called_by_another_name(ortrim: Run, output: str) -> None:
    for task in ("history", "accept-build", "check-build"):
        ended = ortrim(task, "--output", output, "--target", "linux-amd64")
        assert (ended.code, ended.err) == (0, "")
        assert "target linux-amd64 is linux-x64" in ended.out


def test_options_that_are_not_possible(ortrim: Run, output: str) -> None:
    """Numbers of percent that are none, and a note that would steer a terminal."""
    for words in (("--size", "-1"), ("--memory", "nan"), ("--latency", "much")):
        ended = ortrim("check-build", "--output", output, *words)
        assert (ended.code, "bad-option" in ended.err) == (2, True)
    assert ortrim("accept-build", "--output", output, "--note", "\x1b[2J").code == 2


def test_a_file_for_a_machine_without_a_past(ortrim: Run, output: str, tmp_path: Path) -> None:
    file = tmp_path / "accepted.json"
    assert ortrim("accept-build", "--output", output, "--to", str(file)).code == 0
    assert json.loads(file.read_text())["schema"] == "ortrim-accepted/1"
    assert ortrim("check-build", "--output", output, "--against", str(file)).code == 0
    assert ortrim("check-build", "--output", output, "--against", str(tmp_path / "none.json")).code == 22
