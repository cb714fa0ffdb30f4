"""Root file systems made of Debian packages, with packages of a test's own in place of apt's."""

import io
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_sources import private_cache
from ortrim.base.cache import cache_folder
from ortrim.compiling.containers import root_file_systems as module
from ortrim.compiling.containers.root_file_systems import SOURCE_DATE, DebianRoot, debian_root
from ortrim.errors import SourcesError, StorageError
from ortrim.sources.debian import PACKAGES_FILE, DebianPackage, PackageRequest

Entry = tuple[str, bytes, str]
REQUEST = PackageRequest(names=("libc6", "python3.13-minimal"), suite="trixie", architecture="amd64")
LIBC: tuple[Entry, ...] = (
    ("./", tarfile.DIRTYPE, ""),
    ("./usr/lib64/ld-linux.so.2", tarfile.SYMTYPE, "../lib/ld-linux.so.2"),
    ("./usr/lib/ld-linux.so.2", tarfile.REGTYPE, "loader"),
)
PYTHON: tuple[Entry, ...] = (
    ("./usr/", tarfile.DIRTYPE, ""),
    ("./usr/bin/python3.13", tarfile.REGTYPE, "python"),
    ("./usr/bin/python3.13-again", tarfile.LNKTYPE, "./usr/bin/python3.13"),
    ("./usr/lib/python3.13/sitecustomize.py", tarfile.SYMTYPE, "/etc/python3.13/sitecustomize.py"),
)


def package(entries: tuple[Entry, ...], mode: int = 0o4755) -> bytes:
    """Return a Debian package of (name, type, content or target); modes and owners are what a root must not have."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind, text in entries:
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.uid, member.uname, member.mtime = kind, mode, 1000, "builder", 1234
            if kind == tarfile.REGTYPE:
                member.size = len(text)
            else:
                member.linkname = text
            archive.addfile(member, io.BytesIO(text.encode()) if kind == tarfile.REGTYPE else None)
    data = lzma.compress(buffer.getvalue())
    return b"!<arch>\n" + f"{'data.tar.xz':<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data


Serve = Callable[..., DebianRoot]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Make a root of packages with these contents."""
    private_cache(tmp_path, monkeypatch)

    def made(*contents: bytes) -> DebianRoot:
        def fetch(request: PackageRequest, accept: Callable[[DebianPackage, Path], None]) -> None:
            for name, content in zip(request.names, contents, strict=True):
                file = tmp_path / f"{name}.deb"
                file.write_bytes(content)
                found = DebianPackage(name=name, version="1.0", architecture="amd64", suite="trixie", sha256="a" * 64)
                accept(found, file)

        monkeypatch.setattr(module, "fetch_packages", fetch)
        return debian_root(REQUEST)

    return made


def members(root: DebianRoot) -> dict[str, tarfile.TarInfo]:
    """Return what a root holds."""
    with tarfile.open(root.archive) as file:
        return {member.name: member for member in file}


def test_a_root_holds_its_packages_files(serve: Serve) -> None:
    """As root's, without set-user bits, at one time; links lead where they lead in the root, also out of a package."""
    found = members(serve(package(LIBC), package(PYTHON)))
    assert found["usr/lib/ld-linux.so.2"].mode == 0o755
    assert found["usr/lib/python3.13/sitecustomize.py"].linkname == "/etc/python3.13/sitecustomize.py"
    assert found["usr/bin/python3.13-again"].linkname == "usr/bin/python3.13"
    assert {(member.uid, member.uname, member.mtime) for member in found.values()} == {(0, "", SOURCE_DATE)}


def test_what_packages_scripts_would_do_is_there(serve: Serve) -> None:
    """The names that lead into `usr`, `python3`, accounts, and folders that everybody may write to."""
    found = members(serve(package(LIBC), package(PYTHON)))
    assert {name: found[name].linkname for name in ("bin", "lib", "lib64", "sbin")} == {
        "bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin",
    }  # fmt: skip
    assert found["usr/bin/python3"].linkname == "python3.13"
    assert found["tmp"].mode == 0o1777
    assert found["etc/passwd"].isfile()
    assert all(found[name].isdir() for name in ("dev", "proc", "sys", "root"))


def test_the_same_packages_give_the_same_bytes(serve: Serve, tmp_path: Path) -> None:
    """And are fetched once; what they were is written beside the root."""
    first = serve(package(LIBC), package(PYTHON))
    content = first.archive.read_bytes()
    assert serve() == first
    for path in first.archive.parent.iterdir():
        path.unlink()
    first.archive.parent.rmdir()
    assert serve(package(LIBC), package(PYTHON)).archive.read_bytes() == content
    assert [each.name for each in first.packages] == ["libc6", "python3.13-minimal"]


@pytest.mark.parametrize(
    "entry",
    [
        ("../x", tarfile.REGTYPE, "x"), ("/x", tarfile.REGTYPE, "x"), ("a/../../x", tarfile.DIRTYPE, ""),
        ("dev/sda", tarfile.BLKTYPE, ""), ("dev/null", tarfile.CHRTYPE, ""), ("pipe", tarfile.FIFOTYPE, ""),
    ],
)  # fmt: skip
def test_a_package_that_could_do_harm_is_refused(serve: Serve, entry: Entry) -> None:
    """A name that climbs, a device; nothing is kept of the others."""
    with pytest.raises(StorageError) as caught:
        serve(package(LIBC), package((entry,)))
    assert caught.value.code == "unsafe-archive"
    assert not [path for path in cache_folder("roots").iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("content", "reference"),
    [(package(PYTHON)[:200], "bad-debian-package"), (b"", "bad-debian-package"), (b"!<arch>\n", "bad-debian-package")],
)
def test_a_damaged_package_is_refused(serve: Serve, content: bytes, reference: str) -> None:
    """Nothing is kept."""
    with pytest.raises((SourcesError, StorageError)) as caught:
        serve(package(LIBC), content)
    assert caught.value.code == reference
    assert not [path for path in cache_folder("roots").iterdir() if path.is_dir()]


def test_a_package_whose_content_is_damaged_is_refused(serve: Serve) -> None:
    """An archive of the right form around bytes that are none."""
    whole = package(PYTHON)
    with pytest.raises(StorageError) as caught:
        serve(package(LIBC), whole[:90] + bytes(len(whole) - 90))
    assert caught.value.code == "corrupt-archive"


@pytest.mark.parametrize("content", ["", "{", '{"packages": 1}', None])
def test_a_damaged_root_is_made_anew(serve: Serve, content: str | None) -> None:
    """The image's name depends on it."""
    whole = serve(package(LIBC), package(PYTHON))
    folder = whole.archive.parent
    (folder / PACKAGES_FILE).unlink()
    if content is not None:
        (folder / PACKAGES_FILE).write_text(content)
    assert serve(package(LIBC), package(PYTHON)) == whole
