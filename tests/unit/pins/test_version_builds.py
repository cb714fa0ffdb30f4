"""The demo with two versions, and the pull request that rests on it; building itself is put aside."""

from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.base.console import Console
from ortrim.errors import BuildError, Diagnostic, ExitCode, SourcesError, StorageError, UsageError
from ortrim.github.credentials import API
from ortrim.pin_updates import new_versions
from ortrim.pin_updates.new_versions import (
    VersionsUpdate,
    build_each,
    build_versions,
    proposal_body,
    read_built,
    read_update,
    upstream_client,
    write_update,
)
from ortrim.pin_updates.report import Refused
from ortrim.planning.request import Request, load
from ortrim.verify.reports import VerifyReport
from sample_reports import recorded_report

DEMO = Path(__file__).parents[3] / "buildspecs" / "silero-vad.toml"
REQUEST = Request(spec=DEMO)
UPDATE = VersionsUpdate(last="1.21.0", pinned=("1.23.2", "1.24.1"))
LOST = Refused(version="1.24.0", reference="no-converter", what="no wheel of <b>it</b>", why="@you | x")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> dict[str, Diagnostic]:
    """Build in no time: a version's error, if it is in what is returned."""
    errors: dict[str, Diagnostic] = {}

    def build(request: Request, _: Console) -> tuple[VerifyReport, ...]:
        version = load(request).spec.onnxruntime.version
        if version in errors:
            raise errors[version]
        return (replace(recorded_report(), ort_version=version),)

    monkeypatch.setattr(new_versions, "build", build)
    return errors


def test_both_versions_are_built(tmp_path: Path, built: dict[str, Diagnostic]) -> None:
    """The last one and the newest, not those in between; the reports are there to be read."""
    write_update(UPDATE, tmp_path)
    reports = build_versions(REQUEST, tmp_path, Console())
    assert [report.ort_version for report in reports] == ["1.21.0", "1.24.1"]
    assert read_built(UPDATE, tmp_path) == reports


def test_without_a_new_version_there_is_one_report(tmp_path: Path, built: dict[str, Diagnostic]) -> None:
    """Of the pins that may have changed otherwise; what an earlier update left is not taken for today's."""
    write_update(UPDATE, tmp_path)
    build_versions(REQUEST, tmp_path, Console())
    update = VersionsUpdate(last="1.21.0")
    write_update(update, tmp_path)
    assert len(build_versions(REQUEST, tmp_path, Console())) == len(read_built(update, tmp_path)) == 1
    text = proposal_body(tmp_path)
    assert "No version of ONNX Runtime after 1.21.0 was pinned." in text
    assert "silero-vad for linux-x64" in text


def fails(version: str) -> BuildError:
    """Return what a version ends with whose build fails."""
    return BuildError("build-failed", f"{version} stopped", why="noise\nCMake Error: no onnx_minimal.cmake")


@pytest.mark.parametrize(("version", "other"), [("1.21.0", "1.24.1"), ("1.24.1", "1.21.0")])
def test_a_version_that_cannot_be_built_is_proposed_with_its_error(
    tmp_path: Path, built: dict[str, Diagnostic], version: str, other: str
) -> None:
    """Whoever looks at it decides; the other version's report is shown, be it the last one's or the newest's."""
    built[version] = fails(version)
    write_update(UPDATE, tmp_path)
    assert [report.ort_version for report in build_versions(REQUEST, tmp_path, Console())] == [other]
    text = proposal_body(tmp_path)
    assert f"**The demo could not be built with {version}:**" in text
    assert f"| {version} | `build-failed` | {version} stopped | CMake Error: no onnx\\_minimal.cmake |" in text
    assert f"These are the results of the demo with {other}." in text
    assert "silero-vad for linux-x64" in text


def test_pins_are_proposed_though_no_version_can_be_built(tmp_path: Path, built: dict[str, Diagnostic]) -> None:
    """The pull request says so; once they can be built, nothing of it is left."""
    built |= {version: fails(version) for version in ("1.21.0", "1.24.1")}
    write_update(UPDATE, tmp_path)
    assert build_versions(REQUEST, tmp_path, Console()) == ()
    text = proposal_body(tmp_path)
    assert "**The demo could not be built with 1.21.0 and 1.24.1:**" in text
    assert "There are no results of the demo." in text
    built.clear()
    assert len(build_versions(REQUEST, tmp_path, Console())) == 2
    assert "could not be built" not in proposal_body(tmp_path)


