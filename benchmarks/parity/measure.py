"""Parity: how far outputs of untouched models differ, and which damage the comparison notices."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from builds import Built, find_build
from programs import compile_c, compile_runner
from records import read_record, write_results

from ortrim.base.console import Console
from ortrim.base.tools import EMULATIONS, X64_USER, require
from ortrim.buildspec.buildspec import SessionSettings
from ortrim.devices.host import Host
from ortrim.errors import UsageError
from ortrim.models.full_runtime import foreign_library
from ortrim.sources.root_file_systems import machine_parts
from ortrim.verify.measure import DeviceRuns
from parity.distribution import CONDITIONS, CPUS, HEAVY, Condition, Machine, Noise, noise_of
from parity.proof import ROUNDING, Mutant, Patient
from parity.record import Record, mutant_table, noise_table
from parity.subjects import Subject, prepared_subject, subjects_of

LOCAL: Final = Path(__file__).parent
MODELS: Final = LOCAL / "models.toml"
SPECS: Final = (Path("buildspecs/silero-vad.toml"), MODELS)
MUTATED: Final = (
    "silero-vad", "text-direction", "quantized-kernels", "hey-mycroft", "encoder", "magika", "turn-detection",
    "text-detection",
)  # fmt: skip
"""The models that are damaged: small and quick ones of each kind."""
NAME: Final = "parity"
NOISE, MUTANTS = "noise", "mutants"
GLIBC: Final = "2.28"


def measure(console: Console, *, parts: str, count: int, of_each_kind: int, output: Path) -> Record:
    """Measure parts (names with commas), and write the record with them and with those that it had, and the tables."""
    chosen = set(parts.split(","))
    if unknown := chosen - {NOISE, MUTANTS}:
        what, hint = f"{min(unknown)!r} is not a part", f"there are: {NOISE}, {MUTANTS}"
        raise UsageError("bad-option", what, where="--parts", hint=hint)
    builds = [find_build(spec, console) for spec in SPECS]
    record = read_record(output / f"{NAME}.json", Record(machine=Host().facts()))
    with tempfile.TemporaryDirectory(prefix="ortrim-parity-") as name:
        bench = Bench(builds=tuple(builds), folder=Path(name), console=console)
        if NOISE in chosen:
            record = replace(record, noise=tuple(bench.noise()))
        if MUTANTS in chosen:
            record = replace(record, mutants=tuple(bench.mutants(count, of_each_kind)))
    tables = f"{noise_table(record.noise).markdown()}\n\n{mutant_table(record).markdown()}\n"
    write_results(output, NAME, record, tables, console)
    return record


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The builds, and a folder for everything that is made on the way."""

    builds: tuple[Built, ...]
    folder: Path
    console: Console

    def noise(self) -> Iterator[Noise]:
        """Yield the differences of all models and variants under all conditions, and those of our own libraries."""
        models = self.builds[-1].planned.models
        subjects = tuple(subjects_of(models.loaded, models.runtime, self.folder))
        own = {model.name for model in models.prepared}
        here, ours, *others = self._machines()
        plan = [(subject, here, condition) for condition in CONDITIONS for subject in subjects]
        plan += [(subject, ours, Condition()) for subject in subjects if subject.name in own]
        light = [subject for subject in subjects if not subject.name.startswith(HEAVY)]
        plan += [(subject, machine, Condition()) for machine in others for subject in light]
        with self.console.step("measure differences of untouched models") as step:
            runs = DeviceRuns(len(plan), step.progress)
            for subject, machine, condition in plan:
                with runs.one(f"{subject.name}, {machine.name}, {condition.name}"):
                    outputs = self.folder / "noise" / machine.name / condition.name / subject.name
                    yield from noise_of(subject, machine, condition, outputs)

    def mutants(self, count: int, of_each_kind: int) -> Iterator[Mutant]:
        preloads = {mode: self.preload(mode) for mode in ROUNDING}
        require(X64_USER)
        for built in self.builds:
            for subject, session in subjects_in(built):
                patient = Patient(
                    subject=subject,
                    library=built.library,
                    link_map=built.link_map,
                    runner=built.runner,
                    session=session,
                    folder=self.folder / "mutants",
                    preloads=preloads,
                )
                with self.console.step(f"damage {subject.name}") as step:
                    for number, mutant in enumerate(patient.mutants(count, of_each_kind), 1):
                        step.progress(number, 0, mutant.kind)
                        yield mutant

    def _machines(self) -> Iterator[Machine]:
        """Yield this machine with the official library, then with ours, then the emulated ones with the official."""
        built = self.builds[-1]
        models = built.planned.models
        official = Machine(name="x64", runner=built.runner, library=models.runtime.library)
        yield official
        yield replace(official, name="x64 trimmed", library=built.library)
        emulator = str(require(X64_USER).path)
        for cpu in CPUS["x64"]:
            yield replace(official, name=cpu, words=(emulator, "-cpu", cpu))
        emulation = EMULATIONS["arm64"]
        emulator, root = str(require(emulation.user).path), str(machine_parts(emulation).root)
        library = foreign_library(models.runtime.version, models.pins.converter_requirements, "arm64")
        assert library is not None
        runner = compile_runner(built.headers, self.folder / "runner", "-target", f"aarch64-linux-gnu.{GLIBC}")
        for cpu in CPUS["arm64"]:
            yield Machine(name=cpu, words=(emulator, "-L", root, "-cpu", cpu), runner=runner, library=library)

    def preload(self, mode: str) -> Path:
        """Compile what has all that follows it in a process round as `mode` says."""
        library = self.folder / f"{mode}.so"
        triple = f"x86_64-linux-gnu.{GLIBC}"
        compile_c("-target", triple, "-shared", "-fPIC", f"-DMODE={mode}", LOCAL / "rounding.c", "-o", library, "-lm")
        return library


def subjects_in(built: Built) -> Iterator[tuple[Subject, SessionSettings]]:
    planned = built.planned
    models = planned.models
    for prepared, cases, plan in zip(models.prepared, planned.cases, planned.plan.models, strict=True):
        if prepared.name in MUTATED:
            yield prepared_subject(prepared, cases, models.runtime), plan.session
