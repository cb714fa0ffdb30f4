"""From a request to a plan, with the models converted, the cases made and the sources known; and the plan written down.

What is written is read again as long as its inputs are the same. What is read decides nothing that is run: compilers,
arguments and scripts are decided again from it, which takes no time, and have to be what was written.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Final, Literal

from ortrim import binaries, compiling, sources
from ortrim.base.build_bundle import site_bundle
from ortrim.base.cache import SeenFiles, seen_in
from ortrim.base.console import Console
from ortrim.base.files import code_digest, shipped_folder, storage_errors, write_atomically
from ortrim.base.json import from_json, to_canonical_json, to_json
from ortrim.buildspec import buildspec
from ortrim.buildspec.targets import CPUS, TARGETS
from ortrim.compiling.dead_kernels import few_bits, unused_types
from ortrim.compiling.plan import BuildPlan, PlannedModel, PlannedTarget, Toolchain, digest
from ortrim.compiling.upstream_arguments import optional_sources, require_possible
from ortrim.errors import Diagnostic, StorageError, UsageError, VerifyError
from ortrim.models.graph_facts import STRING_NORMALIZER, locale_of, node_facts
from ortrim.models.hot_operators import hot_file, required_of
from ortrim.models.onnx_files import read_onnx
from ortrim.models.operators import NCHWC
from ortrim.models.ort_format import read_uses
from ortrim.models.prepare import StoredModel, read_facts
from ortrim.models.refusals import LOCALE_HINT
from ortrim.parity.inputs import Case
from ortrim.parity.reference import cases_made
from ortrim.pins.runtime import SourcePin
from ortrim.pins.shipped import image_pins, tool_versions
from ortrim.planning import request as asked_for
from ortrim.planning.devices import require_devices
from ortrim.planning.models import Models, converted_models
from ortrim.planning.planner import AVX512, Contents, PlanInput, make_plan
from ortrim.planning.request import (
    Inputs,
    Latest,
    Request,
    files_of,
    inputs_of,
    keep_latest,
    latest_of,
    load,
    not_built,
    plan_folder,
    require_host,
    targets_of,
    toolchains_of,
    with_defaults,
)
from ortrim.platforms import by_platform, platform_of
from ortrim.platforms.android import jni
from ortrim.sources.sources import AUTO_ORDER, SourceTree, fetch_sources

PLAN: Final = "plan.json"


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan and what it was made from; `cases` are those of each model, in the models' order."""

    inputs: Inputs
    given: PlanInput
    models: Models
    cases: tuple[tuple[Case, ...], ...]
    sources: SourceTree
    plan: BuildPlan
    folder: Path


def target_folder(planned: Planned, target: PlannedTarget) -> Path:
    """Return the folder that holds a target's report, and its package if that is its own."""
    return planned.folder / target.identifier


def planned_for(request: Request, console: Console, *, to_run: bool = False) -> Planned:
    """Read the plan of what is asked for, or make and write it.

    What can be refused without work is refused first: targets that do not exist or, when the result is `to_run`
    here, have no compiler, no image to compile in or no device, and devices that do not exist; then cases that do not
    fit the models.
    """
    return make_planned(looked_at(request, console, to_run=to_run), request, console)


def looked_at(request: Request, console: Console, *, to_run: bool = False) -> Inputs:
    """Return what a plan is decided from, or refuse what needs no look at a model to be refused."""
    loaded = load(request)
    for note in loaded.notes:
        console.note(note)
    inputs = inputs_of(loaded, possible_targets(loaded, request, to_run=to_run, note=console.note), request)
    for each, own in by_platform(inputs.loaded.targets, lambda target: target.target):
        for warning in each.warnings(loaded, own, request):
            console.warn(warning)
    if to_run and request.container is not None:
        pins = image_pins()
        for identifier, toolchain in inputs.toolchains.items():
            platform_of(TARGETS[identifier]).images().require_image(toolchain, pins)
    return inputs


