"""What comes back from a farm's device, which may be anything."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_farm import PHONE, write_results
from ortrim.devices.harness import MOST_RESULTS_BYTES, HarnessContent, folder_of_run, read_results
from ortrim.errors import ExitCode, VerifyError

CONTENT = HarnessContent(requests='{"runs": []}', libraries={}, assets={})
RUN = {"how": "exit", "code": 0, "stdout": "", "stderr": "", "seconds": 1.5, "thermal": -1}


def refused(folder: Path) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        read_results(folder, CONTENT, "firebase:x")
    assert caught.value.exit_code == ExitCode.VERIFY
    assert caught.value.where == "firebase:x"
    return caught.value


def test_results_are_read_back(tmp_path: Path) -> None:
    """How each run ended, and what the phone says of itself, in adb's words."""
    after = PHONE | {"thermal": "Thermal Status: 2", "battery": "  present: true\n  temperature: 391"}
    write_results(tmp_path, CONTENT, runs=[RUN, RUN | {"how": "timeout", "code": 137}], facts_after=after)
    results = read_results(tmp_path, CONTENT, "firebase:x")
    assert [(run.how, run.code) for run in results.runs] == [("exit", 0), ("timeout", 137)]
    host = results.host
    assert (host.kind, host.model, host.api_level, host.abi) == ("physical", "Google Pixel 8", 34, "arm64-v8a")
    assert (host.os_version, host.cpu, host.cores, host.page_bytes) == ("Android 14", "Cortex-A55", 8, 16384)
    assert (host.memory_bytes, host.cpu_features) == (7_800_000 * 1024, ("asimd", "fp"))
    assert (host.thermal_before, host.thermal_after, host.battery_celsius) == (0, 2, 39.1)


def test_an_emulator_is_known(tmp_path: Path) -> None:
    """By its hardware, as over adb."""
    facts = PHONE | {"properties": PHONE["properties"].replace("shiba", "ranchu")}
    write_results(tmp_path, CONTENT, facts=facts, facts_after=facts)
    assert read_results(tmp_path, CONTENT, "firebase:x").host.kind == "emulator"


def test_an_app_that_died_has_told_of_the_device_before(tmp_path: Path) -> None:
    """Its facts from the beginning are all there is."""
    write_results(tmp_path, CONTENT, complete=False, facts_after={})
    results = read_results(tmp_path, CONTENT, "firebase:x")
    assert (results.complete, results.host.model) == (False, "Google Pixel 8")


def test_a_device_that_says_nothing_of_itself(tmp_path: Path) -> None:
    """Is not known, and that is all."""
    write_results(tmp_path, CONTENT, facts={}, facts_after={})
    host = read_results(tmp_path, CONTENT, "firebase:x").host
    assert (host.model, host.memory_bytes, host.thermal_before) == ("", 0, None)


@pytest.mark.parametrize("kind", ["nothing", "folder", "link"])
def test_no_results(tmp_path: Path, kind: str) -> None:
    """A link is none: it would lead to a file of this machine."""
    path = tmp_path / "came" / "results.json"
    path.parent.mkdir()
    if kind == "folder":
        path.mkdir()
    if kind == "link":
        write_results(tmp_path, CONTENT)
        path.symlink_to(tmp_path / "results.json")
    assert refused(path.parent).code == "farm-results-missing"


def test_results_of_other_requests(tmp_path: Path) -> None:
    """An older run's, or another app's."""
    write_results(tmp_path, HarnessContent(requests="{}", libraries={}, assets={}))
    assert refused(tmp_path).code == "farm-results-foreign"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"schema": "ortrim-results/2"}',
        '{"schema": "ortrim-results/1"',
        "\x00\xff",
        "[" * 100_000,
        '{"a": 1e999}',
    ],
)
def test_what_is_not_our_file(tmp_path: Path, text: str) -> None:
    """Says in a few lines what is wrong with it."""
    (tmp_path / "results.json").write_text(text)
    error = refused(tmp_path)
    assert error.code == "farm-results-unreadable"
    assert len(error.why.splitlines()) <= 3


@pytest.mark.parametrize(
    "changes",
    [
        {"runs": None},
        {"runs": [{}]},
        {"runs": [RUN | {"how": "well"}]},
        {"runs": [RUN | {"code": "0x0"}]},
        {"runs": [RUN | {"stderr": None}]},
        {"facts": {"cpu": 3}},
        {"facts": []},
        {"requests_sha256": 7},
        {"problem": None},
    ],
)
def test_fields_of_another_type(tmp_path: Path, changes: dict[str, object]) -> None:
    """None is taken for what it is not."""
    write_results(tmp_path, CONTENT, **changes)
    assert refused(tmp_path).code == "farm-results-unreadable"


def test_results_cut_short(tmp_path: Path) -> None:
    """At any place."""
    write_results(tmp_path, CONTENT, runs=[RUN])
    whole = (tmp_path / "results.json").read_text()
    for length in range(0, len(whole), 40):
        (tmp_path / "results.json").write_text(whole[:length])
        assert refused(tmp_path).code == "farm-results-unreadable"


def test_results_without_an_end(tmp_path: Path) -> None:
    """Are not read into memory."""
    with (tmp_path / "results.json").open("wb") as file:
        file.truncate(MOST_RESULTS_BYTES + 1)
    assert refused(tmp_path).code == "farm-results-unreadable"


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["runs", "facts", "schema", "x"]), inner),
    )
)
def test_any_document_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, document: object) -> None:
    """Never anything but a diagnostic."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "results.json").write_text(json.dumps(document))
    assert refused(folder).code.startswith("farm-results-")


def test_a_run_is_found_where_it_belongs_alone(tmp_path: Path) -> None:
    """Not through a link, which would lead to this machine's files, and not where there is none."""
    (tmp_path / "elsewhere" / "000").mkdir(parents=True)
    came = tmp_path / "came"
    (came / "runs" / "001").mkdir(parents=True)
    (came / "runs" / "000").symlink_to(tmp_path / "elsewhere" / "000")
    assert folder_of_run(came, 0) is None
    assert folder_of_run(came, 1) == came / "runs" / "001"
    assert folder_of_run(came, 2) is None
    other = tmp_path / "other"
    other.mkdir()
    (other / "runs").symlink_to(tmp_path / "elsewhere")
    assert folder_of_run(other, 0) is None
