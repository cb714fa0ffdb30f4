import bz2
import gzip
import io
import lzma
import stat
import tarfile
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortrim.base import archives as members_module
from ortrim.base import archives as unpack_module
from ortrim.base.archives import unpack
from ortrim.errors import ExitCode, StorageError

TarEntry = tuple[str, bytes] | tarfile.TarInfo


def tar_bytes(*entries: TarEntry) -> bytes:
    """Make a plain tar of files (name, content) and of ready-made headers."""
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
    """Make the header of a link or a device."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_bytes(entries: dict[str, bytes], mode: int = 0) -> bytes:
    """Make a zip whose entries all have one Unix mode."""
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


def refused(tmp_path: Path, content: bytes, reference: str, *, zip_links: bool = False) -> StorageError:
    """Unpack `content`, which must be refused, and check that nothing is left inside or outside."""
    archive = tmp_path / "archive"
    archive.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        unpack(archive, tmp_path / "out", zip_links=zip_links)
    assert caught.value.code == reference
    assert caught.value.exit_code == ExitCode.STORAGE
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]
    return caught.value


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_tar_is_unpacked_whatever_its_compression(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    """A tar gives its files, whether plain or compressed with gzip, bzip2 or xz."""
    (tmp_path / "a").write_bytes(compress(tar_bytes(("top/a/one.txt", b"1"), ("top/two", b"22"))))
    unpack(tmp_path / "a", tmp_path / "out", strip=1)
    assert (tmp_path / "out/a/one.txt").read_bytes() == b"1"
    assert (tmp_path / "out/two").read_bytes() == b"22"


def test_members_map_folders_and_files(tmp_path: Path) -> None:
    """Only what is asked for is taken, under the names asked for."""
    (tmp_path / "a").write_bytes(zip_bytes({"x/include/h.h": b"h", "x/doc/copyright": b"c", "x/lib.so": b"s"}))
    unpack(tmp_path / "a", tmp_path / "out", members={"x/include": "", "x/doc/copyright": "LICENSE"})
    files = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*")}
    assert files == {"h.h", "LICENSE"}


def test_nothing_wanted_is_an_error(tmp_path: Path) -> None:
    """An archive that holds none of the wanted files is refused: the pin and the archive do not fit."""
    (tmp_path / "a").write_bytes(zip_bytes({"x": b""}))
    with pytest.raises(StorageError) as caught:
        unpack(tmp_path / "a", tmp_path / "out", members={"y": ""})
    assert caught.value.code == "nothing-unpacked"
    assert not (tmp_path / "out").exists()


def test_full_folder_is_left_alone(tmp_path: Path) -> None:
    """A folder with something in it is neither unpacked into nor removed."""
    (tmp_path / "a").write_bytes(tar_bytes(("x", b"")))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("kept")
    with pytest.raises(StorageError) as caught:
        unpack(tmp_path / "a", tmp_path / "out")
    assert caught.value.code == "path-in-the-way"
    assert (tmp_path / "out/mine").read_text() == "kept"


@pytest.mark.parametrize("name", ["/etc/escaped", "../escaped", "a/../../escaped", "a\\..\\escaped", "n" * 2000])
def test_names_that_climb_are_refused(tmp_path: Path, name: str) -> None:
    """Neither an absolute name nor one with `..`, a backslash or thousands of characters is written anywhere."""
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
    """No link that leads out of the folder, alone or in a chain, and no device or pipe is made."""
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
    """Bytes that no path can have."""
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
    """A member below a link of the archive becomes a file of its own; the link that is in its way is refused."""
    entries = (special("d", tarfile.SYMTYPE, "e"), ("d/x", b"through"), ("e/y", b""))
    refused(tmp_path, tar_bytes(*entries), "unsafe-archive")


def test_links_inside_are_kept_and_dangling_ones_left_out(tmp_path: Path) -> None:
    """Links within the archive work after unpacking; one that leads nowhere is not made."""
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
    """Set-user bits and write permission for others do not survive; being executable does."""
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
    """Emptiness, zeros, text and mere beginnings of archives are refused."""
    archive = tmp_path / "archive"
    archive.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        unpack(archive, tmp_path / "out")
    assert caught.value.code in {"corrupt-archive", "nothing-unpacked"}
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, None])
def test_truncated_archives_are_refused(
    tmp_path: Path, compress: Callable[[bytes], bytes] | None, share: float
) -> None:
    """An archive that was cut short anywhere is refused."""
    noise = bytes(n * 7919 % 251 for n in range(50_000))
    whole = compress(tar_bytes(("a", noise), ("b", noise))) if compress else zip_bytes({"a": noise, "b": noise})
    refused(tmp_path, whole[: int(len(whole) * share)], "corrupt-archive")


def test_wrong_checksum_is_noticed(tmp_path: Path) -> None:
    """A gzip file whose checksum at the end is wrong is refused though all members could be read."""
    whole = bytearray(gzip.compress(tar_bytes(("a", b"x" * 1000))))
    whole[-6] ^= 0xFF
    refused(tmp_path, bytes(whole), "corrupt-archive")


def test_encrypted_zip_is_refused(tmp_path: Path) -> None:
    """A zip entry that needs a password is refused with a diagnostic."""
    whole = bytearray(zip_bytes({"a": b"x"}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        whole[whole.index(signature) + offset] |= 1
    refused(tmp_path, bytes(whole), "corrupt-archive")


def test_bomb_is_refused_before_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What claims more bytes than allowed is refused, in a tar and in a zip."""
    monkeypatch.setattr(members_module, "MAXIMUM_BYTES", 1 << 20)
    refused(tmp_path, gzip.compress(tar_bytes(("bomb", bytes(2 << 20)))), "archive-too-large")
    (tmp_path / "archive").unlink()
    refused(tmp_path, zip_bytes({"a": bytes(1 << 20), "b": bytes(1 << 20)}), "archive-too-large")


def test_too_many_entries_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive of more members than allowed is refused."""
    monkeypatch.setattr(members_module, "MAXIMUM_ENTRIES", 10)
    refused(tmp_path, tar_bytes(*((f"f{n}", b"") for n in range(11))), "archive-too-large")


def test_huge_extended_header_is_not_read_into_memory(tmp_path: Path) -> None:
    """An extended header that claims 64 MiB is refused instead of being read at once."""
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 64 << 20
    refused(tmp_path, gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(64 << 20)), "corrupt-archive")


def test_endless_stream_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows the last member is read only up to the limit."""
    monkeypatch.setattr(unpack_module, "MAXIMUM_BYTES", 4 << 20)
    refused(tmp_path, gzip.compress(tar_bytes(("a", b"")) + bytes(24 << 20)), "archive-too-large")


def test_negative_size_is_refused(tmp_path: Path) -> None:
    """A member of negative size neither loops for ever nor lowers the count of bytes."""
    header = bytearray(tar_bytes(("a", b""))[:512])
    header[124:136] = b"\xff" * 10 + b"\xfe\x00"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    refused(tmp_path, bytes(header) + bytes(1024), "corrupt-archive")


def test_file_and_folder_of_one_name_are_refused(tmp_path: Path) -> None:
    """An archive that holds `a` and `a/b` cannot be unpacked and says so."""
    refused(tmp_path, tar_bytes(("a", b""), ("a/b", b"")), "corrupt-archive")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_bytes_never_escape_as_tracebacks(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever bytes are changed, unpacking succeeds or raises a diagnostic, and leaves no half."""
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
    assert {path.name for path in folder.iterdir()} <= {"archive", "out"}
