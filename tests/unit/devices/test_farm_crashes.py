from pathlib import Path

import pytest

from ortrim.devices.harness import crash


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
    assert crash(log).endswith(line)
    assert "Zygote" not in crash(log)


def test_of_many_crashes_the_last_lines_are_reported(tmp_path: Path) -> None:
    """Short ones, since a log may be anything."""
    log = tmp_path / "device.log"
    log.write_bytes(b"".join(b"Fatal signal %d \xff%s\n" % (number, b"x" * 900) for number in range(9)))
    lines = crash(log).splitlines()
    assert [line[:14] for line in lines] == ["Fatal signal 6", "Fatal signal 7", "Fatal signal 8"]
    assert max(map(len, lines)) == 200


def test_a_log_without_a_crash(tmp_path: Path) -> None:
    """Nor is there one in a log that did not come."""
    (tmp_path / "device.log").write_text("all is well\n")
    assert (crash(tmp_path / "device.log"), crash(tmp_path / "absent")) == ("", "")
