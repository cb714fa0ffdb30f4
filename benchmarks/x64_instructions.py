"""Counts the instructions of an inference on x86-64: the same number in every run and on every host.

usage: x64_instructions.py [SPEC]...

Each SPEC is a buildspec that was built for this machine before, by default the demo: `invoke build -s SPEC`. Prints the
table of `benchmarks/results/instructions.md`: each case with our library, and with the official wheel's at its default
settings. Takes ten seconds for the demo, 35 minutes for all of `buildspecs/models`.

No counter of the processor is needed: qemu's user emulation takes plugins, and `x64_instructions.c` is one. That needs
`qemu-user` 7.2 to 8.2; `qemu-user-static` takes none. The emulated processor has AVX2 and FMA, no AVX-512, and the C
library is Debian's of one release, so that no host runs other code.
"""

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Final

from builds import Built, find_build
from programs import compile_c, compile_runner, print_now

from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.base.tools import Emulation, Tool, require
from ortrim.buildspec.buildspec import as_the_official
from ortrim.devices.host import ENVIRONMENT
from ortrim.parity.runner import CaseRun, Repetition, RunRequest, read_output, runner_words
from ortrim.sources.root_file_systems import machine_parts

DEFAULT_SPECS: Final = (Path("buildspecs/silero-vad.toml"),)
CPU: Final = "max,-erms"
"""All that qemu emulates, but for fast string instructions: glibc copies with them, and each byte counts as one."""
LOADER: Final = "ld-linux-x86-64.so.2"
MACHINE: Final = Emulation(
    machine="x86_64",
    debian="amd64",
    library_folders=("x86_64-linux-gnu", "x86_64-linux-musl"),
    loaders=(LOADER, "ld-musl-x86_64.so.1"),
    user=Tool(name="qemu-x86_64", package="qemu-user", minimum=(7, 2)),
    user_cpus=(CPU,),
    defaults=(CPU,),
    baselines=MappingProxyType({}),
)
STRICT: Final = ("-Wall", "-Wextra", "-Werror")
FOR_MACHINE: Final = ("-target", "x86_64-linux-gnu.2.28", f"-Wl,--dynamic-linker=/lib/{LOADER}")
"""How programs to be counted are compiled: the same everywhere, with symbols, for the loader of the machine's glibc."""
REPETITION: Final = Repetition(runs=15, warmup=1, seconds=5, timeout_seconds=3600)
BEFORE: Final = 1 + REPETITION.warmup
"""Runs of a case before those that count: its first, which allocates what later ones have, and those to warm up."""
COUNT: Final = "instructions "


@dataclass(frozen=True, kw_only=True)
class Counter:
    """What runs a program and counts: the emulator's words with the plugin, and the runner."""

    emulator: tuple[str, ...]
    runner: Path


def make_emulator(folder: Path) -> tuple[str, ...]:
    """Compile the plugin and return what goes before a program's words, its log's name apart."""
    emulator, root = require(MACHINE.user).path, machine_parts(MACHINE).root
    compile_c(*STRICT, "-shared", "-fPIC", Path(__file__).with_suffix(".c"), "-o", folder / "count.so")
    return (str(emulator), "-L", str(root), "-cpu", CPU, "-plugin", str(folder / "count.so"), "-d", "plugin", "-D")


def make_counter(headers: Path, folder: Path) -> Counter:
    """Compile the plugin, and the runner with a library's headers. Raises as `make_emulator` does."""
    runner = compile_runner(headers, folder / "runner", *STRICT, *FOR_MACHINE)
    return Counter(emulator=make_emulator(folder), runner=runner)


def count(counter: Counter, request: RunRequest) -> dict[str, int]:
    """Return how many instructions one inference of each case takes. Raises `VerifyError` when the run fails."""
    wanted = replace(request, runner=counter.runner, repetition=REPETITION)
    with tempfile.TemporaryDirectory(prefix="ortrim-instructions-") as name:
        log = Path(name) / "log"
        words = (*counter.emulator, str(log), *runner_words(wanted))
        done = run(words, cwd=Path(name), environment=ENVIRONMENT, timeout_seconds=REPETITION.timeout_seconds)
        cases = read_output(done, wanted).cases
        return by_case(differences(log.read_text(encoding="utf-8").splitlines()), cases)


def differences(lines: Iterable[str]) -> Iterator[int]:
    """Yield what was executed between the runner's two questions of each run, from the plugin's lines."""
    counts = [int(line.removeprefix(COUNT)) for line in lines if line.startswith(COUNT)]
    for before, after in zip(counts[::2], counts[1::2], strict=True):
        yield after - before


def by_case(taken: Iterator[int], cases: Sequence[CaseRun]) -> dict[str, int]:
    """Return the median of each case's runs, which differ by a part in a thousand, as the heap's state does."""
    return {case.name: int(median(list(islice(taken, BEFORE + case.runs))[BEFORE:])) for case in cases}


def requests_of(built: Built) -> Iterator[tuple[RunRequest, RunRequest]]:
    """Yield what runs each model: our library as its package says, and the wheel's with its own settings."""
    models, planned = built.planned.models, built.planned.plan.models
    for prepared, converted, cases, plan in zip(
        models.prepared, models.converted, built.planned.cases, planned, strict=True
    ):
        ours = RunRequest(
            runner=built.runner, library=built.library, model=converted.path, cases=cases, session=plan.session
        )
        session = as_the_official(plan.session)
        yield ours, replace(ours, library=models.runtime.library, model=prepared.path, session=session)


def main(specs: Sequence[Path]) -> None:
    """Print the table, each model's lines when they are known. Raises as finding, planning and counting do."""
    print_now("| model | case | ours | the wheel's | ratio |\n|---|---|---:|---:|---:|")
    for spec in specs:
        built = find_build(spec, Console(stdout=sys.stderr))
        models = [model.name for model in built.planned.models.prepared]
        with tempfile.TemporaryDirectory(prefix="ortrim-instructions-") as folder:
            counter = make_counter(built.headers, Path(folder))
            for model, (ours, wheel) in zip(models, requests_of(built), strict=True):
                name = spec.stem if len(models) == 1 else f"{spec.stem}, {model}"
                counts = zip(count(counter, ours).items(), count(counter, wheel).values(), strict=True)
                for (case, mine), theirs in counts:
                    print_now(f"| {name} | {case} | {mine:,} | {theirs:,} | {mine / theirs:.3f} |")


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]] or DEFAULT_SPECS)
