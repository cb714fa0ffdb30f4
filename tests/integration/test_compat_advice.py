"""Each change that `check-compat` names is made, as its words say, and the model is held against the runtime again."""

import ast
import dataclasses
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import onnx
import pytest
from onnx import TensorProto, helper, version_converter
from onnxruntime.tools.reduced_build_config_parser import parse_config as parsed_by_upstream

from judged_models import DEMO, changed, fused
from onnx_samples import model_of, value, write
from ortrim.analysis import compat as check_module
from ortrim.analysis.compat import CompatibilityAnswer, ModelAnswer, Trials, check_compatibility, failure_of
from ortrim.analysis.compat_runtime import read_runtime
from ortrim.base.console import Console
from ortrim.models.convert import Conversion
from ortrim.planning.request import Request, load

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE
GLOBAL: Final = "!globally_allowed_types;float\nai.onnx;13;Gemm\nai.onnx;14;Relu\n"
EVERYTHING: Final = "!globally_allowed_types;float\n!no_ops_specified_means_all_ops_are_required\n"


def one(operator: str, kind: int = FLOAT, opset: int = 18) -> onnx.ModelProto:
    ends = [value("x", kind, (2, 2))], [value("y", kind, None)]
    return model_of([helper.make_node(operator, ["x"], ["y"])], *ends, opsets=[("", opset)])


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A model that was held against a configuration; `again` does it anew with others."""

    folder: Path
    model: Path
    config: str
    answer: CompatibilityAnswer

    def again(self, config: str = "", model: Path | None = None) -> CompatibilityAnswer:
        return checked(self.folder, config or self.config, model or self.model)


def checked(folder: Path, config: str, model: Path) -> CompatibilityAnswer:
    """Hold a model against a configuration, which upstream's own parser has to take as well."""
    path = folder / "theirs.config"
    path.write_text(config)
    parsed_by_upstream(str(path), enable_type_reduction=True)
    return check_compatibility(path, [model], Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={}))


def with_configuration(given: Checked) -> CompatibilityAnswer:
    """Append the lines, and replace that of global types."""
    return given.again(config=changed(given.config, given.answer.change, given.answer.replacement))


def with_buildspec(given: Checked) -> CompatibilityAnswer:
    """Append the lines to a buildspec, and hold the model against what that builds."""
    spec = given.folder / "more.toml"
    spec.write_text(f'[[targets]]\nid = "linux-x64"\n{given.answer.buildspec}')
    (model,) = load(Request(spec=spec)).models
    assert model.path is not None
    return with_configuration(dataclasses.replace(given, model=spec.parent / model.path))


def converted_as_said(given: Checked) -> CompatibilityAnswer:
    """Convert with the style and level that are named, and hold the file against the runtime as it is."""
    style, level = re.findall(r"'(\w+)'", given.answer.models[0].remedies[0])
    trials = Trials(read_runtime(given.folder / "theirs.config", None))
    made = trials.convert(trials.prepare(given.model), Conversion(style=style, level=level))
    ort = given.folder / "model.ort"
    ort.write_bytes(made.path.read_bytes())
    return given.again(model=ort)


def exported_as_said(given: Checked) -> CompatibilityAnswer:
    (opset,) = re.findall(r"opset (\d+)", given.answer.models[0].remedies[0])
    return given.again(
        model=write(given.folder / "other.onnx", version_converter.convert_version(onnx.load(given.model), int(opset)))
    )


@dataclass(frozen=True, kw_only=True)
class Advice:
    """An example of advice: the model and configuration that lead to it, and what is done then."""

    model: Callable[[], onnx.ModelProto]
    config: str
    apply: Callable[[Checked], CompatibilityAnswer]


TRIED: Final[dict[str, tuple[Advice, ...]]] = {
    "change": tuple(
        Advice(model=lambda kind=kind: one(*kind), config=config, apply=with_configuration)  # type: ignore[misc]
        for kind in (("Sigmoid",), ("Relu", DOUBLE))
        for config in (DEMO, GLOBAL)
    ),
    "replacement": tuple(
        Advice(model=lambda: one("Relu", DOUBLE), config=config, apply=with_configuration)
        for config in (GLOBAL, EVERYTHING)
    ),
    "buildspec": (Advice(model=lambda: one("Sigmoid"), config=DEMO, apply=with_buildspec),),
    "convert it with ": (Advice(model=fused, config=DEMO, apply=converted_as_said),),
    "export it with opset ": (
        Advice(model=lambda: one("Relu", opset=13), config=DEMO, apply=exported_as_said),
        Advice(model=lambda: one("Flatten", opset=23), config="ai.onnx;21;Flatten\n", apply=exported_as_said),
    ),
    "ship a runtime with the smallest change named above": (
        Advice(model=lambda: one("Relu", DOUBLE), config=EVERYTHING, apply=with_configuration),
    ),
    "without a new runtime: ": (Advice(model=fused, config=DEMO, apply=converted_as_said),),
}
"""By the field of the answer, or by how the words begin."""
NOT_HERE: Final = {
    "ship another model": "it names no change",
    "change the model as it says": "test_refusals.py does what the hints of refusals say",
    "conditions": "test_conversions.py loads a model with sparse weights as they say",
}
FACTS: Final = {
    "schema", "runtime", "ort_version", "targets", "fits", "models",
    "model", "conversion", "operators", "obstacles", "unknowns", "remedies", "code", "exit_code",
}  # fmt: skip
"""Fields that name no change, or whose words are told apart by how they begin."""


def beginnings() -> set[str]:
    """Return how the words of advice begin that `check-compat` can give: its remedies and its hints."""
    tree = ast.parse(Path(check_module.__file__).read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    remedies = [node for function in functions if "remedies" in function.name for node in ast.walk(function)]
    said = [node.value for node in remedies if isinstance(node, ast.Yield)]
    (hints,) = (function for function in functions if function.name == "_hint")
    for node in ast.walk(hints):
        if isinstance(node, ast.Return):
            said += [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
    texts = [part.values[0] if isinstance(part, ast.JoinedStr) else part for part in said]
    return {str(text.value) for text in texts if isinstance(text, ast.Constant)}


def test_no_advice_is_untried() -> None:
    """Whatever the answer can name has an example and a function that does it."""
    fields = {field.name for kind in (CompatibilityAnswer, ModelAnswer) for field in dataclasses.fields(kind)}
    assert beginnings() | (fields - FACTS) == {*TRIED, *NOT_HERE}
    assert len(NOT_HERE) == 3


@pytest.mark.parametrize(
    ("kind", "number"), [(kind, number) for kind, each in TRIED.items() for number in range(len(each))]
)
def test_what_is_advised_makes_the_model_fit(
    kind: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was said, without a second thought."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    advice = TRIED[kind][number]
    path = write(tmp_path / "new.onnx", advice.model())
    answer = checked(tmp_path, advice.config, path)
    failure = failure_of(answer)
    assert failure is not None
    (found,) = answer.models
    said = {getattr(answer, kind)} if hasattr(answer, kind) else {*found.remedies, failure.hint}
    assert any(words and words.startswith(kind if not hasattr(answer, kind) else "") for words in said)
    assert advice.apply(Checked(folder=tmp_path, model=path, config=advice.config, answer=answer)).fits
