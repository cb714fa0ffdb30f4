"""What is known of a pair before it runs: models in numbers, outputs that agree, the steps' largest difference."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from footprint.record import Library
from preparation import proof as module
from preparation.proof import figures_of, largest_difference, proved
from preparation.record import ModelFigures
from preparation.subject import GIVEN, PREPARED, Pair

from footprint_samples import TimedDevice, library
from ortrim.errors import OperatorsError
from preparation_samples import built_model, built_subject

CONFIG = "ai.onnx;13;Add,Gemm\nai.onnx;14;Add\ncom.microsoft;1;FusedConv\n"


def report(*steps: tuple[str, float | None]) -> Any:
    """Return a report of steps with an outcome and a difference each."""
    return SimpleNamespace(
        steps=[SimpleNamespace(outcome=outcome, largest_difference=largest) for outcome, largest in steps]
    )


def library_of(_subject: Any, _contender: str, path: Path, agree: tuple[bool, ...]) -> Library:
    """Return a library that is named like its file."""
    return replace(library(path.name, 9), outputs=len(agree), outputs_agree=sum(agree))


def test_an_operator_at_several_opsets_is_one_type(tmp_path: Path) -> None:
    """One of each domain."""
    assert figures_of(built_model(tmp_path, size=100, config=CONFIG)) == ModelFigures(
        onnx_bytes=100, nodes=9, operator_types=3, ort_bytes=50
    )


def test_a_configuration_that_is_none_is_refused(tmp_path: Path) -> None:
    """It would count as fewer types."""
    with pytest.raises(OperatorsError):
        figures_of(built_model(tmp_path, size=100, config="ai.onnx;thirteen;Add\n"))


@pytest.mark.parametrize(("steps", "expected"), [
    ((), None),
    ((("changed", 0.0),), 0.0),
    ((("changed", 2e-6), ("unchanged", None), ("changed", 1e-6)), 2e-6),
    ((("changed", 1e-6), ("left out", 9.0)), 1e-6),
    ((("left out", 9.0),), None),
])  # fmt: skip
def test_the_largest_difference_is_that_of_steps_that_were_done(
    steps: tuple[tuple[str, float | None], ...], expected: float | None
) -> None:
    """One that broke parity was left out."""
    assert largest_difference(report(*steps)) == expected


def test_a_model_without_steps_has_no_difference() -> None:
    """None was checked."""
    assert largest_difference(None) is None


def test_every_models_outputs_are_counted_and_those_of_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those of the prepared models, with their own library."""
    asked = []

    def agreements(subject: Any, contender: str, model: Any, _device: Any) -> list[bool]:
        asked.append((subject.libraries[contender].path.name, model.prepared.facts.size_bytes))
        return [True, model.prepared.facts.size_bytes == 90]

    monkeypatch.setattr(module, "agreements", agreements)
    monkeypatch.setattr(module, "library_of", library_of)
    given = [built_model(tmp_path, size=size, config=CONFIG) for size in (100, 200)]
    prepared = [built_model(tmp_path, size=size, config="ai.onnx;13;Add\n") for size in (90, 190)]
    pair = Pair(
        given=built_subject(tmp_path, GIVEN, *given),
        prepared=built_subject(tmp_path, PREPARED, *prepared),
        reports=(report(("changed", 1e-6)), None),
    )
    contests = pair.contests()
    libraries, changes = proved(pair, contests, TimedDevice())  # type: ignore[arg-type]
    assert [(each.contender, each.outputs, each.outputs_agree) for each in libraries] == [
        ("given.so", 0, 0), ("prepared.so", 4, 3),
    ]  # fmt: skip
    assert asked == [("prepared.so", 90), ("prepared.so", 190)]
    assert [(each.outputs, each.outputs_agree, each.largest_difference) for each in changes] == [
        (2, 2, 1e-6), (2, 1, None),
    ]  # fmt: skip
    assert [(each.given.operator_types, each.prepared.operator_types) for each in changes] == [(3, 1), (3, 1)]
    assert [each.key for each in changes] == [contest.key for contest in contests]