def possible_targets(
    loaded: buildspec.LoadedSpec, request: Request, *, to_run: bool, note: Callable[[str], None] = lambda _: None
) -> tuple[buildspec.TargetSpec, ...]:
    """Return the targets of a request, or refuse what needs no look at a model to be refused."""
    host = require_host() if to_run and not request.elsewhere else asked_for.host_target()
    targets = targets_of(loaded, request, note)
    for target in targets:
        for provider in buildspec.providers_of(loaded, target):
            require_possible(target.target, loaded.onnxruntime.version, provider)
    _require_extra_packages(loaded, targets, request)
    if (bundle := site_bundle()) is not None:
        bundle.require(loaded.onnxruntime.version, tuple(target.id for target in targets))
    if to_run:
        # What was written wrong is said before what has to be installed.
        require_devices(targets, request, host)
        for each, own in by_platform(targets, lambda target: target.target):
            each.require_tools(loaded, own, request)
    return targets


TARGETS_OF: Final[Mapping[buildspec.ExtraPackage, str]] = {
    "wheel": "a Linux target, with linkage = 'shared'",
    "unity": "linux-x64, Android's, macOS's, or iOS's with apple.framework = 'static'",
}
"""The targets that can have a package, in words."""


def _require_extra_packages(
    loaded: buildspec.LoadedSpec, targets: Sequence[buildspec.TargetSpec], request: Request
) -> None:
    """Refuse a package that a command asks for and no target of it can have."""
    own = ((target, platform_of(target.target)) for target in targets)
    possible = {
        name for target, each in own for name in each.extra_packages(target.target, each.linkage(loaded, target))
    }
    for package in request.packages:
        if package not in possible:
            what = f"none of {', '.join(target.id for target in targets)} can have the package {package}"
            raise UsageError("no-such-package", what, where="--package", hint=f"choose {TARGETS_OF[package]}")


@dataclass(frozen=True, kw_only=True)
class WrittenPlan:
    """`plan.json`: a plan, and what it was decided from beside the buildspec and this machine's tools."""

    schema: Literal["ortrim-written-plan/1"] = "ortrim-written-plan/1"
    contents: Contents
    nchwc: Contents | None
    sources: tuple[SourcePin, ...]
    plan: BuildPlan


def read_plan(inputs: Inputs, output: Path) -> WrittenPlan:
    """Return the latest plan of some inputs."""
    latest = latest_of(inputs, output)
    path = plan_folder(inputs.loaded.name, latest.plan, output) / PLAN
    try:
        with storage_errors(path):
            written = from_json(WrittenPlan, path.read_bytes())
        again = decide(_given(inputs, written.contents, written.nchwc), inputs.toolchains, written.sources)
    except (Diagnostic, LookupError, ValueError) as error:
        raise not_built(inputs, f"{path} is missing, damaged, or of another version") from error
    if not digest(again) == digest(written.plan) == latest.plan:
        raise not_built(inputs, f"{path} is not the plan that this version of ortrim makes")
    return written


def plan_for(request: Request, console: Console) -> BuildPlan:
    """Return the plan of what is asked for alone: without a look at models, if it is written down."""
    inputs = looked_at(request, console)
    try:
        return read_plan(inputs, request.output).plan
    except VerifyError:
        return make_planned(inputs, request, console).plan


def with_compilers(planned: Planned, inputs: Inputs, output: Path) -> Planned:
    """Return a plan for the same with the compilers of other inputs."""
    plan = decide(planned.given, inputs.toolchains, planned.sources.pins)
    folder = plan_folder(plan.spec_name, digest(plan), output)
    return replace(planned, inputs=inputs, plan=plan, folder=folder)


def planned_here(request: Request, console: Console) -> Planned:
    """Decide what it takes to run a buildspec's models on this machine, whatever its targets and hot operators are.

    Nothing is written.
    """
    loaded = load(request)
    loaded = replace(loaded, targets=with_defaults(loaded, (_here(loaded),)))
    toolchains = toolchains_of(loaded, loaded.targets, request)
    return _made(Inputs(loaded=loaded, toolchains=toolchains), request, console, None)


