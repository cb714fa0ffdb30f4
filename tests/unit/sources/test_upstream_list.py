from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.errors import SourcesError
from ortrim.pins.runtime import COMPONENTS, upstream_names
from ortrim.sources.archives import (
    Dependency,
    declared_components,
    parse_dependencies,
    read_dependencies,
    version_in,
)

RECORDED = """\
#Name;Url;SHA1
#This is a CSV file.
#
abseil_cpp;https://github.com/abseil/abseil-cpp/archive/refs/tags/20240722.0.zip;36ee53eb1466fb6e593fc5c286680de31f8a494a
# Issue link: https://gitlab.com/libeigen/eigen/-/issues/2744
eigen;https://gitlab.com/libeigen/eigen/-/archive/1d8b82b/eigen-1d8b82b.zip;5ea4d05e62d7f954a46b3213f9b2535bdd866803
"""


def test_recorded_list_is_read() -> None:
    """Lines of upstream's file become dependencies; comments do not."""
    first, second = parse_dependencies(RECORDED)
    assert first == Dependency(
        name="abseil_cpp",
        url="https://github.com/abseil/abseil-cpp/archive/refs/tags/20240722.0.zip",
        sha1="36ee53eb1466fb6e593fc5c286680de31f8a494a",
    )
    assert second.name == "eigen"


@pytest.mark.parametrize("line", ["a;b", "a;b;c", "a;b;" + "g" * 40, "a;b;c;" + "0" * 40, "<html>"])
def test_other_lines_are_refused(line: str) -> None:
    """A line that is not `name;url;sha1` stops the update: nothing is guessed."""
    with pytest.raises(SourcesError) as caught:
        parse_dependencies(RECORDED + line)
    assert caught.value.code == "bad-dependency-list"


@given(st.text())
def test_any_text_ends_in_a_list_or_a_diagnostic(text: str) -> None:
    """Whatever the file holds, reading it ends."""
    with suppress(SourcesError):
        assert all(len(each.sha1) == 40 for each in parse_dependencies(text))


@pytest.mark.parametrize(
    ("url", "version"),
    [
        ("https://x.org/archive/refs/tags/v3.11.3.zip", "3.11.3"),
        ("https://x.org/archive/refs/tags/2024-07-02.zip", "2024-07-02"),
        ("https://x.org/archive/refs/tags/boost-1.82.0.tar.gz?x=1", "boost-1.82.0"),
        ("https://github.com/a/b/archive/1d8b82b/eigen-1d8b82b.zip", "1d8b82b"),
        ("https://gitlab.com/a/b/c/-/archive/v1.5/c-v1.5.tar.gz", "1.5"),
    ],
)
def test_version_is_what_the_address_says(url: str, version: str) -> None:
    """The tag or commit of an archive's address serves as its version."""
    assert version_in(url) == version


def listed(**others: str) -> list[Dependency]:
    """Return a list of all that upstream names, with other SHA-1 for some."""
    return [
        Dependency(
            name=name, url=f"https://github.com/a/{name}/archive/refs/tags/v1.2.zip", sha1=others.get(name, "a" * 40)
        )
        for name in (*upstream_names(), "something_else")
    ]


def test_what_a_library_is_made_of_has_our_names() -> None:
    """Of what some libraries alone need, that which is asked for; all else that upstream lists is left alone."""
    found = {pin.name: pin for pin in declared_components(listed(), {"a" * 40: "b" * 64}, frozenset({"cpuinfo"}))}
    assert set(found) == {*COMPONENTS, "cpuinfo"} - {"onnxruntime"}
    json = found["nlohmann_json"]
    assert (json.version, json.file, json.digest) == ("1.2", "nlohmann_json-v1.2.zip", ("sha256", "b" * 64))
    (unknown, *_) = declared_components(listed(), {}, frozenset())
    assert unknown.digest == ("sha1", "a" * 40)


def test_what_is_gone_is_taken_from_elsewhere() -> None:
    """GitLab's archive of Eigen has had other bytes since May 2025; a mirror of the repository has its files."""
    gone = "5ea4d05e62d7f954a46b3213f9b2535bdd866803"
    found = {pin.name: pin for pin in declared_components(listed(eigen=gone), {}, frozenset())}
    assert found["eigen"].location.startswith("https://github.com/eigen-mirror/")
    assert found["eigen"].sha1 != gone


def test_a_list_that_lacks_one_is_refused() -> None:
    """Nothing could be built of it; of what only some libraries need it may lack anything."""
    short = [each for each in listed() if each.name not in {"re2", "kleidiai"}]
    with pytest.raises(SourcesError) as caught:
        declared_components(short, {}, frozenset({"kleidiai"}))
    assert (caught.value.code, caught.value.what) == ("bad-dependency-list", "does not list re2")


def test_a_tree_without_a_list_is_refused(tmp_path: Path) -> None:
    """A folder of the user's may be anything."""
    with pytest.raises(SourcesError) as caught:
        read_dependencies(tmp_path)
    assert caught.value.code == "bad-dependency-list"
