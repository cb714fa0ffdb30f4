"""Lines for an app's own build: what stands in them, and what cannot get into them."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.errors import UsageError
from ortrim.github.fetch.placing import Lock, LockedFile, Origin
from ortrim.github.fetch.snippets import ENDINGS, FILTERS, PLACED, SnippetFile, fetched_snippet, snippet
from refusing import refused

DIGEST: Final = "0123456789abcdef" * 4
ADDRESS: Final = "https://github.com/us/app/releases/download/v1/"
NAMES: Final = {
    "gradle": "ortrim-demo-android-1.21.0.aar",
    "cmake": "ortrim-demo-linux-x64-1.21.0.tar.gz",
    "spm": "ortrim-demo-apple-1.21.0.xcframework.zip",
    "podfile": "ortrim-demo-apple-1.21.0.xcframework.zip",
}
OTHERS: Final = [
    SnippetFile(name=name, url=ADDRESS + name, sha256="f" * 64, size_bytes=99)
    for name in ("SHA256SUMS", "ortrim-demo-linux-x64-1.21.0-symbols.tar.gz")
]
STRINGS: Final = {
    "single": re.compile(r"'((?:[^'\\]|\\['\\])*)'"),
    "double": re.compile(r'"((?:[^"\\]|\\["\\])*)"'),
    "bracket": re.compile(r"\[(=+)\[((?:(?!\]\1\]).)*)\]\1\]", re.DOTALL),
}
"""The languages' own rules for where such a string ends."""


def file_for(kind: str, **changes: object) -> SnippetFile:
    name = NAMES[kind]
    good = SnippetFile(name=name, url=ADDRESS + name, sha256=DIGEST, size_bytes=650_000)
    return replace(good, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ENDINGS)
def test_a_snippet_has_address_and_digest(kind: str) -> None:
    text = snippet(kind, [*OTHERS, file_for(kind)])
    assert ADDRESS + NAMES[kind] in text
    assert DIGEST in text
    assert OTHERS[0].sha256 not in text
    assert text.endswith("\n")
    assert "{{" not in text
    assert "{%" not in text


def test_gradle_takes_several_files() -> None:
    text = snippet("gradle", [file_for("gradle"), file_for("gradle", name="second.aar", size_bytes=7)])
    assert text.index("fetchOrtrim1") < text.index("fetchOrtrim2") < text.index("'second.aar'")
    assert text.count("implementation files(") == 2
    assert "size = 7\n" in text


def test_a_podspec_has_the_version_of_the_name() -> None:
    """Or one that says nothing, since CocoaPods wants one."""
    assert "spec.version = '1.21.0'" in snippet("podfile", [file_for("podfile")])
    assert "spec.version = '1.0.0'" in snippet("podfile", [file_for("podfile", name="x.xcframework.zip")])


def test_a_podspec_says_that_mit_is_not_the_only_licence() -> None:
    """And names the files of the zip that hold the texts."""
    text = snippet("podfile", [file_for("podfile")])
    assert ":type => 'MIT, and those in ThirdPartyNotices.txt', :file => 'LICENSE'" in text


def test_a_swift_package_begins_with_its_tools_version() -> None:
    """Swift reads it from the first line alone."""
    assert snippet("spm", [file_for("spm")]).startswith("// swift-tools-version: 5.9\n")


@pytest.mark.parametrize(
    ("kind", "names", "reference"),
    [
        ("gradle", ["a.tar.gz"], "snippet-no-file"),
        ("cmake", [], "snippet-no-file"),
        ("cmake", ["a.tar.gz", "b.tar.gz"], "snippet-ambiguous"),
        ("spm", ["a.xcframework.zip", "b.xcframework.zip"], "snippet-ambiguous"),
        ("gradle", ["../a.aar"], "snippet-bad-file"),
        ("gradle", ["a\n.aar"], "snippet-bad-file"),
        ("gradle", ["a\u2028.aar"], "snippet-bad-file"),
        ("gradle", ["c:a.aar"], "snippet-bad-file"),
    ],
)
def test_what_makes_no_snippet_is_refused(kind: str, names: list[str], reference: str) -> None:
    """No file or too many, names that are more than names."""
    offered = [SnippetFile(name=name, url="https://example.org/x", sha256=DIGEST, size_bytes=1) for name in names]
    assert refused(UsageError, snippet, kind, offered).code == reference


@pytest.mark.parametrize(
    "changes",
    [
        {"sha256": DIGEST.upper()},
        {"sha256": DIGEST[:-1]},
        {"sha256": DIGEST + "\n"},
        {"sha256": ""},
        {"size_bytes": 0},
        {"url": "http://example.org/a.aar"},
        {"url": "file:///etc/passwd"},
        {"url": "https://user:word@example.org/a.aar"},
        {"url": "https://example.org/a b.aar"},
        {"url": "https://example.org/a\n.aar"},
        {"url": "https:///a.aar"},
        {"url": "https://[::1/a.aar"},
        {"url": ""},
    ],
)
def test_a_file_that_cannot_be_checked_is_refused(changes: dict[str, object]) -> None:
    """No digest, no size, an address that others on the way could answer, one with a login in it."""
    assert refused(UsageError, snippet, "gradle", [file_for("gradle", **changes)]).code == "snippet-bad-file"


@pytest.mark.parametrize("address", ["http://127.0.0.1:8000/a", "http://[::1]:8000/a", "http://localhost/a"])
def test_this_machine_needs_no_https(address: str) -> None:
    assert address in snippet("gradle", [file_for("gradle", url=address)])


