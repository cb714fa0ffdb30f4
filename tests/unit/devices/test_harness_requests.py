"""What the app on a farm's device carries: command lines of its own, and every file under a name that survives."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from device_samples import sample_request
from ortrim.base.files import sha256_of
from ortrim.devices.harness import (
    LEAST_SECONDS,
    MOST_SECONDS,
    RUNNER_LIBRARY,
    batch_seconds,
    harness_content,
    told,
)
from ortrim.errors import StorageError
from ortrim.parity.inputs import Case
from ortrim.parity.runner import Repetition, RunRequest


@pytest.fixture(name="request_here")
def fixture_request(tmp_path: Path) -> RunRequest:
    return sample_request(tmp_path)


def test_command_lines_name_folders_that_the_app_knows(request_here: RunRequest, tmp_path: Path) -> None:
    """No path of this machine is in them; the runner is named so that an app may start it."""
    content = harness_content((request_here, replace(request_here, outputs=tmp_path / "here")))
    assert str(tmp_path) not in content.requests
    first, second = (run["words"] for run in json.loads(content.requests)["runs"])
    assert first[0] == f"/@native/{RUNNER_LIBRARY}"
    library, model, case = (first[first.index(option) + 1] for option in ("--library", "--model", "--case"))
    assert library.startswith("/@native/libortrim_")
    assert library.endswith(".so")
    assert model.startswith("/@files/")
    assert model.endswith("/model.ort")
    assert case.startswith("only=/@files/")
    assert first[-2:] == ["--json", "/@run/report.json"]
    assert "--outputs" not in first
    assert second[second.index("--outputs") + 1] == "/@run/outputs"


def test_every_file_is_there_with_its_digest(request_here: RunRequest) -> None:
    """Libraries by name, others by asset; each digest is that of the file."""
    content = harness_content((request_here,))
    document = json.loads(content.requests)
    assert {each["name"]: each["sha256"] for each in document["libraries"]} == {
        name: sha256_of(path) for name, path in content.libraries.items()
    }
    assert {each["asset"]: each["sha256"] for each in document["contents"]} == {
        name: sha256_of(path) for name, path in content.assets.items()
    }
    assert set(content.libraries.values()) == {request_here.runner, request_here.library}
    assert set(content.assets.values()) == {request_here.model, request_here.cases[0].folder / "input_000.npy"}


def test_ours_and_the_baseline_are_told_apart(request_here: RunRequest, tmp_path: Path) -> None:
    """Both are called `libonnxruntime.so` and lie in one folder of the app."""
    (tmp_path / "full").mkdir()
    baseline = tmp_path / "full" / request_here.library.name
    baseline.write_bytes(b"the full one")
    content = harness_content((request_here, replace(request_here, library=baseline)))
    assert len(content.libraries) == 3


def test_a_companion_keeps_the_name_that_it_is_needed_by(request_here: RunRequest, tmp_path: Path) -> None:
    """The C++ library is put among the app's libraries, and opened from there before the one that needs it."""
    beside = tmp_path / "libc++_shared.so"
    beside.write_bytes(b"the C++ library")
    content = harness_content((replace(request_here, companions=(beside,)),))
    assert content.libraries["libc++_shared.so"] == beside
    assert beside not in content.assets.values()
    (run,) = json.loads(content.requests)["runs"]
    assert run["words"][run["words"].index("--preload") + 1] == "/@native/libc++_shared.so"


@pytest.mark.parametrize("name", ["_hidden", ".hidden", "in put.npy", "weights.gz", "ärger.npy", "CVS", "x~", "a'b\"c"])
def test_no_name_meets_androids_packaging(request_here: RunRequest, name: str) -> None:
    """What aapt leaves out, unpacks or cannot name lies under its digest, and gets its name back on the device."""
    folder = request_here.cases[0].folder
    (folder / name).write_bytes(b"a file of the case")
    content = harness_content((request_here,))
    asset = next(asset for asset, path in content.assets.items() if path == folder / name)
    assert asset.startswith("ortrim/files/")
    assert set(asset.rpartition("/")[2]) <= set("0123456789abcdef")
    paths = {each["path"].rpartition("/")[2] for each in json.loads(content.requests)["contents"]}
    assert name in paths


def test_the_same_requests_give_the_same_bytes(tmp_path: Path) -> None:
    """Wherever they lie, so that an app that is compiled already is known again."""
    here, there = (harness_content((sample_request(tmp_path / name),)) for name in ("here", "there"))
    assert here.requests == there.requests


def test_equal_files_are_carried_once(request_here: RunRequest, tmp_path: Path) -> None:
    """Two cases with the same input need one asset, and two places on the device."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "input_000.npy").write_bytes((request_here.cases[0].folder / "input_000.npy").read_bytes())
    (other / "input_001.npy").write_bytes(b"and another")
    cases = (*request_here.cases, Case(name="other", folder=other, digest="e"))
    content = harness_content((replace(request_here, cases=cases),))
    assert len(content.assets) == 3
    assert len(json.loads(content.requests)["contents"]) == 4


def test_a_file_that_is_gone(request_here: RunRequest) -> None:
    """Is named, with the storage's exit code."""
    request_here.model.unlink()
    with pytest.raises(StorageError, match="could not be read") as caught:
        harness_content((request_here,))
    assert caught.value.where == str(request_here.model)


def test_where_outputs_go_here_makes_no_difference(request_here: RunRequest, tmp_path: Path) -> None:
    """They are told when they are asked for; whether there are any does make one."""
    one, other = (replace(request_here, outputs=tmp_path / name) for name in ("one", "other"))
    assert told(one) == told(other) != told(request_here)


def test_the_time_for_all_is_bounded(request_here: RunRequest) -> None:
    """A few runs have time enough, many no more than farms give."""
    long = replace(request_here, repetition=Repetition(seconds=20.0))
    assert batch_seconds((request_here,)) == LEAST_SECONDS
    assert batch_seconds((long,) * 20) == 600.0
    assert batch_seconds((long,) * 1000) == MOST_SECONDS
