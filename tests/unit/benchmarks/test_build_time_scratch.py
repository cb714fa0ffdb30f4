"""The folders of cases: what is there at the beginning, what stays as it was."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from build_time.scratch import (
    FETCHED,
    empty_cache,
    forget_others,
    other_cache,
    read_through,
    restore,
    save,
    with_sources,
)

from ortrim.base.cache import cache_folder


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's cache, in which something was fetched and something built."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "real"))
    for kind in ("sources", "packages", "builds", "compiler", "trees", "units"):
        (cache_folder(kind) / "thing").mkdir()
        (cache_folder(kind) / "thing" / "file").write_text(kind)
    return tmp_path / "real"


def within(cache: Path, work: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return what `work` returns in a process whose cache is another."""
    with monkeypatch.context() as patch:
        patch.setenv("ORTRIM_CACHE", str(cache))
        return work()


def test_an_empty_cache_has_what_was_fetched_and_nothing_that_was_built(
    real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither libraries nor objects nor trees nor what was learnt of them."""
    cache = empty_cache(tmp_path / "case")
    assert {path.name for path in cache.iterdir()} == set(FETCHED)
    assert within(cache, lambda: cache_folder("packages"), monkeypatch) == (real / "packages").resolve()
    for kind in ("builds", "compiler", "sources", "trees", "units"):
        assert list(within(cache, lambda kind=kind: cache_folder(kind), monkeypatch).iterdir()) == []  # type: ignore[misc]


def test_making_a_cache_empty_again_removes_no_fetched_file(real: Path, tmp_path: Path) -> None:
    """Links are removed, not what they lead to."""
    cache = empty_cache(tmp_path / "case")
    (cache / "trees").mkdir()
    (cache / "trees" / "left").touch()
    empty_cache(cache)
    assert not (cache / "trees").exists()
    assert (real / "packages" / "thing" / "file").read_text() == "packages"


def test_a_saved_cache_comes_back_to_its_place(real: Path, tmp_path: Path) -> None:
    """Whatever happened there since, and with the times by which ninja judges."""
    cache = empty_cache(tmp_path / "case")
    (cache / "trees").mkdir()
    (cache / "trees" / "a.o").write_text("a")
    os.utime(cache / "trees" / "a.o", ns=(1, 1_234_567_890_123_456_789))
    save(cache, tmp_path / "state")
    (cache / "trees" / "a.o").write_text("b")
    (cache / "trees" / "b.o").touch()
    assert restore(tmp_path / "state", cache) == cache
    assert [path.name for path in (cache / "trees").iterdir()] == ["a.o"]
    assert (cache / "trees" / "a.o").read_text() == "a"
    assert (cache / "trees" / "a.o").stat().st_mtime_ns == 1_234_567_890_123_456_789
    assert (cache / "packages").is_symlink()


def test_saving_again_keeps_the_newer_state(real: Path, tmp_path: Path) -> None:
    """A case that is measured again leaves what later cases start from."""
    cache = empty_cache(tmp_path / "case")
    save(cache, tmp_path / "state")
    (cache / "new").touch()
    save(cache, tmp_path / "state")
    assert (tmp_path / "state" / "new").is_file()


def test_another_cache_shares_the_objects_and_no_tree(real: Path, tmp_path: Path) -> None:
    """As on another machine that was given a copy of the compiler cache."""
    cache = empty_cache(tmp_path / "case")
    for kind in ("compiler", "trees", "builds"):
        (cache / kind).mkdir()
        (cache / kind / "file").touch()
    save(cache, tmp_path / "state")
    other = other_cache(tmp_path / "state", tmp_path / "other")
    assert (other / "compiler" / "file").is_file()
    assert not (other / "trees").exists()
    assert not (other / "builds").exists()
    (other / "compiler" / "file").write_text("changed")
    assert (tmp_path / "state" / "compiler" / "file").read_text() == ""


def test_a_state_without_a_compiler_cache_gives_an_empty_one(real: Path, tmp_path: Path) -> None:
    """The cache's server may not have started."""
    save(empty_cache(tmp_path / "case"), tmp_path / "state")
    assert not (other_cache(tmp_path / "state", tmp_path / "other") / "compiler").exists()


def sources(folder: Path) -> Path:
    """Make a small tree of sources."""
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "x.cc").write_text("x")
    (folder / "link").symlink_to("a")
    return folder


def test_a_cache_has_its_own_tree_of_the_sources(tmp_path: Path) -> None:
    """It lies where `invoke build` has it; asked for twice, it is made once."""
    own = with_sources(tmp_path / "cache", sources(tmp_path / "digest"))
    assert own == tmp_path / "cache" / "sources" / "digest"
    assert (own / "a" / "x.cc").read_text() == "x"
    assert (own / "link").readlink() == Path("a")
    (own / "mark").touch()
    assert (with_sources(tmp_path / "cache", tmp_path / "digest") / "mark").exists()


def test_sources_on_another_disk_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links do not reach there."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("build_time.scratch.os.link", refuse)
    own = with_sources(tmp_path / "cache", sources(tmp_path / "digest"))
    assert (own / "a" / "x.cc").read_text() == "x"


def test_a_saved_cache_is_without_sources(tmp_path: Path) -> None:
    """Half a gigabyte that each case can link anew; a folder of that name further down is another thing."""
    with_sources(tmp_path / "cache", sources(tmp_path / "digest"))
    (tmp_path / "cache" / "trees" / "sources").mkdir(parents=True)
    save(tmp_path / "cache", tmp_path / "state")
    assert not (tmp_path / "state" / "sources").exists()
    assert (tmp_path / "state" / "trees" / "sources").is_dir()


def test_reading_through_reads_each_file_once(tmp_path: Path) -> None:
    """Links would lead around in circles."""
    (sources(tmp_path / "one") / "a" / "round").symlink_to("..")
    assert read_through(tmp_path / "one", tmp_path / "none") == 1


def test_other_folders_are_forgotten(tmp_path: Path) -> None:
    """What was kept for another commit takes hundreds of megabytes."""
    for name in ("old", "new"):
        (tmp_path / name / "x").mkdir(parents=True)
    forget_others(tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    forget_others(tmp_path / "none" / "new")
