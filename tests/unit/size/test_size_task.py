"""`size` and `history` as a shell runs them."""

from pathlib import Path

import pytest

from ortrim.report.history import NAME, Record, append
from program_runs import Run
from sample_builds import sample_entry

DATA = Path(__file__).parent / "data"
FOLDED, FEWER = str(DATA / "folded.so"), str(DATA / "fewer.so")


def test_size_shows_a_table(ortrim: Run) -> None:
    """Without a map beside the library the sections are shown, with a note."""
    ended = ortrim("size", FOLDED, "--top", "3")
    assert (ended.code, ended.err) == (0, "")
    assert "3,616 bytes" in ended.out
    assert "note: there is no link map" in ended.out


def test_size_as_json_is_one_document(ortrim: Run) -> None:
    document = ortrim("size", FOLDED, "--link-map", str(DATA / "folded.map"), "--by", "symbol", "--json").document()
    assert document["file_bytes"] == 3616 == sum(entry["size_bytes"] for entry in document["entries"])
    assert document["notes"] == []


def test_a_difference_is_from_the_old_to_the_new(ortrim: Run) -> None:
    ended = ortrim("size", "--diff", FEWER, FOLDED)
    assert ended.out.startswith("752 bytes larger")
    document = ortrim("size", "--diff", FOLDED, FEWER, "--by", "section", "--json").document()
    assert document["difference_bytes"] == -752 == sum(entry["difference_bytes"] for entry in document["entries"])


def test_pages_are_written(ortrim: Run, tmp_path: Path) -> None:
    append(tmp_path / "artifacts" / NAME, Record(build=sample_entry()))
    words = {
        "one": ("size", FOLDED),
        "two": ("size", "--diff", FEWER, FOLDED),
        "history": ("history", "--output", str(tmp_path / "artifacts")),
    }
    for name, word in words.items():
        assert ortrim(*word, "--html", str(tmp_path / f"{name}.html")).code == 0
        assert "<figure" in (tmp_path / f"{name}.html").read_text()


@pytest.mark.parametrize(
    ("words", "reference", "code"),
    [
        (("size", FOLDED, "--by", "colour"), "bad-option", 2),
        (("size", FOLDED, "--top", "none"), "bad-option", 2),
        (("size", FOLDED, "--top", "0"), "bad-option", 2),
        (("size", "--diff", FEWER, FOLDED, "--link-map", "x"), "bad-option", 2),
        (("size", "missing.so"), "library-missing", 20),
        (("size", "missing.toml"), "spec-missing", 10),
        (("size", str(DATA / "folded.map")), "not-elf", 20),
        (("history",), "history-missing", 22),
        (("history", "--last", "-1"), "bad-option", 2),
    ],
)
def test_what_is_not_possible_is_a_diagnostic(ortrim: Run, words: tuple[str, ...], reference: str, code: int) -> None:
    """With its reference and exit code, also as JSON, and no traceback; nothing is left in the folder."""
    ended = ortrim(*words)
    assert ended.code == code, ended
    assert f"error: {reference}" in ended.err
    document = ortrim(*words, "--json").document()
    assert document["errors"][0]["code"] == reference
    assert list(Path.cwd().iterdir()) == []


def test_history_shows_the_last_builds(ortrim: Run, tmp_path: Path) -> None:
    store = tmp_path / "artifacts" / NAME
    for size in (1000, 1500):
        append(store, Record(build=sample_entry(file_bytes=size)))
    ended = ortrim("history", "--output", str(store.parent))
    assert ended.code == 0
    assert "+500 (+50.0 %)" in ended.out
    document = ortrim("history", "--output", str(store.parent), "--last", "1", "--json").document()
    assert [build["file_bytes"] for build in document["builds"]] == [1500]
