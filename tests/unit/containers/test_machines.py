import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_sources import private_cache
from ortrim.base.json import from_json
from ortrim.base.tools import EMULATIONS, machine_folder
from ortrim.compiling.containers import root_file_systems
from ortrim.compiling.containers.root_file_systems import machine_parts
from ortrim.errors import ExitCode, SourcesError
from ortrim.sources.debian import DebianPackage, PackageRequest

ARM64 = EMULATIONS["arm64"]
LIBRARIES = "usr/lib/aarch64-linux-gnu"


def debian_package(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    """Return a Debian package of these files: an `ar` archive that holds a tar."""
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
    data = buffer.getvalue()
    members = b""
    for name, content in (("debian-binary", b"2.0\n"), ("data.tar.xz", data)):
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        members += header + content + b"\n" * (len(content) % 2)
    return b"!<arch>\n" + members


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
    """Have packages delivered without apt; returns what was asked for."""
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
    """Kernel, shell and shared libraries are kept, with linkers where programs look for them; the rest is not."""
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
    """What a machine was made of can be read back, by the next process too, which fetches nothing."""
    parts = machine_parts(ARM64)
    again = machine_parts(ARM64)
    assert again.packages == parts.packages
    assert {package.name for package in parts.packages} == set(PACKAGES)
    assert {package.sha256 for package in parts.packages} == {"a" * 64}
    assert len(fetches) == 1


def test_other_architectures_have_no_kernel_of_their_own(
    fetches: list[PackageRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their libraries alone are fetched."""
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
    """Half a machine is none."""
    monkeypatch.setitem(PACKAGES, "libstdc++6", content)
    with pytest.raises(SourcesError) as caught:
        machine_parts(ARM64)
    assert caught.value.exit_code == ExitCode.SOURCES
    folder = machine_folder("arm64")
    assert not folder.exists()
    assert [path.name for path in folder.parent.iterdir()] == [f".{folder.name}.lock"]


@pytest.mark.parametrize("record", [None, "", "{", "[]", '{"packages": 1}', '{"packages": [{"name": "x"}]}'])
def test_damaged_parts_are_fetched_anew(fetches: list[PackageRequest], record: str | None) -> None:
    """What the cache holds is what was fetched."""
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
    """A kernel's package that holds none is a diagnostic, not a traceback."""
    monkeypatch.setitem(PACKAGES, "linux-image-6.12-cloud-arm64", debian_package({"boot/config-6.12": b"x"}))
    with pytest.raises(SourcesError) as caught:
        machine_parts(ARM64)
    assert caught.value.code == "machine-damaged"
    assert not machine_folder("arm64").exists()


def test_the_record_is_plain(fetches: list[PackageRequest]) -> None:
    """Who reads it needs nothing of ortrim."""
    machine_parts(ARM64)
    data = from_json(dict, (machine_folder("arm64") / "packages.json").read_bytes())
    assert {"name", "version", "architecture", "suite", "sha256"} == set(data["packages"][0])
