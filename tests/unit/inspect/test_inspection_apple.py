"""`inspect` of what is built for Apple's systems: told by content, judged without a promise, hostile input refused."""

import json
import os
from pathlib import Path

import pytest

from apple_samples import (
    DEVICE_SLICE,
    Files,
    archive,
    entry,
    flat_framework,
    mac_framework,
    sample,
    write_files,
    xcframework_files,
    xcframework_plist,
    zipped,
)
from ortrim.analysis.inspect import inspect_file
from ortrim.binaries.macho.files import universal_file
from ortrim.cli.tasks.inspect import inspected_table
from ortrim.errors import BinaryError, Diagnostic, ExitCode, ModelError, StorageError
from refusing import refused

ELF = Path(__file__).parents[1] / "binaries" / "data" / "tiny.so"
SLICES = {"ios-arm64", "ios-arm64_x86_64-simulator", "macos-arm64_x86_64"}


@pytest.mark.parametrize("form", ["folder", "zip", "folder around", "zip under another name"])
def test_an_xcframework_is_shown_and_judged(tmp_path: Path, form: str) -> None:
    around = write_files(tmp_path / "package" / "onnxruntime.xcframework", xcframework_files()).parent
    (tmp_path / "archive.zip").write_bytes(zipped(xcframework_files()))
    (tmp_path / "download").write_bytes(zipped(xcframework_files(), root="nested/onnxruntime.xcframework/"))
    paths = {"folder": around / "onnxruntime.xcframework", "zip": tmp_path / "archive.zip", "folder around": around}
    content = inspect_file(paths.get(form, tmp_path / "download"))
    assert content["kind"] == "xcframework"
    assert content["label"].endswith(": ONNX Runtime 1.21.0")
    assert content["slices"].keys() == SLICES
    assert content["broken"] == []
    assert content["public_api"][-1] == "OrtGetApiBase"
    assert content["required_reasons"] == ["NSPrivacyAccessedAPICategorySystemBootTime"]
    assert {gate["verdict"] for gate in content["gates"]} == {"pass", "not judged"}
    assert (content["sha256"] is not None) == form.startswith("zip")
    assert json.loads(json.dumps(content)) == content
    assert inspected_table(content).row_count == len(content)


def test_what_is_wrong_comes_first_and_by_reference(tmp_path: Path) -> None:
    info = xcframework_plist(entry(DEVICE_SLICE), CFBundlePackageType="FMWK")
    content = inspect_file(write_files(tmp_path / "x.xcframework", xcframework_files() | {"Info.plist": info}))
    assert content["broken"] == ["xcframework-keys-wrong", "slice-unlisted"]
    assert [gate["verdict"] for gate in content["gates"]][:3] == ["fail", "fail", "pass"]


@pytest.mark.parametrize(
    "files", [flat_framework(sample("simulator-arm64.dylib")), mac_framework(sample("macos-arm64.dylib"))]
)
def test_a_framework_by_itself_is_what_its_binary_says(tmp_path: Path, files: Files) -> None:
    """Its platform and architectures come from there; what is asked of xcframeworks is not judged."""
    content = inspect_file(write_files(tmp_path / "onnxruntime.framework", files))
    assert content["kind"] == "framework"
    assert [each["architectures"] for each in content["slices"].values()] == ["arm64"]
    assert set(content["slices"]) <= {"ios-simulator", "macos"}
    unjudged = {gate["name"] for gate in content["gates"] if gate["verdict"] == "not judged"}
    assert {"all slices", "keys of the xcframework"} <= unjudged


@pytest.mark.parametrize(
    ("data", "kind", "places"),
    [
        (sample("macos-arm64.dylib"), "apple library", ["arm64"]),
        (universal_file({name: sample(f"macos-{name}.dylib") for name in ("arm64", "x86_64")}), "apple library",
         ["x86_64", "arm64"]),
        (sample("ios-arm64.o"), "apple library", ["arm64"]),
        (archive({"onnxruntime_session.o": sample("ios-arm64.o")}), "apple static library", ["arm64"]),
    ],
)  # fmt: skip
def test_libraries_and_objects_are_shown(tmp_path: Path, data: bytes, kind: str, places: list[str]) -> None:
    (tmp_path / "unknown").write_bytes(data)
    content = inspect_file(tmp_path / "unknown")
    assert content["kind"] == kind
    assert [each["architecture"] for each in content["architectures"]] == places
    assert "OrtGetApiBase" in content["public_api"]
    assert content["other_names"] == []
    assert content["size_bytes"] == len(data)


def test_a_framework_without_a_binary_is_shown(tmp_path: Path) -> None:
    framework: Files = {"Info.plist": b"<plist><dict/></plist>", "Headers/a.h": b""}
    content = inspect_file(write_files(tmp_path / "onnxruntime.framework", framework))
    assert "binary-missing" in content["broken"]
    assert content["label"] == "onnxruntime.framework: of no known version"


@pytest.mark.parametrize("name", ["onnxruntime.xcframework", "onnxruntime.framework"])
def test_an_empty_folder_is_no_xcframework(tmp_path: Path, name: str) -> None:
    """An interrupted copy; one of a framework shows that it has nothing."""
    (tmp_path / name).mkdir()
    if name.endswith(".xcframework"):
        error = refused(Diagnostic, inspect_file, tmp_path / name)
        assert (error.code, error.exit_code) == ("not-an-xcframework", ExitCode.BINARY)
    else:
        assert "binary-missing" in inspect_file(tmp_path / name)["broken"]


def test_other_folders_are_not_read(tmp_path: Path) -> None:
    assert isinstance(refused(Diagnostic, inspect_file, tmp_path), ModelError)
    assert refused(Diagnostic, inspect_file, tmp_path).code == "file-missing"


