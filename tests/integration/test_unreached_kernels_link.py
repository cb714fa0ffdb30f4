"""Leaving unreached kernels out, with the real linker, on sources in MLAS's manner in an awkward folder."""

import ctypes
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pytest

from kernel_tables import SOURCES
from ortrim.base.command import run
from ortrim.base.files import shipped_folder, write_if_changed
from ortrim.base.scripts import packages_folder
from ortrim.binaries.macho.symbols import defined_symbols
from ortrim.binaries.objects import archive_members, visible_symbols
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.dead_kernels import KernelTable
from ortrim.compiling.executor import write_static_library
from ortrim.compiling.plan import BuildJob, Toolchain
from ortrim.compiling.relink import MLAS, leave_out_unreached, mlas_texts, read_script, table_of
from ortrim.compiling.upstream import CompileOutcome
from ortrim.compiling.workspace import DYLIB, BuildInputs, JobPaths, job_environment, prepare_workspace
from ortrim.pins.shipped import tool_requirements
from ortrim.platforms import APPLE
from ortrim.platforms.apple.arguments import zig_apple_toolchain
from own_caches import zig_of_tests
from sample_plans import sample_plan

pytestmark = pytest.mark.network

ALL: Final = frozenset({
    "FloatKernelSse", "FloatKernelAvx", "QuantDispatchAvx2", "QuantDispatchDefault", "PoolKernel", "ExpKernel",
    "CastKernel", "FourBitKernel", "FilledDispatch", "HalfDispatch", "_Z9DepthwiseIahEiPKT_", "_Z14ChosenDispatchi",
})  # fmt: skip
NINJA: Final = """\
rule cxx
  command = "$wrappers/c++" -O1 -fPIC -ffunction-sections -fdata-sections -MD -MF $out.d -c "$source" -o $out
  depfile = $out.d
rule ar
  command = "$wrappers/ar" rcs $out $in
rule link
  command = "$wrappers/c++" -shared -DORTRIM_PAST_DRIVER -Wl,-z,noexecstack -Wl,--icf=all -Wl,--print-map $
    -Wl,--gc-sections -Wl,-T,../../hooks/unreached.ld -Wl,--version-script=exports.map $in -o $out
"""

MACH_O: Final = (
    NINJA.partition("rule link")[0].replace("-fPIC", "-fvisibility=hidden -fno-threadsafe-statics")
    + 'rule link\n  command = "$wrappers/c++" -Os -dynamiclib -nostdlib++ -Wl,-dead_strip $in -o $out\n'
)


def job_of(*names: str, cpu: str = "") -> BuildJob:
    """Return a job for a library that exports some functions, for a processor and better ones."""
    return replace(sample_plan().targets[0].job, operator_config=" ".join(names), cpu=cpu)


@dataclass(kw_only=True)
class Tree:
    """A build tree of the sources; `exported` are the functions that a library is made for."""

    paths: JobPaths
    environment: dict[str, str]
    notes: list[str] = field(default_factory=list)
    links: int = 0
    target: str = ""

    @property
    def library(self) -> Path:
        return self.paths.configured / "library.so"

    def export(self, *names: str) -> None:
        declared = "".join(f'extern "C" int {name}(int);\n' for name in names)
        shown = f'{declared}__attribute__((visibility("default"))) extern int (*const asked[])(int);\n'
        write_if_changed(
            self.paths.configured / "asked.cc", f"{shown}int (*const asked[])(int) = {{{', '.join(names)}}};\n"
        )
        text = f"{{ global: {' '.join(f'{name};' for name in names)} local: *; }};\n"
        write_if_changed(self.paths.configured / "exports.map", text)

    def link(self) -> CompileOutcome:
        self.links += 1
        done = run((self.paths.tools / "bin" / "ninja",), cwd=self.paths.configured, environment=self.environment)
        return CompileOutcome(code=done.returncode, lines=(*done.stdout.splitlines(), *done.stderr.splitlines()))

    def make(self, *names: str, cpu: str = "") -> frozenset[str]:
        """Make a library for these functions and a processor, and return what was left out of it."""
        self.export(*names)
        outcome = self.link()
        assert not outcome.failed, outcome.lines
        job = job_of(*names, cpu=cpu)
        job = replace(job, target=TARGETS[self.target]) if self.target else job
        outcome = leave_out_unreached(self.paths, job, outcome, self.link, self.notes.append, table=self.table(job))
        assert not outcome.failed, outcome.lines
        return read_script(self.paths)

    def table(self, job: BuildJob) -> KernelTable:
        return table_of(job, mlas_texts(self.paths))

    def call(self, name: str, number: int) -> int:
        result: int = getattr(ctypes.CDLL(str(self.library)), name)(number)
        return result


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid_out(tmp_path, sample_plan().targets[0].job.toolchain)


