"""Counts the instructions of an inference on x86-64 or ARM64: the same number in every run and on every host.

usage: instructions.py [--target linux-x64|linux-arm64] [--operators] [--profile PROFILE] [SPEC]...

Each SPEC is a buildspec that was built for the target before, by default the demo: `invoke build -s SPEC -t TARGET`.
Prints the tables of `benchmarks/results/instructions.md`: each case with our library, and with the official wheel's at
its default settings; `--operators` has the first case of each model, by the classes of kernels. Takes ten seconds for
the demo, 35 minutes for all of `buildspecs/models` on x86-64.

No counter of the processor is needed: qemu's user emulation takes plugins, and `instructions.c` is one. That needs
`qemu-user` 7.2 to 8.2; `qemu-user-static` takes none. The emulated processors are one with AVX2 and FMA, without
AVX-512, and a cortex-a76; the C library is Debian's of one release, so that no host runs other code.
"""

import argparse
import re
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Final

from builds import Built, find_build
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from programs import compile_c, compile_runner, print_now

from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.base.tools import EMULATIONS, Emulation, Tool, require
from ortrim.binaries.link_map import read_link_map
from ortrim.buildspec.buildspec import as_the_official
from ortrim.devices.host import ENVIRONMENT
from ortrim.models.full_runtime import foreign_library
from ortrim.parity.runner import CaseRun, Repetition, RunRequest, read_output, runner_words
from ortrim.sources.root_file_systems import machine_parts

DEFAULT_SPECS: Final = (Path("buildspecs/silero-vad.toml"),)
X64_CPU: Final = "max,-erms"
"""All that qemu emulates, but for fast string instructions: glibc copies with them, and each byte counts as one."""
X64: Final = Emulation(
    machine="x86_64",
    debian="amd64",
    library_folders=("x86_64-linux-gnu", "x86_64-linux-musl"),
    loaders=("ld-linux-x86-64.so.2", "ld-musl-x86_64.so.1"),
    user=Tool(name="qemu-x86_64", package="qemu-user", minimum=(7, 2)),
    user_cpus=(X64_CPU,),
    defaults=(X64_CPU,),
    baselines=MappingProxyType({}),
)
ARM64: Final = replace(
    EMULATIONS["arm64"],
    user=Tool(name="qemu-aarch64", package="qemu-user", minimum=(7, 2)),
    user_cpus=("cortex-a76",),
)
MACHINES: Final[Mapping[str, Emulation]] = MappingProxyType({"linux-x64": X64, "linux-arm64": ARM64})
STRICT: Final = ("-Wall", "-Wextra", "-Werror")
REPETITION: Final = Repetition(runs=15, warmup=1, seconds=5, timeout_seconds=3600)
FOLLOWING: Final = replace(REPETITION, runs=1, warmup=0)
"""When calls are followed, which takes about twenty times as long as counting."""
COUNT: Final = "instructions "
FOLLOWED: Final = "function "
SLOTS: Final = frozenset({8, 1027})
"""R_X86_64_RELATIVE and R_AARCH64_RELATIVE: what fills a table with addresses as a library is loaded."""
COMPUTE: Final = re.compile(r"onnxruntime::((?:\w+::)*\w+)(?:<.*>)?::Compute\(onnxruntime::OpKernelContext\*\) const")
KERNEL: Final = "N11onnxruntime8OpKernelE"
ONE_BASE: Final = "__si_class_type_info"
SEVERAL_BASES: Final = "__vmi_class_type_info"
"""Forms of types in the C++ ABI of Itanium: their base, or how many there are and these, is after the name."""
NAMED: Final = re.compile(rb"N11onnxruntime[0-9][^\0]*\0")


def for_machine(machine: Emulation) -> tuple[str, ...]:
    """How programs to be counted are compiled: everywhere the same, with symbols, for the loader of its glibc."""
    linker = f"-Wl,--dynamic-linker=/lib/{machine.loaders[0]}"
    return ("-target", f"{machine.machine}-linux-gnu.2.28", linker)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """One inference: its instructions, and those that each of the followed functions took, by their numbers."""

    instructions: int
    functions: Mapping[int, int]


@dataclass(frozen=True, kw_only=True)
class Meter:
    """What runs a program and counts: the emulator's words, the plugin, and the runner."""

    emulator: tuple[str, ...]
    plugin: Path
    runner: Path

    def words(self, log: Path, *options: str) -> tuple[str, ...]:
        """Return what goes before a program's words, with the plugin's options."""
        return (*self.emulator, "-plugin", ",".join((str(self.plugin), *options)), "-d", "plugin", "-D", str(log))


