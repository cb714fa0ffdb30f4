from pathlib import Path

from fake_machine import fake_parts
from ortrim.base.tools import EMULATIONS
from ortrim.devices.machine_files import machine_entries, save_outputs
from ortrim.errors import ExitCode, StorageError
from refusing import refused

ARM64 = EMULATIONS["arm64"]


def test_a_payload_that_is_not_there(tmp_path: Path) -> None:
    """A file that went away in between is a diagnostic with its name."""
    parts = fake_parts(tmp_path)
    error = refused(
        StorageError, machine_entries, ARM64, parts, parts.shell, {"payload/model.ort": tmp_path / "absent"}
    )
    assert error.exit_code == ExitCode.STORAGE
    assert "absent" in str(error.where)


def test_outputs_that_cannot_be_written(tmp_path: Path) -> None:
    """A file in the place of a folder is a diagnostic."""
    (tmp_path / "only").write_text("a file")
    assert refused(StorageError, save_outputs, {"saved/only/x.npy": b"x"}, tmp_path).exit_code == ExitCode.STORAGE
