"""What is known of a pair before it runs in turn: libraries and models in numbers, and whether outputs agree."""

from collections.abc import Sequence
from itertools import chain

from footprint.contenders import Contest
from footprint.libraries import agreements, library_of
from footprint.record import Library
from footprint.subject import Model

from ortrim.devices.device import ProgramDevice
from ortrim.models.operators import parse_config
from ortrim.steps.report import PreparationReport
from preparation.record import Change, ModelFigures
from preparation.subject import GIVEN, PREPARED, Pair


def proved(
    pair: Pair, contests: Sequence[Contest], device: ProgramDevice
) -> tuple[tuple[Library, ...], tuple[Change, ...]]:
    """Return both libraries, and what changed in each model; every output of the prepared ones is checked."""
    given, prepared = pair.given, pair.prepared
    agree = [tuple(agreements(prepared, PREPARED, model, device)) for model in prepared.models]
    libraries = (
        library_of(given, GIVEN, given.libraries[GIVEN].path, ()),
        library_of(prepared, PREPARED, prepared.libraries[PREPARED].path, tuple(chain.from_iterable(agree))),
    )
    together = zip(contests, given.models, prepared.models, pair.reports, agree, strict=True)
    return libraries, tuple(_change(*each) for each in together)


def figures_of(model: Model) -> ModelFigures:
    """Return a model in numbers; an operator that it needs at several opsets is one type."""
    operators = parse_config(model.converted.config).operators
    return ModelFigures(
        onnx_bytes=model.prepared.facts.size_bytes,
        nodes=model.prepared.facts.node_count,
        operator_types=len({(operator.domain, operator.name) for operator in operators}),
        ort_bytes=model.converted.size_bytes,
    )


def largest_difference(report: PreparationReport | None) -> float | None:
    steps = report.steps if report else ()
    found = [step.largest_difference for step in steps if step.outcome != "left out"]
    return max((each for each in found if each is not None), default=None)


def _change(
    contest: Contest, given: Model, prepared: Model, report: PreparationReport | None, agree: tuple[bool, ...]
) -> Change:
    return Change(
        spec=contest.spec,
        model=contest.model,
        key=contest.key,
        given=figures_of(given),
        prepared=figures_of(prepared),
        outputs=len(agree),
        outputs_agree=sum(agree),
        largest_difference=largest_difference(report),
    )
