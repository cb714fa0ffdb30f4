"""Zip archives from anywhere: what is refused, always with a diagnostic, and what is read."""

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import refusing
from ortrim.base import archives
from ortrim.base.archives import inside, open_bundle, open_zip, unpack
from ortrim.errors import ExitCode, StorageError

TarEntry = tuple[str, bytes] | tarfile.TarInfo


def tar_bytes(*entries: TarEntry) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                file.addfile(entry)
            else:
                info = tarfile.TarInfo(entry[0])
                info.size = len(entry[1])
                file.addfile(info, io.BytesIO(entry[1]))
    return buffer.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_bytes(entries: dict[str, bytes], mode: int = 0) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = mode << 16
            file.writestr(info, content)
    return buffer.getvalue()


def git_zip(*entries: tuple[str, bytes | str]) -> bytes:
    """Make a zip as git archives it: files (name, bytes) and symbolic links (name, target), also of one name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of names that are there twice
        for name, content in entries:
            info = zipfile.ZipInfo(name)
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | 0o644 if isinstance(content, bytes) else stat.S_IFLNK | 0o755) << 16
            file.writestr(info, content)
    return buffer.getvalue()


def refused(tmp_path: Path, content: bytes, reference: str, *, zip_links: bool = False) -> None:
    """Check that an archive cannot be unpacked, and without links, that a zip cannot be read in place either."""
    archive = tmp_path / "archive"
    archive.write_bytes(content)
    caught = refusing.refused(StorageError, unpack, archive, tmp_path / "out", zip_links=zip_links)
    assert caught.code == reference
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]
    if content.startswith(b"PK") and not zip_links:
        assert refusing.refused(StorageError, read_all, archive).code == reference


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_tar_is_unpacked_whatever_its_compression(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    (tmp_path / "a").write_bytes(compress(tar_bytes(("top/a/one.txt", b"1"), ("top/two", b"22"))))
    unpack(tmp_path / "a", tmp_path / "out", strip=1)
    assert (tmp_path / "out/a/one.txt").read_bytes() == b"1"
    assert (tmp_path / "out/two").read_bytes() == b"22"


def test_members_map_folders_and_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(zip_bytes({"x/include/h.h": b"h", "x/doc/copyright": b"c", "x/lib.so": b"s"}))
    unpack(tmp_path / "a", tmp_path / "out", members={"x/include": "", "x/doc/copyright": "LICENSE"})
    files = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*")}
    assert files == {"h.h", "LICENSE"}


def test_folders_may_be_left_out(tmp_path: Path) -> None:
    """Whole ones: another whose name begins so is taken, and names are those without what is stripped."""
    names = ("top/kept/a.c", "top/test/a.c", "top/test2/a.c", "top/kept/test/a.c")
    (tmp_path / "a").write_bytes(tar_bytes(*((name, b"a") for name in names)))
    unpack(tmp_path / "a", tmp_path / "out", strip=1, without=("test", "top/kept"))
    files = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.c")}
    assert files == {"kept/a.c", "test2/a.c", "kept/test/a.c"}


def test_nothing_wanted_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(zip_bytes({"x": b""}))
    caught = refusing.refused(StorageError, unpack, tmp_path / "a", tmp_path / "out", members={"y": ""})
    assert caught.code == "nothing-unpacked"
    assert not (tmp_path / "out").exists()


def test_full_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tar_bytes(("x", b"")))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("kept")
    assert refusing.refused(StorageError, unpack, tmp_path / "a", tmp_path / "out").code == "path-in-the-way"
    assert (tmp_path / "out/mine").read_text() == "kept"


@pytest.mark.parametrize("name", ["/etc/escaped", "../escaped", "a/../../escaped", "a\\..\\escaped", "n" * 2000])
def test_names_that_climb_are_refused(tmp_path: Path, name: str) -> None:
    refused(tmp_path, tar_bytes(("good", b"g"), (name, b"evil")), "unsafe-archive")
    (tmp_path / "archive").unlink()
    refused(tmp_path, zip_bytes({"good": b"g", name: b"evil"}), "unsafe-archive")


@pytest.mark.parametrize(
    "entries",
    [
        (special("l", tarfile.SYMTYPE, "/etc/passwd"),),
        (special("l", tarfile.SYMTYPE, "../outside"),),
        (special("d/l", tarfile.SYMTYPE, "../../outside"),),
        (special("l", tarfile.LNKTYPE, "/etc/passwd"),),
        (special("l", tarfile.LNKTYPE, "../archive"),),
        (special("l", tarfile.LNKTYPE, "absent"),),
        (special("s", tarfile.SYMTYPE, "good"), special("l", tarfile.LNKTYPE, "s")),
        # A chain: each link alone stays inside, both together do not; in either order.
        (special("p/q/r", tarfile.SYMTYPE, "../.."), special("s", tarfile.SYMTYPE, "p/q/r/..")),
        (special("s", tarfile.SYMTYPE, "p/q/r/.."), special("p/q/r", tarfile.SYMTYPE, "../..")),
        # A link, and another made through it.
        (special("d", tarfile.SYMTYPE, "e/f"), ("e/f/x", b""), special("d/l", tarfile.SYMTYPE, "x")),
        (special("null", tarfile.CHRTYPE),),
        (special("disk", tarfile.BLKTYPE),),
        (special("pipe", tarfile.FIFOTYPE),),
    ],
)
def test_links_out_and_devices_are_refused(tmp_path: Path, entries: tuple[TarEntry, ...]) -> None:
    refused(tmp_path, tar_bytes(("good", b"g"), *entries), "unsafe-archive")


@pytest.mark.parametrize(
    "entries",
    [
        (("l", "/etc/passwd"),),
        (("l", "../outside"),),
        (("d/l", "../../outside"),),
        (("d/../l", "good"),),
        (("/l", "good"),),
        (("p/q/r", "../.."), ("s", "p/q/r/..")),
        (("s", "p/q/r/.."), ("p/q/r", "../..")),
        (("d", "e/f"), ("e/f/x", b""), ("d/l", "x")),
        # Written through a link, which comes before or after; a link over a file, a folder and another link.
        (("d", "e"), ("d/x", b"through"), ("e/y", b"")),
        (("d/x", b"through"), ("e/y", b""), ("d", "e")),
        (("good", "other"), ("other", b"")),
        (("l", "good"), ("l", b"file")),
        (("l", "good"), ("l", "other"), ("other", b"")),
        (("l", ""),),
        (("l", "x/" * 600 + "../" * 600 + "good"),),
    ],
)
def test_links_of_a_zip_obey_the_rules_of_a_tars(tmp_path: Path, entries: tuple[tuple[str, bytes | str], ...]) -> None:
    """None leads outside, alone or in a chain; none replaces or hides a member, whichever of both comes first."""
    refused(tmp_path, git_zip(("good", b"g"), *entries), "unsafe-archive", zip_links=True)


@pytest.mark.parametrize("target", [b"a\0b", b"\xff\xfe"])
def test_link_of_a_zip_to_what_is_no_name_is_damage(tmp_path: Path, target: bytes) -> None:
    refused(tmp_path, zip_bytes({"l": target}, stat.S_IFLNK | 0o777), "corrupt-archive", zip_links=True)


def test_huge_target_of_a_link_is_not_read(tmp_path: Path) -> None:
    """A link of 8 MiB, which compresses to nothing, takes no memory."""
    content = zip_bytes({"l": b"a" * (8 << 20)}, stat.S_IFLNK | 0o777)
    tracemalloc.start()
    try:
        refused(tmp_path, content, "unsafe-archive", zip_links=True)
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def test_links_of_a_zip_inside_are_kept_and_dangling_ones_left_out(tmp_path: Path) -> None:
    """As of git's archives of flatbuffers and re2, whose links lead to files and folders that come later."""
    entries = (
        ("top/java/Game", "../tests/Game"), ("top/python/LICENSE", "../LICENSE"), ("top/tests/Game/A.java", b"A"),
        ("top/LICENSE", b"text"), ("top/dangling", "nothing"), ("top/loop", "loop"),
    )  # fmt: skip
    (tmp_path / "archive").write_bytes(git_zip(*entries))
    unpack(tmp_path / "archive", tmp_path / "out", strip=1, zip_links=True)
    assert (tmp_path / "out/java/Game").readlink() == Path("../tests/Game")
    assert (tmp_path / "out/java/Game/A.java").read_bytes() == b"A"
    assert (tmp_path / "out/python/LICENSE").read_bytes() == b"text"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["LICENSE", "java", "python", "tests"]