def make_meter(machine: Emulation, folder: Path, headers: Path | None = None) -> Meter:
    """Compile the plugin and, with a library's headers, the runner. Raises as compiling and `require` do."""
    plugin, runner = folder / "count.so", folder / "runner"
    compile_c(*STRICT, "-shared", "-fPIC", Path(__file__).with_suffix(".c"), "-o", plugin)
    if headers:
        compile_runner(headers, runner, *STRICT, *for_machine(machine))
    emulator = (str(require(machine.user).path), "-L", str(machine_parts(machine).root), "-cpu", *machine.user_cpus)
    return Meter(emulator=emulator, plugin=plugin, runner=runner)


def measure(meter: Meter, request: RunRequest, addresses: Iterable[int] = ()) -> dict[str, Counted]:
    """Return what an inference of each case takes, and in the functions of its library that begin at `addresses`.

    Raises `VerifyError` when the run fails.
    """
    repetition = FOLLOWING if addresses else REPETITION
    wanted = replace(request, runner=meter.runner, repetition=repetition)
    with tempfile.TemporaryDirectory(prefix="ortrim-instructions-") as name:
        log, functions = Path(name) / "log", Path(name) / "functions"
        functions.write_text("".join(f"{address:x}\n" for address in sorted(addresses)), encoding="utf-8")
        options = (f"library={request.library.resolve()}", f"functions={functions}") if addresses else ()
        words = (*meter.words(log, *options), *runner_words(wanted))
        done = run(words, cwd=Path(name), environment=ENVIRONMENT, timeout_seconds=repetition.timeout_seconds)
        cases = read_output(done, wanted).cases
        return by_case(differences(log.read_text(encoding="utf-8").splitlines()), cases, 1 + repetition.warmup)


def count(meter: Meter, request: RunRequest) -> dict[str, int]:
    """Return how many instructions one inference of each case takes. Raises `VerifyError` when the run fails."""
    return {case: counted.instructions for case, counted in measure(meter, request).items()}


def differences(lines: Iterable[str]) -> Iterator[Counted]:
    """Yield what was executed between the runner's two questions of each run, from the plugin's lines."""
    asked, functions = list[Counted](), Counter[int]()
    for line in lines:
        if line.startswith(FOLLOWED):
            number, executed = map(int, line.removeprefix(FOLLOWED).split())
            functions[number] = executed
        elif line.startswith(COUNT):
            asked.append(Counted(instructions=int(line.removeprefix(COUNT)), functions=Counter(functions)))
    for before, after in zip(asked[::2], asked[1::2], strict=True):
        taken = Counter(after.functions) - Counter(before.functions)
        yield Counted(instructions=after.instructions - before.instructions, functions=taken)


def by_case(taken: Iterator[Counted], cases: Sequence[CaseRun], before: int) -> dict[str, Counted]:
    """Return the median of each case's runs, which differ by a part in a thousand, as the heap's state does.

    `before` are runs that do not count: a case's first, which allocates what later ones have, and those to warm up.
    """
    return {case.name: middle(list(islice(taken, before + case.runs))[before:]) for case in cases}


def middle(runs: Sequence[Counted]) -> Counted:
    """Return the medians; of functions those of the last run."""
    return replace(runs[-1], instructions=int(median(each.instructions for each in runs)))


def own_kernels(link_map: Path) -> dict[int, str]:
    """Return the classes of kernels by where their `Compute` begins in a library of ours."""
    symbols = (symbol for output in read_link_map(link_map) for each in output.inputs for symbol in each.symbols)
    found = ((symbol.address, COMPUTE.fullmatch(symbol.name)) for symbol in symbols)
    return {address: match[1] for address, match in found if match}


def official_kernels(library: Path) -> dict[int, str]:
    """Return the same of a library without symbols, by the names of types that its tables of functions lead to."""
    data = library.read_bytes()
    with library.open("rb") as file:
        elf = ELFFile(file)
        sections = {section.name: section for section in elf.iter_sections()}
        texts, entries = sections[".rodata"], tuple(struct.iter_unpack("<QQq", sections[".rela.dyn"].data()))
        tables = sections[".data.rel.ro"]["sh_offset"] - sections[".data.rel.ro"]["sh_addr"]
        first, last, offset = texts["sh_addr"], texts["sh_addr"] + texts["sh_size"], texts["sh_offset"]
        slots = {place: address for place, kind, address in entries if kind & 0xFFFFFFFF in SLOTS}
        symbols = sections[".dynsym"]
        assert isinstance(symbols, SymbolTableSection)
        names = [symbol.name for symbol in symbols.iter_symbols()]
        forms = {place: names[kind >> 32] for place, kind, _ in entries if kind >> 32}
    found = ((slot, NAMED.match(data, at - first + offset)) for slot, at in slots.items() if first <= at < last)
    types = {slot - 8: match[0][:-1].decode() for slot, match in found if match}

    def bases(kind: int) -> Iterator[int]:
        """Yield the classes of ONNX Runtime that a type derives from."""
        form = forms.get(kind, "")
        count = struct.unpack_from("<I", data, kind + 20 + tables)[0] if SEVERAL_BASES in form else 0
        places = (kind + 16,) if ONE_BASE in form else range(kind + 24, kind + 24 + 16 * count, 16)
        yield from (slots[place] for place in places if slots.get(place) in types)

    def is_kernel(kind: int) -> bool:
        return types[kind] == KERNEL or any(map(is_kernel, bases(kind)))

    kernels = ((slot, kind) for slot, kind in slots.items() if kind in types and slot + 24 in slots)
    classes = ((slots[slot + 24], class_of(types[kind])) for slot, kind in kernels if is_kernel(kind))
    return dict(sorted(classes, key=lambda each: len(each[1]), reverse=True))  # of classes with the same code the base


