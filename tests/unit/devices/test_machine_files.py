import os
import shutil
from pathlib import Path

import pytest

from fake_machine import fake_parts
from ortrim.base.command import run
from ortrim.base.tools import EMULATIONS
from ortrim.devices.machine_files import (
    LONGEST_NAME,
    folder,
    libraries_for,
    link,
    link_needs,
    machine_entries,
    regular,
    save_outputs,
    with_folders,
    write_archive,
)
from ortrim.errors import ExitCode, StorageError
from refusing import refused

ARM64 = EMULATIONS["arm64"]


def test_a_payload_that_is_not_there(tmp_path: Path) -> None:
    parts = fake_parts(tmp_path)
    error = refused(
        StorageError, machine_entries, ARM64, parts, parts.shell, {"payload/model.ort": tmp_path / "absent"}
    )
    assert error.exit_code == ExitCode.STORAGE
    assert "absent" in str(error.where)


def test_outputs_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "only").write_text("a file")
    assert refused(StorageError, save_outputs, {"saved/only/x.npy": b"x"}, tmp_path).exit_code == ExitCode.STORAGE


ENTRIES = (folder("bin"), regular("bin/sh", b"#!x", executable=True), link("lib", "usr/lib"), regular("notes", b""))


@pytest.mark.parametrize("name", ["", "/etc/passwd", "a\0b", "TRAILER!!!", "x" * (LONGEST_NAME + 1)])
def test_names_that_cannot_be_held(name: str) -> None:
    with pytest.raises(ValueError, match="cannot hold the name"):
        write_archive([regular(name, b"")])


@pytest.mark.needs("cpio")
def test_cpio_reads_it(tmp_path: Path) -> None:
    """The archive is one for the real `cpio` too: names, permissions, contents and links."""
    (tmp_path / "archive").write_bytes(write_archive(with_folders([*ENTRIES, regular("Zürich/x y", b"z" * 5)])))
    command = "cpio -t --quiet <archive && mkdir out && cd out && cpio -i --quiet <../archive"
    done = run(["/bin/sh", "-c", command], cwd=tmp_path, environment={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "Zürich" / "x y").read_bytes() == b"zzzzz"
    assert (tmp_path / "out" / "lib").readlink() == Path("usr/lib")
    assert (tmp_path / "out" / "bin" / "sh").stat().st_mode & 0o777 == 0o755


PROGRAM = Path(shutil.which("env") or "/usr/bin/env")


def test_a_program_names_its_linker_and_libraries() -> None:
    """A program of this machine asks for a linker by its path and for the C library by its name."""
    interpreter, needed = link_needs(PROGRAM)
    assert Path(interpreter).is_absolute()
    assert any(name.startswith("libc.") for name in needed)


@pytest.mark.parametrize(
    "content", [b"", b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF" + bytes(60), b"\x7fELF\x02\x01\x01" * 40]
)
def test_what_is_no_program_needs_nothing(tmp_path: Path, content: bytes) -> None:
    """A script, an empty file and damaged ELF files are for the machine itself to refuse."""
    (tmp_path / "file").write_bytes(content)
    assert link_needs(tmp_path / "file") == ("", ())


def test_a_cut_program_needs_what_can_be_read(tmp_path: Path) -> None:
    content = PROGRAM.read_bytes()
    for length in range(0, min(len(content), 4096), 257):
        (tmp_path / "cut").write_bytes(content[:length])
        assert isinstance(link_needs(tmp_path / "cut")[1], tuple)


def test_an_absent_file_needs_nothing(tmp_path: Path) -> None:
    assert link_needs(tmp_path / "absent") == ("", ())


def test_libraries_are_followed(tmp_path: Path) -> None:
    """The linker, the libraries needed and what those need are found in a machine's folders; nothing else is."""
    interpreter, needed = link_needs(PROGRAM)
    real = Path(os.path.realpath(interpreter)).parent
    (tmp_path / "usr/lib/x").mkdir(parents=True)
    for name in (*needed, "unneeded.so"):
        source = next(
            (folder / name for folder in (real, Path("/usr/lib"), Path("/lib")) if (folder / name).is_file()), None
        )
        shutil.copy(source or PROGRAM, tmp_path / "usr/lib/x" / name)
    at = tmp_path / interpreter.lstrip("/")
    at.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(interpreter, at)
    found = libraries_for([PROGRAM, PROGRAM], tmp_path, ["usr/lib/none", "usr/lib/x"])
    assert set(found) == {interpreter.lstrip("/"), *(f"usr/lib/x/{name}" for name in needed)}
    assert found[interpreter.lstrip("/")] == at


def test_names_do_not_leave_the_root(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").write_text("secret")
    content = PROGRAM.read_bytes()
    interpreter = link_needs(PROGRAM)[0].encode()
    forged = (b"/../secret" + b"\0" * len(interpreter))[: len(interpreter)]
    (tmp_path / "forged").write_bytes(content.replace(interpreter, forged))
    assert link_needs(tmp_path / "forged")[0].startswith("/../secret")
    assert libraries_for([tmp_path / "forged"], tmp_path / "root", ["."]) == {}
