"""From a buildspec to a plan, with the models converted, the cases made and the sources known."""

import hashlib
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Final

from ortrim import binaries, sources
from ortrim import compiling as build
from ortrim.base.build_bundle import site_bundle
from ortrim.base.console import Console
from ortrim.base.files import code_digest, shipped_folder
from ortrim.base.json import to_canonical_json
from ortrim.buildspec.buildspec import BuildSpec, LoadedSpec, ModelSpec, TargetSpec, session_of, settings_of
from ortrim.buildspec.targets import CPUS, TARGETS, Target
from ortrim.compiling import containers
from ortrim.compiling.dead_kernels import unused_types
from ortrim.compiling.plan import BuildPlan, PlannedModel, PlannedTarget, Toolchain, digest
from ortrim.compiling.upstream_arguments import optional_sources
from ortrim.errors import ToolError
from ortrim.models.graph_facts import STRING_NORMALIZER, locale_of, node_facts
from ortrim.models.hot_operators import hot_file, read_hot, required_of
from ortrim.models.onnx_files import read_onnx
from ortrim.models.operators import NCHWC
from ortrim.models.ort_format import read_uses
from ortrim.models.refusals import LOCALE_HINT
from ortrim.parity.inputs import Case
from ortrim.parity.reference import cases_made
from ortrim.pins.runtime import SourcePin
from ortrim.pins.shipped import image_pins, tool_versions
from ortrim.planning.devices import require_devices
from ortrim.planning.planner import AVX512, Contents, PlanInput, make_plan, select_targets
from ortrim.planning.request import Models, Request, converted_models, load
from ortrim.platforms import by_platform, platform_of
from ortrim.platforms.android import jni
from ortrim.platforms.apple import zig_toolchain
from ortrim.platforms.platform import Compilation
from ortrim.sources.sources import SourceTree, fetch_sources

