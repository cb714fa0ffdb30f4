import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import run
from ortrim.devices.device_farm import specification

RESULTS: Final = "/sdcard/Download/ortrim"
ADB: Final = """#!/bin/sh
echo "$@" >> "$DEVICEFARM_LOG_DIR/asked"
case "$*" in
  *instrument*) cat "$DEVICEFARM_LOG_DIR/printed" ;;
  *pull*) mkdir "$5" && echo '{}' > "$5/results.json" ;;
esac
"""
PASSED: Final = "INSTRUMENTATION_STATUS_CODE: 1\nINSTRUMENTATION_STATUS_CODE: 0\nINSTRUMENTATION_CODE: -1\n"
"""What `am instrument -r` prints of one test that passed, as far as it is looked at."""


def commands(text: str) -> list[str]:
    blocks = text.partition("artifacts:")[0].split("      - |\n")[1:]
    return [textwrap.dedent(block) for block in blocks]


@pytest.fixture
def carried_out(tmp_path: Path) -> Callable[[str, str], list[int]]:
    """Return what carries a specification out beside a stand-in for adb, and gives the commands' exit codes."""
    (tmp_path / "adb").write_text(ADB)
    (tmp_path / "adb").chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "DEVICEFARM_LOG_DIR": str(tmp_path),
        "DEVICEFARM_DEVICE_UDID": "R58M",
        "DEVICEFARM_TEST_PACKAGE_NAME": "ortrim.harness.test",
        "DEVICEFARM_TEST_PACKAGE_RUNNER": "a.Runner",
    }

    def carry_out(text: str, printed: str) -> list[int]:
        (tmp_path / "printed").write_text(printed)
        return [run(("sh", "-c", line), environment=environment).returncode for line in commands(text)]

    return carry_out


@pytest.mark.parametrize(
    ("printed", "passes"),
    [
        (PASSED, True),
        (PASSED.replace("CODE: 0", "CODE: -2"), False),
        (PASSED.replace("CODE: 0", "CODE: -1"), False),
        (PASSED.replace("CODE: 0", "CODE: -4"), True),
        ("INSTRUMENTATION_RESULT: shortMsg=Process crashed.\nINSTRUMENTATION_CODE: 0\n", False),
        ("INSTRUMENTATION_FAILED: ortrim.harness.test/a.Runner\n", False),
        ("", False),
    ],
    ids=["passed", "failed", "error", "assumption", "crashed", "no-runner", "nothing"],
)
def test_commands_end_as_the_instrumentation_does(
    carried_out: Callable[[str, str], list[int]], tmp_path: Path, printed: str, *, passes: bool
) -> None:
    """The farm takes the commands' exit codes for its verdict; the results are there whatever it is."""
    codes = carried_out(specification(RESULTS), printed)
    assert (set(codes) == {0}) == passes
    assert codes[:2] == [0, 0]
    assert (tmp_path / "ortrim-results" / "results.json").is_file()
    assert (tmp_path / "instrument.log").read_text() == printed


def test_what_adb_is_asked(carried_out: Callable[[str, str], list[int]], tmp_path: Path) -> None:
    """The device is named each time, and the harness is told where its results are looked for."""
    carried_out(specification(RESULTS), PASSED)
    assert (tmp_path / "asked").read_text().splitlines() == [
        f"-s R58M shell am instrument -r -w -e additionalTestOutputDir {RESULTS} ortrim.harness.test/a.Runner",
        f"-s R58M pull {RESULTS} {tmp_path}/ortrim-results",
    ]


def test_a_path_runs_nothing(carried_out: Callable[[str, str], list[int]], tmp_path: Path) -> None:
    """Whatever is in the results' path stays a word."""
    carried_out(specification(f"$(touch {tmp_path}/evil); touch {tmp_path}/evil"), PASSED)
    assert not (tmp_path / "evil").exists()


def test_where_it_runs() -> None:
    """The host is named, as Android 15 and newer need, and what it leaves."""
    text = specification(RESULTS)
    assert text.startswith(
        "version: 0.1\nandroid_test_host: amazon_linux_2\nphases:\n  test:\n    commands:\n      - |\n"
    )
    assert text.endswith("artifacts:\n  - $DEVICEFARM_LOG_DIR\n")
