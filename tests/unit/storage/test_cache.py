from pathlib import Path

import pytest

from ortrim.errors import StorageError
from ortrim.storage.cache import cache_folder


def test_cache_lies_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ORTRIM_CACHE` chooses the place; the folder is made."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "c"))
    assert cache_folder("tools") == tmp_path / "c/tools"
    assert (tmp_path / "c/tools").is_dir()


def test_relative_cache_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative `ORTRIM_CACHE` still works for programs that are started in other folders."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORTRIM_CACHE", "here")
    assert cache_folder("tools") == tmp_path / "here/tools"


def test_default_is_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variable, the platform's cache folder is used; an empty one counts as none."""
    monkeypatch.setenv("ORTRIM_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("tools") == tmp_path / "ortrim/tools"


def test_file_in_place_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that is a file is a diagnostic."""
    (tmp_path / "c").write_text("")
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "c"))
    with pytest.raises(StorageError) as caught:
        cache_folder("tools")
    assert caught.value.reference == "path-in-the-way"


def test_links_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache reached through a symbolic link has its real path: the one that compilers will see."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "c").symlink_to(tmp_path / "disk")
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "c"))
    assert cache_folder("tools") == tmp_path / "disk/tools"
