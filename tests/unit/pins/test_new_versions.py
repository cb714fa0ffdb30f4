"""`invoke pins.index` on a made-up ONNX Runtime: what is built, what is compared, and what is written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_library import ONLY_ADD, SYMBOLS, UNITS, index_of, write_library
from ortrim.base.console import Console
from ortrim.binaries.elf import read_library
from ortrim.compiling.plan import CompiledUnits
from ortrim.compiling.translation_units import Variant, shipped_index
from ortrim.errors import BuildError, Diagnostic, ExitCode, SourcesError, StorageError, UsageError
from ortrim.github.repositories import API
from ortrim.pin_updates import new_versions
from ortrim.pin_updates.new_versions import (
    VersionsUpdate,
    build_each,
    build_versions,
    make_unit_index,
    proposal_body,
    read_built,
    read_update,
    upstream_client,
    write_update,
)
from ortrim.pin_updates.report import Refused
from ortrim.planning import models as converted
from ortrim.planning.request import Request, load
from ortrim.size.library import OTHER_BYTES
from ortrim.verify.reports import VerifyReport
from pipeline_stages import Stages
from sample_reports import recorded_report
from workshop import Workshop

TINY = Path(__file__).parents[1] / "binaries" / "data" / "tiny.so"
VARIANT = Variant(ort_version="1.21.0", target="linux-x64", toolchain="zig", exceptions=True)


@pytest.fixture
def workshop(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """Make sources whose build.py is the made-up library's, for a model that needs Add."""
    monkeypatch.setenv("ORTRIM_PINS", str(stages.folder / "pins"))
    workshop = Workshop(stages.folder / "workshop")
    write_library(workshop, library=TINY.read_bytes())
    convert = vars(converted)["convert"]

    def converted_to_add(*words: Any, **options: Any) -> Any:
        return replace(convert(*words, **options), config=ONLY_ADD)

    monkeypatch.setattr(converted, "convert", converted_to_add)
    monkeypatch.setattr(new_versions, "executor_for", lambda *_: workshop.executor(cached=False))
    return workshop


def request(stages: Stages) -> Request:
    wanted = stages.request()
    wanted.spec.write_text(f"exceptions = true\n{wanted.spec.read_text()}")
    return wanted


def pins(stages: Stages) -> list[Path]:
    return sorted((stages.folder / "pins").rglob("*.json"))


def test_an_index_is_made_of_all_and_proved_on_the_buildspec(stages: Stages, workshop: Workshop) -> None:
    """All operators are compiled once; then the buildspec's, in full and selected; the index is where pins are read."""
    (made,) = make_unit_index(request(stages), stages.console)
    assert made.index == index_of(VARIANT)
    assert made.units == CompiledUnits(compiled=8, total=len(UNITS))
    assert pins(stages) == [made.path]
    assert shipped_index(VARIANT) == made.index
    assert made.same_bytes
    assert not list(workshop.log.parent.glob("unpruned.*"))


def refused(stages: Stages) -> BuildError:
    with pytest.raises(BuildError) as caught:
        make_unit_index(request(stages), stages.console)
    assert caught.value.exit_code is ExitCode.BUILD
    assert caught.value.where == "linux-x64"
    assert pins(stages) == []
    return caught.value


def test_a_selected_library_that_differs_is_refused(stages: Stages, workshop: Workshop) -> None:
    other = TINY.read_bytes().replace(b"OrtGetApiBase", b"OrtGetApiBass")
    differing = f"LIBRARY_BYTES = LIBRARY_BYTES if len(chosen()) == {len(UNITS)} else {other!r}"
    write_library(workshop, library=TINY.read_bytes(), before_linking=differing)
    error = refused(stages)
    assert error.code == "pruning-differs"
    assert error.why == "exported symbols: ('OrtGetApiBase',) and ('OrtGetApiBass',)"
    assert read_library(workshop.log.parent / "unpruned.so").exported == read_library(TINY).exported
    assert str(workshop.log.parent / "unpruned.so") in error.hint


OTHER_ORDER = TINY.read_bytes()[:-1] + b"!"
"""A library that differs in a byte that nothing is read from."""


@pytest.mark.parametrize("same", [True, False])
def test_the_order_of_the_linkers_own_tables_is_free(stages: Stages, workshop: Workshop, *, same: bool) -> None:
    """When the maps of both links are the same; else other bytes are other code."""
    full = f"len(chosen()) == {len(UNITS)}"
    link_map = "'map'" if same else f"str({full})"
    differing = (
        f"LIBRARY_BYTES = LIBRARY_BYTES if {full} else {OTHER_ORDER!r}\n"
        f"leave = lambda name: (build / name).write_text({link_map})"
    )
    write_library(workshop, library=TINY.read_bytes(), before_linking=differing)
    if same:
        (made,) = make_unit_index(request(stages), stages.console)
        assert not made.same_bytes
    else:
        assert refused(stages).why == OTHER_BYTES


def test_a_selection_that_does_not_link_is_refused(stages: Stages, workshop: Workshop) -> None:
    """That everything links in its place, as a user's build would do, does not make the index right."""
    failing = f"if len(chosen()) < {len(UNITS)}:\n    print('undefined symbol: phantom')\n    sys.exit(1)"
    write_library(workshop, library=TINY.read_bytes(), before_linking=failing)
    error = refused(stages)
    assert (error.code, error.why) == ("pruning-differs", "the selected files do not link")


@pytest.mark.parametrize("phase", ["all operators", "the buildspec"])
def test_a_build_that_fails_is_reported_as_every_other(stages: Stages, workshop: Workshop, phase: str) -> None:
    condition = "'no_ops' in" if phase == "all operators" else "'Add' in"
    config = "pathlib.Path(sys.argv[sys.argv.index('--include_ops_by_config') + 1]).read_text()"
    failing = f"if {condition} {config}:\n    print('a.cc:1:1: error: no')\n    sys.exit(1)"
    write_library(workshop, before_linking=failing)
    error = refused(stages)
    assert (error.code, error.why) == ("build-failed", "a.cc:1:1: error: no")


def test_the_made_up_library_has_an_object_for_every_unit() -> None:
    """And the reduced registrations beside the full ones."""
    assert set(SYMBOLS) == {*UNITS.values(), "provider-add"}


DEMO = Path(__file__).parents[3] / "buildspecs" / "silero-vad.toml"
REQUEST = Request(spec=DEMO)
UPDATE = VersionsUpdate(last="1.21.0", pinned=("1.23.2", "1.24.1"))
LOST = Refused(version="1.24.0", reference="no-converter", what="no wheel of <b>it</b>", why="@you | x")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> dict[str, Diagnostic]:
    errors: dict[str, Diagnostic] = {}

    def build(request: Request, _: Console) -> tuple[VerifyReport, ...]:
        version = load(request).onnxruntime.version
        if version in errors:
            raise errors[version]
        return (replace(recorded_report(), ort_version=version),)

    monkeypatch.setattr(new_versions, "build", build)
    return errors


def test_both_versions_are_built(tmp_path: Path, built: dict[str, Diagnostic]) -> None:
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
    with pytest.raises(SourcesError) as caught:
        build_versions(REQUEST, tmp_path, Console())
    assert (caught.value.code, caught.value.exit_code) == ("no-record", ExitCode.SOURCES)
    assert "--latest" in caught.value.hint


def test_a_pull_request_says_what_came_and_what_it_costs(tmp_path: Path, built: dict[str, Diagnostic]) -> None:
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
