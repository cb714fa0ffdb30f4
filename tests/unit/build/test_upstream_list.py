import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.build.source_archives import Dependency, parse_dependencies, read_dependency_list, version_in
from ortrim.errors import Diagnostic, NetworkError, SourcesError

RECORDED = """\
#Name;Url;SHA1
#This is a CSV file.
#
abseil_cpp;https://github.com/abseil/abseil-cpp/archive/refs/tags/20240722.0.zip;36ee53eb1466fb6e593fc5c286680de31f8a494a
# Issue link: https://gitlab.com/libeigen/eigen/-/issues/2744
eigen;https://gitlab.com/libeigen/eigen/-/archive/1d8b82b/eigen-1d8b82b.zip;5ea4d05e62d7f954a46b3213f9b2535bdd866803
"""
COMMIT = "a" * 40


def archive(path: Path, files: dict[str, str], comment: str = COMMIT) -> Path:
    """Make a zip archive as git does, with the commit in its comment."""
    with zipfile.ZipFile(path, "w") as file:
        for name, text in files.items():
            file.writestr(name, text)
        file.comment = comment.encode()
    return path


def test_recorded_list_is_read() -> None:
    """Lines of upstream's file become dependencies; comments do not."""
    first, second = parse_dependencies(RECORDED)
    assert first == Dependency(
        name="abseil_cpp",
        url="https://github.com/abseil/abseil-cpp/archive/refs/tags/20240722.0.zip",
        sha1="36ee53eb1466fb6e593fc5c286680de31f8a494a",
    )
    assert second.name == "eigen"


@pytest.mark.parametrize("line", ["a;b", "a;b;c", "a;b;" + "g" * 40, "a;b;c;" + "0" * 40, "<html>"])
def test_other_lines_are_refused(line: str) -> None:
    """A line that is not `name;url;sha1` stops the update: nothing is guessed."""
    with pytest.raises(SourcesError) as caught:
        parse_dependencies(RECORDED + line)
    assert caught.value.code == "bad-dependency-list"


@given(st.text())
def test_any_text_ends_in_a_list_or_a_diagnostic(text: str) -> None:
    """Whatever the file holds, reading it ends."""
    with suppress(SourcesError):
        assert all(len(each.sha1) == 40 for each in parse_dependencies(text))


@pytest.mark.parametrize(
    ("url", "version"),
    [
        ("https://x.org/archive/refs/tags/v3.11.3.zip", "3.11.3"),
        ("https://x.org/archive/refs/tags/2024-07-02.zip", "2024-07-02"),
        ("https://x.org/archive/refs/tags/boost-1.82.0.tar.gz?x=1", "boost-1.82.0"),
    ],
)
def test_version_is_what_the_address_says(url: str, version: str) -> None:
    """The tag or commit of an archive's address serves as its version."""
    assert version_in(url) == version


def test_list_of_the_right_commit_is_returned(tmp_path: Path) -> None:
    """The list comes out of the archive when that is of the commit asked for."""
    path = archive(tmp_path / "a.zip", {"onnxruntime-1/cmake/deps.txt": RECORDED})
    assert read_dependency_list(path, COMMIT) == RECORDED


@pytest.mark.parametrize(
    ("files", "comment", "reference"),
    [
        ({"o/cmake/deps.txt": RECORDED}, "b" * 40, "commit-mismatch"),
        ({"o/cmake/deps.txt": RECORDED}, "", "commit-mismatch"),
        ({"o/README": ""}, COMMIT, "bad-dependency-list"),
        ({"o/cmake/deps.txt": "#" * (2 << 20)}, COMMIT, "bad-dependency-list"),
    ],
)
def test_archives_that_do_not_fit_are_refused(
    tmp_path: Path, files: dict[str, str], comment: str, reference: str
) -> None:
    """An archive of another commit, of none, without the list or with a giant one, is refused."""
    with pytest.raises(SourcesError) as caught:
        read_dependency_list(archive(tmp_path / "a.zip", files, comment), COMMIT)
    assert caught.value.code == reference


def test_page_instead_of_an_archive(tmp_path: Path) -> None:
    """A login page in place of the archive is a diagnostic."""
    (tmp_path / "a.zip").write_text("<html>")
    with pytest.raises(Diagnostic) as caught:
        read_dependency_list(tmp_path / "a.zip", COMMIT)
    assert isinstance(caught.value, NetworkError)
    assert caught.value.code == "corrupt-download"
