"""A spec's libraries, one for each profile, and the models that they are measured with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footprint.contenders import WHEEL, WHEEL_ORT, Contender, Contest
from footprint.record import Library, ModelKind
from ortrim.base.console import Console
from ortrim.base.files import sha256_of
from ortrim.binaries.elf import with_elf
from ortrim.buildspec.build_options import ProfileName
from ortrim.buildspec.buildspec import ModelSpec, SessionSettings, as_the_official
from ortrim.devices.device import ProgramDevice
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.operators import parse_config
from ortrim.parity.compare import compare
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import Verdict
from ortrim.parity.reference import CaseOutputs, SavedOutputs, reference_outputs
from ortrim.parity.runner import RunRequest
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import Planned, planned_for
from ortrim.planning.request import Request
from ortrim.size.library import library_size
from ortrim.verify.measure import ONCE


@dataclass(frozen=True, kw_only=True)
class Model:
    """One model of a spec: the original, the converted one with the settings to load it with, and its cases."""

    prepared: PreparedModel
    converted: OrtModel
    session: SessionSettings
    spec: ModelSpec
    cases: tuple[Case, ...]


@dataclass(frozen=True, kw_only=True)
class Built:
    """A finished library, and the spec's models as they are for it: a profile decides on their layout."""

    path: Path
    models: tuple[Model, ...]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A spec as planned, its finished libraries by profile, and a runner for them; `folder` is for outputs."""

    name: str
    runtime: FullRuntime
    libraries: dict[str, Built]
    runner: Path
    folder: Path

    @property
    def models(self) -> tuple[Model, ...]:
        return next(iter(self.libraries.values())).models

    def kinds(self) -> tuple[ModelKind, ...]:
        return tuple(
            ModelKind(
                spec=self.name,
                model=model.prepared.name,
                convolutions=has_convolutions(model.converted.config),
                layout=model.spec.layout != "plain",
            )
            for model in self.models
        )

    def contests(self) -> tuple[Contest, ...]:
        """Return what is to be measured of each model."""
        return tuple(
            Contest(
                spec=self.name,
                model=model.prepared.name,
                runner=self.runner,
                runner_sha256=sha256_of(self.runner),
                cases=model.cases,
                contenders=tuple(self._contenders(number, model)),
            )
            for number, model in enumerate(self.models)
        )

    def _contenders(self, number: int, model: Model) -> Iterator[Contender]:
        original = model.prepared.path, model.prepared.facts.sha256
        yield contender_of(WHEEL, self.runtime.library, original, as_the_official(model.session))
        # Where a processor has AVX-512 the wheel takes NCHWc layout, block size 16, and runs no model with blocks of 8.
        if model.spec.layout != "nchwc8":
            yield contender_of(WHEEL_ORT, self.runtime.library, _file(model), model.session)
        for name, built in self.libraries.items():
            yield contender_of(name, built.path, _file(built.models[number]), built.models[number].session)


def _file(model: Model) -> tuple[Path, str]:
    return model.converted.path, model.converted.sha256


def has_convolutions(operator_config: str) -> bool:
    """Whether a converted model has a convolution of any kind: `Conv`, `FusedConv`, `QLinearConv`, `ConvTranspose`."""
    return any("Conv" in operator.name for operator in parse_config(operator_config).operators)


def contender_of(name: str, library: Path, model: tuple[Path, str], session: SessionSettings) -> Contender:
    path, sha256 = model
    return Contender(
        name=name,
        library=library,
        library_sha256=sha256_of(library),
        model=path,
        model_sha256=sha256,
        session=session,
    )


def built_subject(
    spec: Path, profiles: Sequence[ProfileName], jobs: int | None, output: Path, console: Console
) -> Subject:
    libraries: dict[str, Built] = {}
    runner, planned = Path(), None
    for profile in profiles:
        request = Request(spec=spec, profile=profile, jobs=jobs, output=output)
        planned = planned_for(request, console, to_run=True)
        library, runner = build_first(planned, request, f"by profile {profile}", console)
        libraries[profile] = built_of(planned, library)
    assert planned is not None
    return subject_of(planned, libraries, runner, output)


def build_first(planned: Planned, request: Request, words: str, console: Console) -> tuple[Path, Path]:
    target = planned.plan.targets[0]
    with console.step(f"build {planned.plan.spec_name} {words}") as step:
        executor = executor_for(planned, target, request, step)
        return executor.run(target.job).library, executor.run_runner(target.runner)


def built_of(planned: Planned, library: Path) -> Built:
    return Built(path=library, models=tuple(_models(planned)))


def subject_of(planned: Planned, libraries: dict[str, Built], runner: Path, output: Path) -> Subject:
    name = planned.plan.spec_name
    return Subject(
        name=name,
        runtime=planned.models.runtime,
        libraries=libraries,
        runner=runner,
        folder=output / "outputs" / name,
    )


def _models(planned: Planned) -> Iterator[Model]:
    target = planned.plan.targets[0].job.target
    models, plans = planned.models.for_target(target), planned.plan.models_for(target)
    together = zip(models.prepared, models.converted, plans, models.loaded.models, planned.cases, strict=True)
    for prepared, converted, plan, spec, cases in together:
        yield Model(prepared=prepared, converted=converted, session=plan.session, spec=spec, cases=cases)


PACKED: Final = ".relr.dyn"


def libraries_of(subject: Subject, device: ProgramDevice) -> tuple[Library, ...]:
    """Return the wheel's library and ours. Raises `BinaryError`, and as `reference_outputs` and `Device.run` do."""
    wheel = library_of(subject, WHEEL, subject.runtime.library, ())
    return (wheel, *(_ours(subject, profile, device) for profile in subject.libraries))


def has_packed_relocations(path: Path) -> bool:
    """Whether a library has relative relocations in packed form. Raises `BinaryError`."""
    return with_elf(path, lambda elf: elf.get_section_by_name(PACKED) is not None)


def _ours(subject: Subject, profile: str, device: ProgramDevice) -> Library:
    built = subject.libraries[profile]
    agree = tuple(verdict for model in built.models for verdict in agreements(subject, profile, model, device))
    return library_of(subject, profile, built.path, agree)


def library_of(subject: Subject, contender: str, path: Path, agree: tuple[bool, ...]) -> Library:
    """Return what a library is; `agree` says of each output whether it is the full runtime's. Raises `BinaryError`."""
    size = library_size(path, None)
    return Library(
        spec=subject.name,
        contender=contender,
        sha256=sha256_of(path),
        file_bytes=size.file_bytes,
        compressed_bytes=size.compressed_bytes,
        outputs=len(agree),
        outputs_agree=sum(agree),
        packed=has_packed_relocations(path),
    )


def agreements(subject: Subject, profile: str, model: Model, device: ProgramDevice) -> Iterator[bool]:
    """Yield for each output of each case whether it agrees with the full runtime's, optimizations off."""
    name = model.prepared.name
    reference = reference_outputs(model.prepared, model.cases, subject.runtime, subject.folder / "reference")
    folder = subject.folder / profile / name
    folder.mkdir(parents=True, exist_ok=True)
    request = RunRequest(
        runner=subject.runner,
        library=subject.libraries[profile].path,
        model=model.converted.path,
        cases=model.cases,
        name=name,
        outputs=folder,
        session=model.session,
        repetition=ONCE,
    )
    cases = tuple(CaseOutputs(name=case.name, outputs=case.outputs) for case in device.run(request).cases)
    ours = SavedOutputs(folder=folder, cases=cases)
    for output in compare(name, reference, ours, model.spec.tolerances):
        yield output.verdict is not Verdict.FAIL
