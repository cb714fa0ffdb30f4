"""Lines for an app's own build: what stands in them, and what cannot get into them."""

import re
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.errors import UsageError
from ortrim.github.fetch.snippets import ENDINGS, FILTERS, SnippetFile, snippet
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
        ("maven", ["a.aar"], "snippet-kind"),
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
    """An unknown kind, no file or too many, names that are more than names."""
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
