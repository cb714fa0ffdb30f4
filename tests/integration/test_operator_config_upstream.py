"""Configurations that ortrim writes, read by upstream's own parser: the reader that decides what is compiled in."""

import dataclasses
import json
from typing import Any, Final

import onnxruntime
import pytest
from hypothesis import given, settings

from operator_strategies import required_sets
from ortrim.base.command import run
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with, packages_folder
from ortrim.models.operators import OperatorTypes, RequiredOperators, render_config, render_types
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = pytest.mark.network

NUMBER: Final = 200

SCRIPT: Final = '''
"""Reads each configuration with upstream's parser and prints what it understood, as upstream would write it."""
import json, sys
sys.path.insert(0, sys.argv[1])
from util import parse_config

def typed(limits, domain, names):
    found = {name: limits._manager.get_config_entry(domain, name) for name in names}
    return {f"{domain}:{name}": entry for name, entry in found.items() if entry}

def read(path):
    operators, limits = parse_config(path, enable_type_reduction=True)
    opsets = [(d, o, names) for d, by_opset in (operators or {}).items() for o, names in by_opset.items()]
    named = [(domain, opset, name) for domain, opset, names in opsets for name in names]
    everywhere = sorted(limits.global_type_list()) if hasattr(limits, "global_type_list") else []
    types = {}
    if hasattr(limits, "_manager"):
        for domain in {d for d, _, _ in named}:
            types.update(typed(limits, domain, {n for d, _, n in named if d == domain}))
    return {"everything": operators is None, "operators": sorted(named), "types": types, "global": everywhere}

print(json.dumps([read(path) for path in sys.argv[2:]]))
'''


def drawn_sets() -> list[RequiredOperators]:
    found: list[RequiredOperators] = []

    @settings(max_examples=NUMBER, database=None, derandomize=True)
    @given(required_sets)
    def collect(required: RequiredOperators) -> None:
        found.append(required)

    collect()
    return found


@pytest.fixture(scope="module")
def understood(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[RequiredOperators, dict[str, Any]]]:
    """Write the sets as configurations, have upstream read them all, and return each set with what was understood."""
    sets, folder = drawn_sets(), tmp_path_factory.mktemp("configurations")
    paths = [folder / f"{number}.config" for number in range(len(sets))]
    for path, required in zip(paths, sets, strict=True):
        path.write_text(render_config(required))
    sources = fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / "onnxruntime"
    script = folder / "read.py"
    script.write_text(SCRIPT)
    environment = environment_with(packages_folder("tools", tool_requirements()))
    done = run([*ISOLATED_PYTHON, script, sources / "tools" / "python", *paths], environment=environment)
    assert done.returncode == 0, done.stderr
    return list(zip(sets, json.loads(done.stdout), strict=True))


Understood = list[tuple[RequiredOperators, dict[str, Any]]]


def types_that_upstream_knows(required: RequiredOperators) -> dict[str, str]:
    found = {}
    for (domain, name), types in required.types:
        applied = OperatorTypes(custom=types.custom) if name == "OneHot" else dataclasses.replace(types, custom=())
        if domain == "ai.onnx" and not applied.unrestricted:
            found[f"{domain}:{name}"] = render_types(applied)
    return found


def test_upstream_reads_the_same_operators(understood: Understood) -> None:
    for required, read in understood:
        assert read["operators"] == [[each.domain, each.opset, each.name] for each in required.operators]
        assert read["everything"] == required.everything


def test_upstream_reads_the_same_types(understood: Understood) -> None:
    """The types of each operator, whichever line they stand on, and the types that are allowed everywhere."""
    for required, read in understood:
        assert read["types"] == types_that_upstream_knows(required)
        assert read["global"] == list(required.globally_allowed_types)


def test_the_sets_are_worth_reading(understood: Understood) -> None:
    """They are many, and of all kinds: typed, typed by a custom rule, limited globally, everything, nothing."""
    sets = [required for required, _ in understood]
    assert len(set(map(render_config, sets))) > NUMBER // 2
    assert sum(bool(types_that_upstream_knows(required)) for required in sets) > NUMBER // 10
    assert any(types.custom for required in sets for _, types in required.types)
    assert any(required.globally_allowed_types for required in sets)
    assert any(required.everything for required in sets)
    assert any(required.nothing for required in sets)
