"""A machine behind a transport, whichever: each run has a folder of its own there, and its results are brought here.

Files go there once, and are checked there; nothing of it stays. What comes back may be anything, and nothing of this
machine is reached through it.
"""

import dataclasses
import hashlib
import math
import os
import re
import secrets
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from ortrim.base.command import Completed, last_lines
from ortrim.base.files import storage_errors
from ortrim.devices import kinds
from ortrim.devices.device import NOT_STARTED, ProgramDevice, check_pinning, not_startable, pinned
from ortrim.devices.facts import LONGEST_WAIT_SECONDS, REPETITIONS, UNKNOWN_HEAT, Thermal, decide
from ortrim.errors import Diagnostic, ToolError, UsageError, VerifyError
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import RunnerOutput, RunRequest, endless_output, never_ended, read_output, runner_words


class Transport(Protocol):
    """A machine that takes files and runs commands, one after the other.

    Folders are absolute paths of the machine, written with slashes. Every method raises `VerifyError`: `device-lost`
    when the machine cannot be reached or goes away half way (with a reference of its own where the causes can be
    distinguished, such as a device that refuses this user), `device-full` when it has no room for what it is sent.
    """

    def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
        """Run a command on the machine to its end and return its exit code, stdout and stderr.

        `words` reach the program as they are: whoever goes through a shell quotes them. The exit code is the one that a
        shell gives, 128 plus the signal's number for a program that a signal ended.
        """

    def push(self, files: Mapping[str, Path], folder: str) -> None:
        """Copy local files, by their names below `folder`, which is made with what folders the names need.

        What is there already under such a name is replaced. Permissions are not promised.
        """

    def pull(self, folder: str, destination: Path) -> None:
        """Copy everything below a folder of the machine into `destination`, a local folder that is there.

        No file lands outside `destination`, whatever the machine sends.
        """


# A shell's own exit code is not believed: `adb shell` ends with 0 when the device vanishes half way (seen with 29.0.6
# and 36.0.0), and `ssh` with 255 when the connection breaks or the command says so. The script therefore prints a last
# line of its own; an output without it was cut off.
#
# The time limit is kept on the machine, where it also holds when nobody is connected any more. It is not kept by
# `timeout`: toybox's (0.8.9; Android's commands are toybox) gave 127 for every third of many commands that went well.
VARIABLE: Final = "ORTRIM_RUN"
"""Set to the mark for the command and all its children, so that they can be found again."""
KILLED: Final = 137
"""The exit code that a shell gives for SIGKILL: 128 and 9."""
ENDING: Final = re.compile(r"(\d{1,3}) (\d{1,3})\s*", re.ASCII)
"""After the mark: the command's exit code, and the clock's."""


@dataclass(frozen=True, kw_only=True)
class EndedCommand:
    """A command that ended on a machine: how, whether it was killed at its limit, and what it printed."""

    returncode: int
    timed_out: bool
    stdout: str


def quoted(words: Sequence[str]) -> str:
    """Return a command line that any POSIX shell splits into exactly these words.

    The first is quoted in any case: bare, it could be a reserved word, an alias or an assignment.
    """
    first, *others = words
    return " ".join(["'" + first.replace("'", "'\"'\"'") + "'", *(shlex.quote(word) for word in others)])


def marked_script(words: Sequence[str], mark: str, limit_seconds: float) -> str:
    """Return the script that runs a command, kills it at its limit, and prints `mark` and how it ended.

    The script is one line, for login shells in which a quoted line end is an error, and in C's locale, since complaints
    are distinguished by their words.
    """
    # The clock is a `sleep` that whatever ends the command kills; the shell waits for the clock, then for the command.
    # No trap and no signal but 9: a shell's child that has only just been forked may lose the others (seen with mksh).
    # A background command's input is empty unless it is given another.
    run = f"({quoted(words)} <&3 3<&-; c=$?; kill -9 $s 2>/dev/null; exit $c) & r=$!"
    return (
        f"{VARIABLE}={mark}; LC_ALL=C; export {VARIABLE} LC_ALL; exec 3<&0; "
        f"sleep {math.ceil(limit_seconds)} </dev/null >/dev/null 2>&1 3<&- & s=$!; {run}; "
        f"wait $s 2>/dev/null; t=$?; [ $t != 0 ] || {{ {kill_script(mark)}; }}; "
        f'wait $r; c=$?; echo; echo "{mark} $c $t"'
    )


