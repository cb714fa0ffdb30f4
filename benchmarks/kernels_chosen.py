"""Which kernels, MLAS's and ortrim's, a library executes on which processor: each model once under qemu, which tells.

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
from pathlib import Path
from typing import Final

from builds import Built, find_build
from executed_code import Executed, code_symbols, read_executed, traced
from records import table_of

from ortrim.base.console import Console
from ortrim.base.tools import EMULATIONS, require
from ortrim.binaries.link_map import MapSymbol
from ortrim.parity.runner import Repetition, RunRequest, runner_words
from ortrim.sources.root_file_systems import machine_parts

DEFAULT_SPEC: Final = Path(__file__).with_name("kernels.toml")
TARGET: Final = "linux-arm64"
CPUS: Final = ("cortex-a53", "cortex-a76")
ONCE: Final = Repetition(runs=1, warmup=0)
KERNEL: Final = re.compile(
    r"\bMlas(?!\w*Get)\w*Kernel\w*(?:<\w+>)?|\bConvolveTiles<\d>|\b(?:Blocked|Depthwise|Plane)\w*::Compute|\bMultiplyRows"
)
"""How MLAS calls what does the work, and ortrim its own; the rest packs, divides and dispatches."""

Chosen = Mapping[str, Mapping[str, Executed]]


def chosen(built: Built, scratch: Path) -> Chosen:
    """Run each model on each processor, with all its cases; its outputs stay in `scratch/<model>-<cpu>/<case>`."""
    emulation = EMULATIONS["arm64"]
    emulator = (str(require(emulation.user).path), "-L", str(machine_parts(emulation).root), "-cpu")
    found: dict[str, dict[str, Executed]] = {}
    for number, model in enumerate(built.planned.models.prepared):
        for cpu in CPUS:
            log, outputs = scratch / "log", scratch / f"{model.name}-{cpu}"
            outputs.mkdir()
            request = RunRequest(
                runner=built.runner,
                library=built.library,
                model=built.planned.models.converted[number].path,
                cases=built.planned.cases[number],
                outputs=outputs,
                repetition=ONCE,
            )
            traced((*emulator, cpu), runner_words(request), log)
            with log.open(errors="replace") as lines:
                found.setdefault(model.name, {})[cpu] = read_executed(lines, built.library)
            log.unlink()
    return found


def kernels(executed: Executed, symbols: Sequence[MapSymbol]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name, count in executed.functions(symbols).items():
        if found := KERNEL.search(name):
            counts[found[0]] = counts.get(found[0], 0) + count
    return counts


def table(found: Chosen, symbols: Sequence[MapSymbol]) -> str:
    shown = []
    for model, by_cpu in found.items():
        counts = [kernels(by_cpu[cpu], symbols) for cpu in CPUS]
        rows = {f"`{name}`": [each.get(name, 0) for each in counts] for name in sorted(set().union(*counts))}
        rows["dot-product instructions"] = [by_cpu[cpu].dot_products for cpu in CPUS]
        shown += [(model, name, *(str(count or "not run") for count in row)) for name, row in rows.items()]
    return table_of(("model", "kernel", *CPUS), shown, texts=2).markdown()


def main(words: list[str]) -> None:
    spec = Path(words[0]) if words else DEFAULT_SPEC
    built = find_build(spec, Console(), TARGET)
    with tempfile.TemporaryDirectory(prefix="ortrim-kernels-") as folder:
        sys.stdout.write(table(chosen(built, Path(folder)), code_symbols(built.link_map)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
