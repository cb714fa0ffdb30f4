import errno
import hashlib
import json
import os
import shutil
import tarfile
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from ortrim.base.checksums import FileEntry, check_sums
from ortrim.base.command import run
from ortrim.binaries.elf import build_id_of, take_apart
from ortrim.compiling.plan import SYMBOLS, Package
from ortrim.errors import BinaryError, ExitCode, PackageError, StorageError
from ortrim.package.manifest import PackageInputs, read_manifest
from ortrim.package.package import make_package
from sample_package import make_inputs, with_library

NAME = "ortrim-demo-linux-x64-1.21.0"
FRAMED = Path(__file__).parents[1] / "binaries" / "data" / "framed.so"


@pytest.fixture
def inputs(tmp_path: Path) -> PackageInputs:
    """Lay out the inputs of a package in a folder of their own."""
    return make_inputs(tmp_path / "built")


def make_symbols(inputs: PackageInputs) -> PackageInputs:
    """Return the inputs with a library that was stripped, and its symbols."""
    library, symbols = (inputs.result.folder / name for name in ("framed.so", SYMBOLS))
    take_apart(FRAMED, library, symbols)
    return replace(inputs, result=replace(inputs.result, library=library, symbols=symbols))


def content_of(folder: Path) -> dict[str, bytes | str]:
    """Return everything in a folder by path: bytes of files, targets of links."""
    found = sorted(path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.readlink().as_posix() if path.is_symlink() else path.read_bytes()
        for path in found
    }


def test_package_holds_what_an_application_needs(inputs: PackageInputs, tmp_path: Path) -> None:
    """The folder has the documented layout, and nothing beside it but the archive is left."""
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
    """Their addresses would have the names of other functions."""
    framed = make_symbols(inputs)
    with pytest.raises(PackageError) as caught:
        make_package(with_library(framed, inputs.result.library.read_bytes()), tmp_path / "out")
    assert caught.value.code == "symbols-differ"
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
    """Neither folder, umask, time zone, locale nor the time of day is in a package."""
    one = make_package(make_symbols(make_inputs(tmp_path / "a")), tmp_path / "one")
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    time.tzset()
    old = os.umask(0o077)
    try:
        other = make_package(make_symbols(make_inputs(tmp_path / "another" / "place")), tmp_path / "deep" / "other")
    finally:
        os.umask(old)
        monkeypatch.undo()
        time.tzset()
    assert content_of(one.folder) == content_of(other.folder)
    for name in (f"{NAME}.tar.gz", f"{NAME}-symbols.tar.gz"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "deep" / "other" / name).read_bytes()


def test_no_path_of_the_machine_is_in_a_package(inputs: PackageInputs, tmp_path: Path) -> None:
    """No file contains the folder in which the package was made, nor the user's."""
    package = make_package(inputs, tmp_path / "out")
    for path, content in content_of(package.folder).items():
        text = content if isinstance(content, bytes) else content.encode()
        assert str(tmp_path).encode() not in text, path
        assert str(Path.cwd()).encode() not in text, path


def test_library_that_names_the_build_folder_is_refused(inputs: PackageInputs, tmp_path: Path) -> None:
    """`__FILE__` compiled without a prefix map would tell whose machine it was, and change the bytes."""
    content = (inputs.result.library).read_bytes() + str(inputs.result.folder / "a.h").encode()
    with pytest.raises(PackageError) as caught:
        make_package(with_library(inputs, content), tmp_path / "out")
    assert caught.value.code == "machine-path"
    assert "file-prefix-map" in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_manifest_covers_every_file(inputs: PackageInputs, tmp_path: Path) -> None:
    """Read back from folder and archive it is the same, and it lists all files but itself and the sums."""
    package = make_package(inputs, tmp_path / "out")
    assert read_manifest(package.folder) == read_manifest(package.archive) == package.manifest
    files = {path for path, content in content_of(package.folder).items() if isinstance(content, bytes)}
    assert {entry.path for entry in package.manifest.files} == files - {"manifest.json", "SHA256SUMS"}
    assert package.manifest.compiler == "zig 0.17.0"
    assert package.manifest.operators.operators[0].name == "Gemm"


def test_sums_are_accepted_by_sha256sum(inputs: PackageInputs, tmp_path: Path) -> None:
    """The ordinary program checks a package as our own function does."""
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
    """That of the runtime is not the model's."""
    bill = json.loads((make_package(inputs, tmp_path / "out").folder / "sbom.cdx.json").read_text())
    (model,) = (part for part in bill["components"] if part["type"] == "data")
    assert not {"version", "purl"} & model.keys()


def test_notices_say_where_the_source_under_the_mpl_is(inputs: PackageInputs, tmp_path: Path) -> None:
    """As the MPL asks in its section 3.2: the repository, and the tag or commit in it."""
    notices = (make_package(inputs, tmp_path / "out").folder / "ThirdPartyNotices.txt").read_text(encoding="utf-8")
    assert "eigen (MPL-2.0)\n\nSource: https://gitlab.com/libeigen/eigen, 3.4.0\n\nBeno" in notices
    assert notices.count("Source: ") == 1


