"""The rules of the house, read from the imports of every module: nothing is imported to check them.

That one module starts programs, and one sends requests, is said to ruff in `pyproject.toml`.
"""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import run

SOURCE: Final = Path(__file__).parents[2] / "src" / "ortrim"
LAYERS: Final = (
    ("cli",),
    ("pin_updates",),
    ("github",),
    ("bench",),
    ("analysis",),
    ("pipeline",),
    ("planning",),
    ("report",),
    ("platforms",),
    ("verify",),
    ("devices",),
    ("package",),
    ("steps",),
    ("parity",),
    ("size",),
    ("compiling",),
    ("sources",),
    ("models",),
    ("binaries",),
    ("buildspec",),
    ("pins",),
    ("base",),
    ("errors",),
    ("__init__",),
)
"""Folders, and modules that stand apart from theirs, from the highest layer to the lowest."""

PURE: Final = (
    "buildspec.targets",
    "buildspec.buildspec",
    "buildspec.step_specs",
    "buildspec.build_options",
    "compiling.plan",
    "planning.planner",
    "platforms.linux.arguments",
    "platforms.android.arguments",
    "platforms.apple.arguments",
    "compiling.upstream_arguments",
    "compiling.dead_kernels",
    "models.models",
    "parity.measurements",
)
IMPURE_LAYERS: Final = {"base", "binaries", "github"}
IMPURE_MODULES: Final = frozenset({
    "asyncio", "datetime", "fcntl", "filelock", "getpass", "glob", "http", "io", "locale", "logging", "mmap",
    "multiprocessing", "os", "platform", "platformdirs", "pwd", "random", "requests", "secrets", "shutil", "signal",
    "socket", "subprocess", "sys", "sysconfig", "tarfile", "tempfile", "threading", "time", "urllib.request",
    "uuid", "zipfile",
})  # fmt: skip
"""What reaches files, the clock, the environment, chance or other programs. `pathlib` is not among them: a path is
a value, and the methods that look at the disk are found by name."""

IMPURE_METHODS: Final = frozenset({
    "absolute", "chmod", "cwd", "exists", "expanduser", "home", "is_dir", "is_file", "is_symlink", "iterdir", "lstat",
    "mkdir", "open", "read_bytes", "read_text", "resolve", "rglob", "rmdir", "stat", "symlink_to", "touch", "unlink",
    "write_bytes", "write_text",
})  # fmt: skip
IMPURE_FUNCTIONS: Final = frozenset({"open", "input", "print", "breakpoint"})
HEAVY: Final = ("cyclonedx", "elftools", "jinja2", "lief", "numpy", "onnx", "onnxruntime", "requests")


@dataclass(frozen=True, kw_only=True)
class Module:
    """One module as read: its path below the package, its name without the package's, its syntax tree."""

    path: Path
    name: str
    tree: ast.Module

    @property
    def top(self) -> str:
        return self.name.split(".")[0]


def read_modules(root: Path) -> tuple[Module, ...]:
    paths = (path for path in sorted(root.rglob("*.py")) if path.relative_to(root).parts[0] != "resources")
    return tuple(
        Module(path=path.relative_to(root), name=_name(path.relative_to(root)), tree=ast.parse(path.read_bytes()))
        for path in paths
    )


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


@cache
def imports(module: Module) -> tuple[str, ...]:
    """Return the full name of everything that a module imports, wherever and however it does so."""
    return tuple(_imports(module))