def kill_script(mark: str) -> str:
    """Return the script that kills a command that `marked_script` started, with all its children.

    It looks again until nothing is found: what was found may have started something before it died. Nine times at
    most, since a process that waits for a broken disk cannot be killed.
    """
    return (
        "for n in 1 2 3 4 5 6 7 8 9; do l=; for f in /proc/[0-9]*/environ; do [ -r $f ] && "
        f'case "$(cat $f)" in *{VARIABLE}={mark}*) l=1; f=${{f#/proc/}}; kill -9 ${{f%/environ}};; esac; done; '
        "[ $l ] || break; done 2>/dev/null"
    )


def read_ended(printed: str, mark: str) -> EndedCommand | None:
    """Return how a command ended, None when its output was cut off before the mark."""
    stdout, found, tail = printed.rpartition(f"\n{mark} ")
    ending = ENDING.fullmatch(tail)
    if not found or ending is None:
        return None
    returncode, clock = int(ending[1]), int(ending[2])
    return EndedCommand(returncode=returncode, timed_out=clock == 0 and returncode == KILLED, stdout=stdout)


def signalled(returncode: int) -> int:
    """Return a shell's exit code as `Completed` has it: negative for a program that a signal ended."""
    return 128 - returncode if 128 < returncode <= 128 + 64 else returncode


SLACK_SECONDS: Final = 15.0
"""How much longer than the command's own limit the way there and back may take."""
KILL_SECONDS: Final = 15.0

Start = Callable[[str, float], Completed]
"""Hands a script to the machine's shell and returns what came back; the number is the limit in seconds."""


def run_marked(
    words: Sequence[str], start: Start, *, limit_seconds: float, name: str, explain: Callable[[str], Diagnostic]
) -> Completed:
    """Run a command on a machine to its end, as `Transport.execute` promises.

    `explain` makes a diagnostic of what the connecting program printed when the command's end did not come back.
    """
    mark = f"@@{secrets.token_hex(8)}"
    try:
        done = start(marked_script(words, mark, limit_seconds), limit_seconds + SLACK_SECONDS)
    except ToolError as error:
        if error.code not in {"tool-timeout", "tool-endless"}:
            raise
        _kill(start, mark)
        timeout = error.code == "tool-timeout"
        raise (_timeout(words, limit_seconds, name) if timeout else endless_output(name)) from error
    except BaseException:  # Ctrl-C must not leave a runner behind either
        _kill(start, mark)
        raise
    ended = read_ended(done.stdout, mark)
    if ended is None:
        _kill(start, mark)
        raise explain(done.stderr or done.stdout)
    if ended.timed_out:
        raise _timeout(words, limit_seconds, name)
    return Completed(argv=tuple(words), returncode=ended.returncode, stdout=ended.stdout, stderr=done.stderr)


def _kill(start: Start, mark: str) -> None:
    """End the command on the machine if it can still be reached; otherwise its own time limit does."""
    with suppress(Diagnostic):
        start(kill_script(mark), KILL_SECONDS)


def _timeout(words: Sequence[str], limit_seconds: float, name: str) -> VerifyError:
    what = f"'{words[0].rpartition('/')[2]}' did not end within {limit_seconds:g} seconds and was killed"
    return VerifyError("device-timeout", what, where=name)


VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {kinds.ADB.name: "ORTRIM_ADB_FOLDER", kinds.SSH.name: "ORTRIM_SSH_FOLDER"}
)
"""By kind, what names another folder than the usual one."""
FOLDER: Final = re.compile(r"/[^\x00-\x1f\x7f]{0,1000}")
NEEDED: Final = "a folder on the device that is writable and not mounted noexec"


def base_folder(kind: str, usual: str) -> str:
    """Return the folder on machines of a kind below which ours is made."""
    named = os.environ.get(VARIABLES[kind], "")
    if named and not FOLDER.fullmatch(named):
        hint = f"give an absolute path on the device, such as {usual}"
        raise UsageError("bad-folder", f"{named[:100]!r} is not such a path", where=VARIABLES[kind], hint=hint)
    return named or usual


def other_folder(name: str) -> str:
    """Return the hint to name another base folder for a device, by its name in reports."""
    kind = name.partition(":")[0]
    return f"name {NEEDED} in {VARIABLES.get(kind, ' or '.join(VARIABLES.values()))}"