NAMES = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=3).map("/".join)


@settings(max_examples=60, deadline=None)
@given(entries=st.lists(st.tuples(NAMES, st.one_of(NAMES, NAMES.map("/".__add__), st.just(b"own"))), max_size=7))
def test_no_zip_of_links_reaches_outside(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, bytes | str]]
) -> None:
    """Whatever links and files there are: all is inside, files hold their own bytes, nothing else changed."""
    folder = tmp_path_factory.mktemp("links")
    (folder / "a").write_bytes(b"outside")
    (folder / "archive").write_bytes(git_zip(*entries))
    try:
        unpack(folder / "archive", folder / "out", zip_links=True)
    except StorageError:
        assert not (folder / "out").exists()
    assert (folder / "a").read_bytes() == b"outside"
    assert {path.name for path in folder.iterdir()} <= {"a", "archive", "out"}
    for path in (folder / "out").rglob("*"):
        assert path.resolve(strict=True).is_relative_to(folder / "out")
        assert path.is_dir() or path.read_bytes() == b"own"


def test_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    entries = (special("d", tarfile.SYMTYPE, "e"), ("d/x", b"through"), ("e/y", b""))
    refused(tmp_path, tar_bytes(*entries), "unsafe-archive")


def test_links_inside_are_kept_and_dangling_ones_left_out(tmp_path: Path) -> None:
    entries = (
        ("top/a/file", b"content"),
        special("top/b/soft", tarfile.SYMTYPE, "../a/file"),
        special("top/hard", tarfile.LNKTYPE, "top/a/file"),
        special("top/folder", tarfile.SYMTYPE, "a"),
        special("top/dangling", tarfile.SYMTYPE, "nothing"),
        special("top/loop", tarfile.SYMTYPE, "loop"),
    )
    (tmp_path / "archive").write_bytes(tar_bytes(*entries))
    unpack(tmp_path / "archive", tmp_path / "out", strip=1)
    for name in ("b/soft", "hard", "folder/file"):
        assert (tmp_path / "out" / name).read_bytes() == b"content"
    assert not (tmp_path / "out/dangling").is_symlink()
    assert not (tmp_path / "out/loop").is_symlink()


