"""The Xcode project for iPhones: what is in it, that every part fits the others, and which apps are taken.

That Xcode takes it is for the workflow's job on a Mac to prove.
"""

import plistlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from ortrim.base.files import shipped_folder
from ortrim.devices.harness import PROJECT_ASSET, REQUESTS_ASSET, HarnessContent
from ortrim.devices.harness_projects import APP, RUNNER_FLAGS, find_app, make_phone_harness
from ortrim.errors import Diagnostic, ExitCode

REQUESTS = '{"schema": "ortrim-requests/1", "runs": [{}, {}]}\n'
TOKEN = re.compile(r'\s*(?://[^\n]*\n)?\s*("(?:[^"\\]|\\.)*"|[{}()=;,]|[\w$./+:-]+)')
"""Of the property lists that Xcode writes."""
IDENTIFIER = re.compile(r"[0-9A-F]{24}")


def parsed(text: str) -> Any:
    """Return the value of a property list in Xcode's own form; a character too many or too few is an error."""
    tokens = list(TOKEN.findall(text))
    assert TOKEN.sub("", text).strip() == ""
    words = iter(tokens)
    value = _value(next(words), words)
    assert next(words, None) is None
    return value


def _value(word: str, words: Iterator[str]) -> Any:
    if word == "{":
        return dict(_entries(words))
    if word == "(":
        return list(_elements(words))
    assert word not in "})=;,"
    return word.strip('"')


def _entries(words: Iterator[str]) -> Iterator[tuple[str, Any]]:
    while (key := next(words)) != "}":
        assert next(words) == "="
        yield key.strip('"'), _value(next(words), words)
        assert next(words) == ";"


def _elements(words: Iterator[str]) -> Iterator[Any]:
    while (word := next(words)) != ")":
        yield _value(word, words)
        comma = next(words)
        if comma == ")":
            return
        assert comma == ","


@pytest.fixture(name="content")
def fixture_content(tmp_path: Path) -> HarnessContent:
    built = tmp_path / "built"
    built.mkdir()
    for name in ("library", "model", "onnxruntime_c_api.h"):
        (built / name).write_bytes(name.encode())
    return HarnessContent(
        requests=REQUESTS,
        libraries=MappingProxyType({"libortrim_ab12.dylib": built / "library"}),
        assets=MappingProxyType({"ortrim/files/cd34": built / "model"}),
    )


def written(content: HarnessContent, folder: Path, architecture: str = "arm64", minimum: str = "15.1") -> Path:
    headers = folder.parent / "built"
    return make_phone_harness(content, folder, headers=headers, architecture=architecture, minimum=minimum)


@pytest.fixture(name="harness")
def fixture_harness(content: HarnessContent, tmp_path: Path) -> Path:
    return written(content, tmp_path / "harness")


def objects_of(harness: Path) -> dict[str, dict[str, Any]]:
    project = parsed((harness / "Harness.xcodeproj/project.pbxproj").read_text(encoding="utf-8"))
    objects: dict[str, dict[str, Any]] = project["objects"]
    assert objects[project["rootObject"]]["isa"] == "PBXProject"
    return objects


def phase(objects: dict[str, dict[str, Any]], target: str, kind: str) -> list[dict[str, Any]]:
    """Return the files of one phase of a target, as build files with the file's path."""
    (found,) = (each for each in objects.values() if each["isa"] == "PBXNativeTarget" and each["name"] == target)
    phases = [objects[name] for name in found["buildPhases"]]
    files = [objects[name] for each in phases if each["isa"] == kind for name in each["files"]]
    return [{**file, "path": objects[file["fileRef"]]["path"]} for file in files]


