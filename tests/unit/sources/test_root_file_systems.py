"""Root file systems made of Debian packages, with packages of a test's own in place of apt's."""

import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ar_samples import ar_archive
from fake_ndk import PREBUILT, write_ndk
from fake_sources import private_cache
from ortrim.base.cache import cache_folder
from ortrim.base.json import from_json
from ortrim.base.tools import EMULATIONS, machine_folder
from ortrim.errors import SourcesError, StorageError
from ortrim.sources import root_file_systems
from ortrim.sources import root_file_systems as module
from ortrim.sources.debian import PACKAGES_FILE, DebianPackage, PackageRequest
from ortrim.sources.root_file_systems import SOURCE_DATE, DebianRoot, debian_root, machine_parts, zip_as_tar
from refusing import refused

ARM64 = EMULATIONS["arm64"]
LIBRARIES = "usr/lib/aarch64-linux-gnu"


def debian_package(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size, info.mode = len(content), 0o755
            archive.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(f"./{name}")
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return ar_archive({"debian-binary": b"2.0\n", "data.tar.xz": buffer.getvalue()})


PACKAGES = {
    "libc6": debian_package(
        {
            f"{LIBRARIES}/ld-linux-aarch64.so.1": b"linker",
            f"{LIBRARIES}/libc.so.6": b"c",
            f"{LIBRARIES}/gconv/ISO.so": b"unwanted",
            "usr/share/doc/libc6/copyright": b"unwanted",
        },
        {"usr/lib/ld-linux-aarch64.so.1": "aarch64-linux-gnu/ld-linux-aarch64.so.1"},
    ),
    "libgcc-s1": debian_package({f"{LIBRARIES}/libgcc_s.so.1": b"gcc"}),
    "libstdc++6": debian_package(
        {f"{LIBRARIES}/libstdc++.so.6.0.33": b"stdc++"}, {f"{LIBRARIES}/libstdc++.so.6": "libstdc++.so.6.0.33"}
    ),
    "musl": debian_package({"usr/lib/aarch64-linux-musl/libc.so": b"musl"}),
    "busybox-static": debian_package({"usr/bin/busybox": b"shell"}),
    "linux-image-6.12-cloud-arm64": debian_package(
        {"boot/vmlinuz-6.12-cloud-arm64": b"kernel", "boot/config-6.12-cloud-arm64": b"unwanted"}
    ),
}


@pytest.fixture
def fetches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[PackageRequest]:
    private_cache(tmp_path, monkeypatch)
    asked: list[PackageRequest] = []

    def fetch(request: PackageRequest, accept: Callable[[DebianPackage, Path], None]) -> None:
        asked.append(request)
        for name in request.names:
            actual = "linux-image-6.12-cloud-arm64" if name in request.depended else name
            (tmp_path / "file.deb").write_bytes(PACKAGES[actual])
            package = DebianPackage(
                name=actual, version="1", architecture=request.architecture, suite="trixie", sha256="a" * 64
            )
            accept(package, tmp_path / "file.deb")

    monkeypatch.setattr(root_file_systems, "fetch_packages", fetch)
    return asked


def test_the_parts_of_a_machine(fetches: list[PackageRequest]) -> None:
    told: list[str] = []
    parts = machine_parts(ARM64, told.append)
    assert (parts.kernel.read_bytes(), parts.shell.read_bytes()) == (b"kernel", b"shell")
    assert (parts.root / "lib/ld-linux-aarch64.so.1").read_bytes() == b"linker"
    assert (parts.root / "lib/ld-musl-aarch64.so.1").read_bytes() == b"musl"
    assert (parts.root / LIBRARIES / "libstdc++.so.6").read_bytes() == b"stdc++"
    files = {path.relative_to(parts.root).as_posix() for path in parts.root.rglob("*") if path.is_file()}
    assert not any("gconv" in name or "copyright" in name for name in files)
    assert [path.name for path in machine_folder("arm64").iterdir() if path.name.startswith(".")] == []
    assert fetches[0].architecture == "arm64"
    assert len(told) == 1


def test_versions_and_digests_are_written_down(fetches: list[PackageRequest]) -> None:
    parts = machine_parts(ARM64)
    again = machine_parts(ARM64)
    assert again.packages == parts.packages
    assert {package.name for package in parts.packages} == set(PACKAGES)
    assert {package.sha256 for package in parts.packages} == {"a" * 64}
    assert len(fetches) == 1


def test_other_architectures_have_no_kernel_of_their_own(
    fetches: list[PackageRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = "usr/lib/arm-linux-gnueabihf"
    for name in ("libc6", "libgcc-s1", "libstdc++6", "musl"):
        content = debian_package({f"{libraries}/{name}.so": b"x", f"{libraries}/ld-linux-armhf.so.3": b"linker"})
        monkeypatch.setitem(PACKAGES, name, content)
    parts = machine_parts(EMULATIONS["arm"])
    assert not parts.kernel.exists()
    assert (parts.root / "lib/ld-linux-armhf.so.3").read_bytes() == b"linker"
    assert fetches[0].names == ("libc6", "libgcc-s1", "libstdc++6", "musl")


@pytest.mark.parametrize("content", [b"", b"!<arch>\n", b"not a package"])
def test_a_damaged_package_leaves_nothing(
    fetches: list[PackageRequest], monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setitem(PACKAGES, "libstdc++6", content)
    refused(SourcesError, machine_parts, ARM64)
    folder = machine_folder("arm64")
    assert not folder.exists()
    assert [path.name for path in folder.parent.iterdir()] == [f".{folder.name}.lock"]


@pytest.mark.parametrize("record", [None, "", "{", "[]", '{"packages": 1}', '{"packages": [{"name": "x"}]}'])
def test_damaged_parts_are_fetched_anew(fetches: list[PackageRequest], record: str | None) -> None:
    whole = machine_parts(ARM64)
    path = machine_folder("arm64") / "packages.json"
    if record is None:
        path.unlink()
    else:
        path.chmod(0o644)  # what is kept is read-only, which root does not notice
        path.write_text(record)
    assert machine_parts(ARM64) == whole
    assert len(fetches) == 2


def test_a_package_without_a_kernel(fetches: list[PackageRequest], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGES, "linux-image-6.12-cloud-arm64", debian_package({"boot/config-6.12": b"x"}))
    caught = refused(SourcesError, machine_parts, ARM64)
    assert caught.code == "machine-damaged"
    assert not machine_folder("arm64").exists()


def test_the_record_is_plain(fetches: list[PackageRequest]) -> None:
    machine_parts(ARM64)
    data = from_json(dict, (machine_folder("arm64") / "packages.json").read_bytes())
    assert {"name", "version", "architecture", "suite", "sha256"} == set(data["packages"][0])


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
    return ar_archive({"data.tar.xz": lzma.compress(buffer.getvalue())})


Serve = Callable[..., DebianRoot]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
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


def members(archive: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(archive) as file:
        return {member.name: member for member in file}


def test_a_root_holds_its_packages_files(serve: Serve) -> None:
    found = members(serve(package(LIBC), package(PYTHON)).archive)
    assert found["usr/lib/ld-linux.so.2"].mode == 0o755
    assert found["usr/lib/python3.13/sitecustomize.py"].linkname == "/etc/python3.13/sitecustomize.py"
    assert found["usr/bin/python3.13-again"].linkname == "usr/bin/python3.13"
    assert {(member.uid, member.uname, member.mtime) for member in found.values()} == {(0, "", SOURCE_DATE)}


def test_what_packages_scripts_would_do_is_there(serve: Serve) -> None:
    """The names that lead into `usr`, `python3`, accounts, and folders that everybody may write to."""
    found = members(serve(package(LIBC), package(PYTHON)).archive)
    assert {name: found[name].linkname for name in ("bin", "lib", "lib64", "sbin")} == {
        "bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin",
    }  # fmt: skip
    assert found["usr/bin/python3"].linkname == "python3.13"
    assert found["tmp"].mode == 0o1777
    assert found["etc/passwd"].isfile()
    assert all(found[name].isdir() for name in ("dev", "proc", "sys", "root"))


def test_the_same_packages_give_the_same_bytes(serve: Serve, tmp_path: Path) -> None:
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
    assert refused(StorageError, serve, package(LIBC), package((entry,))).code == "unsafe-archive"
    assert not [path for path in cache_folder("roots").iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("content", "reference"),
    [(package(PYTHON)[:200], "bad-debian-package"), (b"", "bad-debian-package"), (b"!<arch>\n", "bad-debian-package")],
)
def test_a_damaged_package_is_refused(serve: Serve, content: bytes, reference: str) -> None:
    with pytest.raises((SourcesError, StorageError)) as caught:
        serve(package(LIBC), content)
    assert caught.value.code == reference
    assert not [path for path in cache_folder("roots").iterdir() if path.is_dir()]


def test_a_package_whose_content_is_damaged_is_refused(serve: Serve) -> None:
    whole = package(PYTHON)
    assert refused(StorageError, serve, package(LIBC), whole[:90] + bytes(len(whole) - 90)).code == "corrupt-archive"


@pytest.mark.parametrize("content", ["", "{", '{"packages": 1}', None])
def test_a_damaged_root_is_made_anew(serve: Serve, content: str | None) -> None:
    whole = serve(package(LIBC), package(PYTHON))
    folder = whole.archive.parent
    (folder / PACKAGES_FILE).unlink()
    if content is not None:
        (folder / PACKAGES_FILE).write_text(content)
    assert serve(package(LIBC), package(PYTHON)) == whole


def write(path: Path, *entries: tuple[str, int, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, mode, content in entries:
            entry = zipfile.ZipInfo(name)
            entry.create_system, entry.external_attr = 3, mode << 16
            archive.writestr(entry, content)
    return path


def test_links_and_permissions_are_kept(tmp_path: Path) -> None:
    write_ndk(tmp_path / "ndk.zip")
    zip_as_tar(tmp_path / "ndk.zip", tmp_path / "ndk.tar")
    found = members(tmp_path / "ndk.tar")
    assert found["source.properties"].mode == 0o644
    assert found[f"{PREBUILT}/bin/clang-18"].mode == 0o755
    assert found[f"{PREBUILT}/bin/clang++"].linkname == "clang-18"
    assert {(member.uid, member.gid, member.mtime) for member in found.values()} == {
        (0, 0, root_file_systems.SOURCE_DATE)
    }


def test_the_same_zip_gives_the_same_tar(tmp_path: Path) -> None:
    write_ndk(tmp_path / "ndk.zip")
    for name in ("a.tar", "b.tar"):
        zip_as_tar(tmp_path / "ndk.zip", tmp_path / name)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_folders_are_folders(tmp_path: Path) -> None:
    archive = write(tmp_path / "x.zip", ("top/", 0o40755, ""), ("top/a/", 0o40755, ""), ("top/b/c", 0o100600, "c"))
    zip_as_tar(archive, tmp_path / "x.tar")
    found = members(tmp_path / "x.tar")
    assert set(found) == {"a", "b", "b/c"}
    assert found["a"].isdir()


LINK, DEVICE, FILE = stat.S_IFLNK | 0o777, stat.S_IFCHR | 0o666, stat.S_IFREG | 0o644


@pytest.mark.parametrize(
    ("name", "mode", "content"),
    [
        ("top/../../x", FILE, ""), ("top/x", DEVICE, ""), ("top/x", LINK, "/etc/passwd"), ("top/a/x", LINK, "../../x"),
    ],
)  # fmt: skip
def test_what_leads_outside_is_refused(tmp_path: Path, name: str, mode: int, content: str) -> None:
    archive = write(tmp_path / "x.zip", ("top/good", FILE, "good"), (name, mode, content))
    caught = refused(StorageError, zip_as_tar, archive, tmp_path / "x.tar")
    assert caught.code == "unsafe-archive"
    assert not (tmp_path / "x.tar").exists()