def test_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    """Where nobody asked for links, as of wheels and deliveries: also one that stays inside."""
    refused(tmp_path, git_zip(("file", b"f"), ("l", "file")), "unsafe-archive")


def test_permissions_are_reduced_to_executable_or_not(tmp_path: Path) -> None:
    info = tarfile.TarInfo("tool")
    info.mode = 0o6777
    (tmp_path / "archive").write_bytes(tar_bytes(info, ("data", b"")))
    unpack(tmp_path / "archive", tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out/tool").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "out/data").stat().st_mode) == 0o644


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 10240, b"not an archive", b"PK\x03\x04junk", b"\x1f\x8bjunk", b"BZh9"]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(content)
    caught = refusing.refused(StorageError, unpack, archive, tmp_path / "out")
    assert caught.code in {"corrupt-archive", "nothing-unpacked"}
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, None])
def test_truncated_archives_are_refused(
    tmp_path: Path, compress: Callable[[bytes], bytes] | None, share: float
) -> None:
    noise = bytes(n * 7919 % 251 for n in range(50_000))
    whole = compress(tar_bytes(("a", noise), ("b", noise))) if compress else zip_bytes({"a": noise, "b": noise})
    refused(tmp_path, whole[: int(len(whole) * share)], "corrupt-archive")


def test_wrong_checksum_is_noticed(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(tar_bytes(("a", b"x" * 1000))))
    whole[-6] ^= 0xFF
    refused(tmp_path, bytes(whole), "corrupt-archive")


def test_encrypted_zip_is_refused(tmp_path: Path) -> None:
    whole = bytearray(zip_bytes({"a": b"x"}))
    for signature, offset in ((b"PK\x03\x04", 6), (CENTRAL, 8)):
        whole[whole.index(signature) + offset] |= 1
    refused(tmp_path, bytes(whole), "corrupt-archive")


def test_bomb_is_refused_before_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAXIMUM_BYTES", 1 << 20)
    refused(tmp_path, gzip.compress(tar_bytes(("bomb", bytes(2 << 20)))), "archive-too-large")
    (tmp_path / "archive").unlink()
    refused(tmp_path, zip_bytes({"a": bytes(1 << 20), "b": bytes(1 << 20)}), "archive-too-large")