DIGITS: Final = 24
"""Of the digest that names a folder: what changed gets another name, what did not is there already."""
LIBRARY: Final = "library.so"
LINKED: Final = "library.a"
"""What the runner calls the static library that it was linked with; nothing lies there."""
ONNX: Final = ".onnx"
FACTS_FILE: Final = "facts.json"
"""Lies beside a prepared model and is ours alone."""


@dataclass(frozen=True, kw_only=True)
class Payload:
    """The files by their names below a folder of the machine, and the request in that machine's paths.

    `executable` is the runner's name among the files.
    """

    files: Mapping[str, Path]
    executable: str
    request: RunRequest


def make_payload(request: RunRequest, folder: str, outputs: str) -> Payload:
    """Return what has to lie below `folder`, an absolute folder of the machine, for a run that saves to `outputs`.

    Names are made of digests of contents, so that equal names are equal files.
    """
    linked = request.library.suffix == Path(LINKED).suffix
    is_onnx = request.model.suffix == ONNX
    # The runtime tells formats apart by the ending; the files beside a model in ONNX format may hold its weights.
    model_name = request.model.name if is_onnx else f"model{request.model.suffix}"
    beside = _below(request.model.parent) if is_onnx else {}
    others = {name: path for name, path in beside.items() if name not in {model_name, FACTS_FILE}}
    groups = [
        _group({"runner": request.runner}),
        _group({} if linked else {LIBRARY: request.library, **{path.name: path for path in request.companions}}),
        _group({**others, model_name: request.model}),
        *(_group(_below(case.folder)) for case in request.cases),
    ]
    runner, library, model, *cases = (Path(folder) / name for name, _ in groups)
    there = dataclasses.replace(
        request,
        runner=runner / "runner",
        library=Path(folder) / LINKED if linked else library / LIBRARY,
        companions=tuple(library / path.name for path in request.companions),
        model=model / model_name,
        cases=tuple(dataclasses.replace(case, folder=at) for case, at in zip(request.cases, cases, strict=True)),
        outputs=Path(outputs) if request.outputs else None,
    )
    files = {f"{name}/{inner}": path for name, group in groups for inner, path in group.items()}
    return Payload(files=MappingProxyType(files), executable=f"{groups[0][0]}/runner", request=there)


def _group(files: Mapping[str, Path]) -> tuple[str, Mapping[str, Path]]:
    """Return the name of a folder that holds these files, and the files."""
    lines = [f"{name}\0{digest_of(path)}" for name, path in sorted(files.items())]
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()[:DIGITS], files


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """Return a file's digest."""
    with storage_errors(path), path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def _below(folder: Path) -> dict[str, Path]:
    with storage_errors(folder):
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path for path in paths}


COMMAND_SECONDS: Final = 120.0
"""How long a machine may take for a command of ours that is not the runner."""
PREFIX: Final = "ortrim-"
STALE_DAYS: Final = "1"
CHECKSUM_PROGRAMS: Final = ("sha256sum", "sha1sum", "md5sum")
"""The first that a machine has is used: toybox has the first from Android 8 on. Any of them notices a damaged copy."""


