import os
from pathlib import Path

import pytest

from ortrim.base.cache import cache_folder
from ortrim.errors import ExitCode, StorageError
from ortrim.pins.shipped import pin_text


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
    assert caught.value.code == "path-in-the-way"


def test_links_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache reached through a symbolic link has its real path: the one that compilers will see."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "c").symlink_to(tmp_path / "disk")
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "c"))
    assert cache_folder("tools") == tmp_path / "disk/tools"


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user that is only a number, as in many containers: neither HOME nor an entry in the list of users."""
    monkeypatch.delenv("HOME", raising=False)
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)


@pytest.mark.usefixtures("homeless")
@pytest.mark.parametrize("chosen", ["", "~/cache", "~nobody-of-this-name/cache"])
def test_without_a_home_folder_a_cache_has_to_be_named(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The diagnostic says by what; nothing is made in a folder called `~`."""
    monkeypatch.setenv("ORTRIM_CACHE", chosen)
    with pytest.raises(StorageError) as caught:
        cache_folder("sources")
    assert (caught.value.code, caught.value.exit_code) == ("no-home", ExitCode.STORAGE)
    assert "ORTRIM_CACHE" in caught.value.hint


@pytest.mark.usefixtures("homeless")
def test_without_a_home_folder_there_are_the_pins_of_ortrim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to have a home folder who names a cache."""
    monkeypatch.delenv("ORTRIM_PINS", raising=False)
    assert pin_text("actions.toml")
    monkeypatch.setenv("ORTRIM_PINS", "~/pins")
    with pytest.raises(StorageError, match="no home folder"):
        pin_text("actions.toml")
