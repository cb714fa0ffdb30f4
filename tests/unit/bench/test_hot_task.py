"""`hot` as a shell runs it."""

from pathlib import Path
from typing import Any

import pytest

from ortrim.bench.profile import HOT_RUNS, HotOperators
from ortrim.cli.tasks import bench as bench_task
from ortrim.models.hot_operators import ranked
from program_runs import Run

ROWS = ranked({"vad": {"ai.onnx:LSTM": 0.75, "ai.onnx:Conv": 0.21, "ai.onnx:Pad": 0.04}})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, int]]:
    seen: list[tuple[Path, int]] = []

    def find(request: Any, _: Any, runs: int) -> HotOperators:
        seen.append((request.spec, runs))
        return HotOperators(file=Path("vad.hot.toml"), measured_with="a library", operators=ROWS)

    monkeypatch.setattr(bench_task, "find_hot", find)
    return seen


def test_hot_shows_a_table(ortrim: Run, asked: list[tuple[Path, int]]) -> None:
    """All operators with their shares, and the file that names the hot ones."""
    ended = ortrim("hot", "--spec", "vad.toml")
    assert (ended.code, ended.err) == (0, "")
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["ai.onnx:LSTM", "75.0", "%", "hot", "vad"] in lines
    assert ["ai.onnx:Pad", "4.0", "%", "vad"] in lines
    assert "vad.hot.toml names 2 of them as hot" in ended.out
    assert asked == [(Path("vad.toml"), HOT_RUNS)]


def test_hot_as_json_is_one_document(ortrim: Run, asked: list[tuple[Path, int]]) -> None:
    document = ortrim("hot", "--spec", "vad.toml", "--runs", "3", "--json").document()
    assert document["file"] == "vad.hot.toml"
    assert [each["hot"] for each in document["operators"]] == [True, True, False]
    assert asked == [(Path("vad.toml"), 3)]


@pytest.mark.parametrize(
    ("words", "reference", "code"),
    [(("hot", "--runs", "0"), "bad-option", 2), (("hot", "--spec", "missing.toml"), "spec-missing", 10)],
)
def test_what_is_not_possible_is_a_diagnostic(ortrim: Run, words: tuple[str, ...], reference: str, code: int) -> None:
    ended = ortrim(*words)
    assert (ended.code, f"error: {reference}" in ended.err) == (code, True)
    assert list(Path.cwd().iterdir()) == []