class RemoteFolder:
    """A folder below `base`, which is there or can be made, under a name that nobody else has.

    `owner` is the machine's name in diagnostics. What the transport raises comes through everywhere but from `remove`.
    """

    def __init__(self, transport: Transport, *, base: str, owner: str) -> None:
        self.path = f"{base.rstrip('/')}/{PREFIX}{secrets.token_hex(8)}"
        self.files = f"{self.path}/files"
        self._transport = transport
        self._owner = owner
        self._there: set[str] = set()
        self._begun = False

    def open(self) -> None:
        """Make the folder, and remove those of processes that were killed; nothing when files are in it already."""
        if self._there:
            return
        self._begun = True
        self.make(self.path)
        with suppress(VerifyError):
            age = ("-maxdepth", "1", "-name", f"{PREFIX}*", "-mtime", f"+{STALE_DAYS}")
            self._command("find", self.path.rpartition("/")[0], *age, "-exec", "rm", "-rf", "{}", "+")

    def make(self, folder: str) -> None:
        """Make a folder with those that it lies in."""
        self._required("mkdir", "-p", folder)

    def remove(self, folder: str) -> None:
        """Remove a folder of ours; a machine that has gone away keeps it until the next `ortrim` finds it."""
        with suppress(VerifyError):
            self._command("rm", "-rf", folder)

    def close(self) -> None:
        """Remove all that is ours, also when it was begun alone."""
        if self._begun:
            self.remove(self.path)
        self._begun = False
        self._there.clear()

    def push(self, payload: Payload) -> None:
        """Push what is not there yet, and believe only what the machine itself says of the contents."""
        missing = {name: path for name, path in payload.files.items() if name not in self._there}
        if not missing:
            return
        self._transport.push(missing, self.files)
        program, done = self._checksums(tuple(f"{self.files}/{name}" for name in missing))
        # A name with a backslash or a line end is written in another way, and its line begins with a backslash.
        found = [line.lstrip("\\").split(" ")[0] for line in done.stdout.splitlines()]
        if done.returncode != 0 or found != [digest_of(path, program.removesuffix("sum")) for path in missing.values()]:
            what = "the files on the device differ from those sent"
            hint = f"free some space below {self.path} and check that it is writable"
            raise VerifyError("push-incomplete", what, where=self._owner, why=last_lines(done.stderr), hint=hint)
        if payload.executable in missing:
            self._required("chmod", "755", str(payload.request.runner))
        self._there.update(missing)

    def _checksums(self, paths: Sequence[str]) -> tuple[str, Completed]:
        """Return the first program for checksums that the machine has, and what it printed."""
        for program in CHECKSUM_PROGRAMS:
            done = self._command(program, *paths)
            if done.returncode not in NOT_STARTED:
                return program, done
        what = f"the device has none of {', '.join(CHECKSUM_PROGRAMS)}, so what was sent cannot be checked"
        hint = "install one of them there (coreutils, busybox or toybox has them), or use another device"
        raise VerifyError("device-unusable", what, where=self._owner, why=last_lines(done.stderr), hint=hint)

    def _command(self, *words: str) -> Completed:
        return self._transport.execute(words, timeout_seconds=COMMAND_SECONDS)

    def _required(self, *words: str) -> None:
        done = self._command(*words)
        if done.returncode != 0:
            what = f"'{words[0]}' failed with {done.returncode}"
            hint = other_folder(self._owner)
            raise VerifyError("device-unusable", what, where=self._owner, why=last_lines(done.stderr), hint=hint)


def copy_files(source: Path, destination: Path) -> None:
    """Copy the regular files below a folder; links, which a machine may have sent, are not followed."""
    with storage_errors(destination):
        for path in sorted(source.rglob("*")):
            if path.is_file() and not path.is_symlink():
                target = destination / path.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


def text_of(path: Path) -> str:
    """Return the text of a regular file; empty for a link, and for what is not there."""
    regular = path.is_file() and not path.is_symlink()
    return path.read_text(encoding="utf-8", errors="replace") if regular else ""


REPORT: Final = "report.json"
OUTPUTS: Final = "outputs"


@dataclass(frozen=True, kw_only=True)
class RemoteMachine:
    """What is known of a machine behind a transport before anything runs there.

    `base` is a folder that is there or can be made. `describe` asks the machine for its facts, with its present
    thermal state in `thermal_after`, and `thermal` for its heat alone. The runner is kept on `cores`, all of the
    machine's when there are none.
    """

    name: str
    transport: Transport
    base: str
    describe: Callable[[], HostFacts]
    thermal: Callable[[], Thermal] = lambda: UNKNOWN_HEAT
    cores: tuple[int, ...] = ()
    memory_meaningful: bool = True
    time_meaningful: bool = True


SLEEP: Final[Callable[[float], None]] = time.sleep