def compiled(harness: Path, requests: bytes = REQUESTS.encode(), identifier: str = "ortrim.harness.TEAM") -> None:
    (harness / APP / "ortrim").mkdir(parents=True, exist_ok=True)
    (harness / APP / REQUESTS_ASSET).write_bytes(requests)
    (harness / APP / PROJECT_ASSET).write_bytes((harness / "Harness" / PROJECT_ASSET).read_bytes())
    (harness / APP / "Info.plist").write_bytes(
        plistlib.dumps({"CFBundleIdentifier": identifier}, fmt=plistlib.FMT_BINARY)
    )


def refused(harness: Path) -> Diagnostic:
    with pytest.raises(Diagnostic) as caught:
        find_app(harness)
    return caught.value


def test_every_identifier_leads_somewhere(harness: Path) -> None:
    """No object of the project refers to one that is not there, and none is there for nothing."""
    text = (harness / "Harness.xcodeproj/project.pbxproj").read_text(encoding="utf-8")
    objects = objects_of(harness)
    assert set(IDENTIFIER.findall(text)) == set(objects)
    assert all(text.count(name) > 1 for name in objects)
    assert {len(name) for name in objects} == {24}


def test_every_file_of_the_project_is_there(harness: Path) -> None:
    objects = objects_of(harness)
    files = [each for each in objects.values() if each["isa"] == "PBXFileReference"]
    ours = [each["path"] for each in files if each["sourceTree"] == "<group>"]
    assert all((harness / path).exists() for path in ours)
    assert len(ours) == len(set(ours))


def test_all_that_is_written_is_compiled(harness: Path) -> None:
    """The app with the whole runner, whose ends are renamed; the test with its own; what both need in both."""
    objects = objects_of(harness)
    app, tests = (phase(objects, name, "PBXSourcesBuildPhase") for name in ("Harness", "HarnessUITests"))
    sources = {path.relative_to(harness).as_posix() for path in harness.rglob("*.[cm]")}
    assert {file["path"] for file in (*app, *tests)} == sources
    assert {file["path"] for file in tests} == {"Harness/tests/RequestsTests.m", "Harness/app/transfer.c"}
    flags = {Path(file["path"]).name: file.get("settings", {}).get("COMPILER_FLAGS", "") for file in app}
    runner = {path.name for path in shipped_folder("runner").glob("*.c")}
    assert {name for name, words in flags.items() if words == RUNNER_FLAGS} == runner
    assert set(flags) - runner == {"main.m", "Run.m", "transfer.c"}


def test_the_library_is_signed_and_the_requests_are_carried(harness: Path) -> None:
    """Each in its place of the app; the test has the requests too, to know how many there are."""
    objects = objects_of(harness)
    (library,) = phase(objects, "Harness", "PBXCopyFilesBuildPhase")
    assert library["path"] == "Harness/libraries/libortrim_ab12.dylib"
    assert library["settings"]["ATTRIBUTES"] == ["CodeSignOnCopy"]
    assert [file["path"] for file in phase(objects, "Harness", "PBXResourcesBuildPhase")] == ["Harness/ortrim"]
    (requests,) = phase(objects, "HarnessUITests", "PBXResourcesBuildPhase")
    assert requests["path"] == "Harness/ortrim/requests.json"
    assert phase(objects, "Harness", "PBXFrameworksBuildPhase") == []


def test_a_static_library_is_linked(content: HarnessContent, tmp_path: Path) -> None:
    """With what it needs of the system, and the runner told that it holds one."""
    archive = HarnessContent(
        requests=REQUESTS, libraries={"libortrim.a": tmp_path / "built" / "library"}, assets=content.assets
    )
    harness = written(archive, tmp_path / "static")
    objects = objects_of(harness)
    (library,) = phase(objects, "Harness", "PBXFrameworksBuildPhase")
    assert library["path"] == "Harness/libraries/libortrim.a"
    assert phase(objects, "Harness", "PBXCopyFilesBuildPhase") == []
    settings = [each["buildSettings"] for each in objects.values() if each["isa"] == "XCBuildConfiguration"]
    (app,) = (each for each in settings if each.get("PRODUCT_NAME") == "Harness")
    assert app["GCC_PREPROCESSOR_DEFINITIONS"] == ["ORTRIM_LINKED=1"]
    assert app["OTHER_LDFLAGS"] == ["-lc++", "-framework", "Foundation", "-weak_framework", "CoreML"]


