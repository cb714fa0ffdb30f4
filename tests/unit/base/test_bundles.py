"""Folders and zip archives of folders: the same files, links that stay inside, and nothing that hangs or climbs."""

import os
import stat
import zipfile
from pathlib import Path

import pytest

from ortrim.base.archives import inside, open_bundle
from ortrim.errors import ExitCode, StorageError

FILES = {"a.txt": b"a", "A/b.txt": b"bb", "A/B/c.txt": b"ccc"}
LINKS = {"Current": "A", "A/up": "../a.txt", "C": "Current/B", "loop": "loop", "out": "../x", "root": "/etc"}


def as_folder(path: Path) -> Path:
    """Return a folder of the files and links."""
    for name, content in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    for name, target in LINKS.items():
        (path / name).symlink_to(target)
    return path


def as_zip(path: Path) -> Path:
    """Return a zip archive of the files and links."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
        for name, target in LINKS.items():
            about = zipfile.ZipInfo(name)
            about.external_attr = (stat.S_IFLNK | 0o755) << 16
            archive.writestr(about, target)
    return path


@pytest.fixture(params=["folder", "zip"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the files and links in either form."""
    return as_folder(tmp_path / "folder") if request.param == "folder" else as_zip(tmp_path / "file.zip")


def test_files_and_links_are_the_same_in_either_form(path: Path) -> None:
    """With sizes, contents, and what links say."""
    with open_bundle(path) as bundle:
        assert dict(bundle.files) == {name: len(content) for name, content in FILES.items()}
        assert dict(bundle.links) == LINKS
        assert {name: bundle.read(name) for name in bundle.files} == FILES
        assert bundle.head("A/B/c.txt", 2) == b"cc"
        assert bundle.below("A") == ("A/B/c.txt", "A/b.txt")
        assert bundle.folders == {"", "A", "A/B"}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a.txt", "a.txt"),
        ("Current", "A"),
        ("Current/b.txt", "A/b.txt"),
        ("C/c.txt", "A/B/c.txt"),
        ("A/up", "a.txt"),
        ("A/../a.txt", "a.txt"),
        ("absent", None),
        ("loop", None),
        ("loop/x", None),
        ("out", None),
        ("root/passwd", None),
        ("../folder/a.txt", None),
        ("/etc/passwd", None),
    ],
)
def test_paths_are_followed_inside_alone(path: Path, name: str, found: str | None) -> None:
    """What climbs, is absolute, or goes in a circle leads nowhere."""
    with open_bundle(path) as bundle:
        assert bundle.found(name) == found


def test_a_folder_is_no_file(path: Path) -> None:
    """Where a file is wanted, over links too."""
    with open_bundle(path) as bundle:
        assert (bundle.file("Current"), bundle.file("Current/b.txt")) == (None, "A/b.txt")


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """Reading one would wait for ever."""
    os.mkfifo(as_folder(tmp_path / "x") / "pipe")
    with pytest.raises(StorageError) as caught, open_bundle(tmp_path / "x"):
        pass
    assert (caught.value.code, caught.value.exit_code) == ("unsafe-folder", ExitCode.STORAGE)


def test_what_disappears_while_it_is_read_is_told(tmp_path: Path) -> None:
    """As a `StorageError` that names the file."""
    with open_bundle(as_folder(tmp_path / "x")) as bundle:
        (tmp_path / "x" / "a.txt").unlink()
        with pytest.raises(StorageError) as caught:
            bundle.read("a.txt")
    assert "a.txt" in caught.value.where


def test_paths_in_the_bundles_own_folder_are_plain() -> None:
    """Its own folder is the empty path."""
    assert (inside("", "a"), inside("a", "b/c"), inside("", ""), inside("a", "")) == ("a", "a/b/c", "", "a")
