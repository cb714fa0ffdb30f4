"""What comes back from a farm's device, which may be anything."""

import hashlib
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_samples import sample_request
from harness_farm import PHONE, write_results
from harness_log import PART_BYTES, encode
from ortrim.devices import harness
from ortrim.errors import ExitCode, StorageError, VerifyError
from ortrim.parity.runner import Repetition, RunRequest

CONTENT = harness.HarnessContent(requests='{"runs": []}', libraries={}, assets={})
RUN = {"how": "exit", "code": 0, "stdout": "", "stderr": "", "seconds": 1.5, "thermal": -1}


def refused(folder: Path) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        harness.read_results(folder, CONTENT, "firebase:x")
    assert caught.value.exit_code == ExitCode.VERIFY
    assert caught.value.where == "firebase:x"
    return caught.value


def test_results_are_read_back(tmp_path: Path) -> None:
    after = PHONE | {"thermal": "Thermal Status: 2", "battery": "  present: true\n  temperature: 391"}
    write_results(tmp_path, CONTENT, runs=[RUN, RUN | {"how": "timeout", "code": 137}], facts_after=after)
    results = harness.read_results(tmp_path, CONTENT, "firebase:x")
    assert [(run.how, run.code) for run in results.runs] == [("exit", 0), ("timeout", 137)]
    host = results.host
    assert (host.kind, host.model, host.api_level, host.abi) == ("physical", "Google Pixel 8", 34, "arm64-v8a")
    assert (host.os_version, host.cpu, host.cores, host.page_bytes) == ("Android 14", "Cortex-A55", 8, 16384)
    assert (host.memory_bytes, host.cpu_features) == (7_800_000 * 1024, ("asimd", "fp"))
    assert (host.thermal_before, host.thermal_after, host.battery_celsius) == (0, 2, 39.1)


def test_an_app_that_died_has_told_of_the_device_before(tmp_path: Path) -> None:
    """Its facts from the beginning are all there is."""
    write_results(tmp_path, CONTENT, complete=False, facts_after={})
    results = harness.read_results(tmp_path, CONTENT, "firebase:x")
    assert (results.complete, results.host.model) == (False, "Google Pixel 8")


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
    write_results(tmp_path, harness.HarnessContent(requests="{}", libraries={}, assets={}))
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
    (tmp_path / "results.json").write_text(text)
    error = refused(tmp_path)
    assert error.code == "farm-results-unreadable"
    assert len(error.why.splitlines()) <= 3


def test_results_without_an_end(tmp_path: Path) -> None:
    with (tmp_path / "results.json").open("wb") as file:
        file.truncate(harness.MOST_RESULTS_BYTES + 1)
    assert refused(tmp_path).code == "farm-results-unreadable"


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["runs", "facts", "schema", "x"]), inner),
    )
)
def test_any_document_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, document: object) -> None:
    folder = tmp_path_factory.mktemp("results")
    (folder / "results.json").write_text(json.dumps(document))
    assert refused(folder).code.startswith("farm-results-")


def test_a_run_is_found_where_it_belongs_alone(tmp_path: Path) -> None:
    """Not through a link, which would lead to this machine's files, and not where there is none."""
    (tmp_path / "elsewhere" / "000").mkdir(parents=True)
    came = tmp_path / "came"
    (came / "runs" / "001").mkdir(parents=True)
    (came / "runs" / "000").symlink_to(tmp_path / "elsewhere" / "000")
    assert harness.folder_of_run(came, 0) is None
    assert harness.folder_of_run(came, 1) == came / "runs" / "001"
    assert harness.folder_of_run(came, 2) is None
    other = tmp_path / "other"
    other.mkdir()
    (other / "runs").symlink_to(tmp_path / "elsewhere")
    assert harness.folder_of_run(other, 0) is None


@pytest.fixture(name="request_here")
def fixture_request(tmp_path: Path) -> RunRequest:
    return sample_request(tmp_path)