def _here(spec: buildspec.BuildSpec) -> buildspec.TargetSpec:
    """Return this machine as a target: any processor of its architecture, unless a model needs more to run at all."""
    identifier = require_host().identifier
    can = AVX512 in CPUS[TARGETS[identifier].architecture] and not platform_of(TARGETS[identifier]).SDK
    wide = can and any(model.layout == "nchwc16" for model in spec.models)
    return buildspec.TargetSpec(id=identifier, linkage="shared", cpu=AVX512 if wide else None)


def make_planned(inputs: Inputs, request: Request, console: Console) -> Planned:
    """Decide everything that inputs come to, and write it down; nothing is compiled.

    Sources are fetched only if no plan that was written says what they are.
    """
    began, files = time.time_ns(), files_of(inputs)
    try:
        written = read_plan(inputs, request.output)
    except VerifyError:
        written = None
    planned = _made(inputs, request, console, written)
    if written is None or planned.plan != written.plan:
        with suppress(OSError, StorageError):  # A plan that cannot be kept is made again.
            _write(planned, inputs, files | _files_beside(planned.models, began), request.output)
    return planned


def _made(inputs: Inputs, request: Request, console: Console, written: WrittenPlan | None) -> Planned:
    """Decide everything; where the same was decided before, for sources of the same kind."""
    models = converted_models(inputs.loaded, console, tuple(target.target for target in inputs.loaded.targets))
    _warn_of_locales(models, console)
    cases = _cases(models)
    hot, others = required_of(inputs.hot, models.operators)
    if others:
        console.note(f"{hot_file(models.loaded.file)}: no model has {', '.join(others)}; write it again: invoke hot")
    nchwc = _contents(models.nchwc, cases, hot) if models.nchwc else None
    given = _given(inputs, _contents(models, cases, hot), nchwc)
    tree = _sources(models, optional_of(given.spec), written, console)
    plan = decide(given, inputs.toolchains, tree.pins)
    folder = plan_folder(plan.spec_name, digest(plan), request.output)
    return Planned(inputs=inputs, given=given, models=models, cases=cases, sources=tree, plan=plan, folder=folder)


def _given(inputs: Inputs, contents: Contents, nchwc: Contents | None) -> PlanInput:
    return PlanInput(spec=inputs.loaded.as_written(), contents=contents, nchwc=nchwc)


def _write(planned: Planned, inputs: Inputs, files: dict[str, SeenFiles], output: Path) -> None:
    given, plan = planned.given, planned.plan
    written = WrittenPlan(contents=given.contents, nchwc=given.nchwc, sources=planned.sources.pins, plan=plan)
    write_atomically(planned.folder / PLAN, to_json(written))
    keep_latest(inputs, output, Latest(plan=digest(plan), files=files))


def _files_beside(models: Models, began: int) -> dict[str, SeenFiles]:
    """Look at the files beside models that these refer to, of which one that was changed meanwhile is as never seen."""
    seen: dict[str, SeenFiles] = {}
    for number, spec in enumerate(models.loaded.models):
        done = models.preparations[number]
        copy = (done.original if done else models.prepared[number]).path.parent
        for name in read_facts(copy, StoredModel).external:
            assert spec.path  # what is fetched has no files beside it
            file = spec.path.parent / name
            changed = models.loaded.resolve(file).stat().st_ctime_ns >= began
            seen[str(file)] = {} if changed else seen_in(models.loaded.resolve(file))
    return seen


def decide(given: PlanInput, toolchains: Mapping[str, Toolchain], sources: tuple[SourcePin, ...]) -> BuildPlan:
    """Decide every job, with this ortrim's own tools, runner and hooks."""
    return make_plan(
        given,
        sources=sources,
        tools=tool_versions(),
        toolchains=toolchains,
        runner_sha256=code_digest(shipped_folder("runner").glob("*.[ch]")),
        hooks_sha256=hooks_digest(),
        ortrim_version=installed_version("ortrim"),
    )


