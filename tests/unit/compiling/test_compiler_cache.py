"""The choice of a compiler cache, with programs of the test's own in the place of ccache and sccache."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.compiling import compiler_cache
from ortrim.compiling.plan import CompilerCacheUse
from program_files import write_program

RECORD = 'echo "$(basename "$0") $*" >>"$(dirname "$0")/calls"'
COUNTERS = {"direct_cache_hit": 3, "preprocessed_cache_hit": 4, "cache_miss": 2}
SERVER_STATS = {"stats": {"cache_hits": {"counts": {"C": 3, "C++": 4}}, "requests_executed": 9}}
PASSWORD = "geheim-77"  # noqa: S105 - a secret to look for


class Programs:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "bin"
        self.folder.mkdir()
        self.cache = folder / "cache"
        self.notes: list[str] = []
        self.ccache("")
        self.sccache("")

    def write(self, name: str, script: str) -> None:
        write_program(self.folder / name, f"{RECORD}\n{script}")

    def ccache(self, script: str, counters: object = COUNTERS) -> None:
        keep = 'cp "$CCACHE_CONFIGPATH" "$(dirname "$0")/configuration"'
        count = f"if [ $1 = --print-log-stats ]; then echo '{json.dumps(counters)}'; exit; fi"
        self.write("ccache", f"{keep}\n{script}\n{count}")

    def sccache(self, script: str) -> None:
        keep = 'if [ $1 = --start-server ]; then env >"$(dirname "$0")/server"; fi'
        count = f"if [ $1 = --show-stats ]; then echo '{json.dumps(SERVER_STATS)}'; fi"
        self.write("sccache", f"{keep}\n{script}\n{count}")

    def calls(self) -> list[str]:
        lines = (self.folder / "calls").read_text().splitlines()
        return [line.split()[0] + " " + line.split()[1] for line in lines if "log-stats" not in line]

    def configuration(self) -> dict[str, str]:
        lines = (self.folder / "configuration").read_text().splitlines()
        return dict(line.split(" = ", 1) for line in lines)

    def server_environment(self) -> str:
        return (self.folder / "server").read_text()

    def used(self) -> tuple[str, CompilerCacheUse | None] | None:
        bases = (Path("/build"), Path("/sources"))
        with compiler_cache.compiler_cache(self.folder, self.cache, bases, self.notes.append) as cache:
            if cache is None:
                return None
            assert PASSWORD not in str(cache.environment)
            return cache.where, cache.use()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    for name in [name for name in os.environ if name.startswith(("CCACHE_", "SCCACHE_", "AWS_", "ACTIONS_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return Programs(tmp_path)


def left_behind(programs: Programs) -> list[Path]:
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
    log = 'log=$(sed -n "s/^stats_log = //p" "$CCACHE_CONFIGPATH")'
    answer = 'if [ -e "$log" ]; then echo "{}"; exit; fi'
    programs.write("ccache", f'{log}\nif [ "$1" != --print-log-stats ]; then touch "$log"; fi\n{answer}\necho "[]"')
    with compiler_cache.compiler_cache(programs.folder, programs.cache, (), programs.notes.append) as cache:
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
    monkeypatch.setattr("tempfile.tempdir", str(programs.folder / "absent"))
    assert programs.used() is None
    assert len(programs.notes) == 1


@pytest.mark.parametrize("answer", ["[]", "1", '"x"', "null", "{}", '{"direct_cache_hit": null}', "nonsense"])
def test_a_cache_that_cannot_count_does_not_spoil_the_build(programs: Programs, answer: str) -> None:
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
    monkeypatch.setenv("SCCACHE_GHA_ENABLED", "on")
    with (
        pytest.raises(KeyboardInterrupt),
        compiler_cache.compiler_cache(programs.folder, programs.cache, (), programs.notes.append),
    ):
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
    monkeypatch.setenv("SCCACHE_BUCKET", "objects")
    programs.sccache(f"if [ $1 = --show-stats ]; then {answer}; exit; fi")
    assert programs.used() == ("sccache at S3", None)


UNRELATED = {"PATH": "/bin", "PYTHONPATH": "x", "SCCACHE_DIR": "/other", "SCCACHE_CONF": "/c", "CCACHE_DIR": "/d"}


@pytest.mark.parametrize("backend", compiler_cache.BACKENDS, ids=lambda backend: backend.name)
def test_each_backend_is_chosen_by_its_variable(backend: object) -> None:
    """Every row of the table is reached, and the variable that chooses it is among those handed over."""
    assert backend in compiler_cache.BACKENDS
    row = compiler_cache.BACKENDS[compiler_cache.BACKENDS.index(backend)]
    environment = {**UNRELATED, row.chosen_by: "something"}
    assert compiler_cache.chosen_backend(environment) == row
    assert compiler_cache.backend_variables(environment) == {row.chosen_by: "something"}


@pytest.mark.parametrize("value", ["", "0", "off", "OFF", "false", "False", "no"])
def test_a_backend_that_is_off_is_not_chosen(value: str) -> None:
    assert compiler_cache.chosen_backend({"SCCACHE_GHA_ENABLED": value}) is None


def test_nothing_else_of_the_environment_is_handed_over() -> None:
    """Folders and configuration files of another use of the same programs stay out; ways to the network go along."""
    wanted = {
        "AWS_SECRET_ACCESS_KEY": "k",
        "AWS_PROFILE": "p",
        "HOME": "/h",
        "https_proxy": "http://p",
        "NO_PROXY": "a",
    }
    assert compiler_cache.chosen_backend(UNRELATED) is None
    assert compiler_cache.ccache_settings(UNRELATED) == {}
    assert compiler_cache.backend_variables({**UNRELATED, **wanted}) == wanted


def test_ccache_is_asked_in_its_own_words() -> None:
    """Where to share, whether only there, whether to hand on what was found here, and how much to keep."""
    environment = {
        "CCACHE_REMOTE_STORAGE": "http://store/ @layout=bazel",
        "CCACHE_REMOTE_ONLY": "true",
        "CCACHE_RESHARE": "true",
        "CCACHE_MAXSIZE": "20G",
        "CCACHE_DEPEND": "",
    }
    assert compiler_cache.ccache_settings(environment) == {
        "remote_storage": "http://store/ @layout=bazel @operation-timeout=2000",
        "remote_only": "true",
        "reshare": "true",
        "max_size": "20G",
    }


def test_an_empty_setting_is_none() -> None:
    """A workflow sets a variable to nothing where a secret is not to be had."""
    assert compiler_cache.ccache_settings({"CCACHE_REMOTE_STORAGE": "", "SCCACHE_REDIS_ENDPOINT": ""}) == {}


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({"ENDPOINT": "redis://host"}, "redis://host"),
        ({"ENDPOINT": "redis://host:1", "PASSWORD": "p@/:w"}, "redis://p%40%2F%3Aw@host:1"),
        ({"ENDPOINT": "redis://host:1", "USERNAME": "u", "PASSWORD": "p", "DB": "3"}, "redis://u:p@host:1/3"),
        ({"ENDPOINT": "redis://x:y@host/2", "PASSWORD": "p", "DB": "3"}, "redis://x:y@host/2"),
        ({"ENDPOINT": "redis://:y@host"}, "redis://y@host"),
        ({"ENDPOINT": "redis://[bad"}, "redis://[bad"),
        ({"ENDPOINT": "nonsense"}, "nonsense"),
    ],
)
def test_sccaches_redis_becomes_ccaches(environment: dict[str, str], url: str) -> None:
    """Account and database move into the address; what is no address comes back as it is, for ccache to refuse."""
    variables = {f"SCCACHE_REDIS_{name}": value for name, value in environment.items()}
    assert compiler_cache.redis_url(variables) == url
    assert compiler_cache.ccache_settings(variables)["remote_storage"].split()[0] == url


def test_the_older_name_of_redis_is_known_and_ccaches_own_goes_before() -> None:
    """`SCCACHE_REDIS` is deprecated and still in many set-ups."""
    environment = {"SCCACHE_REDIS": "redis://old"}
    assert compiler_cache.ccache_settings(environment)["remote_storage"].split()[0] == "redis://old"
    environment["CCACHE_REMOTE_STORAGE"] = "redis://new"
    assert compiler_cache.ccache_settings(environment)["remote_storage"].split()[0] == "redis://new"


@pytest.mark.parametrize(
    ("stores", "patience"),
    [
        ("redis://host", " @operation-timeout=2000"),
        ("http://host @layout=bazel", " @operation-timeout=2000"),
        ("redis://host @operation-timeout=9", ""),
        ("file:/shared", ""),
    ],
)
def test_a_store_that_hangs_is_waited_for_only_shortly(stores: str, patience: str) -> None:
    """Unless the user says how long, and where there is nothing to wait for."""
    assert compiler_cache.ccache_settings({"CCACHE_REMOTE_STORAGE": stores}) == {"remote_storage": stores + patience}


@given(st.lists(st.text(alphabet=st.characters(codec="ascii", categories=("L", "N")), min_size=5, max_size=30)))
def test_no_secret_is_reported(secrets: list[str]) -> None:
    told = compiler_cache.without_secrets(
        f"failed: {' '.join(secrets)} at port 6379", [f"redis://u:{secret}@host" for secret in secrets]
    )
    assert not [secret for secret in secrets if secret in told.replace("failed", "").replace("6379", "")]


def test_what_is_no_secret_stays() -> None:
    """Words such as `on` are values too, and taking them out would spoil the sentence."""
    assert compiler_cache.without_secrets("region is missing on s3", ["on", "s3", ""]) == "region is missing on s3"