def test_command_lines_name_folders_that_the_app_knows(request_here: RunRequest, tmp_path: Path) -> None:
    """No path of this machine is in them; the runner is named so that an app may start it."""
    content = harness.harness_content((request_here, replace(request_here, outputs=tmp_path / "here")))
    assert str(tmp_path) not in content.requests
    first, second = (run["words"] for run in json.loads(content.requests)["runs"])
    assert first[0] == f"/@native/{harness.RUNNER_LIBRARY}"
    library, model, case = (first[first.index(option) + 1] for option in ("--library", "--model", "--case"))
    assert library.startswith("/@native/libortrim_")
    assert library.endswith(".so")
    assert model.startswith("/@files/")
    assert model.endswith("/model.ort")
    assert case.startswith("only=/@files/")
    assert first[-2:] == ["--json", "/@run/report.json"]
    assert "--outputs" not in first
    assert second[second.index("--outputs") + 1] == "/@run/outputs"


@pytest.mark.parametrize("name", ["_hidden", ".hidden", "in put.npy", "weights.gz", "ärger.npy", "CVS", "x~", "a'b\"c"])
def test_no_name_meets_androids_packaging(request_here: RunRequest, name: str) -> None:
    """What aapt leaves out, unpacks or cannot name lies under its digest, and gets its name back on the device."""
    folder = request_here.cases[0].folder
    (folder / name).write_bytes(b"a file of the case")
    content = harness.harness_content((request_here,))
    asset = next(asset for asset, path in content.assets.items() if path == folder / name)
    assert asset.startswith("ortrim/files/")
    assert set(asset.rpartition("/")[2]) <= set("0123456789abcdef")
    paths = {each["path"].rpartition("/")[2] for each in json.loads(content.requests)["contents"]}
    assert name in paths


def test_the_same_requests_give_the_same_bytes(tmp_path: Path) -> None:
    """Wherever they lie, so that an app that is compiled already is known again."""
    here, there = (harness.harness_content((sample_request(tmp_path / name),)) for name in ("here", "there"))
    assert here.requests == there.requests


def test_a_file_that_is_gone(request_here: RunRequest) -> None:
    request_here.model.unlink()
    with pytest.raises(StorageError, match="could not be read") as caught:
        harness.harness_content((request_here,))
    assert caught.value.where == str(request_here.model)


def test_where_outputs_go_here_makes_no_difference(request_here: RunRequest, tmp_path: Path) -> None:
    """They are told when they are asked for; whether there are any does make one."""
    one, other = (replace(request_here, outputs=tmp_path / name) for name in ("one", "other"))
    assert harness.portable(one) == harness.portable(other) != harness.portable(request_here)


def test_the_time_for_all_is_bounded(request_here: RunRequest) -> None:
    long = replace(request_here, repetition=Repetition(seconds=20.0))
    assert harness.batch_seconds((request_here,)) == harness.LEAST_SECONDS
    assert harness.batch_seconds((long,) * 20) == 600.0
    assert harness.batch_seconds((long,) * 1000) == harness.MOST_SECONDS


@pytest.mark.parametrize(
    "line",
    [
        "E AndroidRuntime: FATAL EXCEPTION: Instr: androidx.test.runner.AndroidJUnitRunner",
        "F libc    : Fatal signal 4 (SIGILL), code 1 (ILL_ILLOPC) in tid 4711",
        'java.lang.UnsatisfiedLinkError: dlopen failed: library "libc++_shared.so" not found',
        "I ActivityManager: Process ortrim.harness (pid 4711) has died: fg  TOP",
        "E ActivityManager: ANR in ortrim.harness",
        "F DEBUG   : Abort message: 'terminating'",
    ],
)
def test_lines_that_tell_of_a_crash(tmp_path: Path, line: str) -> None:
    """They are told apart from all others of a log, the last of them without what is around."""
    log = tmp_path / "device.log"
    log.write_text(f"I Zygote: begins\n11-21 12:00:00.000  1 1 {line}\nI Zygote: ends\n")
    assert harness.crash(log).endswith(line)
    assert "Zygote" not in harness.crash(log)


