"""Every step has tests: a model that shows its use, and one that it has to leave alone, are two at least."""

import ast
from collections import Counter
from pathlib import Path

from ortrim.steps.table import EQUIPPED, PLAIN

KINDS = {kind.__name__ for kind in (*PLAIN, *EQUIPPED)}
TESTS = Path(__file__).parents[2]
FILES = {
    *(TESTS / "unit" / "steps").glob("test_*.py"),
    *(TESTS / "integration" / name for name in ("test_number_steps.py", "test_prepare.py")),
} - {TESTS / "unit" / "steps" / "test_mutated_models.py"}
"""Without those that give any step any model."""


def steps_in(path: Path) -> Counter[str]:
    """Count the tests of a file that use each step, by its name or by that of a constant or function around it."""
    using = {kind: {kind} for kind in KINDS}
    count: Counter[str] = Counter()
    for part in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [node for node in ast.walk(part) if isinstance(node, ast.Name)]
        used = {kind for name in names for kind in using.get(name.id, ())}
        if not isinstance(part, ast.FunctionDef):
            using |= {name.id: used for name in names if isinstance(name.ctx, ast.Store)}
        elif part.name.startswith("test_"):
            count.update(used)
        else:
            using[part.name] = used
    return count


def test_no_step_is_without() -> None:
    found = sum((steps_in(path) for path in FILES), Counter[str]())
    assert {kind for kind in KINDS if found[kind] < 2} == set()
