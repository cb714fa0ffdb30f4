import shutil
from pathlib import Path

import pytest

from availability import Availability, is_present, read_unavailable
from browser import browser_program
from program_files import write_program


def availability(
    *, strict: bool, listed: dict[str, str] | None = None, required: frozenset[str] = frozenset()
) -> Availability:
    """Return the decisions of a machine that has `git` and nothing else."""
    return Availability(listed or {}, strict=strict, present=lambda name: name == "git", required=required)


def test_a_tool_that_is_there_lets_the_test_run() -> None:
    """Nothing is counted, in strict runs or others."""
    for strict in (False, True):
        checked = availability(strict=strict)
        checked.check(("git",))
        assert checked.summary() == ()


def test_an_absent_tool_skips_on_a_laptop() -> None:
    """The name stands in the reason and in the closing lines."""
    checked = availability(strict=False)
    with pytest.raises(pytest.skip.Exception, match="gcc is not installed"):
        checked.check(("git", "gcc"))
    assert checked.summary() == ("1 tests were not tried for want of 1 tools", "  gcc: 1, not installed here")


def test_an_absent_tool_fails_on_ci() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"unavailable\.toml does not list it"):
        availability(strict=True).check(("gcc",))


def test_a_listed_tool_skips_on_ci_and_is_counted() -> None:
    checked = availability(strict=True, listed={"clang": "the image has gcc"})
    for _ in range(2):
        with pytest.raises(pytest.skip.Exception, match="the image has gcc"):
            checked.check(("clang",))
    assert checked.summary() == ("2 tests were not tried for want of 1 tools", "  clang: 2, the image has gcc")


def test_a_required_tool_is_excused_by_no_list() -> None:
    """A run that is for the sake of a tool has shown nothing without it, on CI or anywhere."""
    for strict in (False, True):
        checked = availability(strict=strict, listed={"ndk": "no registry has it"}, required=frozenset({"ndk"}))
        with pytest.raises(pytest.fail.Exception, match="this run requires it"):
            checked.check(("ndk",))
        checked.check(("git",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[tool]]\nname = "no-such-tool"\nreason = "x"\n', "unknown tool 'no-such-tool'"),
        ('[[tool]]\nname = "clang"\n', "has a name and a reason"),
        ('[[tool]]\nname = "clang"\nreason = " "\n', "has a name and a reason"),
    ],
)
def test_a_wrong_entry_stops_the_run(tmp_path: Path, text: str, message: str) -> None:
    """An absence without a reason, or of a tool that no test may name, is refused."""
    path = tmp_path / "unavailable.toml"
    path.write_text(text)
    with pytest.raises(pytest.UsageError, match=message):
        read_unavailable(path)


def test_a_program_that_does_not_start_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "python3.12").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "python3.13").write_text("#!/bin/sh\nexit 0\n")
    for program in tmp_path.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [is_present(name) for name in ("python3.11", "python3.12", "python3.13")] == [False, False, True]


OPENS = '#!/bin/sh\nfor page do :; done\ncat "${page#file://}"\n'
SNAP = "#!/bin/sh\necho 'requires the chromium snap to be installed' >&2\nexit 1\n"
CONFINED = "#!/bin/sh\n[ \"$1\" != --version ] || exit 0\necho '<p>ERR_FILE_NOT_FOUND</p>'\n"
KILLED = "#!/bin/sh\nkill -9 $$\n"


@pytest.mark.parametrize(
    ("programs", "taken"),
    [
        ({"chromium": OPENS, "google-chrome": OPENS}, "chromium"),
        ({"chromium-browser": SNAP, "google-chrome-stable": OPENS}, "google-chrome-stable"),
        ({"chromium": SNAP, "google-chrome": KILLED, "chrome": OPENS}, "chrome"),
        ({"chromium": CONFINED, "chromium-browser": SNAP}, None),
        ({}, None),
    ],
)
def test_a_browser_is_the_first_that_shows_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: dict[str, str], taken: str | None
) -> None:
    """By whatever name a system has one; Ubuntu's package asks for a snap, and the snap sees no file below /tmp."""
    (tmp_path / "cat").symlink_to(shutil.which("cat") or "absent")
    for name, text in programs.items():
        write_program(tmp_path / name, text)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert browser_program() == taken
    assert is_present("chromium") == (taken is not None)
