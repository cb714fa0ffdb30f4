"""Which kernels of MLAS a library executes on which processor: each model once under qemu, which tells.

usage: kernels_chosen.py [SPEC]

SPEC is a buildspec that was built for linux-arm64 here, by default `benchmarks/kernels.toml`:
`invoke build -s benchmarks/kernels.toml -t linux-arm64`. Prints the table of
`benchmarks/results/kernels.md`: for each model and kernel, how many different instructions of it were executed.
Takes half a minute.
"""

import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from executed_code import Executed, code_symbols, read_executed, traced

from ortrim.base.console import Console
from ortrim.base.tools import EMULATIONS, require
from ortrim.binaries.link_map import MapSymbol
from ortrim.cli.options import request_from
from ortrim.compiling.root_file_systems import machine_parts
from ortrim.compiling.workspace import finished_build, result_of
from ortrim.parity.runner import Repetition, RunRequest, runner_words
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import Planned, planned_for

DEFAULT_SPEC: Final = Path(__file__).with_name("kernels.toml")
TARGET: Final = "linux-arm64"
CPUS: Final = ("cortex-a53", "cortex-a76")
ONCE: Final = Repetition(runs=1, warmup=0)
KERNEL: Final = re.compile(r"\bMlas(?!\w*Get)\w*Kernel\w*(?:<\w+>)?")
"""How MLAS calls what does the work; the rest of it packs, divides and dispatches."""

Chosen = Mapping[str, Mapping[str, Executed]]


@dataclass(frozen=True, kw_only=True)
class Built:
    """A finished build for ARM64: its library with the functions in it, its models and cases, and a runner."""

    planned: Planned
    library: Path
    symbols: tuple[MapSymbol, ...]
    runner: Path


def find_build(spec: Path, scratch: Path) -> Built | None:
    """Return a build that was made here before, None when there is none. Raises diagnostics of planning."""
    console = Console()
    request = request_from(str(spec), target=TARGET, output=str(scratch))
    planned = planned_for(request, console)
    (target,) = planned.plan.targets
    folder = finished_build(target.job)
    if not folder.is_dir():
        return None
    with console.step("compile the runner") as step:
        runner = executor_for(planned, target, request, step).run_runner(target.runner)
    result = result_of(folder)
    assert result.link_map is not None
    return Built(planned=planned, library=result.library, symbols=code_symbols(result.link_map), runner=runner)


def chosen(built: Built, scratch: Path) -> Chosen:
    """Run each model on each processor, with all its cases; its outputs stay in `scratch/<model>-<cpu>/<case>`."""
    found: dict[str, dict[str, Executed]] = {}
    for number, model in enumerate(built.planned.models.prepared):
        for cpu in CPUS:
            log, outputs = scratch / "log", scratch / f"{model.name}-{cpu}"
            outputs.mkdir()
            traced(_emulator(cpu), runner_words(_request(built, number, outputs)), log)
            with log.open(errors="replace") as lines:
                found.setdefault(model.name, {})[cpu] = read_executed(lines, built.library)
            log.unlink()
    return found


def _emulator(cpu: str) -> tuple[str, ...]:
    emulation = EMULATIONS["arm64"]
    return (str(require(emulation.user).path), "-L", str(machine_parts(emulation).root), "-cpu", cpu)


def _request(built: Built, number: int, outputs: Path) -> RunRequest:
    return RunRequest(
        runner=built.runner,
        library=built.library,
        model=built.planned.models.converted[number].path,
        cases=built.planned.cases[number],
        outputs=outputs,
        repetition=ONCE,
    )


def kernels(executed: Executed, symbols: Sequence[MapSymbol]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name, count in executed.functions(symbols).items():
        if found := KERNEL.search(name):
            counts[found[0]] = counts.get(found[0], 0) + count
    return counts


def table(found: Chosen, symbols: Sequence[MapSymbol]) -> str:
    lines = [f"| model | kernel | {' | '.join(CPUS)} |", f"|---|---|{'---|' * len(CPUS)}"]
    for model, by_cpu in found.items():
        counts = [kernels(by_cpu[cpu], symbols) for cpu in CPUS]
        rows = {f"`{name}`": [each.get(name, 0) for each in counts] for name in sorted(set().union(*counts))}
        rows["dot-product instructions"] = [by_cpu[cpu].dot_products for cpu in CPUS]
        lines += [f"| {model} | {name} | {' | '.join(map(_shown, row))} |" for name, row in rows.items()]
    return "\n".join(lines)


def _shown(count: int) -> str:
    return str(count) if count else "not run"


def main(words: list[str]) -> None:
    spec = Path(words[0]) if words else DEFAULT_SPEC
    with tempfile.TemporaryDirectory(prefix="ortrim-kernels-") as name:
        built = find_build(spec, Path(name) / "artifacts")
        if built is None:
            sys.exit(f"it was not built here: invoke build -s {spec} -t {TARGET}")
        sys.stdout.write(table(chosen(built, Path(name)), built.symbols) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