def laid_out(folder: Path, toolchain: Toolchain, target: str = "") -> Tree:
    """Lay the sources out and write what ninja is to do with them, for Linux or a target of Apple's."""
    inputs = BuildInputs(
        sources=folder / "the sources",
        tools=packages_folder("tools", tool_requirements()),
        runner=folder,
        hooks=shipped_folder("cmake"),
        installed=APPLE.installed if target else BuildInputs.installed,
    )
    paths = prepare_workspace(folder / "a folder, mine", inputs, toolchain, zig=zig_of_tests())
    lines = [MACH_O if target else NINJA, f"wrappers = {paths.wrappers}"]
    mlas = Path(paths.resolve(MLAS))
    mlas.mkdir(parents=True)
    paths.configured.mkdir()
    stand_in = paths.hooks / "unreached.c"
    for name, text in SOURCES.items():
        (mlas / name).write_text(text)
    units = [mlas / name for name in SOURCES if name.endswith(".cpp")]
    exporting = (paths.configured / "asked.cc",) if target else ()
    for source in (*units, stand_in, *exporting):
        escaped = str(source).replace(" ", "$ ")
        lines += [f"build {source.name}.o: cxx {escaped}", f"  source = {source}"]
    asked = [name for name, text in SOURCES.items() if 'extern "C" int Mlas' in text]
    rest = " ".join(f"{source.name}.o" for source in units if source.name not in asked)
    lines.append(f"build libmlas.a: ar {rest}")
    objects = " ".join(f"{name}.o" for name in (*asked, stand_in.name, *(each.name for each in exporting)))
    library = DYLIB if target else "library.so"
    lines.append(f"build {library}: link {objects} libmlas.a | ../../hooks/unreached.ld exports.map")
    (paths.configured / "build.ninja").write_text("\n".join(lines) + "\n")
    return Tree(paths=paths, environment=job_environment(paths, toolchain), target=target)


KEPT: Final = [
    ("MlasFloat", 1, 21, {"FloatKernelSse", "FloatKernelAvx"}),
    ("MlasQuant", 5, 7, {"QuantDispatchAvx2", "QuantDispatchDefault"}),
    ("MlasPool", 1, 31, {"PoolKernel"}),
    ("MlasExp", 1, 51, {"ExpKernel"}),
    ("MlasOther", 1, 52, {"ExpKernel"}),
    ("MlasCast", 1, 61, {"CastKernel"}),
    ("MlasChosen", 1, 81, {"_Z14ChosenDispatchi"}),
    ("MlasFilled", 1, 92, {"FilledDispatch"}),
    ("MlasHalf", 1, 101, {"HalfDispatch"}),
    ("MlasHalfSupported", 0, 1, set[str]()),
    ("MlasBlockSize", 0, 8, set[str]()),
    ("MlasRoute", 0, 1, set[str]()),
    ("MlasFixed", 1, 11, {"FloatKernelSse"}),
]


CALLED: Final = frozenset({"_Z14ChosenDispatchi"})


@pytest.mark.parametrize("target", ["ios-arm64", "ios-simulator-x86_64"])
def test_apples_linker_has_no_scripts(target: str, tmp_path: Path) -> None:
    """What the table's users reach stays, and no name of what is left out has code; what fills the table may stay."""
    toolchain = zig_apple_toolchain(TARGETS[target], "15.1", "0.17.0")
    tree = laid_out(tmp_path, toolchain, target)
    for function, _, _, kept in KEPT[::5]:
        left_out = tree.make(function)
        assert left_out | CALLED == (ALL - kept - {"ExpKernel"}) | CALLED, function
        assert not left_out & kept
        code = {each.name for each in defined_symbols(tree.paths.configured / DYLIB) if each.code}
        members = archive_members(tree.paths.configured / "libmlas.a")
        archived = frozenset[str]().union(*(visible_symbols(content)[0] for _, content in members))
        assert not (code & left_out & archived) - CALLED


@pytest.mark.parametrize(("function", "number", "result", "kept"), KEPT)
def test_what_a_function_needs_stays_and_works(
    tree: Tree, function: str, number: int, result: int, kept: set[str]
) -> None:
    """Each is called by way of the table, of another one or directly; all that it does not reach is left out."""
    left_out = tree.make(function)
    assert left_out == ALL - kept - {"ExpKernel"}
    assert tree.call(function, number) == result
    assert tree.notes == []


def test_what_is_left_out_hangs_on_nothing_but_the_job(tree: Tree) -> None:
    """A tree that has been used for other jobs makes the bytes that a fresh one makes."""
    left_out = tree.make("MlasFloat")
    first = tree.library.read_bytes()
    assert tree.make("MlasFloat", "MlasQuant") < left_out
    assert tree.make("MlasQuant") != left_out
    assert tree.make("MlasFloat") == left_out
    assert tree.library.read_bytes() == first