def _warn_of_locales(models: Models, console: Console) -> None:
    """Say which locales the devices need: without exceptions, a library ends the application where one is absent."""
    if not any((each.domain, each.name) == STRING_NORMALIZER for each in models.operators.operators):
        return
    for model in models.prepared:
        for locale in sorted({*filter(None, map(locale_of, node_facts(read_onnx(model.path, model.name))))}):
            words = f"its StringNormalizer needs the locale '{locale}' on every device; {LOCALE_HINT}"
            console.warn(f"model '{model.name}': {words}")


def _sources(models: Models, optional: frozenset[str], written: WrittenPlan | None, console: Console) -> SourceTree:
    """Fetch the sources, unless they are in the cache; those of the kind that was taken before, if any kind will do."""
    wanted = models.loaded.onnxruntime
    before = written.sources[0].kind if written and written.sources else ""
    kind = before if wanted.source == "auto" and before in AUTO_ORDER else wanted.source
    with console.step("fetch sources") as step:
        path = models.loaded.resolve(wanted.path) if wanted.path else None
        tree = fetch_sources(models.pins, kind, path, announce=step.note, optional=optional, unread=True)
        for note in tree.notes:
            step.note(note)
    return tree


def optional_of(spec: buildspec.BuildSpec) -> frozenset[str]:
    """Return the sources that only some libraries need, and those of the buildspec's targets do."""
    return optional_sources(name for target in spec.targets for name in buildspec.providers_of(spec, target))


def _cases(models: Models) -> tuple[tuple[Case, ...], ...]:
    """Make the inputs of all cases; they lie in the cache, named after all that they depend on."""
    base = models.loaded.file.parent
    both = zip(models.preparations, models.prepared, models.loaded.models, strict=True)
    return tuple(
        done.cases if done else cases_made(prepared, spec, base, lambda: models.runtime)
        for done, prepared, spec in both
    )


def _contents(models: Models, cases: tuple[tuple[Case, ...], ...], hot: tuple[str, ...]) -> Contents:
    """Return what a library for the models has; operators in NCHWc layout are hot where some are."""
    nchwc = tuple(f"{NCHWC}:{each.name}" for each in models.operators.operators if each.domain == NCHWC)
    uses = tuple(read_uses(model.path) for model in models.converted)
    return Contents(
        operators=models.operators,
        hot_operators=required_of((*hot, *nchwc), models.operators)[0] if hot else (),
        models=tuple(_planned_model(models, number, own) for number, own in enumerate(cases)),
        unused_types=unused_types(models.operators, uses),
        tiled=any(each.tiled for each in uses),
        depthwise=any(each.depthwise for each in uses),
        few_bits=few_bits(uses),
    )


def _planned_model(models: Models, number: int, cases: tuple[Case, ...]) -> PlannedModel:
    whole, spec = models.loaded, models.loaded.models[number]
    converted, preparation = models.converted[number], models.preparations[number]
    # All that verification of a model depends on: cases, their recorded data, and tolerances.
    tests = to_canonical_json(spec.tolerances) + "".join(case.digest for case in cases)
    return PlannedModel(
        name=spec.name,
        onnx_sha256=models.prepared[number].facts.sha256,
        ort_sha256=converted.sha256,
        tests_sha256=hashlib.sha256(tests.encode()).hexdigest(),
        style=spec.style,
        level=spec.level,
        layout="" if spec.layout == "plain" else spec.layout,
        session=buildspec.settings_of(
            buildspec.session_of(whole, spec), style=spec.style, reads_in_place=converted.reads_in_place
        ),
        steps=preparation.steps_done if preparation else (),
        given_sha256=preparation.original.facts.sha256 if preparation else "",
    )


def hooks_digest() -> str:
    """Return the digest of ortrim's own CMake files and of its code that decides what is compiled and linked.

    Rather than list the modules in vain, all of a package count; beside them what makes the JNI library, since a job
    has the words of all else.
    """
    packages = (binaries, compiling, sources)
    code = (file for package in packages for file in Path(str(package.__file__)).parent.glob("*.py"))
    hooks = (file for file in shipped_folder("cmake").rglob("*") if file.is_file())
    return code_digest((*hooks, *code, Path(str(jni.__file__))))