def test_too_many_entries_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAXIMUM_ENTRIES", 10)
    refused(tmp_path, tar_bytes(*((f"f{n}", b"") for n in range(11))), "archive-too-large")


def test_huge_extended_header_is_not_read_into_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 64 << 20
    refused(tmp_path, gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(64 << 20)), "corrupt-archive")


def test_endless_stream_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAXIMUM_BYTES", 4 << 20)
    refused(tmp_path, gzip.compress(tar_bytes(("a", b"")) + bytes(24 << 20)), "archive-too-large")


def test_negative_size_is_refused(tmp_path: Path) -> None:
    header = bytearray(tar_bytes(("a", b""))[:512])
    header[124:136] = b"\xff" * 10 + b"\xfe\x00"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    refused(tmp_path, bytes(header) + bytes(1024), "corrupt-archive")


def test_file_and_folder_of_one_name_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, tar_bytes(("a", b""), ("a/b", b"")), "corrupt-archive")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_bytes_never_escape_as_tracebacks(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    makers = [
        tar_bytes(("a/b", b"x" * 600)),
        zip_bytes({"a/b": b"x" * 600}),
        gzip.compress(tar_bytes(("a", b"y" * 99))),
    ]
    content = bytearray(data.draw(st.sampled_from(makers)))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (folder / "archive").write_bytes(content)
    try:
        unpack(folder / "archive", folder / "out")
    except StorageError:
        assert not (folder / "out").exists()
    with suppress(StorageError):
        read_all(folder / "archive")
    assert {path.name for path in folder.iterdir()} <= {"archive", "out"}


END = b"PK\x05\x06"
CENTRAL = b"PK\x01\x02"


def archive(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def read_all(path: Path) -> None:
    with open_zip(path, str(path)) as opened:
        for name in opened.members:
            opened.read(name)


def refused_zips(data: bytes, path: Path) -> StorageError:
    path.write_bytes(data)
    caught = refusing.refused(StorageError, read_all, path)
    assert caught.where.startswith(str(path))
    return caught


def test_members_are_read_in_place(tmp_path: Path) -> None:
    """Files by name, folders left out, from disk and from memory."""
    data = archive(("jni/", b""), ("jni/a.so", b"a" * 1000), ("R.txt", b""))
    (tmp_path / "a.zip").write_bytes(data)
    for source in (tmp_path / "a.zip", io.BytesIO(data)):
        with open_zip(source, "a.zip") as opened:
            assert list(opened.members) == ["jni/a.so", "R.txt"]
            assert opened.read("jni/a.so") == b"a" * 1000
            with pytest.raises(KeyError):
                opened.read("absent")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["jni/a.so", "jni/a.so/"])
def test_a_name_that_is_there_twice_is_refused(tmp_path: Path, second: str) -> None:
    """One reader would take the first, another the second."""
    error = refused_zips(archive(("jni/a.so", b"good"), (second, b"")), tmp_path / "a.zip")
    assert error.code == "unsafe-archive"
    assert "twice" in error.why


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip archive", END + bytes(18)[:3], b"\x1f\x8b" + bytes(100)])
def test_what_is_no_zip_is_refused(tmp_path: Path, data: bytes) -> None:
    """Empty, text, a cut end, gzip."""
    assert refused_zips(data, tmp_path / "a.zip").code == "corrupt-archive"


def test_places_before_the_beginning_are_damage(tmp_path: Path) -> None:
    """A list of members that claims to begin, or to be, anywhere: the archive's fault, not the disk's."""
    data = bytearray(archive(("a", b"a" * 100)))
    end = data.index(END)
    references = set()
    for offset in range(12, 20):
        changed = bytes(data[: end + offset]) + b"\xff" + bytes(data[end + offset + 1 :])
        references.add(refused_zips(changed, tmp_path / "a.zip").code)
    assert references == {"corrupt-archive"}


def test_a_missing_file_and_a_folder_are_reported(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.zip", tmp_path):
        with pytest.raises(StorageError) as caught, open_zip(path, str(path)):
            pass
        assert caught.value.where == str(path)


def test_a_member_with_another_checksum_is_refused(tmp_path: Path) -> None:
    data = bytearray(archive(("a", bytes(1000))))
    data[14] ^= 0xFF
    data[data.index(CENTRAL) + 16] ^= 0xFF
    assert refused_zips(bytes(data), tmp_path / "a.zip").code == "corrupt-archive"


def crowded(claimed: int) -> bytes:
    entry = CENTRAL + struct.pack("<HHHHHHIIIHHHHHII", 20, 20, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    directory = entry * 250_000
    return directory + END + struct.pack("<HHHHIIH", 0, 0, claimed, claimed, len(directory), 0, 0)


@pytest.mark.parametrize("claimed", [0, 1, 0xFFFE])
def test_a_crowd_of_members_is_refused_before_they_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: int
) -> None:
    """Whatever number the end of the archive claims: Python's reader makes an object of each, which takes long."""
    monkeypatch.setattr(zipfile, "ZipInfo", None)
    assert refused_zips(crowded(claimed), tmp_path / "a.zip").code == "archive-too-large"
    caught = refusing.refused(StorageError, unpack, tmp_path / "a.zip", tmp_path / "unpacked")
    assert caught.code == "archive-too-large"


def test_members_may_hold_what_looks_like_many_members(tmp_path: Path) -> None:
    """Only the directory is counted: an archive may lie in an archive."""
    (tmp_path / "a.zip").write_bytes(archive(("inner.zip", crowded(1))))
    with open_zip(tmp_path / "a.zip", "a.zip") as opened:
        assert opened.read("inner.zip") == crowded(1)


def test_one_huge_member_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST_MEMBER", 999)
    assert refused_zips(archive(("a", bytes(1000))), tmp_path / "a.zip").code == "archive-too-large"


def test_a_member_that_unpacks_to_more_than_it_claims_is_refused(tmp_path: Path) -> None:
    """Reading ends at the size that was claimed, and the checksum is then another."""
    data = bytearray(archive(("a", bytes(1 << 20))))
    struct.pack_into("<I", data, data.index(CENTRAL) + 24, 10)
    assert refused_zips(bytes(data), tmp_path / "a.zip").code == "corrupt-archive"


def test_what_the_system_says_of_a_file_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a link to itself, a network's disk that is away: nobody is told to remove what is whole."""
    folder, circle, whole = tmp_path / "a.zip", tmp_path / "b.zip", tmp_path / "c.zip"
    folder.mkdir()
    circle.symlink_to(circle)
    whole.write_bytes(archive(("a", b"1")))
    for path in (folder, circle):
        with pytest.raises(StorageError) as caught:
            read_all(path)
        assert (caught.value.code, "remove" in caught.value.hint) != ("corrupt-archive", True)

    def away(*_: object) -> bytes:
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))

    monkeypatch.setattr(zipfile.ZipExtFile, "read", away)
    for take in (read_all, lambda path: unpack(path, tmp_path / "out")):
        with pytest.raises(StorageError) as caught:
            take(whole)
        assert caught.value.code == "storage-failed"


