"""Making a bundle: all that builds of one version for some targets fetch, in one file."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Final

from ortrim.base.build_bundle import LAYOUT, WHEELS, BundleManifest, BundleWriter, new_bundle
from ortrim.base.cache import cache_folder, locked
from ortrim.base.console import Console, Step, counted
from ortrim.base.files import require_writable, storage_errors
from ortrim.base.http import arriving
from ortrim.base.scripts import OWN, Interpreter, download_wheels
from ortrim.buildspec.buildspec import LoadedSpec, ModelSpec, RuntimeSpec, providers_of
from ortrim.buildspec.step_specs import Simplify
from ortrim.buildspec.targets import Target
from ortrim.compiling.upstream_arguments import optional_sources
from ortrim.errors import ToolError, UsageError
from ortrim.models.full_runtime import DISTRIBUTION, converter_python, runtime_entry
from ortrim.models.prepare import bundled_model
from ortrim.pins.runtime import OPTIONAL, CommitPin, ComponentPin, RuntimePins, exact_version, runtime_pins
from ortrim.pins.shipped import step_requirements, tool_requirements
from ortrim.planning.models import prepared_models
from ortrim.planning.planner import select_targets
from ortrim.planning.request import host_target
from ortrim.platforms import platform_of
from ortrim.sources.archives import bundled_archive, declared_components, fetch_archives, read_dependencies
from ortrim.sources.commits import bundled_commit, pack_commit
from ortrim.sources.sources import SourceTree, fetch_sources, sound_sources

ANY: Final = "any"
"""The name of a buildspec that stands for every one whose models are files."""
STEP_TOOLS: Final = ("onnx", "onnxslim", "onnxsim")
"""What steps of models are done by."""


def make_bundle(
    spec: LoadedSpec | None, version: str | None, target: str | None, output: Path | None, console: Console
) -> tuple[Path, BundleManifest]:
    """Write a bundle for a buildspec, or without one for all whose models are files; return where, and what it holds.

    `version` is for none, and `target` selects as for a build.
    """
    loaded = spec or _any_spec(version)
    whole, pins = loaded, runtime_pins(loaded.onnxruntime.version)
    chosen = select_targets(whole, target, host_target() if target is None else None, console.note)
    targets = tuple(each.target for each in chosen)
    named = (name for each in chosen for name in providers_of(whole, each))
    optional = frozenset(OPTIONAL) if spec is None else optional_sources(named)
    destination = (output or Path(f"ortrim-bundle-{pins.version}.zip")).absolute()
    if destination.is_dir():
        raise UsageError("bad-option", "is a folder", where="--output", hint="name the file to write")
    require_writable(destination.parent)
    with storage_errors(destination):
        destination.parent.mkdir(parents=True, exist_ok=True)
    # One at a time: whoever begins removes what a killed one left.
    with (
        locked(cache_folder("bundles") / "making"),
        storage_errors(destination),
        arriving(destination) as file,
        new_bundle(file) as writer,
    ):
        with console.step("fetch sources") as step:
            path = loaded.resolve(whole.onnxruntime.path) if whole.onnxruntime.path else None
            tree = fetch_sources(pins, whole.onnxruntime.source, path, announce=step.note, optional=optional)
            _add_sources(writer, tree, step)
            sysroots = [platform_of(each.target).sysroot_sources(whole, each, step.note) for each in chosen]
            for pin, folder in {pin.commit: (pin, folder) for parts in sysroots for pin, folder in parts}.values():
                _add_commit(writer, pin, folder)
        _add_models(writer, loaded, console)
        with console.step("fetch wheels") as step:
            _add_all_wheels(partial(_add_wheels, writer, step), pins, () if spec is None else whole.models, targets)
        manifest = BundleManifest(
            layout=LAYOUT,
            ortrim=installed_version("ortrim"),
            version=pins.version,
            targets=tuple(known.identifier for known in targets),
            buildspec="" if spec is None else whole.name,
            python=OWN.tag,
            files=writer.files,
        )
        writer.finish(manifest)
    return destination, manifest


def _any_spec(version: str | None) -> LoadedSpec:
    runtime = RuntimeSpec()
    runtime = replace(runtime, version=exact_version(version or runtime.version))
    models = (ModelSpec(name=ANY, path=Path(f"{ANY}.onnx")),)
    return LoadedSpec(name=ANY, onnxruntime=runtime, models=models, file=Path(f"{ANY}.toml"))


def _add_sources(writer: BundleWriter, tree: SourceTree, step: Step) -> None:
    """Add what a tree of the cache was made of; a checkout of the user's is theirs to carry."""
    choice = tree.resolution
    assert choice is not None
    root = sound_sources(tree, step.note) / DISTRIBUTION
    dependencies = choice.dependencies
    if dependencies is None:
        dependencies = declared_components(read_dependencies(root), choice.known, choice.optional)
    components = (choice.runtime, *dependencies) if isinstance(choice.runtime, ComponentPin) else dependencies
    archives = fetch_archives(components, choice.suite, step.note)
    for component in components:
        writer.add(bundled_archive(component), archives[component.name])
    if isinstance(choice.runtime, CommitPin):
        step.note(f"pack {counted(len(tree.pins), 'source')}")
        _add_commit(writer, choice.runtime, root)


