"""The choice of a compiler cache, with programs of the test's own in the place of ccache and sccache."""

import json
import os
from pathlib import Path

import pytest

from ortrim.compiling.compiler_cache import compiler_cache
from ortrim.compiling.plan import CompilerCacheUse

RECORD = 'echo "$(basename "$0") $*" >>"$(dirname "$0")/calls"'
COUNTERS = {"direct_cache_hit": 3, "preprocessed_cache_hit": 4, "cache_miss": 2}
SERVER_STATS = {"stats": {"cache_hits": {"counts": {"C": 3, "C++": 4}}, "requests_executed": 9}}
PASSWORD = "geheim-77"  # noqa: S105 - a secret to look for


class Programs:
    """A folder of programs and what came of the last cache: its calls, the notes and what was left behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "bin"
        self.folder.mkdir()
        self.cache = folder / "cache"
        self.notes: list[str] = []
        self.ccache("")
        self.sccache("")

    def write(self, name: str, script: str) -> None:
        """Make a program that records its calls."""
        (self.folder / name).write_text(f"#!/bin/sh\n{RECORD}\n{script}\n")
        (self.folder / name).chmod(0o755)

    def ccache(self, script: str, counters: object = COUNTERS) -> None:
        """Make a ccache that counts as told; its configuration is kept beside it."""
        keep = 'cp "$CCACHE_CONFIGPATH" "$(dirname "$0")/configuration"'
        count = f"if [ $1 = --print-log-stats ]; then echo '{json.dumps(counters)}'; exit; fi"
        self.write("ccache", f"{keep}\n{script}\n{count}")

    def sccache(self, script: str) -> None:
        """Make an sccache; the environment that its server got is kept beside it."""
        keep = 'if [ $1 = --start-server ]; then env >"$(dirname "$0")/server"; fi'
        count = f"if [ $1 = --show-stats ]; then echo '{json.dumps(SERVER_STATS)}'; fi"
        self.write("sccache", f"{keep}\n{script}\n{count}")

    def calls(self) -> list[str]:
        """Return what was called, without what is asked of a ccache beside the trial."""
        lines = (self.folder / "calls").read_text().splitlines()
        return [line.split()[0] + " " + line.split()[1] for line in lines if "log-stats" not in line]

    def configuration(self) -> dict[str, str]:
        """Return the configuration that ccache saw."""
        lines = (self.folder / "configuration").read_text().splitlines()
        return dict(line.split(" = ", 1) for line in lines)

    def server_environment(self) -> str:
        """Return the environment that sccache's server got."""
        return (self.folder / "server").read_text()

    def used(self) -> tuple[str, CompilerCacheUse | None] | None:
        """Open a cache; return where it is and how far it helped, None for no cache."""
        bases = (Path("/build"), Path("/sources"))
        with compiler_cache(self.folder, self.cache, bases, self.notes.append) as cache:
            if cache is None:
                return None
            assert PASSWORD not in str(cache.environment)
            return cache.where, cache.use()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Make the folder, in an environment that asks for nothing; temporary files lie where the test can see them."""
    for name in [name for name in os.environ if name.startswith(("CCACHE_", "SCCACHE_", "AWS_", "ACTIONS_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return Programs(tmp_path)


def left_behind(programs: Programs) -> list[Path]:
    """Return the temporary files that are still there."""
    return list((programs.folder.parent / "temporary").iterdir())


def test_ccache_is_taken(programs: Programs) -> None:
    """With nothing asked for, objects are kept on this machine, and hits are counted; nothing is left behind."""
    assert programs.used() == ("ccache on this machine", CompilerCacheUse(hits=7, requests=9))
    assert programs.notes == []
    assert programs.calls() == ["ccache " + programs.calls()[0].split()[1]]
    settings = programs.configuration()
    assert settings.pop("stats_log").startswith(str(programs.folder.parent / "temporary"))
    assert settings == {
        "base_dir": "/build:/sources",
        "cache_dir": str(programs.cache / "ccache"),
        "compiler_check": "content",
        "depend_mode": "true",
        "max_size": "5G",
    }
    assert left_behind(programs) == []


def test_the_trial_of_the_cache_is_not_counted(programs: Programs) -> None:
    """What ccache logs before the build starts is thrown away."""
    log = 'log=$(sed -n "s/^stats_log = //p" "$CCACHE_CONFIGPATH")'
    answer = 'if [ -e "$log" ]; then echo "{}"; exit; fi'
    programs.write("ccache", f'{log}\nif [ "$1" != --print-log-stats ]; then touch "$log"; fi\n{answer}\necho "[]"')
    with compiler_cache(programs.folder, programs.cache, (), programs.notes.append) as cache:
        assert cache is not None
        assert not list((programs.folder.parent / "temporary").glob("*/log"))


def test_a_setting_that_means_something_to_ccache_is_taken_literally(programs: Programs) -> None:
    """A `$NAME` in its configuration is replaced by ccache; a folder may have such a name."""
    programs.cache = programs.cache.with_name("ca$HOME")
    assert programs.used() is not None
    assert programs.configuration()["cache_dir"].endswith("/ca$$HOME/ccache")


def test_a_line_break_cannot_become_another_setting(programs: Programs) -> None:
    """A folder whose name would add a line to the configuration is refused; the build goes on without."""
    programs.cache = programs.cache.with_name("ca\nread_only = true")
    assert programs.used() is None
    assert "line break" in programs.notes[0]
    assert left_behind(programs) == []


@pytest.mark.parametrize("fault", ["absent", "not executable", "failing", "folder in the way"])
def test_a_build_without_a_cache_is_slow_not_wrong(programs: Programs, fault: str) -> None:
    """Whatever is wrong with ccache, the caller goes on without one and is reported in one line."""
    program = programs.folder / "ccache"
    if fault == "absent":
        program.unlink()
    elif fault == "not executable":
        program.chmod(0o644)
    elif fault == "failing":
        programs.ccache('echo "ccache: error: Read-only file system" >&2; exit 1')
    else:
        programs.cache.write_text("in the way")
    assert programs.used() is None
    assert len(programs.notes) == 1
    assert programs.notes[0].startswith("compiler cache: ")
    assert ("Read-only file system" in programs.notes[0]) == (fault == "failing")
    assert left_behind(programs) == []


def test_a_full_temporary_folder_is_no_error(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The few small files that a cache needs for itself cannot be written either."""
    monkeypatch.setattr("tempfile.tempdir", str(programs.folder / "absent"))
    assert programs.used() is None
    assert len(programs.notes) == 1