FILES = {"a.txt": b"a", "A/b.txt": b"bb", "A/B/c.txt": b"ccc"}
LINKS = {"Current": "A", "A/up": "../a.txt", "C": "Current/B", "loop": "loop", "out": "../x", "root": "/etc"}


def as_folder(path: Path) -> Path:
    for name, content in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    for name, target in LINKS.items():
        (path / name).symlink_to(target)
    return path


def as_zip(path: Path) -> Path:
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
    return as_folder(tmp_path / "folder") if request.param == "folder" else as_zip(tmp_path / "file.zip")


def test_files_and_links_are_the_same_in_either_form(path: Path) -> None:
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
    os.mkfifo(as_folder(tmp_path / "x") / "pipe")
    with pytest.raises(StorageError) as caught, open_bundle(tmp_path / "x"):
        pass
    assert (caught.value.code, caught.value.exit_code) == ("unsafe-folder", ExitCode.STORAGE)


def test_what_disappears_while_it_is_read_is_told(tmp_path: Path) -> None:
    with open_bundle(as_folder(tmp_path / "x")) as bundle:
        (tmp_path / "x" / "a.txt").unlink()
        caught = refusing.refused(StorageError, bundle.read, "a.txt")
    assert "a.txt" in caught.where


def test_paths_in_the_bundles_own_folder_are_plain() -> None:
    assert (inside("", "a"), inside("a", "b/c"), inside("", ""), inside("a", "")) == ("a", "a/b/c", "", "a")
