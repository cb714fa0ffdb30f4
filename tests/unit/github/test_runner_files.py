"""Outputs and summaries of steps: nothing in a value can become another output, and nothing is written elsewhere."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.errors import StorageError
from ortrim.github.runner_setup import CUT, OUTPUT, SUMMARY, SUMMARY_BYTES, append_summary, write_output
from refusing import refused


def read_as_github(text: str) -> dict[str, str]:
    values, lines = {}, iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        name, _, mark = line.partition("<<")
        value = []
        for each in lines:
            if each == mark:
                break
            value.append(each)
        values[name] = "\n".join(value)
    return values


def test_outputs_are_read_back(tmp_path: Path) -> None:
    file = tmp_path / "output"
    file.write_text("earlier=1\n")
    assert write_output("compiled", '{"include":[]}', {OUTPUT: str(file)})
    assert write_output("plan", "a\nb\n\nc", {OUTPUT: str(file)})
    earlier, _, ours = file.read_text().partition("\n")
    assert earlier == "earlier=1"
    assert read_as_github(ours) == {"compiled": '{"include":[]}', "plan": "a\nb\n\nc"}


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")))
def test_no_value_is_more_than_one_output(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    file = tmp_path_factory.mktemp("runner") / "output"
    file.touch()
    write_output("value", value, {OUTPUT: str(file)})
    assert read_as_github(file.read_text(encoding="utf-8")) == {"value": value}


def test_the_mark_cannot_be_foreseen(tmp_path: Path) -> None:
    """Two outputs have two marks, so that nobody can write one into a value beforehand."""
    file = tmp_path / "output"
    file.touch()
    for _ in range(2):
        write_output("value", "x", {OUTPUT: str(file)})
    marks = {line.partition("<<")[2] for line in file.read_text().splitlines() if "<<" in line}
    assert len(marks) == 2


@pytest.mark.parametrize("environment", [{}, {OUTPUT: "", SUMMARY: ""}])
def test_outside_a_workflow_nothing_is_written(environment: dict[str, str]) -> None:
    """A step can be tried on any machine."""
    assert not write_output("value", "x", environment)
    assert not append_summary("x", environment)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """It is not made: the runner would never look at it."""
    assert refused(StorageError, write_output, "value", "x", {OUTPUT: str(tmp_path / "none")}).code == "no-runner-file"
    assert list(tmp_path.iterdir()) == []


def test_summaries_add_up(tmp_path: Path) -> None:
    file = tmp_path / "summary"
    file.touch()
    assert append_summary("# one\n", {SUMMARY: str(file)})
    assert append_summary("# zwei ü\n", {SUMMARY: str(file)})
    assert file.read_text(encoding="utf-8") == "# one\n# zwei ü\n"


def test_a_summary_that_github_would_refuse_is_cut(tmp_path: Path) -> None:
    """At a line's end, with a word on it, and a letter of several bytes stays whole."""
    file = tmp_path / "summary"
    file.touch()
    append_summary("| ü |\n" * (SUMMARY_BYTES // 7 + 1), {SUMMARY: str(file)})
    content = file.read_bytes()
    assert SUMMARY_BYTES - 100 < len(content) <= SUMMARY_BYTES
    assert content.decode().removesuffix(CUT).endswith("| ü |")
    assert content.decode().endswith(CUT)
