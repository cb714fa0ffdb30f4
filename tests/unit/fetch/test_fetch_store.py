"""The cache of fetched files, and how they get from there into an app."""

import hashlib
from pathlib import Path

import pytest

from ortrim.base.checksums import FileEntry, checksums_text
from ortrim.base.files import sha256_of
from ortrim.errors import StorageError
from ortrim.github.fetch import placing
from ortrim.github.fetch.offers import delivered_files, fetch_archive
from ortrim.github.fetch.placing import LockedArtifact, Store, place
from refusing import refused
from zips import zipped


def kept(store: Store, folder: Path, **files: bytes) -> tuple[FileEntry, ...]:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return store.adopt(folder, {name: hashlib.sha256(content).hexdigest() for name, content in files.items()})


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(folder=tmp_path / "store")


def test_files_are_kept_by_their_content(store: Store, tmp_path: Path) -> None:
    """Two of the same content are one file there; both can be copied out."""
    entries = kept(store, tmp_path / "in", a=b"same", b=b"same", c=b"other")
    assert [(entry.path, entry.size_bytes) for entry in entries] == [("a", 4), ("b", 4), ("c", 5)]
    assert sum(path.is_file() for path in store.folder.rglob("*")) == 2
    assert store.missing(entries) == ()
    store.copy(entries[1], tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"same"


@pytest.mark.parametrize("mended", [True, False])
def test_a_file_that_another_fetch_removes_or_mends_meanwhile(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, mended: bool
) -> None:
    """Two fetches find the same damage at once: what one of them fetched anew stays, what is gone is missing."""
    entries = kept(store, tmp_path / "in", a=b"same")
    path, look = store.path_of(entries[0].sha256), sha256_of
    path.write_bytes(b"SAME")

    def late(file: Path) -> str:
        found = look(file) if mended else ""
        path.unlink()
        if not mended:
            return look(file)
        kept(store, tmp_path / "in", a=b"same")
        return found

    monkeypatch.setattr(placing, "sha256_of", late)
    assert store.missing(entries) == (() if mended else entries)
    assert path.exists() == mended


def test_a_file_that_changes_while_it_is_copied_is_noticed(store: Store, tmp_path: Path) -> None:
    (entry,) = kept(store, tmp_path / "in", a=b"same")
    store.path_of(entry.sha256).write_bytes(b"SAME")
    assert refused(StorageError, store.copy, entry, tmp_path / "copy").code == "cache-damaged"


def test_an_archive_is_remembered_as_long_as_all_of_it_is_there(store: Store, tmp_path: Path) -> None:
    """Otherwise it has to come again; so too when the list of it is damaged."""
    entries = kept(store, tmp_path / "in", a=b"same", c=b"other")
    assert store.remembered("archive") is None
    store.remember("archive", entries)
    assert store.remembered("archive") == entries
    store.list_of("archive").write_text('[{"path": "a"}]')
    assert store.remembered("archive") is None
    store.remember("archive", entries)
    store.path_of(entries[0].sha256).unlink()
    assert store.remembered("archive") is None


def test_an_archive_whose_list_was_never_recorded_is_fetched_again(store: Store, tmp_path: Path) -> None:
    content = b"a"
    listed = f"{hashlib.sha256(content).hexdigest()}  a\n"
    store.list_of("f" * 64).parent.mkdir(parents=True)
    store.list_of("f" * 64).write_text("[]")

    def download(destination: Path) -> None:
        destination.write_bytes(zipped({"a": content, "SHA256SUMS": listed}))

    fetch_archive(store, "delivery", "f" * 64, download)
    assert [entry.path for entry in store.remembered("f" * 64) or ()] == ["a"]


def test_a_delivery_that_is_gone_is_not_half_there(store: Store, tmp_path: Path) -> None:
    artifact = LockedArtifact(name="a", sha256=64 * "a")
    entries = kept(store, tmp_path / "in", a=b"same", c=b"other")
    store.remember(64 * "a", entries)
    assert delivered_files(store, artifact) == entries
    store.path_of(entries[0].sha256).unlink()
    assert refused(StorageError, delivered_files, store, artifact).code == "cache-damaged"


# Placing


def test_files_are_placed_with_their_sums(store: Store, tmp_path: Path) -> None:
    """Once; the second time there is nothing to do, and nothing is touched."""
    entries, output = kept(store, tmp_path / "in", a=b"1", b=b"2"), tmp_path / "app" / "out"
    told: list[set[str]] = []
    assert place(entries, store, output, lambda: told.append(names(tmp_path / "app")))
    assert {path.name: path.read_text() for path in output.iterdir()} == {
        "a": "1",
        "b": "2",
        "SHA256SUMS": checksums_text(entries),
    }
    assert told[0] >= {"out"}
    before = output.stat()
    assert not place(entries, store, output, lambda: told.append(set()))
    assert (output.stat(), len(told)) == (before, 2)
    assert names(tmp_path / "app") == {"out"}


@pytest.mark.parametrize("change", ["edit", "remove", "sums", "link"])
def test_what_was_changed_is_placed_again(store: Store, tmp_path: Path, change: str) -> None:
    """A listed file that is another one, gone, or a link."""
    entries, output = kept(store, tmp_path / "in", a=b"1", b=b"2"), tmp_path / "out"
    place(entries, store, output)
    changed = output / ("SHA256SUMS" if change == "sums" else "a")
    if change == "link":
        changed.unlink()
        changed.symlink_to(tmp_path / "nowhere")
    elif change == "remove":
        changed.unlink()
    else:
        changed.write_text(changed.read_text() + f"{64 * '0'}  c\n")
    assert place(entries, store, output)
    assert (output / "a").read_bytes() == b"1"
    assert not (output / "a").is_symlink()


@pytest.mark.parametrize("strange", ["own.txt", "deep/own.txt"])
def test_a_file_of_the_users_own_is_kept(store: Store, tmp_path: Path, strange: str) -> None:
    old, new = kept(store, tmp_path / "in", a=b"1"), kept(store, tmp_path / "in", a=b"2")
    place(old, store, tmp_path / "out")
    (tmp_path / "out" / strange).parent.mkdir(exist_ok=True)
    (tmp_path / "out" / strange).write_text("mine")
    caught = refused(StorageError, place, new, store, tmp_path / "out")
    assert (caught.code, caught.why) == ("path-in-the-way", strange)
    assert (tmp_path / "out" / strange).read_text() == "mine"
    assert (tmp_path / "out" / "a").read_bytes() == b"1"


@pytest.mark.parametrize(("busy", "first"), [("out", ""), ("new", ""), ("new", "first")])
def test_a_failed_swap_is_undone(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: str, first: str
) -> None:
    """The earlier version is back in its place, nothing else is left, and nobody was told that it is done."""
    old, new = kept(store, tmp_path / "in", a=b"1"), kept(store, tmp_path / "in", a=b"2")
    output, told = tmp_path / "app" / "out", list[bool]()
    output.parent.mkdir()
    if not first:
        place(old, store, output)
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if path.name == busy:
            raise OSError(16, "Device or resource busy")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    error = refused(StorageError, place, new, store, output, lambda: told.append(True))
    assert (error.code, told) == ("storage-failed", [])
    assert names(tmp_path / "app") == (set() if first else {"out"})
    assert first or (output / "a").read_bytes() == b"1"


@pytest.mark.parametrize("error", [StorageError("disk-full", "no space"), KeyboardInterrupt()])
@pytest.mark.parametrize("first", ["", "first"])
def test_a_lock_file_that_cannot_be_written_undoes_the_swap(
    store: Store, tmp_path: Path, error: BaseException, first: str
) -> None:
    """When it is written the new files are in their place; the earlier ones come back, or the folder is gone again."""
    old, new = kept(store, tmp_path / "in", a=b"1"), kept(store, tmp_path / "in", a=b"2")
    output, seen = tmp_path / "app" / "out", list[bytes]()
    if not first:
        place(old, store, output)

    def failing() -> None:
        seen.append((output / "a").read_bytes())
        raise error

    with pytest.raises(type(error)):
        place(new, store, output, failing)
    assert seen == [b"2"]
    assert names(tmp_path / "app") == (set() if first else {"out"})
    assert first or (output / "a").read_bytes() == b"1"


def test_what_a_killed_fetch_left_is_removed(store: Store, tmp_path: Path) -> None:
    entries = kept(store, tmp_path / "in", a=b"1")
    (tmp_path / "app" / ".out.partial-x" / "new").mkdir(parents=True)
    place(entries, store, tmp_path / "app" / "out")
    assert names(tmp_path / "app") == {"out"}
