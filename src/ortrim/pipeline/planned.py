"""The first half: from a buildspec to a plan, with the models converted and the sources known."""

import hashlib
import platform
from dataclasses import dataclass, replace
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Final, Literal

from ortrim.console import Console
from ortrim.core.buildspec import CaseSpec, LoadedSpec, ModelSpec, TargetSpec
from ortrim.core.models import OrtModel, PreparedModel
from ortrim.core.operators import RequiredOperators
from ortrim.core.plan import BuildPlan, PlannedModel, Toolchain, digest
from ortrim.core.serialization import to_canonical_json
from ortrim.core.targets import TARGETS, Target
from ortrim.errors import ToolError
from ortrim.models.convert import Conversion, convert
from ortrim.models.prepare import prepare
from ortrim.models.reduce import reduce_operators
from ortrim.pins.runtime import RuntimePins, runtime_pins
from ortrim.pins.tools import tool_versions
from ortrim.planning import make_plan, select_targets
from ortrim.sources.fetch import fetch_sources
from ortrim.sources.tree import SourceTree
from ortrim.spec.load import load_spec
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import sha256_of
from ortrim.storage.shipped import shipped_folder
from ortrim.toolchains.system import system_toolchain
from ortrim.toolchains.zig import zig_toolchain
from ortrim.tools.full_runtime import FullRuntime, full_runtime

HOSTS: Final = {("Linux", "x86_64"): "linux-x64", ("Linux", "aarch64"): "linux-arm64"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a task was asked for: the buildspec's file, what overrides it, and where output goes."""

    spec: Path
    target: str | None = None
    profile: Literal["balanced", "upstream"] | None = None
    jobs: int | None = None
    output: Path = Path("artifacts")


@dataclass(frozen=True, kw_only=True)
class Models:
    """The buildspec's models through prepare, convert and reduce."""

    loaded: LoadedSpec
    pins: RuntimePins
    runtime: FullRuntime
    prepared: tuple[PreparedModel, ...]
    converted: tuple[OrtModel, ...]
    operators: RequiredOperators


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan and what it was made from."""

    models: Models
    sources: SourceTree
    plan: BuildPlan
    folder: Path


def host_target() -> Target:
    """Return the target that runs on this machine; raises `ToolError` `unsupported-host`."""
    machine = (platform.system(), platform.machine())
    if machine not in HOSTS:
        hint = "ortrim builds on Linux for x86-64 and arm64"
        raise ToolError("unsupported-host", f"{' '.join(machine)} is no host that ortrim knows", hint=hint)
    return TARGETS[HOSTS[machine]]


def convert_models(request: Request, console: Console) -> Models:
    """Load the buildspec, take copies of its models, convert them and derive the required operators."""
    loaded = _load(request)
    pins = runtime_pins(loaded.spec.onnxruntime.version)
    prepared = _prepare(loaded, console)
    runtime = full_runtime(pins.version, pins.converter_requirements)
    converted = _convert(loaded, prepared, runtime, console)
    return Models(
        loaded=loaded,
        pins=pins,
        runtime=runtime,
        prepared=prepared,
        converted=converted,
        operators=reduce_operators(converted),
    )


def make_planned(request: Request, console: Console) -> Planned:
    """Decide everything that `request` comes to; nothing is compiled."""
    models = convert_models(request, console)
    spec = models.loaded.spec
    targets = select_targets(spec, request.target, host_target())
    sources = _sources(models, console)
    plan = make_plan(
        spec,
        models.operators,
        targets=targets,
        models=_planned_models(models),
        sources=sources.pins,
        toolchains={target.id: _toolchain(target) for target in targets},
        runner_sha256=_runner_digest(),
        ortrim_version=installed_version("ortrim"),
    )
    return Planned(models=models, sources=sources, plan=plan, folder=_folder(request, plan))


def _load(request: Request) -> LoadedSpec:
    loaded = load_spec(request.spec)
    if request.profile is None:
        return loaded
    return replace(loaded, spec=replace(loaded.spec, profile=request.profile))


def _prepare(loaded: LoadedSpec, console: Console) -> tuple[PreparedModel, ...]:
    root = cache_folder("models")
    prepared = []
    with console.step("prepare models") as step:
        for number, model in enumerate(loaded.spec.models):
            step.progress(number, len(loaded.spec.models), model.name)
            where = f"{loaded.file}: models[{number}]"
            version = loaded.spec.onnxruntime.version
            prepared.append(prepare(model, base=loaded.file.parent, root=root, ort_version=version, where=where))
    return tuple(prepared)


def _convert(
    loaded: LoadedSpec, prepared: tuple[PreparedModel, ...], runtime: FullRuntime, console: Console
) -> tuple[OrtModel, ...]:
    root = cache_folder("conversions")
    converted = []
    with console.step("convert to ORT format") as step:
        for number, (model, spec) in enumerate(zip(prepared, loaded.spec.models, strict=True)):
            step.progress(number, len(prepared), model.name)
            conversion = Conversion(style=spec.style, level=spec.level, layout=spec.layout)
            converted.append(convert(model, conversion, runtime=runtime, root=root))
    return tuple(converted)


def _sources(models: Models, console: Console) -> SourceTree:
    wanted = models.loaded.spec.onnxruntime
    with console.step("fetch sources") as step:
        path = models.loaded.resolve(wanted.path) if wanted.path else None
        tree = fetch_sources(models.pins, wanted.source, path)
        for note in tree.notes:
            step.note(note)
    return tree


def _toolchain(target: TargetSpec) -> Toolchain:
    if target.compiler == "zig":
        return zig_toolchain(TARGETS[target.id], target.glibc, dict(tool_versions())["ziglang"])
    return system_toolchain(target.compiler)


def _planned_models(models: Models) -> tuple[PlannedModel, ...]:
    both = zip(models.prepared, models.converted, models.loaded.spec.models, strict=True)
    return tuple(
        PlannedModel(
            name=spec.name,
            onnx_sha256=prepared.facts.sha256,
            ort_sha256=converted.sha256,
            tests_sha256=_tests_digest(models.loaded, spec),
            style=spec.style,
            level=spec.level,
        )
        for prepared, converted, spec in both
    )


def _tests_digest(loaded: LoadedSpec, model: ModelSpec) -> str:
    """Digest of all that verification of a model depends on: cases, their recorded data, and tolerances."""
    recorded = [_data_digest(loaded, case) for case in model.cases if case.data]
    text = to_canonical_json(model.cases) + to_canonical_json(model.tolerances) + "".join(recorded)
    return hashlib.sha256(text.encode()).hexdigest()


def _data_digest(loaded: LoadedSpec, case: CaseSpec) -> str:
    assert case.data is not None
    path = loaded.resolve(case.data)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return "".join(sha256_of(file) for file in files)


def _runner_digest() -> str:
    files = sorted(shipped_folder("runner").glob("*.[ch]"))
    return hashlib.sha256("".join(f"{file.name} {sha256_of(file)}\n" for file in files).encode()).hexdigest()


def _folder(request: Request, plan: BuildPlan) -> Path:
    return request.output / plan.spec_name / digest(plan)[:12]
