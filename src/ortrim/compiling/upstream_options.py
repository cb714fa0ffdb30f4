"""Options of upstream's build by version of ONNX Runtime, and those that a plan passes and the tree does not know."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ortrim.base.command import run
from ortrim.base.files import storage_errors
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with
from ortrim.buildspec.targets import version_numbers
from ortrim.compiling.plan import BuildJob
from ortrim.errors import BuildError

OPTIONS: Final = {
    # KleidiAI's kernels are on by default for every arm64 and want its sources. Most are for processors with SME, and
    # the rest are MatMulNBits'. Upstream's commit 90c5ffb585; 1.22 itself only asks whether the compiler could.
    "--no_kleidiai": "1.22",
    # Elementwise kernels for arm64 processors with SVE, on Linux, asked for by a `-march` that zig refuses: without
    # them every toolchain compiles the same kernels. Upstream's commit 79a2d250de.
    "--no_sve": "1.24",
}
"""Options of `build.py` that not every version has, and the first that does.

They are passed for every target: where one would change nothing, it spares a warning of CMake's.
"""


def versioned_options(version: str) -> tuple[str, ...]:
    """Return those of `OPTIONS` that a version of ONNX Runtime has."""
    return tuple(option for option, first in OPTIONS.items() if version_numbers(first) <= version_numbers(version))


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