@pytest.mark.parametrize("answer", ["[]", "1", '"x"', "null", "{}", '{"direct_cache_hit": null}', "nonsense"])
def test_a_cache_that_cannot_count_does_not_spoil_the_build(programs: Programs, answer: str) -> None:
    """Nonsense instead of statistics means that nothing is known of its use."""
    programs.write("ccache", f"if [ $1 = --print-log-stats ]; then echo '{answer}'; fi")
    assert programs.used() == ("ccache on this machine", None)


def test_a_shared_store_is_used_beside_this_machine(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address, with its password, is in a file that only this user can read, and nowhere else."""
    monkeypatch.setenv("CCACHE_REMOTE_STORAGE", f"redis://{PASSWORD}@host")
    monkeypatch.setenv("CCACHE_MAXSIZE", "1G")
    mode = 'stat -c %a "$(dirname "$CCACHE_CONFIGPATH")" >"$(dirname "$0")/mode"'
    programs.ccache(mode)
    assert programs.used() == ("ccache on this machine and at redis", CompilerCacheUse(hits=7, requests=9))
    assert programs.configuration()["remote_storage"].split()[0] == f"redis://{PASSWORD}@host"
    assert programs.configuration()["max_size"] == "1G"
    assert (programs.folder / "mode").read_text() == "700\n"
    assert left_behind(programs) == []


@pytest.mark.parametrize("sign", ["remote_storage_error", "remote_storage_timeout", "refused"])
def test_a_store_that_does_not_answer_is_left_out(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, sign: str
) -> None:
    """The build uses this machine's objects, and the note names the variable but not its value."""
    monkeypatch.setenv("CCACHE_REMOTE_STORAGE", f"redis://{PASSWORD}@host")
    faults = {"refused": f'echo "bad {PASSWORD}" >&2; exit 1'}
    count = f"echo '{json.dumps({**COUNTERS, sign: 1})}'; exit"
    programs.ccache(f'if grep -q {PASSWORD} "$CCACHE_CONFIGPATH"; then {faults.get(sign, count)}; fi')
    assert programs.used() == ("ccache on this machine", CompilerCacheUse(hits=7, requests=9))
    assert len(programs.notes) == 1
    assert "CCACHE_REMOTE_STORAGE" in programs.notes[0]
    assert PASSWORD not in programs.notes[0]
    assert "remote_storage" not in programs.configuration()


def test_sccache_serves_what_ccache_does_not_know(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the server gets the keys to the store; it is stopped when the build ends."""
    monkeypatch.setenv("SCCACHE_BUCKET", "objects")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
    assert programs.used() == ("sccache at S3", CompilerCacheUse(hits=7, requests=9))
    assert f"AWS_SECRET_ACCESS_KEY={PASSWORD}\n" in programs.server_environment()
    assert "SCCACHE_DIRECT=false\n" in programs.server_environment()
    assert programs.calls() == ["sccache --start-server", "sccache --show-stats", "sccache --stop-server"]
    assert left_behind(programs) == []


def test_an_error_of_the_build_stops_the_server(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server outlives its build, and the error is passed on."""
    monkeypatch.setenv("SCCACHE_GHA_ENABLED", "on")
    with pytest.raises(KeyboardInterrupt), compiler_cache(programs.folder, programs.cache, (), programs.notes.append):
        raise KeyboardInterrupt
    assert programs.calls()[-1] == "sccache --stop-server"
    assert left_behind(programs) == []


def test_a_server_that_does_not_start_is_replaced_by_ccache(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note has sccache's own reason, from which the values of the variables were taken."""
    monkeypatch.setenv("SCCACHE_BUCKET", "objects")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
    reason = f"sccache: error: Server startup failed: region is missing for {PASSWORD}"
    programs.sccache(f'if [ $1 = --start-server ]; then echo "Starting\n{reason}\n at main" >&2; exit 2; fi')
    assert programs.used() == ("ccache on this machine", CompilerCacheUse(hits=7, requests=9))
    told = "sccache: error: Server startup failed: region is missing for ..."
    assert programs.notes == [f"compiler cache: sccache cannot be used: {told}"]


@pytest.mark.parametrize("answer", ["exit 1", "echo", "echo '{}'", """echo '{"stats": []}'""", "echo '[1]'"])
def test_a_server_that_cannot_count_does_not_spoil_the_build(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """A server that died, or answers nonsense, leaves its use unknown."""
    monkeypatch.setenv("SCCACHE_BUCKET", "objects")
    programs.sccache(f"if [ $1 = --show-stats ]; then {answer}; exit; fi")
    assert programs.used() == ("sccache at S3", None)
