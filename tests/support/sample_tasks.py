"""Something to verify, and a device that pretends to run it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ortrim.binaries.elf import LibraryFacts, LibrarySize
from ortrim.buildspec.buildspec import DIRECTLY, Budgets, ModelSpec, SessionSettings
from ortrim.compiling.plan import JobResult
from ortrim.devices.device import ProgramDevice
from ortrim.errors import Diagnostic, VerifyError
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.parity import measurements
from ortrim.parity.inputs import Case, save_array
from ortrim.parity.reference import CaseOutputs, References
from ortrim.parity.runner import RunnerOutput, RunRequest, SavedOutput
from ortrim.verify.measure import Baseline
from ortrim.verify.reports import Identity
from ortrim.verify.target import Delivery, ModelUnderTest, Task

SAVED: Final = SavedOutput(name="y", element_type="float32", shape=(2,), file="output_000.npy")
SESSION: Final = SessionSettings(load="map", configuration=(DIRECTLY,))
REFERENCE: Final = np.array([1, 2], np.float32)
SIZE: Final = LibrarySize(file_bytes=10, loadable_bytes=9, compressed_bytes=5, components=(), largest_symbols=())
IDENTITY: Final = Identity(
    name="demo",
    target="linux-x64",
    ort_version="1.21.0",
    ortrim_version="0.1.0",
    plan_digest="d" * 64,
    profile="balanced",
)
BASELINE: Final = Baseline(library=Path("/full.so"), name="onnxruntime 1.21.0 (official wheel)")


class SavingDevice(ProgramDevice):
    """A device whose runner saves the output it is given."""

    name = "saving"
    refuses = ""
    raises: Diagnostic | None = None
    fails: Mapping[str, Diagnostic] = MappingProxyType({})

    def __init__(self, make: Callable[..., RunnerOutput], value: Any = (1, 2)) -> None:
        self.make = make
        self.value = np.array(value, np.float32)
        self.requests: list[RunRequest] = []
        self.closed = False

    @property
    def ran(self) -> list[str]:
        return [request.library.name for request in self.requests]

    def facts(self) -> measurements.HostFacts:
        return measurements.HostFacts(system="Linux", machine="x86_64", cpu="c", cores=1, memory_bytes=1)

    def close(self) -> None:
        self.closed = True

    def run(self, request: RunRequest) -> RunnerOutput:
        self.requests.append(request)
        if self.raises:
            raise self.raises
        if request.library.name == "ours.so" and request.name in self.fails:
            raise self.fails[request.name]
        if request.library.name == self.refuses:
            raise VerifyError("illegal-instruction", "the library uses an unknown instruction")
        output = self.make(only=1.0 if request.library.name == "ours.so" else 2.0)
        if request.outputs is None:
            return output
        (request.outputs / "only").mkdir(exist_ok=True)
        save_array(request.outputs / "only", "output_000", self.value)
        case = {**vars(output.cases[0]), "outputs": (SAVED,)}
        return RunnerOutput(**{**vars(output), "cases": (type(output.cases[0])(**case),)})


def built_in(folder: Path) -> JobResult:
    library, log = folder / "ours.so", folder / "log"
    return JobResult(
        folder=folder, library=library, link_map=None, headers=folder, log=log, seconds=1.0, compiler_cache=None
    )


def sample_task(model: PreparedModel, folder: Path, **changes: Any) -> Task:
    """Make the task of verifying a library and a model whose one output is to be `REFERENCE`."""
    facts = LibraryFacts(
        soname="s", machine="x64", needed=(), symbol_versions=(), exported=(),
        executable_stack=False, text_relocations=False, stripped=True, load_alignment=4096,
    )  # fmt: skip
    (folder / "package.tar.gz").write_bytes(b"12345")
    (folder / "ours.so").write_bytes(b"not read")
    delivery = Delivery(
        archive=folder / "package.tar.gz",
        library=folder / "ours.so",
        facts=facts,
        gates=(),
        size=SIZE,
    )
    given = {
        "delivery": delivery,
        "built": built_in(folder),
        "subjects": (_subject(model, folder),),
        "budgets": Budgets(),
        "baseline": BASELINE,
        "baseline_size": SIZE,
        "runner": folder / "runner",
        "folder": folder / "outputs",
    }
    return Task(**{**given, **changes})


def _subject(model: PreparedModel, folder: Path) -> ModelUnderTest:
    reference = References(
        folder=folder / "reference",
        cases=(CaseOutputs(name="only", outputs=(SAVED,)),),
        coverage=measurements.Coverage(nodes=1, executed=1),
    )
    (reference.folder / "only").mkdir(parents=True, exist_ok=True)
    save_array(reference.folder / "only", "output_000", REFERENCE)
    converted = OrtModel(
        name="tiny", path=folder / "tiny.ort", sha256="b" * 64, size_bytes=1, ort_version="1.21.0",
        style="fixed", level="extended", config="",
    )  # fmt: skip
    cases = (Case(name="only", folder=folder, digest="d"),)
    spec = ModelSpec(name="tiny", path=Path("t"))
    return ModelUnderTest(
        prepared=model,
        converted=converted,
        spec=spec,
        cases=cases,
        reference=reference,
        same_graph=reference,
        session=SESSION,
    )