def _add_commit(writer: BundleWriter, pin: CommitPin, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=cache_folder("bundles")) as work:
        pack_commit(pin, folder, packed := Path(work) / "commit.tar.gz")
        writer.add(bundled_commit(pin), packed)


def _add_models(writer: BundleWriter, loaded: LoadedSpec, console: Console) -> None:
    """Add the models that are fetched: those that are files lie beside the buildspec."""
    fetched = tuple(model for model in loaded.models if model.path is None)
    if fetched:
        kept = prepared_models(replace(loaded, models=fetched), console)
        for model, copy in zip(fetched, kept, strict=True):
            writer.add(bundled_model(model), copy.path)


def _add_all_wheels(
    add: Callable[..., None], pins: RuntimePins, models: Sequence[ModelSpec], targets: Sequence[Target]
) -> None:
    """Add all wheels that a build installs; without `models`, those that any may need."""
    add("tools", tool_requirements())
    name, converter = f"{DISTRIBUTION}-{pins.version}", pins.converter_requirements
    if converter is None:
        what, hint = f"there are no pins of the converter for {pins.version}", "run: invoke pins.update"
        raise ToolError("converter-unavailable", what, hint=hint)
    python = converter_python(pins.version)
    add(name, converter, python=python)
    steps = [step for model in models for step in model.steps]
    programs = {step.by for step in steps if isinstance(step, Simplify)} | ({"onnx"} if steps else set())
    for each in STEP_TOOLS:
        if each in programs or not models:
            add(each, step_requirements(each), python=python)
    entry = runtime_entry(converter, pins.version)
    for platforms in dict.fromkeys(platform_of(target).baseline_platforms(target) for target in targets):
        if platforms and entry:
            add(f"{name} for {platforms[0]}", entry, platforms=platforms, required=False)


def _add_wheels(
    writer: BundleWriter,
    step: Step,
    name: str,
    requirements: str,
    *,
    platforms: tuple[str, ...] = (),
    python: Interpreter = OWN,
    required: bool = True,
) -> None:
    """Add wheels that are installed together; what is not `required` is left out where the index has none of it."""
    step.note(f"fetch the wheels of {name}")
    with tempfile.TemporaryDirectory(dir=cache_folder("bundles")) as folder:
        try:
            download_wheels(name, requirements, Path(folder), platforms=platforms, python=python)
        except ToolError as error:
            if required or error.code not in {"bundle-lacks", "install-failed"}:
                raise
            step.note(f"{name}: none")
        for wheel in sorted(Path(folder).glob("*.whl")):
            writer.add(f"{WHEELS}/{wheel.name}", wheel)