def class_of(mangled: str) -> str:
    """Return the name of a class within `onnxruntime`, without the arguments of templates."""
    names, rest = list[str](), mangled.removeprefix("N")
    while found := re.match(r"\d+", rest):
        end = found.end() + int(found[0])
        names.append(rest[found.end() : end])
        rest = rest[end:]
    return "::".join(names[1:])


def requests_of(built: Built) -> Iterator[tuple[RunRequest, RunRequest]]:
    """Yield what runs each model: our library as its package says, and the wheel's with its own settings."""
    planned, models = built.planned, built.planned.models
    (target,) = planned.plan.targets
    architecture, version = target.job.target.architecture.value, models.runtime.version
    foreign = architecture != "x64"
    requirements = models.pins.converter_requirements
    official = foreign_library(version, requirements, architecture) if foreign else models.runtime.library
    assert official is not None, "there is an official wheel for both machines"
    for prepared, converted, cases, plan in zip(
        models.prepared, models.converted, planned.cases, planned.plan.models, strict=True
    ):
        settings = replace(plan.session, providers=target.job.provider_names)
        ours = RunRequest(
            runner=built.runner, library=built.library, model=converted.path, cases=cases, session=settings
        )
        session = as_the_official(plan.session)
        yield ours, replace(ours, library=official, model=prepared.path, session=session)


def print_operators(name: str, meter: Meter, ours: RunRequest, wheel: RunRequest, link_map: Path) -> None:
    """Print a table of the first case of a model: what each class of kernels takes in both libraries."""
    taken = []
    for request, kernels in ((ours, own_kernels(link_map)), (wheel, official_kernels(wheel.library))):
        case = request.cases[0].name
        counted = measure(meter, replace(request, cases=request.cases[:1]), kernels)[case]
        names = [kernels[address] for address in sorted(kernels)]
        classes = Counter[str]()
        for number, instructions in counted.functions.items():
            classes[names[number]] += instructions
        classes["outside of kernels"] = counted.instructions - classes.total()
        taken.append(classes)
    mine, theirs = taken
    print_now(f"\n| {name}, {ours.cases[0].name} | ours | the wheel's |\n|---|---:|---:|")
    for kernel, _ in (mine | theirs).most_common():
        print_now(f"| {kernel} | {mine[kernel]:,} | {theirs[kernel]:,} |")
    print_now(f"| together | {mine.total():,} | {theirs.total():,} |")


def main(words: Sequence[str]) -> None:
    """Print the tables, each model's lines when they are known. Raises as finding, planning and counting do."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", choices=MACHINES, default="linux-x64")
    parser.add_argument("--profile")
    parser.add_argument("--operators", action="store_true")
    parser.add_argument("specs", nargs="*", type=Path, default=DEFAULT_SPECS)
    asked = parser.parse_args(words)
    if not asked.operators:
        print_now("| model | case | ours | the wheel's | ratio | bytes |\n|---|---|---:|---:|---:|---:|")
    for spec in asked.specs:
        built = find_build(spec, Console(stdout=sys.stderr), asked.target, asked.profile)
        models = [model.name for model in built.planned.models.prepared]
        with tempfile.TemporaryDirectory(prefix="ortrim-instructions-") as folder:
            meter = make_meter(MACHINES[asked.target], Path(folder), built.headers)
            for model, (ours, wheel) in zip(models, requests_of(built), strict=True):
                name = spec.stem if len(models) == 1 else f"{spec.stem}, {model}"
                if asked.operators:
                    print_operators(name, meter, ours, wheel, built.link_map)
                    continue
                counts = zip(count(meter, ours).items(), count(meter, wheel).values(), strict=True)
                size = built.library.stat().st_size
                for (case, mine), theirs in counts:
                    print_now(f"| {name} | {case} | {mine:,} | {theirs:,} | {mine / theirs:.3f} | {size:,} |")


if __name__ == "__main__":
    main(sys.argv[1:])
