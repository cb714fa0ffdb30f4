from pathlib import Path

from fake_machine import fake_parts
from ortrim.base.tools import EMULATIONS
from ortrim.devices.machine_files import machine_entries, save_outputs
from ortrim.errors import ExitCode, StorageError
from refusing import refused

ARM64 = EMULATIONS["arm64"]


def test_what_is_in_a_machine(tmp_path: Path) -> None:
    """The shell and the payload are there; the runner can be executed whatever its permissions, other files as here."""
    parts = fake_parts(tmp_path)
    files = {name: tmp_path / name for name in ("runner", "script", "model.ort")}
    for path in files.values():
        path.write_bytes(path.name.encode())
        path.chmod(0o644)
    files["script"].chmod(0o755)
    payload = {f"payload/d/{name}": path for name, path in files.items()}
    entries = {entry.name: entry for entry in machine_entries(ARM64, parts, parts.shell, payload)}
    assert set(entries) == {"bin/busybox", *payload}
    assert entries["bin/busybox"].content == b"shell"
    assert {name for name, entry in entries.items() if entry.mode & 0o111} == {"payload/d/runner", "payload/d/script"}


def test_a_payload_that_is_not_there(tmp_path: Path) -> None:
    """A file that went away in between is a diagnostic with its name."""
    parts = fake_parts(tmp_path)
    error = refused(
        StorageError, machine_entries, ARM64, parts, parts.shell, {"payload/model.ort": tmp_path / "absent"}
    )
    assert error.exit_code == ExitCode.STORAGE
    assert "absent" in str(error.where)


def test_outputs_alone_are_saved(tmp_path: Path) -> None:
    """Of all that comes back, what the runner saved is written, in its folders."""
    save_outputs({"0": b"report", "saved/only/x.npy": b"x", "cpuinfo": b"c", "savedx/y": b"y"}, tmp_path / "to")
    files = {path.relative_to(tmp_path / "to").as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"only/x.npy"}


def test_outputs_that_cannot_be_written(tmp_path: Path) -> None:
    """A file in the place of a folder is a diagnostic."""
    (tmp_path / "only").write_text("a file")
    assert refused(StorageError, save_outputs, {"saved/only/x.npy": b"x"}, tmp_path).exit_code == ExitCode.STORAGE
