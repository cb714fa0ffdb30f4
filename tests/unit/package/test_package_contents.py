"""A package with a static library in place of the shared one."""

import errno
import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from ortrim.base.checksums import FileEntry, check_sums, checksums_text
from ortrim.base.command import run
from ortrim.binaries.elf import build_id_of, take_apart
from ortrim.compiling.plan import SYMBOLS, Package
from ortrim.errors import BinaryError, DiagnosticGroup, ExitCode, PackageError, StorageError
from ortrim.package.manifest import SOURCE_DATE_EPOCH, PackagedFile, PackageInputs, read_manifest
from ortrim.package.package import (
    JAR_MANIFEST,
    PackagedLink,
    check_paths,
    fill_zip,
    make_package,
    write_archive,
    write_zip,
)
from refusing import refused
from sample_package import another_machine, content_of, make_inputs, with_library

NAME = "ortrim-demo-linux-x64-1.21.0"
FRAMED = Path(__file__).parents[1] / "binaries" / "data" / "framed.so"


@pytest.fixture
def inputs(tmp_path: Path) -> PackageInputs:
    return make_inputs(tmp_path / "built")


def make_symbols(inputs: PackageInputs) -> PackageInputs:
    library, symbols = (inputs.result.folder / name for name in ("framed.so", SYMBOLS))
    take_apart(FRAMED, library, symbols)
    return replace(inputs, result=replace(inputs.result, library=library, symbols=symbols))


def test_package_holds_what_an_application_needs(inputs: PackageInputs, tmp_path: Path) -> None:
    package = make_package(inputs, tmp_path / "out")
    assert package.folder == tmp_path / "out" / NAME
    assert set(content_of(package.folder)) == {
        "LICENSE",
        "SHA256SUMS",
        "ThirdPartyNotices.txt",
        "include/onnxruntime/onnxruntime_c_api.h",
        "include/onnxruntime/onnxruntime_cxx_api.h",
        "include/onnxruntime/onnxruntime_float16.h",
        "lib/cmake/onnxruntime/onnxruntimeConfig.cmake",
        "lib/cmake/onnxruntime/onnxruntimeConfigVersion.cmake",
        "lib/libonnxruntime.so",
        "lib/libonnxruntime.so.1",
        "lib/pkgconfig/libonnxruntime.pc",
        "manifest.json",
        "models/session.json",
        "models/vad.ort",
        "sbom.cdx.json",
    }
    assert (package.folder / "lib" / "libonnxruntime.so").readlink().as_posix() == "libonnxruntime.so.1"
    visible = {path.name for path in (tmp_path / "out").iterdir() if not path.name.endswith(".lock")}
    assert visible == {NAME, f"{NAME}.tar.gz"}


def test_symbols_are_kept_apart_by_build_id(inputs: PackageInputs, tmp_path: Path) -> None:
    """Beside the package, where debuggers look for them; its manifest says which they are, and holds no other file."""
    framed = make_symbols(inputs)
    package = make_package(framed, tmp_path / "out")
    assert {path.name for path in (package.folder / "lib").iterdir() if path.is_file()} == {"libonnxruntime.so"}
    build_id = build_id_of(framed.result.library)
    assert build_id
    name = f".build-id/{build_id[:2]}/{build_id[2:]}.debug"
    with tarfile.open(tmp_path / "out" / f"{NAME}-symbols.tar.gz") as archive:
        (member,) = archive.getmembers()
        content = archive.extractfile(member)
        assert content
        data = content.read()
    assert member.name == name
    assert data == FRAMED.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    assert package.manifest.symbols == FileEntry(path=name, size_bytes=len(data), sha256=digest)


def test_symbols_of_another_link_are_refused(inputs: PackageInputs, tmp_path: Path) -> None:
    framed = make_symbols(inputs)
    caught = refused(
        PackageError, make_package, with_library(framed, inputs.result.library.read_bytes()), tmp_path / "out"
    )
    assert caught.code == "symbols-differ"
    assert not (tmp_path / "out").exists()


