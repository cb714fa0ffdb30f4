"""What each operator's kernels add to a library: the table with which `ortrim plan` predicts sizes.

usage: library_sizes.py SPEC...

Each SPEC is built for linux-x64, and once the library of all operators, unless they were built before. Prints
`src/ortrim/resources/prediction/sizes.toml` without its factors, and on standard error how far each build is from what
the others say of it. Takes some minutes for each build.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import linear_regression, mean, median
from typing import Final

import onnx.defs

from ortrim.base.console import Console
from ortrim.compiling.plan import PlannedTarget
from ortrim.compiling.translation_units import Variant, shipped_index
from ortrim.models.operators import OperatorId, parse_config, render_config, required_operators
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import Planned, planned_for
from ortrim.planning.planner import with_arguments
from ortrim.planning.prediction import is_quantized
from ortrim.planning.request import Request
from ortrim.size.accounting import account, by_operator, shares

TARGET: Final = "linux-x64"
NEWEST: Final = {"ai.onnx": 22, "ai.onnx.ml": 3}
"""The opsets of the index's version of ONNX Runtime."""
TYPES: Final = ("bool", "float", "int32_t", "int64_t", "int8_t", "uint8_t")
VARIANT: Final = Variant(ort_version="1.21.0", target=TARGET, toolchain="zig", exceptions=False)


@dataclass(frozen=True, kw_only=True)
class Built:
    """A library's size, and the bytes of its operators' kernels; those of several are divided among all."""

    size_bytes: int
    operators: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A table: bytes of a library as `base` and those of its operators; see `pipeline.prediction.SizeTable`."""

    base: float
    operators: Mapping[str, float]
    other: float
    quantized: float

    def predicted(self, built: Built) -> float:
        """Return the bytes that the table says a library with these operators has."""
        own = built.operators
        kernels = sum(self.operators.get(each, self.other) for each in own)
        return self.base + kernels + self.quantized * is_quantized(own)


def main() -> None:
    """Build, and print the table and its errors."""
    console = Console(json_mode=True)
    plans = [planned_for(Request(spec=Path(word), target=TARGET), console) for word in sys.argv[1:]]
    everything = _built(plans[0], _of_everything(plans[0].plan.targets[0]), console)
    builds = {planned.plan.spec_name: _built(planned, planned.plan.targets[0], console) for planned in plans}
    for name, built in builds.items():
        fit = _fit({other: each for other, each in builds.items() if other != name}, everything)
        share = fit.predicted(built) / built.size_bytes - 1
        console.note(f"{name}: {built.size_bytes:,} bytes, predicted {100 * share:+.1f} %")
    console.result(_text(_fit(builds, everything)))


def _of_everything(target: PlannedTarget) -> PlannedTarget:
    index = shipped_index(VARIANT)
    assert index is not None
    known = map(_newest, index.kernels)
    operators = [OperatorId(domain=domain, opset=opset, name=name) for domain, name, opset in known if opset]
    operators = [each for each in operators if each.name != "StringNormalizer"]  # it needs wide characters, too
    config = render_config(required_operators(operators, {}, globally_allowed_types=TYPES))
    return replace(target, job=with_arguments(replace(target.job, operator_config=config, without_types=())))


def _newest(kernel: tuple[str, object]) -> tuple[str, str, int]:
    domain, _, name = kernel[0].partition(":")
    if domain == "com.microsoft":
        return domain, name, 1
    try:
        schema = onnx.defs.get_schema(name, NEWEST.get(domain, 0), "" if domain == "ai.onnx" else domain)
    except onnx.defs.SchemaError:
        return domain, name, 0
    return domain, name, schema.since_version


def _built(planned: Planned, target: PlannedTarget, console: Console) -> Built:
    with console.step("build") as step:
        result = executor_for(planned, target, Request(spec=Path()), step).run(target.job)
    accounting = account(result.library, result.link_map, shipped_index(VARIANT))
    own = [f"{each.domain}:{each.name}" for each in parse_config(target.job.operator_config).operators]
    found = {share.name[0]: share.size_bytes for share in shares(accounting.leaves, by_operator)}
    several = sum(size for name, size in found.items() if name.startswith("several in")) / len(set(own))
    return Built(
        size_bytes=accounting.file_bytes,
        operators={name: found.get(name.removeprefix("ai.onnx:"), 0) + several for name in own},
    )


def _fit(builds: Mapping[str, Built], everything: Built) -> Fit:
    seen = defaultdict(list)
    for built in builds.values():
        for name, size in built.operators.items():
            seen[name].append(size)
    sizes = {name: mean(found) for name, found in seen.items()}
    share = median(size / everything.operators[name] for name, size in sizes.items() if everything.operators.get(name))
    largest = max(sizes.values())  # with the types of models; that library has all types of each operator
    sizes = {name: min(share * size, largest) for name, size in everything.operators.items()} | sizes
    kernels = {name: sum(sizes[each] for each in built.operators) for name, built in builds.items()}
    plain = [name for name, built in builds.items() if not is_quantized(built.operators)]
    slope, base = linear_regression([kernels[name] for name in plain], [builds[name].size_bytes for name in plain])
    excess = [
        built.size_bytes - base - slope * kernels[name]
        for name, built in builds.items()
        if is_quantized(built.operators)
    ]
    return Fit(
        base=base,
        operators={name: slope * size for name, size in sizes.items()},
        other=slope * median(sizes.values()),
        quantized=mean(excess) if excess else 0.0,
    )


def _text(fit: Fit) -> str:
    lines = [f"{name} = {round(getattr(fit, name)):_}" for name in ("base", "other", "quantized")]
    lines += ["", "[operators]", *(f'"{name}" = {round(size):_}' for name, size in sorted(fit.operators.items()))]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