def test_the_same_job_again_is_linked_no_more(tree: Tree) -> None:
    """It is looked at once, and what was found before holds."""
    tree.make("MlasFloat")
    before, written = tree.links, tree.library.stat().st_mtime_ns
    tree.make("MlasFloat")
    assert tree.links == before + 1
    assert tree.library.stat().st_mtime_ns == written


def test_a_link_that_fails_is_the_outcome(tree: Tree) -> None:
    """A library with all kernels in its place would be another one of the same digest; the next build starts anew."""
    tree.export("MlasFloat")
    first, killed = tree.link(), CompileOutcome(code=1, lines=("Killed",))
    job = job_of("MlasFloat")
    assert (
        leave_out_unreached(tree.paths, job, first, lambda: killed, tree.notes.append, table=tree.table(job)) is killed
    )
    assert tree.notes == []
    assert tree.make("MlasFloat") == ALL - {"FloatKernelSse", "FloatKernelAvx", "ExpKernel"}


def test_a_processor_that_is_taken_for_granted_needs_no_older_kernels(tree: Tree) -> None:
    """What it never chooses is left out, although the table's reader is there."""
    left_out = tree.make("MlasFloat", cpu="x86-64-v3")
    assert left_out == ALL - {"FloatKernelAvx", "ExpKernel"}
    assert tree.call("MlasFloat", 1) == 21


METHOD: Final = "_ZN4onnx11TensorProto14_InternalParseEPKcPN6google8protobuf8internal12ParseContextE"
MESSAGES: Final = f"""\
extern "C" int parse(int number) __asm__("{METHOD}");
extern "C" int parse(int number) {{ return number + 1; }}
"""


@pytest.mark.parametrize("named", [False, True])
def test_what_the_linker_optimised_may_name_a_reader_of_messages(tree: Tree, *, named: bool) -> None:
    messages = tree.paths.configured / "onnx" / "onnx-ml.pb.cc"
    messages.parent.mkdir()
    messages.write_text(MESSAGES)
    escaped = str(messages).replace(" ", "$ ")
    ninja = tree.paths.configured / "build.ninja"
    text = ninja.read_text().replace("build libmlas.a: ar ", "build libmlas.a: ar onnx-ml.pb.cc.o ")
    ninja.write_text(f"{text}build onnx-ml.pb.cc.o: cxx {escaped}\n  source = {messages}\n")
    caller = tree.paths.configured / "caller.cc"
    caller.write_text(f'extern "C" int {METHOD}(int);\nint called(int n) {{ return {METHOD if named else "+"}(n); }}\n')
    compiled = (str(tree.paths.wrappers / "c++"), "-c", str(caller), "-o", str(tree.paths.configured / "lto.o"))
    assert run(compiled, cwd=tree.paths.configured, environment=tree.environment).returncode == 0
    tree.export("MlasFloat")
    job = job_of("MlasFloat")
    job = replace(job, build_options=replace(job.build_options, lto=True))
    outcome = leave_out_unreached(tree.paths, job, tree.link(), tree.link, tree.notes.append, table=tree.table(job))
    assert not outcome.failed, outcome.lines
    assert (METHOD in read_script(tree.paths)) != named


def test_a_static_library_goes_without_them_too(tree: Tree) -> None:
    """It asks applications for none of them, and a program in C links it and runs."""
    left_out = tree.make("MlasFloat")
    job = sample_plan(linkage="static").targets[0].job
    job = replace(job, build_options=replace(job.build_options, dead_kernel_elimination=True))
    shutil.copy(tree.library, tree.paths.build / job.expected_outputs[0])
    write_static_library(job, tree.paths)
    ((_, content),) = archive_members(tree.paths.build / "libonnxruntime.a")
    offered, asked = visible_symbols(content)
    assert offered == {"MlasFloat"}
    assert not asked & left_out
    (tree.paths.build / "main.c").write_text("int MlasFloat(int);\nint main(void) { return MlasFloat(1); }\n")
    command = (str(tree.paths.wrappers / "cc"), "main.c", "libonnxruntime.a", "-o", "program")
    assert run(command, cwd=tree.paths.build, environment=tree.environment).returncode == 0
    assert run((str(tree.paths.build / "program"),)).returncode == 21


def test_an_interruption_leaves_nothing_that_is_believed(tree: Tree) -> None:
    """The next build of the same job starts anew."""
    left_out = tree.make("MlasFloat")

    def interrupted() -> CompileOutcome:
        raise KeyboardInterrupt

    tree.export("MlasQuant")
    job = job_of("MlasQuant")
    with pytest.raises(KeyboardInterrupt):
        leave_out_unreached(tree.paths, job, tree.link(), interrupted, tree.notes.append, table=tree.table(job))
    assert tree.make("MlasFloat") == left_out
    assert tree.call("MlasFloat", 1) == 21
