"""What ortrim knows of upstream's type reduction, compared with the sources of the pinned version."""

import json
from typing import Any, Final

import onnxruntime
import pytest

from ortrim.analysis.compat_runtime import ONE_HOT, SLOTS, InstalledRuntime, allowed_types, layout_operators
from ortrim.base.command import run
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with, packages_folder
from ortrim.models.operators import OperatorId, OperatorTypes, required_operators
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = pytest.mark.network

SCRIPT: Final = r'''
"""Prints which types reductions limit, which they keep, and which operators extended builds keep."""
import json, re, sys
from pathlib import Path
root = Path(sys.argv[1])
sys.path[:0] = [str(root / "tools/ci_build"), str(root / "tools/python")]
import op_registration_utils as registrations
from util.ort_format_model.operator_type_usage_processors import _create_operator_type_usage_processors

DOMAINS = {"kOnnxDomain": "ai.onnx", "kMSDomain": "com.microsoft"}
typed = set()

class Collector(registrations.RegistrationProcessor):
    def process_registration(self, lines, domain, operator, start, end=None, type=None):
        if type:
            typed.add(f"{DOMAINS.get(domain, domain)}:{operator}")
    def process_other_line(self, line):
        pass
    def ok(self):
        return True

for file in registrations.get_kernel_registration_files(str(root), False):
    registrations.process_kernel_registration_file(Path(file), Collector())

lists, kept = set(), []
macro = re.compile(r"ORT_SPECIFY_OP_KERNEL_ARG_(DEFAULT|REQUIRED)_TYPE(?:S|_LIST)(_ALL_OPSETS)?\(\s*(.*?)\);", re.S)
for file in (root / "onnxruntime/core/providers/cpu").rglob("*.cc"):
    for kind, every, words in macro.findall(file.read_text()):
        parts = [part.strip() for part in words.split(",")]
        domain, name = DOMAINS[parts[1]], parts[2]
        opset = 1 if every else int(parts[3])
        direction, index, *types = parts[3 if every else 4:]
        if kind == "DEFAULT":
            lists.add(f"{domain}:{name}:{direction.lower()}:{index}")
        else:
            kept.append([name, direction.lower(), int(index), opset, types])

limited, unlimited = {}, []
for name, processor in _create_operator_type_usage_processors().items():
    slots = [("input", index) for index in getattr(processor, "_input_types", ())]
    slots += [("output", index) for index in getattr(processor, "_output_types", ())]
    kind = type(processor).__name__.removesuffix("TypedRegistrationProcessor")
    registered = {"Input1": ("input", 1), "Output0": ("output", 0)}.get(kind, ("input", 0))
    real = [s for s in slots if f"{name}:{s[0]}:{s[1]}" in lists or (name in typed and s == registered)]
    if real:
        limited[name] = real
    elif name in typed:
        unlimited.append(name)
    for index, types in getattr(processor, "_required_input_types", {}).items():
        kept.append([name.split(":")[1], "input", index, 1, sorted(types)])

header = root / "onnxruntime/core/optimizer/layout_transformation/layout_transformation_potentially_added_ops.h"
layout = re.findall(r'OpIdentifierWithStringViews{(\w+), "(\w+)", (\d+)}', header.read_text())
layout = [[DOMAINS[domain], int(opset), name] for domain, name, opset in layout]
versions = (root / "onnxruntime/core/flatbuffers/ort_format_version.h").read_text()
print(json.dumps({"limited": limited, "unlimited": unlimited, "kept": kept, "layout": layout, "versions": versions}))
'''


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    sources = fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / "onnxruntime"
    script = tmp_path_factory.mktemp("read") / "read.py"
    script.write_text(SCRIPT)
    environment = environment_with(packages_folder("tools", tool_requirements()))
    done = run([*ISOLATED_PYTHON, script, sources], environment=environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_limited_inputs_and_outputs_are_upstreams(upstream: dict[str, Any]) -> None:
    """Those with a list of enabled types, or with a registration for each type; OneHot has a rule of its own."""
    read = {tuple(name.split(":")): {tuple(slot) for slot in slots} for name, slots in upstream["limited"].items()}
    assert {key: set(slots) for key, slots in SLOTS.items()} == read
    assert ONE_HOT not in read
    assert upstream["unlimited"] == [":".join(ONE_HOT)], "their kernels for integers would go, unknown to check-compat"


def test_the_types_that_are_always_kept_are_upstreams(upstream: dict[str, Any]) -> None:
    """Each that a macro or a processor names stays with a build whose configuration does not list it."""
    written = [entry for entry in upstream["kept"] if all(kind.islower() and ":" not in kind for kind in entry[4])]
    assert len(written) >= 20
    for name, direction, index, opset, kept in written:
        operator = OperatorId(domain="ai.onnx", opset=opset, name=name)
        slots = ((index, ("double",)),)
        types = OperatorTypes(inputs=slots) if direction == "input" else OperatorTypes(outputs=slots)
        built = InstalledRuntime(
            label="upstream's",
            ort_version=onnxruntime.__version__,
            operators=required_operators([operator], {("ai.onnx", name): types}),
            types_for_optimizers=True,
        )
        allowed = allowed_types(built, operator, (direction, index))
        assert allowed is None or set(kept) <= allowed, (name, opset)
        assert allowed is None or name == "Concat" or allowed <= {"double", *_all_of(written, name, direction, index)}


def _all_of(written: list[Any], name: str, direction: str, index: int) -> set[str]:
    """Return all types that are kept somewhere for an input or output."""
    return {kind for entry in written if entry[:3] == [name, direction, index] for kind in entry[4]}


def test_extended_builds_keep_what_upstream_lists(upstream: dict[str, Any]) -> None:
    """The operators that turning layouts around may add."""
    ours = {(each.domain, each.opset, each.name) for each in layout_operators(onnxruntime.__version__)}
    assert ours == set(map(tuple, upstream["layout"]))


def test_the_format_is_the_one_that_upstream_reads(upstream: dict[str, Any]) -> None:
    """The present version and the one before it."""
    assert "kOrtModelVersion = 6;" in upstream["versions"]
    assert "kOrtModelVersion - 1," in upstream["versions"]
