"""Which models get NCHWc layout, and for which targets, when a buildspec leaves it open."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_samples import model_of, value, write
from ortrim.errors import ToolError
from ortrim.models.convert import Conversion
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.planning import models
from ortrim.planning.planned import Planned, planned_for
from ortrim.planning.request import load
from pipeline_stages import Stages


def weights(name: str, shape: Sequence[int], kind: type = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.ones(shape, kind), name)


def filtering(*filters: int, product: int = 0, constant: bool = False) -> onnx.ModelProto:
    own, spare = weights("w", filters), weights("spare", (product,))
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    if constant:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=own))
    shape = (1, filters[1], *(8 for _ in filters[2:]))
    given = [spare] if constant else [own, spare]
    return model_of(nodes, [value("x", shape=shape)], [value("y", shape=None)], initializers=given)


@pytest.mark.parametrize(
    ("model", "share"),
    [
        (filtering(4, 3, 3, 3), 1.0),
        (filtering(4, 3, 3, 3, constant=True), 1.0),
        (filtering(4, 3, 3, 3, product=324), 0.25),
        (filtering(4, 3, 3), 0.0),
    ],
    ids=["alone", "as Constant", "beside a product", "along one axis"],
)
def test_the_share_of_convolutions_is_that_of_their_weights(model: onnx.ModelProto, share: float) -> None:
    """Those along two axes, however the exporter writes their weights."""
    assert facts_of(model, sha256="", size_bytes=1, where="m").convolution_share == pytest.approx(share)


class Conversions:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, str]] = []
        convert = vars(models)["convert"]

        def noted(model: PreparedModel, conversion: Conversion, **options: object) -> OrtModel:
            self.seen.append((conversion.level, conversion.layout))
            made: OrtModel = convert(model, conversion, **options)
            return made

        monkeypatch.setattr(models, "convert", noted)
        monkeypatch.setattr(models, "converter_for", lambda _layout, runtime, _where: runtime)


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch, stages: Stages) -> Conversions:
    """Make the sample's model one of convolutions, on a machine that can convert it."""
    write(stages.folder / "tiny.onnx", filtering(8, 8, 3, 3))
    return Conversions(monkeypatch)


NCHWC8, PLAIN = ("all", "nchwc8"), ("extended", "plain")


def planned(stages: Stages, body: str = "", **changes: object) -> Planned:
    return planned_for(stages.request(body, **changes), stages.console)


def test_a_model_of_convolutions_gets_nchwc_layout_for_linux_on_x64(stages: Stages, conversions: Conversions) -> None:
    """Without a word in the buildspec; what was chosen is said, with the way out."""
    plan = planned(stages).plan
    assert conversions.seen == [NCHWC8]
    assert [model.layout for model in plan.models] == ["nchwc8"]
    assert plan.targets[0].job.nchwc_block_size == 8
    assert "tiny: in NCHWc layout" in stages.stdout.getvalue()
    assert "layout = 'plain'" in stages.stdout.getvalue()


def test_each_target_of_a_build_has_the_model_that_it_runs_best(stages: Stages, conversions: Conversions) -> None:
    made = planned(stages, target="linux-x64,linux-arm64")
    x64, arm64 = (target.job for target in made.plan.targets)
    assert conversions.seen == [NCHWC8, PLAIN]
    assert [made.plan.models_for(job.target)[0].layout for job in (x64, arm64)] == ["nchwc8", ""]
    assert made.models.for_target(x64.target) is not made.models.for_target(arm64.target)
    assert (x64.nchwc_block_size, arm64.nchwc_block_size) == (8, 0)
    assert x64 == planned(stages).plan.targets[0].job
    assert arm64 == planned(stages, target="linux-arm64").plan.targets[0].job


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ("", {"target": "linux-arm64"}),
        ("", {"target": "android-x86_64"}),
        ("", {"profile": "size"}),
        ('layout = "plain"\n', {}),
        ('style = "runtime"\n', {}),
        ('level = "basic"\n', {}),
    ],
)
def test_otherwise_it_stays_as_it_is(
    stages: Stages, conversions: Conversions, body: str, changes: dict[str, object]
) -> None:
    plan = planned(stages, body, **changes).plan
    assert [model.layout for model in plan.models] == [""]
    assert {layout for _, layout in conversions.seen} == {"plain"}


def test_block_size_8_is_not_chosen_beside_block_size_16(stages: Stages, conversions: Conversions) -> None:
    write(stages.folder / "wide.onnx", filtering(16, 16, 3, 3))
    wide = 'level = "all"\nlayout = "nchwc16"\n[[targets]]\nid = "linux-x64"\ncpu = "x86-64-v4"\n'
    plan = planned(stages, f'[[models]]\nname = "wide"\npath = "wide.onnx"\n{wide}').plan
    assert [model.layout for model in plan.models] == ["", "nchwc16"]


def test_few_convolutions_pay_for_no_kernels(stages: Stages, conversions: Conversions) -> None:
    """As where a transformer cuts an image into pieces."""
    write(stages.folder / "tiny.onnx", filtering(8, 8, 3, 3, product=50_000))
    assert [model.layout for model in planned(stages).plan.models] == [""]
    assert conversions.seen == [PLAIN]


def test_a_machine_that_cannot_convert_says_what_it_takes(
    stages: Stages, conversions: Conversions, monkeypatch: pytest.MonkeyPatch
) -> None:

    def refuse(*_: object) -> None:
        raise ToolError("tool-missing", "is not installed", where="qemu-x86_64-static", hint="run: apt-get install it")

    monkeypatch.setattr(models, "converter_for", refuse)
    assert [model.layout for model in planned(stages).plan.models] == [""]
    assert conversions.seen == [PLAIN]
    said = " ".join(stages.stdout.getvalue().split())
    assert "tiny: not in NCHWc layout" in said
    assert "qemu-x86_64-static is not installed; run: apt-get install it" in said


def test_a_conversion_that_was_asked_for_is_kept(stages: Stages, conversions: Conversions, tmp_path: Path) -> None:
    """`convert` is for no target: what it writes runs everywhere."""
    models.converted_models(load(stages.request()), stages.console)
    assert conversions.seen == [PLAIN]
