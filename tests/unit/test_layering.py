"""The rules of the house, read from the imports of every module: nothing is imported to check them."""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from ortrim.tools.command import run

SOURCE: Final = Path(__file__).parents[2] / "src" / "ortrim"
LAYERS: Final = (
    ("tasks",),
    ("pipeline",),
    (
        *("spec", "models", "steps", "planning", "executors", "package", "verify", "report", "workflows"),
        *("fetch", "advise", "bench", "history", "lint"),
    ),
    ("platforms", "toolchains", "sources", "binaries", "github"),
    ("tools", "pins", "console", "storage"),
    ("core",),
    ("errors",),
    ("__init__",),
)
"""Top-level modules from the highest layer to the lowest; each may import those of lower layers only."""

ALLOWED_SIBLINGS: Final = {("tools", "storage"), ("pins", "storage")}
PURE: Final = ("core", "platforms", "planning")
IMPURE_LAYERS: Final = {"tools", "storage", "console", "sources", "binaries", "github"}
IMPURE_MODULES: Final = frozenset({
    "asyncio", "datetime", "fcntl", "filelock", "getpass", "glob", "http", "io", "locale", "logging", "mmap",
    "multiprocessing", "os", "platform", "platformdirs", "pwd", "random", "requests", "secrets", "shutil", "signal",
    "socket", "sqlite3", "subprocess", "sys", "sysconfig", "tarfile", "tempfile", "threading", "time", "urllib.request",
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
STARTERS: Final = frozenset({"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"})
HEAVY: Final = ("cyclonedx", "elftools", "jinja2", "lief", "numpy", "onnx", "onnxruntime", "requests", "rich")


@dataclass(frozen=True, kw_only=True)
class Module:
    """One module as read: its path below the package, its name without the package's, its syntax tree."""

    path: Path
    name: str
    tree: ast.Module

    @property
    def top(self) -> str:
        """The part of the house to which it belongs."""
        return self.name.split(".")[0]


def read_modules(root: Path) -> tuple[Module, ...]:
    """Read every module below `root`, except what is data."""
    paths = (path for path in sorted(root.rglob("*.py")) if path.relative_to(root).parts[0] != "data")
    return tuple(
        Module(path=path.relative_to(root), name=_name(path.relative_to(root)), tree=ast.parse(path.read_bytes()))
        for path in paths
    )


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def imports(module: Module) -> Iterator[str]:
    """Yield the full name of everything that a module imports, wherever and however it does so."""
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


def imported_tops(module: Module) -> Iterator[str]:
    """Yield the parts of the house that a module imports, other than its own."""
    for name in imports(module):
        parts = name.split(".")
        if parts[0] == "ortrim" and parts[1:2] not in ([], [module.top]):
            yield parts[1]


def layer_of(top: str) -> int | None:
    """Return the number of a part's layer, counted from the top; None for what has no place."""
    return next((number for number, names in enumerate(LAYERS) if top in names), None)


def breaches_of_direction(modules: Iterable[Module]) -> Iterator[str]:
    """Rule: imports go downward, siblings do not know each other, and every module has a place."""
    for module in modules:
        here = layer_of(module.top)
        if here is None:
            yield f"{module.path} has no layer"
            continue
        for top in imported_tops(module):
            there = layer_of(top)
            known = top if there is not None else f"{top}, which has no layer"
            if there is None or (there <= here and (module.top, top) not in ALLOWED_SIBLINGS):
                yield f"{module.path} imports {known}"


def breaches_of_starting_programs(modules: Iterable[Module]) -> Iterator[str]:
    """Rule: programs are started by tools/command.py alone."""
    for module in modules:
        if module.path.as_posix() == "tools/command.py":
            continue
        for name in imports(module):
            if name.split(".")[0] in {"subprocess", "pty", "multiprocessing"} or _starts(*name.rpartition(".")[::2]):
                yield f"{module.path} imports {name}"
        for node in ast.walk(module.tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and _starts(node.value.id, node.attr)
            ):
                yield f"{module.path} uses {node.value.id}.{node.attr}"


def _starts(module: str, name: str) -> bool:
    starts_asyncio = module == "asyncio" and name.startswith("create_subprocess")
    return starts_asyncio or (module == "os" and (name in STARTERS or name.startswith(("exec", "spawn"))))


def breaches_of_purity(modules: Iterable[Module]) -> Iterator[str]:
    """Rule: `core`, `platforms` and `planning` touch no file, no clock, no environment, nor what does."""
    for module in modules:
        if module.top not in PURE:
            continue
        for name in imports(module):
            parts = name.split(".")
            prefixes = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
            if prefixes & IMPURE_MODULES or (parts[0] == "ortrim" and IMPURE_LAYERS.intersection(parts[1:2])):
                yield f"{module.path} imports {name}"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and _is_impure(node):
                yield f"{module.path}:{node.lineno} calls {_called(node)}"


def _is_impure(node: ast.Call) -> bool:
    names = IMPURE_METHODS if isinstance(node.func, ast.Attribute) else IMPURE_FUNCTIONS
    return _called(node) in names


def breaches_of_errors(modules: Iterable[Module]) -> Iterator[str]:
    """Rule: `errors` imports nothing of ortrim, so that everything may import it."""
    for module in modules:
        if module.top == "errors":
            yield from (f"{module.path} imports {name}" for name in imports(module) if name.split(".")[0] == "ortrim")


Rule = Callable[[Iterable[Module]], Iterator[str]]
RULES: Final[tuple[Rule, ...]] = (
    breaches_of_direction,
    breaches_of_starting_programs,
    breaches_of_purity,
    breaches_of_errors,
)


@pytest.mark.parametrize("rule", RULES)
def test_the_house_keeps_its_rules(rule: Rule) -> None:
    """No module of ortrim breaks the rule."""
    modules = read_modules(SOURCE)
    assert {"errors", "core", "tools"} <= {module.top for module in modules}
    assert list(rule(modules)) == []


BREACHES: Final = [
    (breaches_of_direction, "core/plan.py", "from ortrim.tools.command import run", "imports tools"),
    (breaches_of_direction, "core/plan.py", "import ortrim.storage.files", "imports storage"),
    (breaches_of_direction, "core/plan.py", "def f():\n    from ortrim import tasks", "imports tasks"),
    (breaches_of_direction, "core/plan.py", "if TYPE_CHECKING:\n    from ortrim.spec import reader", "imports spec"),
    (breaches_of_direction, "core/plan.py", "from .. import console", "imports console"),
    (breaches_of_direction, "core/plan.py", "from ..tools.command import run", "imports tools"),
    (breaches_of_direction, "verify/devices/host.py", "from ...package import archive", "imports package"),
    (breaches_of_direction, "spec/reader.py", "from ortrim.models import prepare", "imports models"),
    (breaches_of_direction, "sources/git.py", "from ortrim.toolchains import zig", "imports toolchains"),
    (breaches_of_direction, "storage/files.py", "from ortrim.tools import command", "imports tools"),
    (breaches_of_direction, "pins/load.py", "from ortrim.tools import command", "imports tools"),
    (breaches_of_direction, "console.py", "from ortrim.storage import files", "imports storage"),
    (breaches_of_direction, "pipeline.py", "from ortrim.tasks import build", "imports tasks"),
    (breaches_of_direction, "__init__.py", "from ortrim.core import plan", "imports core"),
    (breaches_of_direction, "tasks/build.py", "import_module('ortrim.newcomer')", "newcomer, which has no layer"),
    (breaches_of_direction, "core/plan.py", "importlib.import_module('ortrim.tools')", "imports tools"),
    (breaches_of_direction, "tasks/build.py", "import_module(name)", "<computed>, which has no layer"),
    (breaches_of_direction, "utils.py", "", "has no layer"),
    (breaches_of_direction, "utils/text.py", "", "has no layer"),
    (breaches_of_starting_programs, "tools/git.py", "import subprocess", "imports subprocess"),
    (breaches_of_starting_programs, "sources/command.py", "from subprocess import run", "imports subprocess.run"),
    (breaches_of_starting_programs, "tools/git.py", "import os\nos.system('git')", "uses os.system"),
    (breaches_of_starting_programs, "tools/git.py", "from os import execvp", "imports os.execvp"),
    (breaches_of_starting_programs, "tools/git.py", "import os\nos.posix_spawn('git', [], {})", "uses os.posix_spawn"),
    (breaches_of_starting_programs, "bench/run.py", "import multiprocessing.pool", "imports multiprocessing.pool"),
    (breaches_of_starting_programs, "tools/a.py", "asyncio.create_subprocess_exec('git')", "uses asyncio."),
    (breaches_of_purity, "core/plan.py", "import os", "imports os"),
    (breaches_of_purity, "core/plan.py", "import os.path", "imports os.path"),
    (breaches_of_purity, "core/plan.py", "from time import monotonic", "imports time.monotonic"),
    (breaches_of_purity, "core/plan.py", "from urllib import request", "imports urllib.request"),
    (breaches_of_purity, "platforms/linux.py", "from datetime import UTC, datetime", "imports datetime.UTC"),
    (breaches_of_purity, "platforms/linux.py", "from ortrim.storage.files import sha256_of", "imports ortrim.storage"),
    (breaches_of_purity, "planning.py", "from ortrim.sources import cache", "imports ortrim.sources"),
    (breaches_of_purity, "planning.py", "from pathlib import Path\nPath('a').read_text()", "calls read_text"),
    (breaches_of_purity, "planning.py", "from pathlib import Path\nPath.cwd()", "calls cwd"),
    (breaches_of_purity, "planning.py", "open('a')", "calls open"),
    (breaches_of_errors, "errors.py", "from ortrim.core import plan", "imports ortrim.core"),
    (breaches_of_errors, "errors.py", "from . import __version__", "imports ortrim.__version__"),
]  # fmt: skip


def write_module(root: Path, path: str, text: str) -> None:
    """Write one module of a made-up house."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize(("rule", "path", "text", "expected"), BREACHES)
def test_a_rule_catches_its_breach(tmp_path: Path, rule: Rule, path: str, text: str, expected: str) -> None:
    """Each rule finds each way to break it, and names the module."""
    write_module(tmp_path, path, text)
    found = list(rule(read_modules(tmp_path)))
    assert len(found) >= 1
    assert found[0].startswith(path)
    assert expected in found[0]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "core/plan.py",
            "from ortrim.core.targets import Target\nfrom .targets import Target\nfrom pathlib import Path",
        ),
        ("core/plan.py", "import hashlib, json\nfrom ortrim import errors\n'a'.replace('a', 'b')"),
        (
            "tools/command.py",
            "import subprocess, os\nfrom ortrim.storage import cache\nfrom ortrim.errors import ToolError",
        ),
        ("pins/load.py", "from ortrim.storage.files import sha256_of"),
        ("planning.py", "from ortrim.platforms import linux\nfrom ortrim.core import plan\nimport ortrim"),
        ("tasks/build.py", "from ortrim import pipeline\nfrom ortrim.tasks.options import jobs\nimport os\nos.environ"),
        ("pipeline/build.py", "from ortrim.verify.devices import host"),
        ("data/scripts/script.py", "import subprocess\nfrom ortrim.tasks import build"),
    ],
)
def test_what_is_allowed_is_not_a_breach(tmp_path: Path, path: str, text: str) -> None:
    """Downward imports, the two allowed siblings, a module's own package and data pass every rule."""
    write_module(tmp_path, path, text)
    modules = read_modules(tmp_path)
    assert [breach for rule in RULES for breach in rule(modules)] == []


def test_core_is_light() -> None:
    """Importing all of `core` loads none of the heavy libraries, so that a rerun with nothing changed stays quick."""
    names = [f"ortrim.{module.name}" for module in read_modules(SOURCE) if module.top == "core"]
    script = f"import sys, {', '.join(names)}; print(*sorted(set(sys.modules) & set({HEAVY!r})))"
    done = run([sys.executable, "-c", script])
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