def test_symbols_of_a_static_library_are_the_applications(inputs: PackageInputs, tmp_path: Path) -> None:
    """Its linker lays the code out, so that those of the shared library would be wrong."""
    framed = make_symbols(inputs)
    archive = tmp_path / "libonnxruntime.a"
    archive.write_bytes(b"!<arch>\n")
    package = make_package(replace(framed, result=replace(framed.result, archive=archive)), tmp_path / "out")
    assert package.manifest.symbols is None
    assert not list((tmp_path / "out").glob("*-symbols*"))


def test_same_inputs_give_the_same_bytes_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = make_package(make_symbols(make_inputs(tmp_path / "a")), tmp_path / "one")
    with another_machine(monkeypatch):
        other = make_package(make_symbols(make_inputs(tmp_path / "another" / "place")), tmp_path / "deep" / "other")
    assert content_of(one.folder) == content_of(other.folder)
    for name in (f"{NAME}.tar.gz", f"{NAME}-symbols.tar.gz"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "deep" / "other" / name).read_bytes()


def test_no_path_of_the_machine_is_in_a_package(inputs: PackageInputs, tmp_path: Path) -> None:
    package = make_package(inputs, tmp_path / "out")
    for path, content in content_of(package.folder).items():
        text = content if isinstance(content, bytes) else content.encode()
        assert str(tmp_path).encode() not in text, path
        assert str(Path.cwd()).encode() not in text, path


def test_library_that_names_the_build_folder_is_refused(inputs: PackageInputs, tmp_path: Path) -> None:
    """`__FILE__` compiled without a prefix map would tell whose machine it was, and change the bytes."""
    content = (inputs.result.library).read_bytes() + str(inputs.result.folder / "a.h").encode()
    caught = refused(PackageError, make_package, with_library(inputs, content), tmp_path / "out")
    assert caught.code == "machine-path"
    assert "file-prefix-map" in caught.hint
    assert not (tmp_path / "out").exists()


def test_manifest_covers_every_file(inputs: PackageInputs, tmp_path: Path) -> None:
    package = make_package(inputs, tmp_path / "out")
    assert read_manifest(package.folder) == read_manifest(package.archive) == package.manifest
    files = {path for path, content in content_of(package.folder).items() if isinstance(content, bytes)}
    assert {entry.path for entry in package.manifest.files} == files - {"manifest.json", "SHA256SUMS"}
    assert package.manifest.compiler == "zig 0.17.0"
    assert package.manifest.operators.operators[0].name == "Gemm"


def test_sums_are_accepted_by_sha256sum(inputs: PackageInputs, tmp_path: Path) -> None:
    package = make_package(inputs, tmp_path / "out")
    check_sums(package.folder)
    done = run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=package.folder)
    assert done.returncode == 0, done.stdout
    assert len(done.stdout.splitlines()) == len(package.manifest.files) + 1


