import dataclasses
from pathlib import Path

from device_samples import sample_request
from ortrim.devices.remote import make_payload
from ortrim.errors import ExitCode, StorageError
from ortrim.parity.runner import runner_words
from refusing import refused


def test_paths_become_the_machines(tmp_path: Path) -> None:
    """The runner's command line names files of the machine only, and each of them is sent."""
    request = dataclasses.replace(sample_request(tmp_path), outputs=tmp_path / "outputs")
    payload = make_payload(request, "/machine/files", "/machine/run-1/outputs")
    words = " ".join(runner_words(payload.request))
    assert str(tmp_path) not in words
    assert words.startswith(f"/machine/files/{payload.executable} --library /machine/files/")
    assert words.endswith("--outputs /machine/run-1/outputs")
    assert sorted(Path(name).name for name in payload.files) == ["input_000.npy", "library.so", "model.ort", "runner"]


def test_names_follow_contents(tmp_path: Path) -> None:
    """What did not change keeps its name, what changed gets another, whatever the files are called here."""
    before = make_payload(sample_request(tmp_path / "one"), "/m", "/o").files
    same = sample_request(tmp_path / "two")
    assert set(make_payload(same, "/m", "/o").files) == set(before)
    same.library.write_bytes(b"another library")
    changed = set(make_payload(same, "/m", "/o").files) ^ set(before)
    assert {Path(name).name for name in changed} == {"library.so"}


def test_weights_beside_a_model_go_with_it(tmp_path: Path) -> None:
    """A model in ONNX format takes along the files beside it, in their places; one in ORT format goes alone."""
    request = sample_request(tmp_path)
    folder = request.model.parent
    (folder / "model.onnx").write_bytes(b"onnx")
    (folder / "facts.json").write_bytes(b"{}")
    (folder / "weights dir").mkdir()
    (folder / "weights dir" / "w.bin").write_bytes(b"w")
    payload = make_payload(dataclasses.replace(request, model=folder / "model.onnx"), "/m", "/o")
    model = payload.request.model.parent.relative_to("/m")
    beside = sorted(name.removeprefix(f"{model}/") for name in payload.files if name.startswith(f"{model}/"))
    assert beside == ["model.onnx", "tiny.ort", "weights dir/w.bin"]
    alone = make_payload(request, "/m", "/o")
    assert not any("weights" in name or "onnx" in name for name in alone.files)


def test_what_a_library_needs_lies_beside_it(tmp_path: Path) -> None:
    """Its companions go under their own names into its folder, and the runner is told to open them first."""
    beside = tmp_path / "libc++_shared.so"
    beside.write_bytes(b"the C++ library")
    alone = make_payload(sample_request(tmp_path), "/m", "/o")
    payload = make_payload(dataclasses.replace(sample_request(tmp_path), companions=(beside,)), "/m", "/o")
    folder = payload.request.library.parent
    assert payload.request.companions == (folder / "libc++_shared.so",)
    assert payload.files[str((folder / "libc++_shared.so").relative_to("/m"))] == beside
    words = runner_words(payload.request)
    assert words[words.index("--preload") + 1] == f"{folder}/libc++_shared.so"
    assert folder != alone.request.library.parent
    assert "--preload" not in runner_words(alone.request)


def test_a_static_library_stays_at_home(tmp_path: Path) -> None:
    """It is inside the runner, which knows it by its ending; in an emulated machine it would take memory."""
    request = sample_request(tmp_path)
    archive = request.library.with_name("libonnxruntime.a")
    archive.write_bytes(b"!<arch>\n")
    payload = make_payload(dataclasses.replace(request, library=archive), "/m", "/o")
    assert payload.request.library == Path("/m/library.a")
    assert sorted(Path(name).name for name in payload.files) == ["input_000.npy", "model.ort", "runner"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    request = sample_request(tmp_path)
    request.library.unlink()
    error = refused(StorageError, make_payload, request, "/m", "/o")
    assert error.exit_code == ExitCode.STORAGE
    assert error.where == str(request.library)