HOSTS: Final = {
    ("Linux", "x86_64"): "linux-x64", ("Linux", "aarch64"): "linux-arm64",
    ("Darwin", "arm64"): "macos-arm64", ("Darwin", "x86_64"): "macos-x86_64",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan and what it was made from; `cases` are those of each model, in the models' order."""

    given: PlanInput
    models: Models
    cases: tuple[tuple[Case, ...], ...]
    sources: SourceTree
    plan: BuildPlan
    folder: Path


def target_folder(planned: Planned, target: PlannedTarget) -> Path:
    """Return the folder that holds a target's report, and its package if that is its own."""
    return planned.folder / target.job.target.identifier


def host_target() -> Target | None:
    """Return the target that runs on this machine; None where none does, as on Windows."""
    return TARGETS.get(HOSTS.get((platform.system(), platform.machine()), ""))


def require_host() -> Target:
    """Return the target that runs on this machine; raises `ToolError` `unsupported-host`."""
    if (host := host_target()) is not None:
        return host
    what = "this machine can neither compile nor run a library"
    here = f"{platform.system()} on {platform.machine()}"
    why = f"it is {here}; ortrim does that on Linux for x86-64 and arm64, and on Macs"
    hint = "let GitHub compile: invoke build --executor github --target NAME"
    subsystem = "; or use the Windows Subsystem for Linux" if platform.system() == "Windows" else ""
    raise ToolError("unsupported-host", what, why=why, hint=hint + subsystem)


def make_planned(request: Request, console: Console, *, to_run: bool = False) -> Planned:
    """Decide everything that `request` comes to; nothing is compiled.

    What can be refused without work is refused first: targets that do not exist or, when the result is `to_run`
    here, have no compiler, no image to compile in or no device, and devices that do not exist; then cases that do not
    fit the models.
    """
    return planned_of(load(request), request, console, to_run=to_run)


def planned_of(loaded: LoadedSpec, request: Request, console: Console, *, to_run: bool = False) -> Planned:
    """Decide the same for a buildspec that is loaded already. Raises as `make_planned` does."""
    for note in loaded.notes:
        console.note(note)
    targets = possible_targets(loaded, request, to_run=to_run, note=console.note)
    hot = read_hot(hot_file(loaded.file))
    toolchains = toolchains_of(loaded.spec, targets, request)
    for each, own in by_platform(targets, lambda target: TARGETS[target.id]):
        for warning in each.warnings(loaded.spec, own, request):
            console.warn(warning)
    if to_run and request.container is not None:
        _require_images(toolchains)
    return _planned(loaded, targets, request, console, toolchains=toolchains, hot=hot)


def possible_targets(
    loaded: LoadedSpec, request: Request, *, to_run: bool, note: Callable[[str], None] = lambda _: None
) -> tuple[TargetSpec, ...]:
    """Return the targets of a request, or refuse what needs no look at a model to be refused.

    Raises as `make_planned` does for targets, devices and tools.
    """
    host = require_host() if to_run and not request.elsewhere else host_target()
    targets = _with_defaults(loaded.spec, select_targets(loaded.spec, request.target, host, note))
    if (bundle := site_bundle()) is not None:
        bundle.require(loaded.spec.onnxruntime.version, tuple(target.id for target in targets))
    if to_run:
        # What was written wrong is said before what has to be installed.
        require_devices(targets, request, host)
        for each, own in by_platform(targets, lambda target: TARGETS[target.id]):
            each.require_tools(loaded.spec, own, request)
    return targets


def planned_here(request: Request, console: Console) -> Planned:
    """Decide what it takes to run a buildspec's models on this machine, whatever its targets and hot operators are.

    Raises as `make_planned` does.
    """
    loaded = load(request)
    targets = _with_defaults(loaded.spec, (_here(loaded.spec),))
    return _planned(loaded, targets, request, console, toolchains=toolchains_of(loaded.spec, targets, request))


def _here(spec: BuildSpec) -> TargetSpec:
    """Return this machine as a target: any processor of its architecture, unless a model needs more to run at all."""
    identifier = require_host().identifier
    can = AVX512 in CPUS[TARGETS[identifier].architecture] and not platform_of(TARGETS[identifier]).SDK
    wide = can and any(model.layout == "nchwc16" for model in spec.models)
    return TargetSpec(id=identifier, linkage="shared", cpu=AVX512 if wide else None)


def _planned(
    loaded: LoadedSpec,
    targets: tuple[TargetSpec, ...],
    request: Request,
    console: Console,
    *,
    toolchains: Mapping[str, Toolchain],
    hot: tuple[str, ...] = (),
) -> Planned:
    models = converted_models(loaded, console, tuple(TARGETS[target.id] for target in targets))
    _warn_of_locales(models, console)
    cases = _cases(models)
    given = PlanInput(
        spec=replace(loaded.spec, targets=targets),
        contents=_contents(models, cases, _still_required(hot, models, console)),
        nchwc=_contents(models.nchwc, cases, hot) if models.nchwc else None,
    )
    tree = _sources(models, optional_of(given.spec), console)
    plan = decide(given, toolchains, tree.pins)
    folder = request.output / plan.spec_name / digest(plan)[:12]
    return Planned(given=given, models=models, cases=cases, sources=tree, plan=plan, folder=folder)


def decide(given: PlanInput, toolchains: Mapping[str, Toolchain], sources: tuple[SourcePin, ...]) -> BuildPlan:
    """Decide every job, with this ortrim's own tools, runner and hooks. Raises `PlanError` as `make_plan` does."""
    return make_plan(
        given,
        sources=sources,
        tools=tool_versions(),
        toolchains=toolchains,
        runner_sha256=runner_digest(),
        hooks_sha256=hooks_digest(),
        ortrim_version=installed_version("ortrim"),
    )


def _still_required(hot: tuple[str, ...], models: Models, console: Console) -> tuple[str, ...]:
    """Return the hot operators that a model has, and say which others the file names."""
    required, others = required_of(hot, models.operators)
    if others:
        console.note(f"{hot_file(models.loaded.file)}: no model has {', '.join(others)}; write it again: invoke hot")
    return required


def _warn_of_locales(models: Models, console: Console) -> None:
    """Say which locales the devices need: without exceptions, a library ends the application where one is absent."""
    if not any((each.domain, each.name) == STRING_NORMALIZER for each in models.operators.operators):
        return
    for model in models.prepared:
        for locale in sorted({*filter(None, map(locale_of, node_facts(read_onnx(model.path, model.name))))}):
            words = f"its StringNormalizer needs the locale '{locale}' on every device; {LOCALE_HINT}"
            console.warn(f"model '{model.name}': {words}")


def _sources(models: Models, optional: frozenset[str], console: Console) -> SourceTree:
    wanted = models.loaded.spec.onnxruntime
    with console.step("fetch sources") as step:
        path = models.loaded.resolve(wanted.path) if wanted.path else None
        tree = fetch_sources(models.pins, wanted.source, path, announce=step.note, optional=optional, unread=True)
        for note in tree.notes:
            step.note(note)
    return tree


def toolchains_of(spec: BuildSpec, targets: Iterable[TargetSpec], request: Compilation) -> dict[str, Toolchain]:
    """Return what compiles for each target. Raises `PlanError` where none can be named."""
    own = ((target, platform_of(TARGETS[target.id])) for target in targets)
    return {target.id: each.toolchain(spec, target, request, host_target) for target, each in own}


def optional_of(spec: BuildSpec) -> frozenset[str]:
    """Return the sources that only some libraries need, and those of the buildspec's targets do."""
    known = ((target, TARGETS[target.id]) for target in spec.targets)
    return optional_sources((each, platform_of(each).providers(spec, target)) for target, each in known)


def _with_defaults(spec: BuildSpec, targets: Iterable[TargetSpec]) -> tuple[TargetSpec, ...]:
    return tuple(platform_of(TARGETS[target.id]).with_defaults(spec, target) for target in targets)


def _require_images(toolchains: Mapping[str, Toolchain]) -> None:
    pins = image_pins()
    for identifier, toolchain in toolchains.items():
        platform_of(TARGETS[identifier]).images().require_image(toolchain, pins)


def _cases(models: Models) -> tuple[tuple[Case, ...], ...]:
    """Make the inputs of all cases; they lie in the cache, named after all that they depend on."""
    base = models.loaded.file.parent
    both = zip(models.preparations, models.prepared, models.loaded.spec.models, strict=True)
    return tuple(
        done.cases if done else cases_made(prepared, spec, base, lambda: models.runtime)
        for done, prepared, spec in both
    )


def _contents(models: Models, cases: tuple[tuple[Case, ...], ...], hot: tuple[str, ...]) -> Contents:
    """Return what a library for the models has; operators in NCHWc layout are hot where some are."""
    nchwc = tuple(f"{NCHWC}:{each.name}" for each in models.operators.operators if each.domain == NCHWC)
    return Contents(
        operators=models.operators,
        hot_operators=required_of((*hot, *nchwc), models.operators)[0] if hot else (),
        models=tuple(_planned_model(models, number, own) for number, own in enumerate(cases)),
        unused_types=unused_types(models.operators, tuple(read_uses(model.path) for model in models.converted)),
    )


def _planned_model(models: Models, number: int, cases: tuple[Case, ...]) -> PlannedModel:
    whole, spec = models.loaded.spec, models.loaded.spec.models[number]
    converted, preparation = models.converted[number], models.preparations[number]
    return PlannedModel(
        name=spec.name,
        onnx_sha256=models.prepared[number].facts.sha256,
        ort_sha256=converted.sha256,
        tests_sha256=_tests_digest(spec, cases),
        style=spec.style,
        level=spec.level,
        layout="" if spec.layout == "plain" else spec.layout,
        session=settings_of(session_of(whole, spec), style=spec.style, reads_in_place=converted.reads_in_place),
        steps=preparation.steps_done if preparation else (),
        given_sha256=preparation.original.facts.sha256 if preparation else "",
    )


def _tests_digest(model: ModelSpec, cases: tuple[Case, ...]) -> str:
    """Digest of all that verification of a model depends on: cases, their recorded data, and tolerances."""
    text = to_canonical_json(model.tolerances) + "".join(case.digest for case in cases)
    return hashlib.sha256(text.encode()).hexdigest()


def runner_digest() -> str:
    """Return the digest of the runner's source."""
    return code_digest(shipped_folder("runner").glob("*.[ch]"))


def hooks_digest() -> str:
    """Return the digest of ortrim's own CMake files and of its code that decides what is compiled and linked.

    Rather than list the modules in vain, all of a package count; of the platforms, what changes or makes libraries
    itself, since a job has the words of all else.
    """
    packages = (binaries, build, containers, sources)
    code = (file for package in packages for file in Path(str(package.__file__)).parent.glob("*.py"))
    own = (Path(str(module.__file__)) for module in (jni, zig_toolchain))
    hooks = (file for file in shipped_folder("cmake").rglob("*") if file.is_file())
    return code_digest((*hooks, *code, *own))
