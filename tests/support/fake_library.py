"""A made-up ONNX Runtime of eleven units for the native executor: its build.py compiles by copying real objects."""

import json
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from ortrim.binaries.objects import read_object
from ortrim.compiling.translation_units import ObjectSymbols, UnitIndex, Variant, make_index
from unit_samples import ADD, GEMM, INTERFACE, PROVIDER, SESSION, SGEMM, UNUSED
from workshop import Workshop

OBJECTS = Path(__file__).parents[1] / "unit" / "compiling" / "data" / "objects"
BROADCAST = "${sources}/onnxruntime/onnxruntime/core/providers/cpu/broadcast.cc"
PLATFORM = "${sources}/onnxruntime/onnxruntime/core/mlas/lib/platform.cpp"
CPUID = "${sources}/onnxruntime/onnxruntime/core/common/cpuid_info.cc"
LOG = "${sources}/onnxruntime/onnxruntime/core/common/logging.cc"
UNITS = {
    INTERFACE: "interface", SESSION: "session", PROVIDER: "provider", ADD: "add", GEMM: "gemm", SGEMM: "sgemm",
    BROADCAST: "broadcast", PLATFORM: "platform", CPUID: "cpuid", LOG: "log", UNUSED: "unused",
}  # fmt: skip
REDUCED = "provider-add"
"""What the registrations are compiled to when the operator configuration has no Gemm."""
ONLY_ADD, ONLY_GEMM = "ai.onnx;14;Add\n", "ai.onnx;13;Gemm\n"
EVERYTHING = "!no_ops_specified_means_all_ops_are_required\n"
FOR_ADD = (ADD, BROADCAST, CPUID, INTERFACE, LOG, PLATFORM, PROVIDER, SESSION)

SYMBOLS = {path.stem: read_object(path) for path in sorted(OBJECTS.glob("*.o"))}
DEFINED = sorted(frozenset[str]().union(*(defined for defined, _ in SYMBOLS.values())))
FACTS = json.dumps({
    "objects": str(OBJECTS),
    "units": UNITS,
    "reduced": REDUCED,
    "symbols": {name: [sorted(defined), sorted(undefined)] for name, (defined, undefined) in SYMBOLS.items()},
    "defined": DEFINED,
})  # fmt: skip

COMMON = f"""
FACTS = json.loads({FACTS!r})
def argument(name):
    return next(word.partition("=")[2] for word in sys.argv if word.startswith(name + "="))
def place(unit):
    # Upstream compiles a reduced copy of the registrations.
    unit = unit.replace("${{sources}}", SOURCES).replace("${{build}}", str(build))
    if unit.endswith("cpu_execution_provider.cc"):
        unit = unit.replace(SOURCES + "/onnxruntime", str(configured / "op_reduction.generated"))
    return unit
def chosen():
    text = pathlib.Path(argument("ORTRIM_SELECTION")).read_text().partition("set(ORTRIM_CUT_UNITS")[0]
    omitted = re.findall(r"\\[==\\[(.*)\\]==\\]", text)
    everything = {{place(unit): stem for unit, stem in FACTS["units"].items()}}
    return {{file: stem for file, stem in everything.items() if file not in omitted}}
"""
UPDATE = """
entries = [{"file": file, "output": f"CMakeFiles/lib.dir/{stem}.o"} for file, stem in chosen().items()]
entries += [
    {"file": "CMakeFiles/Experimental", "output": "Experimental"},
    {"file": SOURCES + "/protobuf/main.cc", "output": "CMakeFiles/protoc.dir/main.o"},
    {"file": "/usr/share/cmake/check.c", "output": "CMakeFiles/lib.dir/add.o"},
    {"file": "libonnxruntime.a", "output": "libonnxruntime.so.1.21.0"},
]
compdb = [{"directory": str(configured), "command": "cc", **entry} for entry in entries]
(configured / "compdb.json").write_text(json.dumps(compdb))
"""
BUILD = """
config = pathlib.Path(sys.argv[sys.argv.index("--include_ops_by_config") + 1]).read_text()
linked = []
(configured / "CMakeFiles" / "lib.dir").mkdir(parents=True, exist_ok=True)
for number, stem in enumerate(chosen().values(), 1):
    reduced = stem == "provider" and "Add" in config and "Gemm" not in config
    compiled = FACTS["reduced"] if reduced else stem
    shutil.copyfile(f"{FACTS['objects']}/{compiled}.o", configured / "CMakeFiles" / "lib.dir" / f"{stem}.o")
    print(f"[{number}/{len(chosen())}] Building CXX object CMakeFiles/lib.dir/{stem}.o")
    linked.append(FACTS["symbols"][compiled])
there = {name for defined, undefined in linked for name in defined}
missing = sorted({name for defined, undefined in linked for name in undefined} & set(FACTS["defined"]) - there)
for name in missing:
    print(f"ld.lld: error: undefined symbol: {name}")
if missing:
    sys.exit(1)
(build / OUTPUTS[0]).write_bytes(LIBRARY_BYTES)
leave(OUTPUTS[1])
"""
NINJA = '[ "$*" = "-t compdb" ] && cat compdb.json'


def write_library(workshop: Workshop, *, before_linking: str = "", library: bytes = b"library") -> None:
    common = f"{COMMON}\nSOURCES = {str(workshop.sources)!r}\nLIBRARY_BYTES = {library!r}\n"
    workshop.write(f"{common}{before_linking}\n{BUILD}", update=f"{common}{UPDATE}")
    workshop.tool("ninja", NINJA)
    for unit in UNITS:
        source = Path(unit.replace("${sources}", str(workshop.sources)))
        if unit != INTERFACE and not source.exists():
            source.parent.mkdir(parents=True, exist_ok=True)
            source.touch()


def objects_of(forgotten: Collection[tuple[str, str]] = ()) -> tuple[ObjectSymbols, ...]:
    return tuple(
        ObjectSymbols(
            unit=unit,
            defined=SYMBOLS[stem][0],
            undefined=frozenset(name for name in SYMBOLS[stem][1] if (unit, name) not in forgotten),
        )
        for unit, stem in UNITS.items()
    )


def index_of(variant: Variant, forgotten: Collection[tuple[str, str]] = ()) -> UnitIndex:
    return make_index(variant, objects_of(forgotten), [INTERFACE])


def without(index: UnitIndex, symbols: Iterable[str]) -> UnitIndex:
    gone = frozenset(symbols)
    units = (replace(unit, provides=tuple(name for name in unit.provides if name not in gone)) for unit in index.units)
    return replace(index, units=tuple(units))


def compiled(workshop: Workshop) -> list[str]:
    """Return the units that the last call of build.py compiled."""
    last = workshop.log.read_text().rpartition("[1/")[2]
    stems = {line.rpartition("/")[2].removesuffix(".o") for line in last.splitlines() if "Building" in line}
    return sorted(unit for unit, stem in UNITS.items() if stem in stems)