@pytest.mark.parametrize(
    "info",
    [
        b"",
        b"bplist00",
        b"bplist00\xd1\x01\x01" + bytes(40),
        b"<plist><array/></plist>",
        b"<plist><dict><key>a</key></dict></plist>",
        b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><plist><dict><key>&b;</key><true/></dict></plist>",
        b"<plist>" + b"<array>" * 5_000,
        b"<plist><dict>" + b" " * (2 << 20) + b"</dict></plist>",
    ],
)
def test_property_lists_that_are_none_are_reported(tmp_path: Path, info: bytes) -> None:
    """Cut off, nested without end, with entities, too large, or of another kind."""
    error = refused(Diagnostic, inspect_file, write_files(tmp_path / "x.xcframework", {"Info.plist": info}))
    assert (error.code, error.exit_code) == ("plist-damaged", ExitCode.BINARY)
    inner = xcframework_files() | {f"{DEVICE_SLICE}/onnxruntime.framework/Info.plist": info}
    assert refused(Diagnostic, inspect_file, write_files(tmp_path / "y.xcframework", inner)).code == "plist-damaged"


@pytest.mark.parametrize("libraries", [None, "text", ["text"], [{}] * 1000, {"a": 1}])
def test_a_list_of_slices_that_is_none_is_reported(tmp_path: Path, libraries: object) -> None:
    words = {"AvailableLibraries": libraries} if libraries is not None else {"AvailableLibraries": 1}
    error = refused(
        Diagnostic, inspect_file, write_files(tmp_path / "x.xcframework", {"Info.plist": xcframework_plist(**words)})
    )
    assert error.code == "not-an-xcframework"


@pytest.mark.parametrize(
    "wrong",
    [
        {"LibraryPath": "../../../../etc/passwd"},
        {"LibraryIdentifier": "../.."},
        {"LibraryPath": "/etc/passwd"},
        {"BinaryPath": "../../../../../../../../bin/sh"},
        {"LibraryPath": "", "LibraryIdentifier": ""},
        {"LibraryPath": ["a"], "LibraryIdentifier": {"b": 1}, "SupportedArchitectures": {"c": 2}},
    ],
)
def test_paths_that_lead_outside_find_nothing(tmp_path: Path, wrong: dict[str, object]) -> None:
    """Nothing is read but what is inside; the slice is said to have no binary."""
    files = xcframework_files() | {"Info.plist": xcframework_plist({**entry("macos-arm64"), **wrong})}
    content = inspect_file(write_files(tmp_path / "x.xcframework", files))
    assert "binary-missing" in content["broken"]
    assert all(each["binary_bytes"] is None for each in content["slices"].values())


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../../../../../../../etc/passwd", "onnxruntime", "loop/x"])
def test_links_out_and_in_circles_lead_nowhere(tmp_path: Path, target: str) -> None:
    binary = f"{DEVICE_SLICE}/onnxruntime.framework/onnxruntime"
    files: Files = xcframework_files() | {binary: target, f"{DEVICE_SLICE}/onnxruntime.framework/loop": "loop"}
    (tmp_path / "x.zip").write_bytes(zipped(files))
    for path in (write_files(tmp_path / "x.xcframework", files), tmp_path / "x.zip"):
        content = inspect_file(path)
        assert {"binary-missing", "link-broken"} <= set(content["broken"])


@pytest.mark.parametrize(
    ("files", "root", "reference"),
    [
        ({"Info.plist": b""}, "../x.xcframework/", "unsafe-archive"),
        ({"Info.plist": b""}, "/x.xcframework/", "unsafe-archive"),
        ({"a/x.xcframework/Info.plist": b"", "b/y.xcframework/Info.plist": b""}, "", "several-xcframeworks"),
        ({"long": "x" * 5000}, "x.xcframework/", "unsafe-archive"),
    ],
)
def test_archives_that_could_do_harm_are_refused(tmp_path: Path, files: Files, root: str, reference: str) -> None:
    """Names that climb, a link without end, and more than one xcframework."""
    (tmp_path / "x.zip").write_bytes(zipped(files, root=root))
    error = refused(Diagnostic, inspect_file, tmp_path / "x.zip")
    assert error.code == reference
    assert isinstance(error, BinaryError | StorageError)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
def test_an_archive_that_is_cut_off_is_reported(tmp_path: Path, part: float) -> None:
    whole = zipped(xcframework_files())
    (tmp_path / "x.zip").write_bytes(whole[: int(len(whole) * part)])
    error = refused(Diagnostic, inspect_file, tmp_path / "x.zip")
    assert (error.code, error.exit_code) == ("corrupt-archive", ExitCode.STORAGE)


@pytest.mark.parametrize(("data", "reference"), [(b"", "not-mach-o"), (ELF.read_bytes(), "not-mach-o")])
def test_a_slice_with_a_foreign_binary_is_refused(tmp_path: Path, data: bytes, reference: str) -> None:
    """Linux's library, or an empty file, in the place of Apple's; the error names the member."""
    files = xcframework_files() | {f"{DEVICE_SLICE}/onnxruntime.framework/onnxruntime": data}
    error = refused(Diagnostic, inspect_file, write_files(tmp_path / "x.xcframework", files))
    assert error.code == reference
    assert error.where.endswith(f"{DEVICE_SLICE}/onnxruntime.framework/onnxruntime")


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "x.xcframework", xcframework_files())
    os.mkfifo(folder / "pipe")
    error = refused(Diagnostic, inspect_file, folder)
    assert (error.code, error.exit_code) == ("unsafe-folder", ExitCode.STORAGE)