def test_serial_number_follows_the_content(inputs: PackageInputs, tmp_path: Path) -> None:
    """Another library is another bill."""
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
    """What a user unpacks passes the same check."""
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
    """A second call leaves an intact folder alone and mends one that somebody edited."""
    package = make_package(inputs, tmp_path / "out")
    before = package.folder.stat().st_ino
    make_package(inputs, tmp_path / "out")
    assert package.folder.stat().st_ino == before
    (package.folder / "LICENSE").write_text("mine now\n")
    (package.folder / "extra").write_text("?")
    make_package(inputs, tmp_path / "out")
    check_sums(package.folder)
    assert not (package.folder / "extra").exists()


@pytest.mark.parametrize(
    "lost", ["libonnxruntime.so", "model.ort", "headers/onnxruntime_c_api.h", "texts/LICENSE", "texts/COPYING.eigen"]
)
def test_missing_input_is_named_and_nothing_is_written(inputs: PackageInputs, tmp_path: Path, lost: str) -> None:
    """Whatever the build should have left and did not is a diagnostic before the first byte is written."""
    (inputs.result.folder / lost).unlink()
    with pytest.raises(PackageError) as caught:
        make_package(inputs, tmp_path / "out")
    assert caught.value.code == "package-input-missing"
    assert caught.value.exit_code == ExitCode.PACKAGE
    assert caught.value.where.endswith(lost)
    assert not (tmp_path / "out").exists()


def test_changed_model_is_refused(inputs: PackageInputs, tmp_path: Path) -> None:
    """A model that is not the one the runtime was reduced to would fail at the customer's."""
    inputs.models[0].path.write_bytes(b"another")
    with pytest.raises(PackageError) as caught:
        make_package(inputs, tmp_path / "out")
    assert caught.value.code == "model-changed"
    assert not (tmp_path / "out").exists()


def test_model_that_was_planned_must_be_given(inputs: PackageInputs, tmp_path: Path) -> None:
    """A package without one of its models is not the product."""
    with pytest.raises(PackageError) as caught:
        make_package(replace(inputs, models=()), tmp_path / "out")
    assert caught.value.code == "model-changed"


@pytest.mark.parametrize(("content", "reference"), [(b"", "not-elf"), (b"\x7fELF" + bytes(60), "corrupt-elf")])
def test_damaged_library_is_refused(inputs: PackageInputs, tmp_path: Path, content: bytes, reference: str) -> None:
    """A library that cannot be read is not packaged."""
    with pytest.raises(BinaryError) as caught:
        make_package(with_library(inputs, content), tmp_path / "out")
    assert caught.value.code == reference
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("soname", ["../../etc/passwd.1", "libsomething.so.1", "libonnxruntime.so/1"])
def test_library_with_a_strange_name_is_refused(inputs: PackageInputs, tmp_path: Path, soname: str) -> None:
    """A soname decides a file's name, so it may only be one of the known ones."""
    content = inputs.result.library.read_bytes().replace(b"libonnxruntime.so.1\0", soname.encode().ljust(20, b"\0"))
    with pytest.raises(PackageError) as caught:
        make_package(with_library(inputs, content), tmp_path / "out")
    assert caught.value.code == "bad-soname"


def test_full_disk_is_a_storage_error_and_leaves_nothing(
    inputs: PackageInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that fails half way is reported with the system's own words, and the half is removed."""

    def full(source: Path, destination: Path) -> None:
        destination.write_bytes(source.read_bytes()[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ortrim.package.package.shutil.copyfile", full)
    with pytest.raises(StorageError) as caught:
        make_package(inputs, tmp_path / "out")
    assert (caught.value.code, caught.value.exit_code) == ("disk-full", ExitCode.STORAGE)
    assert "No space left" in caught.value.why
    assert [path for path in (tmp_path / "out").iterdir() if not path.name.endswith(".lock")] == []


def test_a_package_for_which_there_is_no_room_is_not_begun(
    inputs: PackageInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are of known sizes; what the user named has no variable that chooses another place."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=10**6, free=100))
    with pytest.raises(StorageError) as caught:
        make_package(inputs, tmp_path / "out")
    assert caught.value.what.startswith("the package takes about ")
    assert "ORTRIM_CACHE" not in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_file_in_the_way_of_the_destination_is_a_storage_error(inputs: PackageInputs, tmp_path: Path) -> None:
    """A file where the folder should go is reported, not a traceback, and stays as it is."""
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(StorageError):
        make_package(inputs, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "in the way"


def test_interrupted_packaging_leaves_nothing(
    inputs: PackageInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while files are written leaves neither folder nor archive, and the next run makes both."""

    def interrupted(self: Path, target: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "symlink_to", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make_package(inputs, tmp_path / "out")
    assert [path for path in (tmp_path / "out").iterdir() if not path.name.endswith(".lock")] == []
    package: Package = make_package(inputs, tmp_path / "out")
    check_sums(package.folder)