@pytest.mark.parametrize("version", ["1.21.0", "1.24.1"])
def test_what_is_no_fault_of_a_version_stops(tmp_path: Path, built: dict[str, Diagnostic], version: str) -> None:
    """A full disk says nothing of a version."""
    built[version] = StorageError("disk-full", "the disk is full")
    write_update(UPDATE, tmp_path)
    with pytest.raises(StorageError):
        build_versions(REQUEST, tmp_path, Console())
    assert read_update(tmp_path) == UPDATE


def test_a_version_that_cannot_be_built_stops_no_other(tmp_path: Path, built: dict[str, Diagnostic]) -> None:
    """Words become versions, each is built once, and the outcome of one that failed says why."""
    built["1.24.4"] = BuildError("build-failed", "stopped", why="noise\nno header")
    request = replace(REQUEST, output=tmp_path)
    outcomes = build_each(request, ("1.21.0", "1.24", "1.24.4", "1.30"), Console())
    assert [getattr(each, "ort_version", "") for each in outcomes] == ["1.21.0", "", "1.30.0"]
    assert outcomes[1] == Refused(version="1.24.4", reference="build-failed", what="stopped", why="no header")
    with pytest.raises(BuildError):
        build_each(request, ("1.24",), Console())
    with pytest.raises(UsageError) as caught:
        build_each(request, ("banana",), Console())
    assert caught.value.code == "bad-option"
    built["1.24.4"] = StorageError("disk-full", "the disk is full")
    with pytest.raises(StorageError):
        build_each(request, ("1.24", "1.21.0"), Console())


def test_without_a_record_nothing_is_built(tmp_path: Path, built: dict[str, Diagnostic]) -> None:
    """The step before it is named."""
    with pytest.raises(SourcesError) as caught:
        build_versions(REQUEST, tmp_path, Console())
    assert (caught.value.code, caught.value.exit_code) == ("no-record", ExitCode.SOURCES)
    assert "--latest" in caught.value.hint


def test_a_pull_request_says_what_came_and_what_it_costs(tmp_path: Path, built: dict[str, Diagnostic]) -> None:
    """And what is left to do, and what could not be pinned, none of it as markup."""
    write_update(replace(UPDATE, refused=(LOST,)), tmp_path)
    build_versions(REQUEST, tmp_path, Console())
    text = proposal_body(tmp_path)
    assert "pinned by their digests: 1.23.2, 1.24.1." in text
    assert "`invoke pins.index --version 1.24.1`" in text
    assert "| 1.24.1 | 1.59 MB, 0 % |" in text
    assert "| 1.24.0 | `no-converter` |" in text
    assert "<b>" not in text
    assert "@you" not in text


def test_a_pull_request_is_made_without_reports(tmp_path: Path, built: dict[str, Diagnostic]) -> None:
    """A full disk may have ended the builds, before or between them; no record at all is no error either."""
    assert proposal_body(tmp_path) == "Nothing was built with these pins.\n"
    write_update(UPDATE, tmp_path)
    assert "There are no results of the demo." in proposal_body(tmp_path)
    built["1.24.1"] = StorageError("disk-full", "the disk is full")
    with pytest.raises(StorageError):
        build_versions(REQUEST, tmp_path, Console())
    assert "These are the results of the demo with 1.21.0." in proposal_body(tmp_path)


@pytest.mark.parametrize(
    ("mirrors", "server", "has_token"),
    [
        ((), "", True), ((), API, True),
        (((API, "http://127.0.0.1:9"),), "", False), ((), "https://ghe.invalid/api/v3", False),
    ],
)  # fmt: skip
def test_only_githubs_own_host_gets_a_token(
    monkeypatch: pytest.MonkeyPatch,
    mirrors: tuple[tuple[str, str], ...],
    server: str,
    has_token: bool,  # noqa: FBT001
) -> None:
    """ONNX Runtime is at github.com, wherever we are; another server's token is not for it."""
    monkeypatch.setenv("GH_TOKEN", "ghs_0123")
    monkeypatch.setenv("GITHUB_API_URL", server)
    client = upstream_client(mirrors)
    assert client.service.api == (mirrors[0][1] if mirrors else API)
    assert (client.token is not None) == has_token