def test_of_many_crashes_the_last_lines_are_reported(tmp_path: Path) -> None:
    """Short ones, since a log may be anything."""
    log = tmp_path / "device.log"
    log.write_bytes(b"".join(b"Fatal signal %d \xff%s\n" % (number, b"x" * 900) for number in range(9)))
    lines = harness.crash(log).splitlines()
    assert [line[:14] for line in lines] == ["Fatal signal 6", "Fatal signal 7", "Fatal signal 8"]
    assert max(map(len, lines)) == 200


BEFORE = "11-21 13:20:32.123  1234  1240 I ORTRIM  : "
"""What Android's log puts before a line."""
NINE = b"x" * PART_BYTES * 9
payloads = st.one_of(st.binary(max_size=300), st.integers(1, 4).map(lambda parts: bytes(range(250)) * 9 * parts))
noise = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=60)


@given(payloads)
def test_what_goes_in_comes_out(payload: bytes) -> None:
    """Any payload survives, with or without what a log puts before a line and a carriage return after it."""
    assert harness.decode(encode(payload)) == payload
    assert harness.decode(f"{BEFORE}{line}\r\n" for line in encode(payload)) == payload


@given(payloads, st.lists(noise, max_size=20), st.randoms(use_true_random=False))
def test_lines_of_others_and_repeated_lines_do_no_harm(
    payload: bytes, others: list[str], chance: random.Random
) -> None:
    """Parts may come twice, in any order and between any other lines, as long as the end comes last."""
    *parts, end = encode(payload)
    lines = [*parts, *parts, *others]
    chance.shuffle(lines)
    assert harness.decode([*lines, end]) == payload


@given(payloads.filter(bool), st.data())
def test_a_damaged_line_is_noticed(payload: bytes, data: st.DataObject) -> None:
    """A letter that changed on the way is found by the digest, or makes the line one of others."""
    lines = list(encode(payload))
    number = data.draw(st.integers(0, len(lines) - 2))
    start = lines[number].rindex(" ") + 1
    place = data.draw(st.integers(start, len(lines[number]) - 1))
    letter = "A" if lines[number][place] != "A" else "B"
    lines[number] = lines[number][:place] + letter + lines[number][place + 1 :]
    if decode_or_none(lines) is not None:
        # base64 has letters whose last bits say nothing.
        assert harness.decode(lines) == payload


def decode_or_none(lines: list[str]) -> bytes | None:
    try:
        return harness.decode(lines)
    except harness.BrokenTransport:
        return None


def test_the_last_whole_payload_counts() -> None:
    """A program that ran twice has printed twice; what broke after a whole one does not matter."""
    old, new = b"old" * 2000, b"new" * 3000
    assert harness.decode([*encode(old), *encode(new)]) == new
    assert harness.decode([*encode(old), *encode(new)[:-1]]) == old
    assert harness.decode([*encode(old), *encode(new)[1:]]) == old
    assert harness.decode([*encode(b"a" * 9), *encode(b"b" * 9)]) == b"b" * 9


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([*encode(NINE)[:1], *encode(NINE)[2:4], *encode(NINE)[5:]], "2 of the 9 lines that carry the results: 2, 5"),
        ([encode(NINE)[0], encode(NINE)[-1]], "2, 3, 4, 5, 6 and 3 more"),
        (encode(b"x")[:-1], "ends in the middle"),
        (encode(b"x")[1:], "do not have the digest"),
        ([encode(b"x")[0], encode(b"y")[-1]], "do not have the digest"),
        ([f"ortrim-result-end {hashlib.sha256(b'').hexdigest()} {harness.MOST_BYTES + 1}"], "announces"),
        (["ortrim-result-too-large 40000000"], "40,000,000 bytes"),
        (["ortrim-result 1/1 A", encode(b"x")[-1]], "do not have the digest"),
        (["ortrim-result 1/1 ====", encode(b"x")[-1]], "ends in|digest"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(lines: list[str], words: str) -> None:
    with pytest.raises(harness.BrokenTransport, match=words):
        harness.decode(lines)


def test_nothing_is_taken_from_a_claim() -> None:
    with pytest.raises(harness.BrokenTransport, match="lost 999,998 of the 999,999 lines"):
        harness.decode(["ortrim-result 7/999999 QUJD", f"ortrim-result-end {'0' * 64} 3"])
