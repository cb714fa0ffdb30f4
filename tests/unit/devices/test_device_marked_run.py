import pytest

from ortrim.base.command import Completed, run
from ortrim.devices.remote import run_marked
from ortrim.errors import ExitCode, ToolError, VerifyError
from refusing import refused


class Machine:
    """A shell of this machine that notes what it was given; `cut` gives all but the end of an output."""

    def __init__(self, *, cut: bool = False, error: BaseException | None = None) -> None:
        self.cut = cut
        self.error = error
        self.scripts: list[str] = []

    def __call__(self, script: str, seconds: float) -> Completed:
        self.scripts.append(script)
        if self.error and len(self.scripts) == 1:
            raise self.error
        done = run(("sh", "-c", script), timeout_seconds=seconds)
        stdout = done.stdout.partition("\n@@")[0] if self.cut else done.stdout
        return Completed(argv=done.argv, returncode=0, stdout=stdout, stderr="cut" if self.cut else done.stderr)


def explained(printed: str) -> VerifyError:
    return VerifyError("device-lost", printed)


def marked(machine: Machine, *words: str, limit: float = 10) -> Completed:
    return run_marked(words, machine, limit_seconds=limit, name="adb:x", explain=explained)


def failed(machine: Machine, *words: str, limit: float = 10) -> VerifyError:
    return refused(VerifyError, marked, machine, *words, limit=limit)


def test_a_command_is_run() -> None:
    """What comes back is the command's own."""
    machine = Machine()
    done = marked(machine, "sh", "-c", "echo hi; exit 3")
    assert done == Completed(argv=("sh", "-c", "echo hi; exit 3"), returncode=3, stdout="hi\n", stderr="")
    assert len(machine.scripts) == 1


def test_marks_differ() -> None:
    """No command can know the mark of another, and so none can fake an end."""
    machine = Machine()
    marked(machine, "true")
    marked(machine, "true")
    assert machine.scripts[0] != machine.scripts[1]


def test_a_connection_that_ends_well_too_early_is_lost() -> None:
    """An exit code of 0 without an end is what `adb shell` gives when a device vanishes; the command is ended."""
    machine = Machine(cut=True)
    error = failed(machine, "echo", "half")
    assert (error.code, error.what) == ("device-lost", "cut")
    assert "kill -9" in machine.scripts[1]


def test_a_command_over_its_limit() -> None:
    """The machine's own clock ends it."""
    error = failed(Machine(), "/bin/sleep", "641", limit=1)
    assert (error.code, error.where) == ("device-timeout", "adb:x")
    assert "'sleep' did not end within 1 seconds" in error.what


def test_a_connection_over_its_limit() -> None:
    """When nothing comes back in time, the command is ended by a second call."""
    machine = Machine(error=ToolError("tool-timeout", "did not end"))
    assert failed(machine, "true").code == "device-timeout"
    assert len(machine.scripts) == 2


def test_an_endless_command() -> None:
    """A command that prints and prints is ended on the machine, by a second call, and told apart from a slow one."""
    machine = Machine(error=ToolError("tool-endless", "printed too much"))
    error = failed(machine, "yes")
    assert (error.code, error.where, error.exit_code) == ("endless-output", "adb:x", ExitCode.VERIFY)
    assert "kill -9" in machine.scripts[1]


def test_a_program_that_is_not_there() -> None:
    """Without adb or ssh there is nothing to end."""
    machine = Machine(error=ToolError("tool-missing", "is not installed"))
    assert (refused(ToolError, marked, machine, "true").code, len(machine.scripts)) == ("tool-missing", 1)


def test_an_interruption_leaves_no_command_behind() -> None:
    """Ctrl-C ends what runs on the machine too."""
    machine = Machine(error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        marked(machine, "true")
    assert "kill -9" in machine.scripts[1]