def test_the_settings_are_the_targets(harness: Path, content: HarnessContent, tmp_path: Path) -> None:
    """Architecture and oldest system are those of what is verified."""
    other = written(content, tmp_path / "other", "x86_64", "13.0")
    for folder, wanted in ((harness, ("arm64", "15.1")), (other, ("x86_64", "13.0"))):
        (project,) = (
            each["buildSettings"] for each in objects_of(folder).values() if "ARCHS" in each.get("buildSettings", {})
        )
        assert (project["ARCHS"], project["IPHONEOS_DEPLOYMENT_TARGET"]) == wanted


def test_the_scheme_builds_and_tests_these_targets(harness: Path) -> None:
    """By the identifiers that they have in the project."""
    scheme = harness / "Harness.xcodeproj/xcshareddata/xcschemes/Harness.xcscheme"
    root = ET.parse(scheme).getroot()  # noqa: S314 - our own file
    objects = objects_of(harness)
    named = {
        each.attrib["BlueprintIdentifier"]: each.attrib["BlueprintName"] for each in root.iter("BuildableReference")
    }
    targets = {name: each["name"] for name, each in objects.items() if each["isa"] == "PBXNativeTarget"}
    assert named == targets
    (tested,) = root.iter("TestableReference")
    (reference,) = tested
    assert reference.attrib["BlueprintName"] == "HarnessUITests"


def test_the_classes_that_are_named_are_there(harness: Path) -> None:
    """What the README promises is what the test prints and attaches."""
    readme, test = (harness / "README.md").read_text(), (harness / "Harness/tests/RequestsTests.m").read_text()
    for word in ("RequestsTests", "ortrim-results.zip", "ortrim-result "):
        assert word.strip() in readme
        assert word in test
    assert "2 requests" in readme
    assert "XCTMemoryMetric" in test
    assert "XCTClockMetric" in test


def test_the_app_is_found_where_xcode_leaves_it(harness: Path) -> None:
    """By the identifier that it has, which has the team in it."""
    compiled(harness)
    app = find_app(harness)
    assert (app.path, app.identifier) == (harness / APP, "ortrim.harness.TEAM")


def test_without_an_app_the_command_is_reported(harness: Path) -> None:
    error = refused(harness)
    assert (error.code, error.where, error.exit_code) == ("phone-app-missing", str(harness), ExitCode.VERIFY)
    assert "xcodebuild build-for-testing" in error.hint
    assert "DEVELOPMENT_TEAM=" in error.hint


@pytest.mark.parametrize("requests", [b"", b"{}", REQUESTS.encode() + b" ", bytes(17 << 20)])
def test_an_app_with_other_requests_is_outdated(harness: Path, requests: bytes) -> None:
    """Also one that claims to carry more than anybody would ask for, which is not read."""
    compiled(harness, requests)
    assert refused(harness).code == "phone-app-outdated"


def test_an_app_of_another_ortrim_is_outdated(harness: Path) -> None:
    """Its requests are the same, but what carries them out is not."""
    compiled(harness)
    (harness / APP / PROJECT_ASSET).unlink()
    assert refused(harness).code == "phone-app-outdated"


@pytest.mark.parametrize(
    "information", [b"", b"bplist00", b"<plist/>", plistlib.dumps({}), plistlib.dumps([]), b"\xff" * 40]
)
def test_an_app_without_a_name(harness: Path, information: bytes) -> None:
    """Cut off, of another kind or shape."""
    compiled(harness)
    (harness / APP / "Info.plist").write_bytes(information)
    assert refused(harness).code == "phone-app-missing"