def test_what_means_something_to_a_build_is_encoded_in_addresses() -> None:
    """Lists of CMake, variables, quotes, interpolation; what was encoded stays as it is."""
    address = "https://example.org/a;b/$ENV{HOME}/'\"/#{x}/\\(y)/]=]/%20?c=d&e=f"
    for kind in ENDINGS:
        text = snippet(kind, [file_for(kind, url=address)])
        assert "https://example.org/a%3Bb/%24ENV%7BHOME%7D/%27%22/#%7Bx%7D/%5C%28y%29/]=]/%20?c=d&e=f" in text


@given(st.sampled_from(sorted(FILTERS)), st.text())
def test_a_string_ends_where_it_should(filter_name: str, text: str) -> None:
    written = FILTERS[filter_name](text)
    match = STRINGS[filter_name].fullmatch(written)
    assert match is not None
    assert re.sub(r"\\(.)", r"\1", match[1]) == text if filter_name != "bracket" else match[2] == text


@given(st.sampled_from(sorted(ENDINGS)), st.text(max_size=30))
def test_any_name_is_written_or_refused(kind: str, start: str) -> None:
    """Never an error of another kind; and the lines around it are the same."""
    file = file_for(kind, name=start + ENDINGS[kind])
    try:
        text = snippet(kind, [file])
    except UsageError:
        return
    usual = snippet(kind, [file_for(kind)])
    assert len(text.splitlines()) == len(usual.splitlines())
    same = [line for line, other in zip(text.splitlines(), usual.splitlines(), strict=True) if line == other]
    assert len(same) >= len(usual.splitlines()) - 1


ARCHIVE: Final = "ortrim-demo-linux-x64-1.21.0.tar.gz"
AAR: Final = "maven/ortrim/onnxruntime-android-demo/1.21.0-4da441ab/onnxruntime-android-demo-1.21.0-4da441ab.aar"
PODS: Final = "onnxruntime/onnxruntime-1.21.0.xcframework.zip"
WHEEL: Final = "wheel/ortrim_demo-1.21.0-py3-none-manylinux_2_28_x86_64.whl"
BESIDE: Final = (
    "ortrim-demo-android-1.21.0.aar",
    "ortrim-demo-linux-x64-1.21.0-symbols.tar.gz",
    "ortrim-demo-apple-1.21.0.xcframework.zip",
    AAR.replace(".aar", ".pom"),
    "models/session.json",
)


def placed(folder: Path, *paths: str) -> Lock:
    """Lay out the files of a run's deliveries, and lock them."""
    for path in (*paths, *BESIDE):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    origin = Origin(host="github.com", repository="octo/ort", run=5, commit=40 * "c")
    locked = (LockedFile(path=path, size=0, sha256=DIGEST) for path in (*paths, *BESIDE))
    return Lock(origin=origin, files=tuple(locked))


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("rust", [ARCHIVE]),
        ("react-native", [AAR, PODS]),
        ("react-native", [AAR]),
        ("flutter", [AAR, PODS, ARCHIVE]),
        ("flutter", [PODS]),
        ("python", [WHEEL]),
    ],
)
def test_a_framework_s_snippet_names_what_was_fetched(tmp_path: Path, kind: str, parts: list[str]) -> None:
    """A file or folder, or the coordinates of what is in one, for each part that is there, and nothing else."""
    text = fetched_snippet(kind, placed(tmp_path, *parts), tmp_path)
    named = {Path(path) for path in re.findall(rf"{tmp_path}/[\w./-]+", text)}
    found = re.findall(r"ortrim:([\w.-]+):([\w.-]+)", text)
    repository = tmp_path / "maven"
    aars = {repository / "ortrim" / name / version / f"{name}-{version}.aar" for name, version in found}
    assert named - {repository} | aars == {tmp_path / part for part in parts}
    assert (repository in named) == (AAR in parts)
    assert "{{" not in text
    assert text.endswith("\n")


@pytest.mark.parametrize("kind", ["react-native", "flutter"])
def test_gradle_looks_for_a_folder_of_the_app_from_the_folder_of_android(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = fetched_snippet(kind, placed(Path("ortrim-runtime"), AAR), Path("ortrim-runtime"))
    (address,) = re.findall(r'rootProject\.uri\("([^"]+)"\)', text)
    assert (tmp_path / "android" / address).resolve() == tmp_path / "ortrim-runtime" / "maven"


@pytest.mark.parametrize(("version", "api"), [("1.21.0", 21), ("1.27.1", 27), ("1.30.0", 27)])
def test_rust_asks_for_the_api_of_the_library(tmp_path: Path, version: str, api: int) -> None:
    """As far as the crate knows it: a library has all earlier versions."""
    text = fetched_snippet("rust", placed(tmp_path, ARCHIVE.replace("1.21.0", version)), tmp_path)
    assert f'"api-{api}"]' in text


@pytest.mark.parametrize(
    ("kind", "parts", "folder", "reference"),
    [
        *((kind, [], "ortrim-runtime", "snippet-no-file") for kind in PLACED),
        ("rust", [ARCHIVE, ARCHIVE.replace("x64", "arm64")], "ortrim-runtime", "snippet-ambiguous"),
        ("react-native", [AAR, AAR.replace("demo", "other")], "ortrim-runtime", "snippet-ambiguous"),
        ("python", [WHEEL], "$(touch hacked)", "snippet-bad-file"),
        ("rust", [ARCHIVE], 'a";b', "snippet-bad-file"),
    ],
)
def test_what_makes_no_snippet_of_a_framework_is_refused(
    tmp_path: Path, kind: str, parts: list[str], folder: str, reference: str
) -> None:
    assert refused(UsageError, fetched_snippet, kind, placed(tmp_path, *parts), Path(folder)).code == reference
