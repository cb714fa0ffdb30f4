"""Whether conversion keeps what a model computes, and the highest level at which it does: found before compiling."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Literal

from ortrim.base.cache import cache_folder
from ortrim.base.console import counted
from ortrim.buildspec.buildspec import (
    BLOCKS,
    BuildSpec,
    ModelSpec,
    SessionSettings,
    SessionSpec,
    session_of,
    settings_of,
)
from ortrim.devices.host import saturates_here
from ortrim.errors import ConvertError, Diagnostic, ModelError, OperatorsError, ParityError, VerifyError
from ortrim.models.convert import Conversion, convert
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.refusals import cause_of
from ortrim.parity import float_products
from ortrim.parity.compare import is_drawn
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import OutputParity
from ortrim.parity.random_numbers import without_draws
from ortrim.parity.reference import reference_outputs, shipped_outputs
from ortrim.planning.models import one_axis_of
from ortrim.steps.parity import tolerances_for
from ortrim.verify.target import ModelUnderTest, changed_by_conversion

Level = Literal["all", "extended", "basic", "disable"]
LEVELS: Final[tuple[Level, ...]] = ("all", "extended", "basic", "disable")
"""Optimization levels, the highest first."""


def subject_of(
    prepared: PreparedModel,
    converted: OrtModel,
    spec: ModelSpec,
    session: SessionSettings,
    cases: tuple[Case, ...],
    *,
    runtime: FullRuntime,
) -> ModelUnderTest:
    """Return a model with the full runtime's outputs of it, as given and as it ships, which are kept in the cache."""
    folder = cache_folder("references")
    reference = reference_outputs(prepared, cases, runtime, folder)
    runs_here = spec.layout not in BLOCKS
    shipped = shipped_outputs(prepared, converted, session, cases, runtime=runtime, folder=folder, runs_here=runs_here)
    return ModelUnderTest(
        prepared=prepared,
        converted=converted,
        spec=spec,
        cases=cases,
        reference=reference,
        same_graph=shipped,
        session=session,
    )


def with_draws_given(subject: ModelUnderTest, runtime: FullRuntime) -> ModelUnderTest:
    """Return a model with that by which its outputs are judged that depend on random numbers, if that can be made.

    That the full runtime does not take the model so made says nothing of the model itself.
    """
    if not any(is_drawn(output) for case in subject.reference.cases for output in case.outputs):
        return subject
    with suppress(ConvertError, ModelError, OperatorsError, VerifyError):
        made = without_draws(subject.prepared, subject.cases, runtime, cache_folder("references"))
        return replace(subject, draws_given=_draws_given(subject, *made, runtime)) if made else subject
    return subject


def with_float_products(subject: ModelUnderTest, runtime: FullRuntime) -> ModelUnderTest:
    """Return a model with the copy by which it is judged where kernels round what they multiply, if any do."""
    made = float_products.with_float_products(subject.prepared, subject.converted, cache_folder("references"))
    if made is None:
        return subject
    copy = subject_of(*made, subject.spec, subject.session, subject.cases, runtime=runtime)
    return replace(subject, float_products=copy)


def _draws_given(
    subject: ModelUnderTest, prepared: PreparedModel, cases: tuple[Case, ...], runtime: FullRuntime
) -> ModelUnderTest:
    spec = subject.spec
    assert spec.layout != "auto"
    two_axes = subject.converted.two_axes
    conversion = Conversion(style=spec.style, level=spec.level, layout=spec.layout, two_axes=two_axes)
    converted = convert(prepared, conversion, runtime=runtime, root=cache_folder("conversions"))
    return subject_of(prepared, converted, spec, subject.session, cases, runtime=runtime)


def changed_outputs(
    subjects: Sequence[ModelUnderTest], spec: BuildSpec, runtime: FullRuntime, *, here: bool
) -> tuple[ParityError, ...]:
    """Return a diagnostic for each model whose outputs conversion changes, which names the level that does not.

    `here` says that this machine is one of those that run the library: int8 products that saturate here say nothing of
    others.
    """
    found = []
    for subject in subjects:
        if _is_representative(subject, here=here) and (changed := changed_by_conversion(subject)):
            own = session_of(spec, subject.spec)
            two_axes = one_axis_of(subject.prepared, subject.cases, spec.profile).anywhere
            level = _highest(subject.prepared, subject.spec, own, subject.cases, runtime, two_axes=two_axes)
            found.append(_diagnostic(subject, changed, level))
    return tuple(found)


