"""Stand-ins for machines and for the runner, for tests of devices that need neither a phone nor an emulator."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from ortrim.base.command import Completed, run
from ortrim.errors import ToolError, VerifyError
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import Repetition, RunRequest
from program_files import write_program

REPORT = (
    '{"schema":"ortrim-runner/1","status":"ok","runtime_version":"1.21.0","open_ms":1,"load_ms":2,'
    '"cases":[{"name":"only","first_run_ms":3,"outputs":[],"runs":1,"input_ms":[0.1],"inference_ms":[1.5],'
    '"output_ms":[0.1]}],"memory":{"opened_rss_bytes":1,"loaded_rss_bytes":2,"peak_rss_bytes":3,'
    '"inference_peak_rss_bytes":null,"peak_source":"VmHWM"}}'
)
HEAD = """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    --outputs) outputs=$2;; --json) json=$2;; --library) library=$2;; --model) model=$2;; --case) case=$2;;
  esac
  shift
done
"""
GOOD = f"""[ "$outputs" ] && mkdir "$outputs/only" && cp "${{case#only=}}/input_000.npy" "$outputs/only/output_000.npy"
report='{REPORT}'
if [ "$json" ]; then echo "$report" >"$json"; else echo "$report"; fi
"""
"""A runner whose one output is its input, and which checks nothing."""
MACHINE = HostFacts(system="Linux", machine="aarch64", cpu="Cortex-A53", cores=4, memory_bytes=10**9, thermal_after=0)


def sample_request(folder: Path, script: str = GOOD, *, seconds: float = 20.0) -> RunRequest:
    for name in ("case", "model"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "case" / "input_000.npy").write_bytes(b"the input")
    (folder / "model" / "tiny.ort").write_bytes(b"the model")
    (folder / "libonnxruntime.so").write_bytes(b"the library")
    write_program(folder / "runner", HEAD + script)
    return RunRequest(
        runner=folder / "runner",
        library=folder / "libonnxruntime.so",
        model=folder / "model" / "tiny.ort",
        cases=(Case(name="only", folder=folder / "case", digest="d"),),
        repetition=Repetition(runs=1, warmup=0, timeout_seconds=seconds),
    )


class LocalTransport:
    """A machine that is a folder of this one; counts what is pushed and notes what is run."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, ...]] = []
        self.pushed: list[str] = []

    def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
        """Run a command here; a signal that ends it becomes a shell's exit code."""
        self.commands.append(tuple(words))
        try:
            done = run(words, timeout_seconds=timeout_seconds)
        except ToolError as error:
            if error.code != "tool-timeout":
                return Completed(argv=tuple(words), returncode=127, stdout="", stderr=error.why)
            raise VerifyError("device-timeout", "did not end in time", where="local") from error
        code = 128 - done.returncode if done.returncode < 0 else done.returncode
        return Completed(argv=done.argv, returncode=code, stdout=done.stdout, stderr=done.stderr)

    def push(self, files: Mapping[str, Path], folder: str) -> None:
        for name, path in files.items():
            target = Path(folder) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            self.pushed.append(name)

    def pull(self, folder: str, destination: Path) -> None:
        shutil.copytree(folder, destination, dirs_exist_ok=True, symlinks=True)