def _imports(module: Module) -> Iterator[str]:
    package = ("ortrim", *module.path.parent.parts)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            full = ".".join(part for part in (base, node.module or "") if part)
            yield from (f"{full}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in {"import_module", "__import__"}:
            first = node.args[0] if node.args else None
            yield (
                first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else "ortrim.<computed>"
            )


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def imported_parts(module: Module) -> Iterator[str]:
    """Yield what a module imports of ortrim outside of its own folder, without the package's name."""
    for name in imports(module):
        parts = name.split(".")
        if parts[0] == "ortrim" and parts[1:2] not in ([], [module.top]):
            yield ".".join(parts[1:])


def layer_of(name: str) -> int | None:
    """Return the number of a module's layer, counted from the top; None for what has no place."""
    folder, _, rest = name.partition(".")
    names = (f"{folder}.{rest.partition('.')[0]}", folder)
    found = (number for each in names for number, layer in enumerate(LAYERS) if each in layer)
    return next(found, None)


def breaches_of_direction(modules: Iterable[Module]) -> Iterator[str]:
    """Rule: imports go downward, and every module has a place."""
    for module in modules:
        here = layer_of(module.name)
        if here is None:
            yield f"{module.path} has no layer"
            continue
        for name in imported_parts(module):
            there = layer_of(name)
            if there is None:
                yield f"{module.path} imports {name}, which has no layer"
            elif there <= here:
                yield f"{module.path} imports {name}"


def breaches_of_purity(modules: Iterable[Module]) -> Iterator[str]:
    """Rule: what decides a plan touches no file, no clock, no environment, nor what does."""
    for module in modules:
        if module.name not in PURE:
            continue
        for name in imports(module):
            parts = name.split(".")
            prefixes = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
            if prefixes & IMPURE_MODULES or (
                parts[0] == "ortrim"
                and IMPURE_LAYERS.intersection(parts[1:2])
                and parts[2:3]
                not in (["json"], ["processor_cores"], ["android"], ["apple"], ["checksums"], ["xcframework"])
            ):
                yield f"{module.path} imports {name}"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and _is_impure(node):
                yield f"{module.path}:{node.lineno} calls {_called(node)}"


def _is_impure(node: ast.Call) -> bool:
    names = IMPURE_METHODS if isinstance(node.func, ast.Attribute) else IMPURE_FUNCTIONS
    return _called(node) in names


Rule = Callable[[Iterable[Module]], Iterator[str]]
RULES: Final[tuple[Rule, ...]] = (breaches_of_direction, breaches_of_purity)


@cache
def modules_of_ortrim() -> tuple[Module, ...]:
    return read_modules(SOURCE)


@pytest.mark.parametrize("rule", RULES)
def test_the_house_keeps_its_rules(rule: Rule) -> None:
    modules = modules_of_ortrim()
    assert {"errors", "base", "compiling"} <= {module.top for module in modules}
    assert list(rule(modules)) == []


BREACHES: Final = [
    (breaches_of_direction, "compiling/plan.py", "from ortrim.verify.judge import judge", "imports verify.judge"),
    (breaches_of_direction, "compiling/plan.py", "import ortrim.verify.judge", "imports verify.judge"),
    (breaches_of_direction, "compiling/plan.py", "def f():\n    from ortrim import cli", "imports cli"),
    (breaches_of_direction, "models/a.py", "if TYPE_CHECKING:\n    from ortrim.report import html", "imports report"),
    (breaches_of_direction, "compiling/plan.py", "from .. import report", "imports report"),
    (breaches_of_direction, "compiling/plan.py", "from ..verify.judge import judge", "imports verify"),
    (breaches_of_direction, "analysis/lint/run.py", "from ortrim.bench import run", "imports bench"),
    (breaches_of_direction, "__init__.py", "from ortrim.compiling import plan", "imports compiling"),
    (breaches_of_direction, "cli/tasks/build.py", "import_module('ortrim.newcomer')", "newcomer, which has no layer"),
    (breaches_of_direction, "compiling/plan.py", "importlib.import_module('ortrim.cli')", "imports cli"),
    (breaches_of_direction, "cli/tasks/build.py", "import_module(name)", "<computed>, which has no layer"),
    (breaches_of_direction, "utils.py", "", "has no layer"),
    (breaches_of_direction, "utils/text.py", "", "has no layer"),
    (breaches_of_purity, "compiling/plan.py", "import os", "imports os"),
    (breaches_of_purity, "compiling/plan.py", "from time import monotonic", "imports time.monotonic"),
    (breaches_of_purity, "compiling/plan.py", "from urllib import request", "imports urllib.request"),
    (breaches_of_purity, "compiling/dead_kernels.py", "from datetime import UTC, datetime", "imports datetime.UTC"),
    (breaches_of_purity, "compiling/dead_kernels.py", "from ortrim.base.files import sha256_of", "imports ortrim.base"),
    (breaches_of_purity, "planning/planner.py", "from ortrim.github import client", "imports ortrim.github"),
    (breaches_of_purity, "planning/planner.py", "from pathlib import Path\nPath('a').read_text()", "calls read_text"),
    (breaches_of_purity, "planning/planner.py", "open('a')", "calls open"),
    (breaches_of_direction, "errors.py", "from ortrim.base import files", "imports base"),
    (breaches_of_direction, "errors.py", "from . import __version__", "has no layer"),
]  # fmt: skip


def write_module(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize(("rule", "path", "text", "expected"), BREACHES)
def test_a_rule_catches_its_breach(tmp_path: Path, rule: Rule, path: str, text: str, expected: str) -> None:
    write_module(tmp_path, path, text)
    found = list(rule(read_modules(tmp_path)))
    assert len(found) >= 1
    assert found[0].startswith(path)
    assert expected in found[0]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "compiling/plan.py",
            "from ortrim.buildspec.targets import Target\nfrom .trees import T\nfrom pathlib import Path",
        ),
        ("compiling/plan.py", "import hashlib, json\nfrom ortrim import errors\n'a'.replace('a', 'b')"),
        ("planning/planner.py", "from ortrim.platforms import linux\nfrom ortrim.compiling import plan\nimport ortrim"),
        (
            "cli/tasks/build.py",
            "from ortrim import pipeline\nfrom ortrim.cli.options import jobs\nimport os\nos.environ",
        ),
        ("pipeline/building.py", "from ortrim.devices import host\nfrom ortrim.planning import request"),
        ("cli/tasks/lint.py", "from ortrim.cli.boundary import boundary\nfrom ortrim.analysis.size import size_of"),
        ("resources/scripts/script.py", "import subprocess\nfrom ortrim.cli import build"),
    ],
)
def test_what_is_allowed_is_not_a_breach(tmp_path: Path, path: str, text: str) -> None:
    """Downward imports, a module's own folder and data pass every rule."""
    write_module(tmp_path, path, text)
    modules = read_modules(tmp_path)
    assert [breach for rule in RULES for breach in rule(modules)] == []


def test_what_decides_a_plan_is_light() -> None:
    """Importing it loads none of the heavy libraries, so that a rerun with nothing changed stays quick."""
    names = ", ".join(f"ortrim.{name}" for name in PURE)
    script = f"import sys, {names}; print(*sorted(set(sys.modules) & set({HEAVY!r})))"
    done = run([sys.executable, "-c", script])
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