class RemoteDevice(ProgramDevice):
    """Runs the runner on a machine behind a transport, in a folder of its own below the machine's base.

    The thermal state that the machine had before the first run is remembered.
    """

    def __init__(self, machine: RemoteMachine) -> None:
        self.name = machine.name
        self.memory_meaningful = machine.memory_meaningful
        self.time_meaningful = machine.time_meaningful
        self._machine = machine
        self._transport = machine.transport
        self._folder = RemoteFolder(machine.transport, base=machine.base, owner=machine.name)
        self._first: HostFacts | None = None
        self._runs = 0

    def facts(self) -> HostFacts:
        """Describe the machine now."""
        now = self._machine.describe()
        self._first = self._first or now
        return dataclasses.replace(
            now,
            pinned_cores=self._machine.cores,
            thermal_before=self._first.thermal_after,
            memory_meaningful=self.memory_meaningful,
            time_meaningful=self.time_meaningful,
        )

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once."""
        self._first = self._first or self._machine.describe()
        self._folder.open()
        self._runs += 1
        place = f"{self._folder.path}/run-{self._runs}"
        payload = make_payload(request, self._folder.files, f"{place}/{OUTPUTS}")
        try:
            self._folder.push(payload)
            self.before_run()
            return self._run(payload.request, request, place)
        finally:
            self._folder.remove(place)

    def before_run(self) -> None:
        """Wait until the machine is ready for a run. May raise `VerifyError`."""

    def close(self) -> None:
        """Remove our folder from the machine; one that has gone away keeps it until the next `ortrim` finds it."""
        self._folder.close()

    def _run(self, there: RunRequest, request: RunRequest, place: str) -> RunnerOutput:
        """Run with the machine's paths and report with ours."""
        self._folder.make(f"{place}/{OUTPUTS}")
        words = (*pinned(self._machine.cores), *runner_words(there), "--json", f"{place}/{REPORT}")
        limit = request.repetition.timeout_seconds
        try:
            done = self._transport.execute(words, timeout_seconds=limit)
        except VerifyError as error:
            raise never_ended(request) if error.code == "device-timeout" else error from error
        if done.returncode in NOT_STARTED:
            base = self._folder.path.rpartition("/")[0]
            besides = f"if {base} is mounted noexec, {other_folder(self.name)}"
            raise not_startable(self.name, last_lines(done.stderr), besides)
        with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-") as temporary:
            self._transport.pull(place, Path(temporary))
            report = text_of(Path(temporary) / REPORT) or done.stdout
            if request.outputs:
                copy_files(Path(temporary) / OUTPUTS, request.outputs)
        returncode = signalled(done.returncode)
        return read_output(dataclasses.replace(done, returncode=returncode, stdout=report), request)


class CooledDevice(RemoteDevice):
    """A remote device that may get hot: each run waits until it is cool, and is repeated when it throttled meanwhile.

    `heat` says why its times are marked as not meaningful, empty while they are not; `waited_seconds` is how long was
    waited for it to cool down, which is reported to `announce`, as long as it lasts.
    """

    def __init__(
        self,
        machine: RemoteMachine,
        announce: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = SLEEP,
    ) -> None:
        super().__init__(machine)
        self.waited_seconds = 0.0
        self._thermal = machine.thermal
        self._announce = announce
        self._sleep = sleep

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once, and again when the device began to throttle meanwhile."""
        output = super().run(request)
        for _ in range(REPETITIONS):
            if self.heat or not self._thermal().throttles:
                return output
            output = super().run(request)
        if not self.heat and (throttles := self._thermal().throttles):
            self._mark(throttles)
        return output

    def before_run(self) -> None:
        """Wait until the device is cool, or mark its times when that took too long."""
        if self.heat:
            return
        while (decision := decide(self._thermal(), self.waited_seconds)).action == "wait":
            left = LONGEST_WAIT_SECONDS - self.waited_seconds
            self._announce(f"{self.name} cools down, {left:.0f} seconds at most: {decision.reason}")
            self._sleep(decision.seconds)
            self.waited_seconds += decision.seconds
        if decision.action == "mark":
            self._mark(decision.reason)

    def _mark(self, reason: str) -> None:
        self.heat = reason
        self.time_meaningful = False


ANSWER_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Probes:
    """How machines of one kind are asked: scripts for all facts and for the heat alone, and readers of their answers.

    `keeps_time` says from the answer to `facts` whether times there say anything of a real machine; user emulation
    has none, and its memory is the emulator's, too.
    """

    facts: str
    read_facts: Callable[[str], HostFacts]
    heat: str
    read_heat: Callable[[str], Thermal]
    keeps_time: Callable[[str], bool]


def probed_machine(
    transport: Transport, probes: Probes, *, name: str, base: str, cores: tuple[int, ...]
) -> RemoteMachine:
    """Return a machine that answers these probes, ready to run on `cores` (all, when empty)."""
    check_pinning(lambda words, seconds: transport.execute(words, timeout_seconds=seconds), cores, name)

    def ask(script: str) -> str:
        return transport.execute(("sh", "-c", script), timeout_seconds=ANSWER_SECONDS).stdout

    answer = ask(probes.facts)
    emulated = probes.read_facts(answer).kind == "user-emulation"
    return RemoteMachine(
        name=name,
        transport=transport,
        base=base,
        describe=lambda: probes.read_facts(ask(probes.facts)),
        thermal=lambda: probes.read_heat(ask(probes.heat)),
        cores=cores,
        memory_meaningful=not emulated,
        time_meaningful=not emulated and probes.keeps_time(answer),
    )