def lower_level(
    prepared: PreparedModel,
    spec: ModelSpec,
    cases: tuple[Case, ...],
    runtime: FullRuntime,
    *,
    profile: str | None,
) -> tuple[Level, str] | None:
    """Return the highest level that keeps a model's outputs, and what its own does to them; None if there is nothing.

    That even the original does not run is for a build to say.
    """
    try:
        reference_outputs(prepared, cases, runtime, cache_folder("references"))
    except Diagnostic:
        return None
    two_axes = one_axis_of(prepared, cases, profile).anywhere
    try:
        subject = _converted_at(spec, prepared, SessionSpec(), cases, runtime, two_axes=two_axes)
        changed = changed_by_conversion(subject) if _is_representative(subject, here=False) else ()
        words = f"changes {_named(changed)}: {_worst(changed).reason}" if changed else ""
    except Diagnostic as error:
        known = cause_of(error.why, converted=True)
        words = f"fails: {known.what if known else (error.why or error.what).splitlines()[-1]}"
    level = _highest(prepared, spec, SessionSpec(), cases, runtime, two_axes=two_axes) if words else None
    return None if level is None else (level, words)


def _is_representative(subject: ModelUnderTest, *, here: bool) -> bool:
    return here or not (subject.reference.quantized and saturates_here())


def _highest(
    prepared: PreparedModel,
    spec: ModelSpec,
    session: SessionSpec,
    cases: tuple[Case, ...],
    runtime: FullRuntime,
    *,
    two_axes: tuple[str, ...],
) -> Level | None:
    """Return the highest level below a model's own that keeps its outputs, or its own if it has another layout.

    `two_axes` are the convolutions that a build gives two axes at each level.
    """
    for level in LEVELS[LEVELS.index(spec.level) + (spec.layout == "plain") :]:
        try:
            lower = replace(spec, level=level, layout="plain")
            subject = _converted_at(lower, prepared, session, cases, runtime, two_axes=two_axes)
        except Diagnostic:
            continue
        if not changed_by_conversion(subject):
            return level
    return None


def _converted_at(
    spec: ModelSpec,
    prepared: PreparedModel,
    session: SessionSpec,
    cases: tuple[Case, ...],
    runtime: FullRuntime,
    *,
    two_axes: tuple[str, ...],
) -> ModelUnderTest:
    conversion = Conversion(style=spec.style, level=spec.level, two_axes=two_axes)
    converted = convert(prepared, conversion, runtime=runtime, root=cache_folder("conversions"))
    settings = settings_of(session, style=spec.style, reads_in_place=converted.reads_in_place)
    return subject_of(prepared, converted, spec, settings, cases, runtime=runtime)


def _named(changed: Sequence[OutputParity]) -> str:
    return f"output '{_worst(changed).output}' of case '{_worst(changed).case}'"


def _worst(changed: Sequence[OutputParity]) -> OutputParity:
    return max(changed, key=lambda each: each.max_absolute)


def _diagnostic(subject: ModelUnderTest, changed: Sequence[OutputParity], level: Level | None) -> ParityError:
    worst, spec = _worst(changed), subject.spec
    what = f"conversion at level = '{spec.level}' changes {_named(changed)}"
    why = (
        f"{worst.reason}\nin the full runtime, before anything is compiled: largest difference {worst.max_absolute:.3g}"
        f" (relative {worst.max_relative:.3g}); {counted(len(changed), 'output')} of all cases out of tolerance"
    )
    layout = "" if spec.layout == "plain" else ' and layout = "plain"'
    ways = [f'write level = "{level}"{layout} for this model, which keeps them'] if level else []
    ways += [f"allow the difference: {allowed}"] if (allowed := tolerances_for(worst)) else []
    hint = "; or ".join(ways) or "choose another onnxruntime.version"
    where = f"model '{subject.prepared.name}'"
    return ParityError("conversion-changes-outputs", what, where=where, why=why, hint=hint)
