from pathlib import Path

from ortrim.devices.remote import copy_files, text_of
from ortrim.errors import ExitCode, StorageError
from refusing import refused


def test_links_are_not_followed(tmp_path: Path) -> None:
    """Neither to a file of this machine nor to a folder of it, and one that leads nowhere does no harm."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("secret")
    (tmp_path / "from").mkdir()
    for name, target in {"file": "secrets/key", "folder": "secrets", "nothing": "absent"}.items():
        (tmp_path / "from" / name).symlink_to(tmp_path / target)
    copy_files(tmp_path / "from", tmp_path / "to")
    assert not list((tmp_path / "to").rglob("*"))
    assert [text_of(tmp_path / "from" / name) for name in ("file", "folder", "nothing")] == ["", "", ""]


def test_a_destination_that_cannot_be_written(tmp_path: Path) -> None:
    """A file in the place of a folder is a diagnostic."""
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "x").write_bytes(b"x")
    (tmp_path / "to").write_text("a file")
    assert refused(StorageError, copy_files, tmp_path / "from", tmp_path / "to").exit_code == ExitCode.STORAGE
