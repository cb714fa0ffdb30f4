"""Upstream's own `build.py` on one build tree: configure, compile and link; what it prints, and what it leaves."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ortrim.base.command import run
from ortrim.base.files import storage_errors, write_if_changed
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.workspace import LOCAL, ExecutionEnvironment, JobPaths
from ortrim.errors import BuildError

NINJA_STEP: Final = re.compile(r"^\[(\d+)/(\d+)\] (.*)$")
# A compiler's error, CMake's, the linker's, Python's: the first of them is the cause, the rest follow from it.
ERROR: Final = re.compile(
    r"((^|: )(fatal )?error: |^CMake Error|undefined (symbol|reference)|^[\w.]*Error: |^FAILED: |"
    r"No space left on device|^Killed$)"
)
UNDEFINED: Final = re.compile(r"undefined (symbol|reference)|Undefined symbols for architecture|: symbol not defined")
"""What lld, GNU ld and Apple's linker say when a definition is nowhere in the link; the last is lld's of an export."""
MISSING: Final = re.compile(r"undefined symbol: (?!_+Z)([\w$]+)$", re.MULTILINE)
"""A name of C that zig's linkers did not find."""
CONTEXT_LINES: Final = 6
FAILED: Final = "FAILED: "
QUOTES: Final = "'\""
"""CMake quotes the path of what is made as a shell would, when a folder's name has a character that a shell reads."""
KILLED: Final = "Killed"


def ninja_step(line: str) -> tuple[int, int, str] | None:
    """Return (steps done, steps in all, file just made) of a line of ninja's status, None for any other line."""
    found = NINJA_STEP.match(line)
    if found is None:
        return None
    return int(found[1]), int(found[2]), found[3].rstrip(QUOTES).rpartition("/")[2].removesuffix(".o")


def first_error(lines: Sequence[str]) -> str:
    """Return the first error of a log with the lines that follow it, or the log's end when none is recognised.

    A line `FAILED: ` of ninja only names the object, which comes first when a killed compiler said nothing.
    """
    errors = [n for n, line in enumerate(lines) if ERROR.search(line)]
    telling = [n for n in errors if not lines[n].startswith(FAILED)]
    start = (telling or errors or [max(0, len(lines) - CONTEXT_LINES)])[0]
    shown = [line[:300].rstrip() for line in lines[start : start + CONTEXT_LINES]]
    objects = [line for line in lines[:start] if line.startswith(FAILED)] if shown[:1] == [KILLED] else []
    return "\n".join(objects[-1:] + shown).strip()


def remedy(error: str) -> str:
    """Return what helps against an error of a build."""
    if KILLED in error:
        return "the system stopped the compiler, usually because memory ran out: try again with --jobs 1"
    if name := MISSING.search(error):
        return f"neither the library nor the target's oldest system has {name[1]}: a newer system may; report the name"
    return "correct the cause and run the same command: it continues where it stopped"


@contextmanager
def unchanged_files_keep_their_time(folder: Path) -> Iterator[None]:
    """Give files of `folder` that hold the same bytes afterwards their old time back.

    Ninja compiles by time. Upstream's `reduce_op_kernels.py` writes registrations and type control anew, which would
    compile every kernel.
    """
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in _files(folder)}
    yield
    for file in _files(folder):
        content, time = before.get(file, (None, 0))
        if file.read_bytes() == content:
            os.utime(file, ns=(time, time))


def _files(folder: Path) -> tuple[Path, ...]:
    return tuple(file for file in folder.rglob("*") if file.is_file())


@contextmanager
def without_leftovers(paths: JobPaths) -> Iterator[None]:
    """Remove what an earlier build left in a tree when it was killed, and in the end what this one leaves.

    That is zig's local cache, with a second copy of each precompiled header, and a header that was never finished. What
    cannot be removed does no harm.
    """
    _remove(paths)
    try:
        yield
    finally:
        _remove(paths)


def _remove(paths: JobPaths) -> None:
    shutil.rmtree(paths.compiler_scratch, ignore_errors=True)
    for half in paths.configured.glob("precompiled-*.pch.*"):
        with suppress(OSError):
            half.unlink()


HEADER: Final = Path("core", "providers", "op_kernel_type_control_overrides.inc")
REDUCED_TYPES: Final = Path("op_reduction.generated", "onnxruntime")
KERNELS: Final = ("core/providers/cpu", "contrib_ops/cpu")
TYPED: Final = re.compile(r'#include "core/providers/op_kernel_type_control(_utils)?\.h"')
ALLOWED: Final = re.compile(r"ORT_SPECIFY_OP_KERNEL_ARG_ALLOWED_TYPES(_ALL_OPSETS)?\(\s*\w+,\s*(?P<operator>\w+),")


def typed_units(paths: JobPaths) -> tuple[Path, ...]:
    """Return the kernel sources whose code depends on the types that the operator configuration allows, in order."""
    core = paths.sources / "onnxruntime" / "onnxruntime"
    files = (file for folder in KERNELS for file in sorted((core / folder).rglob("*.cc")))
    return tuple(file for file in files if TYPED.search(file.read_text(encoding="utf-8", errors="replace")))


def type_folder(paths: JobPaths, unit: Path) -> Path:
    """Return the include folder of a typed unit's own type control."""
    return paths.build / "types" / "-".join(unit.relative_to(paths.sources).with_suffix("").parts[2:])


