"""Nothing outside `platforms/` asks which platform it has: read from the sources, nothing is imported to check it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeGuard

import pytest

from ortrim.devices.kinds import KINDS

SOURCE: Final = Path(__file__).parents[2] / "src" / "ortrim"
OWNERS: Final = ("platforms", "binaries", "resources")
"""What may know one platform from another: the platforms themselves, and the readers of their file formats."""
ALLOWED: Final = {
    "buildspec/targets.py": "defines targets and systems",
    "planning/planner.py": "a system's name stands for one of its targets",
    "devices/harness_projects.py": "an app is of one platform",
}
SYSTEM_NAMES: Final = frozenset({"APPLE", "CATALYST", "FIRST_ANDROID", "MACOS_UNIVERSAL"})
OPTIONS: Final = frozenset({"android", "apple"})
"""Fields that one platform's targets have and others lack."""
CLASSES_OF: Final = ("ortrim.platforms.android.", "ortrim.platforms.apple.", "ortrim.platforms.linux.")
"""Where classes and constants of one platform are imported from."""
PLATFORMS: Final = frozenset({"ANDROID", "APPLE", "LINUX"})
OF_ONE_PLATFORM: Final = re.compile(r"(android|ios|macos|linux|maccatalyst)-.*|ndk|xcode")
"""Identifiers of targets, or how they begin, and toolchains of one platform."""


def branches(tree: ast.Module) -> Iterator[int]:
    """Yield the line of each place that asks for the platform, once for each way in which it does."""
    imported = dict(_imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and _is_system(node, imported):
            yield node.lineno
        for asked in _asked(node):
            yield from (part.lineno for part in ast.walk(asked) if _is_of_one(part, imported))


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((alias.asname or alias.name, node.module) for alias in node.names)


def _asked(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node decides by; of nested ones each part is told once."""
    match node:
        case ast.If() | ast.IfExp() | ast.While() | ast.Assert():
            yield from () if isinstance(node.test, ast.Compare | ast.BoolOp) else (node.test,)
        case ast.comprehension():
            yield from (each for each in node.ifs if not isinstance(each, ast.Compare | ast.BoolOp))
        case ast.BoolOp():
            yield from (each for each in node.values if not isinstance(each, ast.Compare | ast.BoolOp))
        case ast.Compare():
            yield from (node.left, *node.comparators)
        case ast.match_case():
            yield node.pattern
        case ast.Call(func=ast.Attribute(attr="startswith")) | ast.Call(func=ast.Name(id="isinstance")):
            yield from node.args
        case _:
            pass


def _is_system(node: ast.Name, imported: dict[str, str]) -> bool:
    named = node.id in SYSTEM_NAMES or node.id == "OperatingSystem"
    return named and imported.get(node.id) == "ortrim.buildspec.targets"


def _is_of_one(node: ast.AST, imported: dict[str, str]) -> TypeGuard[ast.expr]:
    if isinstance(node, ast.Name):
        module = imported.get(node.id, "")
        one = module == "ortrim.platforms" and node.id in PLATFORMS
        return one or (node.id[0].isupper() and module.startswith(CLASSES_OF))
    return _names_platform(node) or (isinstance(node, ast.Attribute) and node.attr in OPTIONS)


def _names_platform(node: ast.AST) -> bool:
    constant = node.value if isinstance(node, ast.Constant) else None
    return isinstance(constant, str) and OF_ONE_PLATFORM.fullmatch(constant) is not None


def branching(root: Path) -> dict[str, list[int]]:
    """Return the lines that ask for the platform, by module; those that may are left out."""
    paths = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*.py"))}
    found = {
        name: sorted(branches(ast.parse(path.read_bytes())))
        for name, path in paths.items()
        if name.partition("/")[0] not in OWNERS and name not in ALLOWED
    }
    return {name: lines for name, lines in found.items() if lines}


def test_nothing_outside_platforms_asks_which_platform_it_has() -> None:
    assert branching(SOURCE) == {}


@pytest.mark.parametrize(
    "text",
    [
        "from ortrim.buildspec.targets import OperatingSystem\nx = target.system is OperatingSystem.LINUX",
        "from ortrim.buildspec.targets import APPLE\nx = target.system in APPLE",
        "from ortrim.platforms import ANDROID\nx = platform_of(target) is ANDROID",
        "if job.android: pass",
        "x = 1 if job.apple is not None else 2",
        "x = [each for each in jobs if each.android]",
        "x = job.android or job.apple",
        "if toolchain.kind == 'ndk': pass",
        "match kind:\n    case 'gcc' | 'xcode': pass",
        "x = name.startswith('android-')",
        "x = identifier == 'linux-x64'",
        "from ortrim.platforms.apple.devicectl import PhoneDevice\nx = isinstance(device, PhoneDevice)",
        "from ortrim.platforms.apple.arguments import ASSEMBLY\nx = name == ASSEMBLY",
    ],
)
def test_a_branch_on_a_platform_is_found(tmp_path: Path, text: str) -> None:
    for folder in ("build", "platforms"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "module.py").write_text(text)
    assert list(branching(tmp_path)) == ["build/module.py"]


@pytest.mark.parametrize(
    "text",
    [
        "x = platform_of(target).build_arguments(job)",
        "x = replace(job, android=None)",
        "if toolchain.kind == 'zig': pass",
        "if platform.system() == 'Darwin': pass",
        "x = name.startswith('emulator-')",
    ],
)
def test_what_holds_on_any_platform_is_no_branch(tmp_path: Path, text: str) -> None:
    (tmp_path / "module.py").write_text(text)
    assert branching(tmp_path) == {}


NO_DEVICES: Final = {
    "devices/farms/aws_device_farm.py": "a service of AWS is called as its farm is",
    "sources/archives.py": "a part of an address",
}
"""Modules that compare with a word that is also a kind of device, each with its reason."""


def kinds_asked_for(tree: ast.Module) -> Iterator[int]:
    """Yield the line of each comparison with a kind of device, and of each look at the class of one."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                asked: tuple[ast.AST, ...] = (node.left, *node.comparators)
            case ast.match_case():
                asked = (node.pattern,)
            case ast.Call(func=ast.Name(id="isinstance")):
                asked = tuple(node.args[1:])
            case _:
                continue
        for part in (each for one in asked for each in ast.walk(one)):
            if isinstance(part, ast.Constant) and part.value in KINDS:
                yield part.lineno
            if isinstance(part, ast.Name) and part.id in DEVICE_CLASSES and isinstance(node, ast.Call):
                yield part.lineno


DEVICE_CLASSES: Final = frozenset({
    "CooledDevice", "Device", "FarmDevice", "Host", "MacHost", "MachoDevice", "PhoneDevice", "ProgramDevice",
    "QemuSystem", "QemuUser", "RemoteDevice", "SimulatorDevice",
})  # fmt: skip


def test_nothing_beside_the_table_asks_for_a_kind_of_device() -> None:
    """Whatever depends on the kind is a column of `devices.kinds` or a method."""
    paths = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
    found = {
        name: lines
        for name, path in paths.items()
        if not name.startswith("resources/") and name not in NO_DEVICES
        if (lines := list(kinds_asked_for(ast.parse(path.read_bytes()))))
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "x = device.kind == 'adb'",
        "x = kind in {'host', 'ssh'}",
        "match kind:\n case 'host': pass",
        "isinstance(d, Host)",
    ],
)
def test_asking_for_a_kind_of_device_is_found(text: str) -> None:
    assert len(list(kinds_asked_for(ast.parse(text)))) >= 1