def test_bill_of_materials_is_valid_and_complete(inputs: PackageInputs, tmp_path: Path) -> None:
    """CycloneDX's own strict validator accepts it; sources, runtimes, library and models are in it with digests."""
    text = (make_package(inputs, tmp_path / "out").folder / "sbom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    parts = {part["name"]: part for part in bill["components"]}
    assert set(parts) == {"onnxruntime", "abseil_cpp", "eigen", "libc++", "lib/libonnxruntime.so.1", "models/vad.ort"}
    assert parts["onnxruntime"]["hashes"] == [{"alg": "SHA-256", "content": "3" * 64}]
    assert parts["onnxruntime"]["licenses"] == [{"license": {"id": "MIT"}}]
    assert parts["eigen"]["licenses"][0]["expression"] == "MPL-2.0 AND BSD-3-Clause"
    assert parts["libc++"]["licenses"][0]["expression"] == "Apache-2.0 WITH LLVM-exception"
    assert parts["models/vad.ort"]["type"] == "data"
    assert parts["models/vad.ort"]["hashes"][0]["content"] == inputs.models[0].sha256
    assert {"name": "ortrim:pin", "value": "a" * 40} in parts["abseil_cpp"]["properties"]


def test_parts_have_the_names_that_scanners_match(inputs: PackageInputs, tmp_path: Path) -> None:
    """Package URL, supplier, repository and, where the NVD has one, CPE; a model has the version of its wheel."""
    silero = replace(inputs, wheels={"vad": "silero-vad==6.0.0"})
    bill = json.loads((make_package(silero, tmp_path / "out").folder / "sbom.cdx.json").read_text())
    parts = {part["name"]: part for part in bill["components"]}
    assert parts["onnxruntime"]["purl"] == "pkg:github/microsoft/onnxruntime@1.21.0?version_prefix=v"
    assert parts["onnxruntime"]["supplier"] == {"name": "Microsoft"}
    assert parts["abseil_cpp"]["purl"] == "pkg:github/abseil/abseil-cpp@20240722.0"
    assert parts["abseil_cpp"]["cpe"] == "cpe:2.3:a:abseil:common_libraries:20240722.0:*:*:*:*:*:*:*"
    vcs = {"type": "vcs", "url": "https://github.com/abseil/abseil-cpp"}
    assert parts["abseil_cpp"]["externalReferences"] == [vcs]
    llvm = "pkg:github/llvm/llvm-project@22.1.8?version_prefix=llvmorg-#libcxx"
    assert (parts["libc++"]["version"], parts["libc++"]["purl"]) == ("22.1.8", llvm)
    model = parts["models/vad.ort"]
    assert (model["version"], model["purl"]) == ("6.0.0", "pkg:pypi/silero-vad@6.0.0")
    product = bill["metadata"]["component"]
    assert product["purl"] == "pkg:generic/ortrim-demo-linux-x64@1.21.0"
    assert product["licenses"] == [
        {"expression": "MIT AND Apache-2.0 AND Apache-2.0 WITH LLVM-exception AND BSD-3-Clause AND MPL-2.0"}
    ]


def test_a_model_of_a_file_has_no_version_but_its_digest(inputs: PackageInputs, tmp_path: Path) -> None:
    bill = json.loads((make_package(inputs, tmp_path / "out").folder / "sbom.cdx.json").read_text())
    (model,) = (part for part in bill["components"] if part["type"] == "data")
    assert not {"version", "purl"} & model.keys()


def test_notices_say_where_the_source_under_the_mpl_is(inputs: PackageInputs, tmp_path: Path) -> None:
    """As the MPL asks in its section 3.2: the repository, and the tag or commit in it."""
    notices = (make_package(inputs, tmp_path / "out").folder / "ThirdPartyNotices.txt").read_text(encoding="utf-8")
    assert "eigen (MPL-2.0)\n\nSource: https://gitlab.com/libeigen/eigen, 3.4.0\n\nBeno" in notices
    assert notices.count("Source: ") == 1


def test_serial_number_follows_the_content(inputs: PackageInputs, tmp_path: Path) -> None:
    other = make_inputs(tmp_path / "b")
    (other.result.headers / "onnxruntime_float16.h").write_text("changed\n")
    made = [make_package(each, tmp_path / name).folder for each, name in ((inputs, "one"), (other, "two"))]
    serials = {json.loads((folder / "sbom.cdx.json").read_text())["serialNumber"] for folder in made}
    assert len(serials) == 2


def test_notices_hold_every_licence(inputs: PackageInputs, tmp_path: Path) -> None:
    """Upstream's notices come first, then each component's text, readable whatever its encoding and line ends."""
    folder = make_package(inputs, tmp_path / "out").folder
    notices = (folder / "ThirdPartyNotices.txt").read_text(encoding="utf-8")
    assert notices.startswith("THIRD PARTY NOTICES\n")
    assert notices.index("Beno\u00eet Jacob\n") < notices.index("libc++ (Apache-2.0 WITH LLVM-exception)\n\nLLVM\n")
    assert (folder / "LICENSE").read_bytes() == b"MIT License\n\nCopyright (c) Microsoft Corporation\n"


def test_archive_unpacks_to_the_folder(inputs: PackageInputs, tmp_path: Path) -> None:
    package = make_package(inputs, tmp_path / "out")
    (tmp_path / "unpacked").mkdir()
    unpacked = run(("tar", "-x", "-f", package.archive, "-C", tmp_path / "unpacked"))
    assert (unpacked.returncode, unpacked.stderr) == (0, "")
    check_sums(tmp_path / "unpacked" / NAME)
    assert content_of(tmp_path / "unpacked" / NAME) == content_of(package.folder)


@pytest.mark.parametrize("soname", ["libonnxruntime.so", ""])
def test_library_without_versioned_name_needs_no_link(inputs: PackageInputs, tmp_path: Path, soname: str) -> None:
    """With an unversioned soname, or none, the file has the one name that linkers know."""
    content = inputs.result.library.read_bytes()
    changed = content.replace(b"libonnxruntime.so.1\0", soname.encode().ljust(20, b"\0"))
    package = make_package(with_library(inputs, changed), tmp_path / "out")
    assert not (package.folder / "lib" / "libonnxruntime.so").is_symlink()
    config = (package.folder / "lib/cmake/onnxruntime/onnxruntimeConfig.cmake").read_text()
    assert ("IMPORTED_NO_SONAME" in config) == (not soname)


def test_finished_package_is_kept_and_a_changed_one_replaced(inputs: PackageInputs, tmp_path: Path) -> None:
    notes: list[str] = []
    package = make_package(inputs, tmp_path / "out")
    before = package.folder.stat().st_ino
    make_package(inputs, tmp_path / "out", notes.append)
    assert (package.folder.stat().st_ino, notes) == (before, [])
    (package.folder / "LICENSE").write_text("mine now\n")
    (package.folder / "extra").write_text("?")
    make_package(inputs, tmp_path / "out", notes.append)
    assert notes == [f"{package.folder}/LICENSE was changed since it was made, so it is made again"]
    check_sums(package.folder)
    assert not (package.folder / "extra").exists()


@pytest.mark.parametrize(
    "lost",
    [
        "libonnxruntime.so",
        "libonnxruntime.a",
        "model.ort",
        "headers/onnxruntime_c_api.h",
        "texts/LICENSE",
        "texts/COPYING.eigen",
    ],
)
def test_missing_input_is_named_and_nothing_is_written(inputs: PackageInputs, tmp_path: Path, lost: str) -> None:
    archive = inputs.result.folder / lost if lost.endswith(".a") else None
    (inputs.result.folder / lost).unlink(missing_ok=lost.endswith(".a"))
    given = replace(inputs, result=replace(inputs.result, archive=archive))
    caught = refused(PackageError, make_package, given, tmp_path / "out")
    assert caught.code == "package-input-missing"
    assert caught.where.endswith(lost)
    assert not (tmp_path / "out").exists()


def test_changed_model_is_refused(inputs: PackageInputs, tmp_path: Path) -> None:
    """A model that is not the one the runtime was reduced to would fail at the customer's."""
    inputs.models[0].path.write_bytes(b"another")
    caught = refused(PackageError, make_package, inputs, tmp_path / "out")
    assert caught.code == "model-changed"
    assert not (tmp_path / "out").exists()


def test_model_that_was_planned_must_be_given(inputs: PackageInputs, tmp_path: Path) -> None:
    caught = refused(PackageError, make_package, replace(inputs, models=()), tmp_path / "out")
    assert caught.code == "model-changed"


@pytest.mark.parametrize(("content", "reference"), [(b"", "not-elf"), (b"\x7fELF" + bytes(60), "corrupt-elf")])
def test_damaged_library_is_refused(inputs: PackageInputs, tmp_path: Path, content: bytes, reference: str) -> None:
    caught = refused(BinaryError, make_package, with_library(inputs, content), tmp_path / "out")
    assert caught.code == reference
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("soname", ["../../etc/passwd.1", "libsomething.so.1", "libonnxruntime.so/1"])
def test_library_with_a_strange_name_is_refused(inputs: PackageInputs, tmp_path: Path, soname: str) -> None:
    """A soname decides a file's name, so it may only be one of the known ones."""
    content = inputs.result.library.read_bytes().replace(b"libonnxruntime.so.1\0", soname.encode().ljust(20, b"\0"))
    caught = refused(PackageError, make_package, with_library(inputs, content), tmp_path / "out")
    assert caught.code == "bad-soname"


def test_full_disk_is_a_storage_error_and_leaves_nothing(
    inputs: PackageInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def full(source: Path, destination: Path) -> None:
        destination.write_bytes(source.read_bytes()[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ortrim.package.package.shutil.copyfile", full)
    caught = refused(StorageError, make_package, inputs, tmp_path / "out")
    assert caught.code == "disk-full"
    assert "No space left" in caught.why
    assert [path for path in (tmp_path / "out").iterdir() if not path.name.endswith(".lock")] == []


def test_a_package_for_which_there_is_no_room_is_not_begun(
    inputs: PackageInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are of known sizes; what the user named has no variable that chooses another place."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=10**6, free=100))
    caught = refused(StorageError, make_package, inputs, tmp_path / "out")
    assert caught.what.startswith("the package takes about ")
    assert "ORTRIM_CACHE" not in caught.hint
    assert not (tmp_path / "out").exists()


def test_file_in_the_way_of_the_destination_is_a_storage_error(inputs: PackageInputs, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way")
    refused(StorageError, make_package, inputs, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "in the way"


def test_interrupted_packaging_leaves_nothing(
    inputs: PackageInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def interrupted(self: Path, target: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "symlink_to", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make_package(inputs, tmp_path / "out")
    assert [path for path in (tmp_path / "out").iterdir() if not path.name.endswith(".lock")] == []
    package: Package = make_package(inputs, tmp_path / "out")
    check_sums(package.folder)


ARCHIVE = b"!<arch>\n"


@pytest.fixture
def inputs_static_package(tmp_path: Path) -> PackageInputs:
    made = make_inputs(tmp_path / "built")
    archive = tmp_path / "built" / "libonnxruntime.a"
    archive.write_bytes(ARCHIVE)
    job = replace(made.job, linkage="static", cpu="x86-64-v3")
    return replace(made, job=job, result=replace(made.result, archive=archive))


def test_the_archive_stands_in_place_of_the_library(inputs_static_package: PackageInputs, tmp_path: Path) -> None:
    """A linker that is asked for `-lonnxruntime` can take nothing else; everything besides is as ever."""
    package = make_package(inputs_static_package, tmp_path / "out")
    libraries = sorted(path.name for path in (package.folder / "lib").iterdir() if path.is_file())
    assert libraries == ["libonnxruntime.a"]
    assert (package.folder / "lib" / "libonnxruntime.a").read_bytes() == ARCHIVE
    check_sums(package.folder)
    assert (package.manifest.linkage, package.manifest.cpu) == ("static", "x86-64-v3")


def test_programs_are_reported_what_they_need_besides(inputs_static_package: PackageInputs, tmp_path: Path) -> None:
    """The system's libraries and no C++: pkg-config and CMake both say so."""
    folder = make_package(inputs_static_package, tmp_path / "out").folder / "lib"
    assert (
        "Libs: -L${libdir} -lonnxruntime -ldl -lpthread -lm\n" in (folder / "pkgconfig/libonnxruntime.pc").read_text()
    )
    config = (folder / "cmake/onnxruntime/onnxruntimeConfig.cmake").read_text()
    assert "add_library(onnxruntime::onnxruntime STATIC IMPORTED)" in config
    assert 'IMPORTED_LINK_INTERFACE_LANGUAGES "C"' in config
    assert 'INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS};pthread;m"' in config
    assert "SONAME" not in config


def test_a_shared_library_asks_for_nothing(tmp_path: Path) -> None:
    folder = make_package(make_inputs(tmp_path / "built"), tmp_path / "out").folder / "lib"
    assert "Libs: -L${libdir} -lonnxruntime\n" in (folder / "pkgconfig/libonnxruntime.pc").read_text()
    assert "INTERFACE_LINK_LIBRARIES" not in (folder / "cmake/onnxruntime/onnxruntimeConfig.cmake").read_text()


def files(folder: Path) -> list[PackagedFile]:
    (folder / "b").write_bytes(bytes(5000))
    return [
        PackagedFile(path="b/b", content=folder / "b", mode=0o755),
        PackagedFile(path=JAR_MANIFEST, content=b"Manifest-Version: 1.0\r\n"),
        PackagedFile(path="A", content=b"a"),
    ]


def test_members_are_in_order_and_carry_no_time_of_their_own(tmp_path: Path) -> None:
    """A jar's manifest comes first, where `JarInputStream` looks for it."""
    write_zip(tmp_path / "out" / "a.zip", files(tmp_path))
    with zipfile.ZipFile(tmp_path / "out" / "a.zip") as archive:
        entries = archive.infolist()
        assert [entry.filename for entry in entries] == [JAR_MANIFEST, "A", "b/b"]
        assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
        assert {entry.create_system for entry in entries} == {3}
        assert [entry.external_attr >> 16 for entry in entries] == [0o100644, 0o100644, 0o100755]
        assert archive.read("b/b") == bytes(5000)
        assert entries[2].compress_size < 50


def test_order_of_files_does_not_matter(tmp_path: Path) -> None:
    one, other = io.BytesIO(), io.BytesIO()
    fill_zip(one, files(tmp_path))
    reordered = [PackagedFile(path="b/b", content=bytes(5000), mode=0o755), *reversed(files(tmp_path)[1:])]
    fill_zip(other, reordered)
    assert one.getvalue() == other.getvalue()


def test_links_stay_links(tmp_path: Path) -> None:
    link = PackagedLink(path="a.framework/Versions/Current", target="A")
    write_zip(tmp_path / "a.zip", [PackagedFile(path="a.framework/Versions/A/a", content=b"a", mode=0o755)], [link])
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        entry = archive.getinfo(link.path)
        assert (entry.external_attr >> 16, archive.read(entry)) == (0o120777, b"A")


@pytest.mark.parametrize("path", ["../a", "/a", "a/../b", ""])
def test_paths_that_leave_the_archive_are_refused(tmp_path: Path, path: str) -> None:
    caught = refused(PackageError, write_zip, tmp_path / "a.zip", [PackagedFile(path=path, content=b"")])
    assert (caught.code, caught.exit_code) == ("bad-package-path", ExitCode.PACKAGE)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_gone_leaves_no_archive(tmp_path: Path) -> None:
    caught = refused(StorageError, write_zip, tmp_path / "a.zip", [PackagedFile(path="a", content=tmp_path / "gone")])
    assert caught.code == "archive-not-written"
    assert list(tmp_path.iterdir()) == []


def make_folder(folder: Path) -> Path:
    (folder / "lib").mkdir(parents=True)
    (folder / "z.txt").write_text("last")
    (folder / "lib" / "a.so.1").write_bytes(b"\x7fELF")
    (folder / "lib" / "a.so.1").chmod(0o700)
    (folder / "lib" / "a.so").symlink_to("a.so.1")
    (folder / ("long-" * 30)).write_text("long")
    (folder / "Gr\u00fc\u00dfe.txt").write_text("unicode")
    return folder


def test_entries_carry_nothing_of_the_machine(tmp_path: Path) -> None:
    write_archive(make_folder(tmp_path / "p"), tmp_path / "out" / "p.tar.gz")
    with tarfile.open(tmp_path / "out" / "p.tar.gz") as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == sorted(member.name for member in members)
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "", "")}
    assert {member.mtime for member in members} == {SOURCE_DATE_EPOCH}
    modes = {member.name.removeprefix("p/"): member.mode for member in members}
    assert modes["lib/a.so.1"] == 0o755
    assert modes["z.txt"] == 0o644
    assert next(member.linkname for member in members if member.issym()) == "a.so.1"


def test_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = make_folder(tmp_path / "a" / "p"), make_folder(tmp_path / "b" / "p")
    os.utime(other / "z.txt", (1, 1))
    (other / "lib" / "a.so.1").chmod(0o755)
    (other / "z.txt").chmod(0o600)
    write_archive(one, tmp_path / "one.tar.gz")
    write_archive(other, tmp_path / "other.tar.gz")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "other.tar.gz").read_bytes()


def test_gzip_header_has_no_name_and_no_time(tmp_path: Path) -> None:
    write_archive(make_folder(tmp_path / "p"), tmp_path / "p.tar.gz")
    data = (tmp_path / "p.tar.gz").read_bytes()
    assert data[:4] == b"\x1f\x8b\x08\x00"
    assert data[4:8] == bytes(4)
    assert len(gzip.decompress(data)) % 512 == 0


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "../p2/file"])
def test_link_that_leaves_the_folder_is_refused(tmp_path: Path, target: str) -> None:
    """Such a link would lead into the files of whoever unpacks it; no archive is left."""
    folder = make_folder(tmp_path / "p")
    (folder / "link").symlink_to(target)
    caught = refused(PackageError, write_archive, folder, tmp_path / "p.tar.gz")
    assert caught.code == "not-archivable"
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_special_file_is_refused(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "p")
    os.mkfifo(folder / "pipe")
    caught = refused(PackageError, write_archive, folder, tmp_path / "p.tar.gz")
    assert caught.code == "not-archivable"
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_unwritable_destination_is_a_storage_error(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "p")
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "inner").mkdir(parents=True)
    for destination in (tmp_path / "file" / "p.tar.gz", tmp_path / "taken"):
        caught = refused(StorageError, write_archive, folder, destination)
        assert caught.code == "archive-not-written"
    assert {path.name for path in tmp_path.iterdir()} == {"p", "file", "taken"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.so.1").write_bytes(b"library")
    (tmp_path / "lib" / "a.so").symlink_to("a.so.1")
    (tmp_path / "LICENSE").write_text("MIT\n")
    entries = [PackagedFile(path=path, content=tmp_path / path).entry for path in ("lib/a.so.1", "LICENSE")]
    (tmp_path / "SHA256SUMS").write_text(checksums_text(entries))
    return tmp_path


def references(folder: Path) -> list[str]:
    caught = refused(DiagnosticGroup, check_sums, folder)
    return [diagnostic.code for diagnostic in caught.diagnostics]


def test_digests_stand_below_each_other(folder: Path) -> None:
    (folder / "LICENSE").write_text("GPL\n")
    caught = refused(DiagnosticGroup, check_sums, folder)
    expected, actual = caught.why.splitlines()
    assert expected.startswith("expected ")
    assert len(expected) == len(actual) == len("expected ") + 64


def test_link_that_leaves_the_package_does_not_count(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A listed file replaced by a link to one with the same content elsewhere is not the package's file."""
    outside = tmp_path_factory.mktemp("outside") / "LICENSE"
    outside.write_text("MIT\n")
    (folder / "LICENSE").unlink()
    (folder / "LICENSE").symlink_to(outside)
    assert "file-missing" in references(folder)


def test_path_given_twice_is_refused() -> None:
    with pytest.raises(PackageError, match="cannot be packaged"):
        check_paths(["models/a.ort", "models/a.ort"])