def write_type_control(paths: JobPaths, units: Iterable[Path]) -> None:
    """Write each typed unit's header from the one that upstream's configuration has made, where it has changed."""
    generated = paths.configured / REDUCED_TYPES / HEADER
    if not generated.is_file():
        return
    lines = generated.read_text(encoding="utf-8").splitlines(keepends=True)
    for unit in units:
        words = frozenset(re.findall(r"\w+", unit.read_text(encoding="utf-8", errors="replace")))
        write_if_changed(type_folder(paths, unit) / HEADER, "".join(_own_lines(lines, words)))


def _own_lines(lines: Iterable[str], words: frozenset[str]) -> Iterable[str]:
    """Leave out the types of operators that a source does not name by any word."""
    for line in lines:
        allowed = ALLOWED.match(line)
        if allowed is None or allowed["operator"] in words:
            yield line


REDUCED: Final = "op_reduction.generated"


CompileProgress = Callable[[int, int, str], None]
"""Called for each step with the number of steps done, of how many, and the file just made."""


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """How `build.py` is called on a tree, and where; what it prints is appended to `log`."""

    paths: JobPaths
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    on_progress: CompileProgress
    execution: ExecutionEnvironment = LOCAL

    def compile(self, configured: Callable[[], None]) -> "CompileOutcome":
        """Configure the tree and make the library, or stop at the first error; `configured` is called in between."""
        with without_leftovers(self.paths):
            with unchanged_files_keep_their_time(self.paths.configured / REDUCED):
                outcome = self._run("--update")
                if outcome.failed:
                    return outcome
                configured()
            return self._run("--build")

    def link(self) -> "CompileOutcome":
        """Make the library anew of a tree that is configured and compiled."""
        return self._run("--build")

    def _run(self, phase: str) -> "CompileOutcome":
        script = self.paths.sources / "onnxruntime" / "tools" / "ci_build" / "build.py"
        command = (*self.execution.python, str(script), phase, *self.arguments)
        lines: list[str] = []
        with self.log.open("a", buffering=1, encoding="utf-8") as log:

            def on_line(line: str) -> None:
                log.write(line + "\n")
                lines.append(line)
                if step := ninja_step(line):
                    self.on_progress(*step)

            code = self.execution.stream(
                command, on_line, paths=self.paths, cwd=self.paths.build, environment=self.environment
            )
        return CompileOutcome(code=code, lines=tuple(lines))


@dataclass(frozen=True, kw_only=True)
class CompileOutcome:
    """The exit code of `build.py` (negative: the signal) and what it printed."""

    code: int
    lines: tuple[str, ...] = field(repr=False)

    @property
    def failed(self) -> bool:
        """Whether it did not end well."""
        return self.code != 0


OF_UPSTREAM: Final = "onnxruntime_"
"""How the names of upstream's own CMake options begin; what else is defined is CMake's, a dependency's or ortrim's."""
LISTED: Final = re.compile(r"^ {2}(?P<words>-.*?)(?: {2,}.*)?$", re.MULTILINE)
"""A line of argparse's help that introduces an option: `  -h, --help  what it does`."""
OPTION: Final = re.compile(r"(?<![\w-])--[a-zA-Z]\w*(?:-\w+)*")
SECONDS: Final = 60


def require_known(job: BuildJob, tree: Path, tools: Path) -> None:
    """Refuse a job with options that a tree's `build.py`, if it lists any, or its CMake files do not know."""
    script = tree / "tools" / "ci_build" / "build.py"
    listed = run((*ISOLATED_PYTHON, script, "--help"), environment=environment_with(tools), timeout_seconds=SECONDS)
    known = listed_options(listed.stdout)
    if not known:
        return
    unknown = [word for word in job.arguments if word.startswith("--") and word not in known]
    if unknown:
        raise _unknown(job, unknown, "its own `build.py --help` does not list it")
    named = _names(tree / "cmake")
    unknown = [name for name in definitions(job.arguments) if name not in named]
    if unknown:
        raise _unknown(job, unknown, "none of its CMake files names it")


def listed_options(text: str) -> frozenset[str]:
    """Return the options that argparse's help introduces; those that a description merely mentions are none."""
    return frozenset(option for line in LISTED.finditer(text) for option in OPTION.findall(line["words"]))


def definitions(arguments: Iterable[str]) -> tuple[str, ...]:
    """Return the names of upstream's own CMake options among `build.py`'s arguments, in order."""
    names = (word.partition("=")[0] for word in arguments if "=" in word)
    return tuple(name for name in names if name.startswith(OF_UPSTREAM))


def _names(folder: Path) -> frozenset[str]:
    """Return all that begins like upstream's own options in the CMake files of a folder."""
    files = (file for pattern in ("CMakeLists.txt", "*.cmake") for file in folder.rglob(pattern))
    with storage_errors(folder):
        texts = (file.read_text(encoding="utf-8", errors="replace") for file in files)
        return frozenset(name for text in texts for name in re.findall(rf"\b{OF_UPSTREAM}\w+", text))


def _unknown(job: BuildJob, names: Iterable[str], why: str) -> BuildError:
    what = f"ONNX Runtime {job.ort_version} does not know {', '.join(names)}"
    hint = "choose another version of ONNX Runtime for now, and report this: upstream has renamed or dropped it"
    return BuildError("unknown-upstream-option", what, where=job.target.identifier, why=why, hint=hint)
