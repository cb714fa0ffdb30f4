"""How far outputs of untouched models differ when nothing but the conditions are other ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from ortrim.buildspec.buildspec import SessionSettings
from ortrim.devices.host import absolute, run_locally
from ortrim.parity.inputs import BFLOAT16, Array, load_array, widened
from ortrim.parity.reference import CaseOutputs, SavedOutputs
from ortrim.parity.runner import Repetition, RunRequest, SavedOutput, read_output, runner_words
from parity.subjects import Subject

ONCE: Final = Repetition(runs=1, warmup=0, timeout_seconds=1800)
Level = Literal["none", "basic", "extended", "all"]
LEVELS: Final[tuple[Level, ...]] = ("none", "basic", "extended", "all")
THREADS: Final = (1, 2, 4)
CONVERTED: Final = "converted"
TINY: Final = 1e-3
CPUS: Final = {"x64": ("Nehalem", "SandyBridge", "Haswell"), "arm64": ("cortex-a76", "max")}
"""As qemu calls them: SSE4.2, AVX, AVX2 with FMA; dot products; all that it knows. The official library for ARM64 has
instructions that older processors lack (microsoft/onnxruntime#23957)."""
HEAVY: Final = ("magika", "page-layout", "text-recognition", "text-detection-int8", "page-orientation-bfloat16")
"""Models, and what variants of them begin with, that take minutes in an emulator and are not run there."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What runs programs of a machine, as which processor: words before the runner's, the runner, and the library."""

    name: str
    words: tuple[str, ...] = ()
    runner: Path
    library: Path


@dataclass(frozen=True, kw_only=True)
class Condition:
    """How a library runs a model: in ONNX format at a level of optimization, or converted when there is none."""

    level: Level | None = None
    threads: int = 1

    @property
    def name(self) -> str:
        """The condition in a word for folders and records."""
        return f"{self.level or CONVERTED}-{self.threads}"


CONDITIONS: Final = tuple(Condition(level=level, threads=threads) for threads in THREADS for level in (*LEVELS, None))


@dataclass(frozen=True, kw_only=True)
class Noise:
    """How one output of one case differs from the full runtime's, in shares of the output's own magnitude."""

    model: str
    case: str
    output: str
    element_type: str
    quantized: bool
    machine: str
    condition: str
    compared: Literal["reference", "same graph"]
    largest: float
    rms: float
    cosine: float
    ulps: int


def noise_of(subject: Subject, machine: Machine, condition: Condition, outputs: Path) -> Iterator[Noise]:
    """Run a model under a condition and yield the differences of all outputs. Raises as `read_output` does."""
    ours = outputs_under(subject, machine, condition, outputs)
    yield from _differences(subject, ours, "reference", machine, condition)
    if condition.level is None:
        yield from _differences(subject, ours, "same graph", machine, condition)


def outputs_under(subject: Subject, machine: Machine, condition: Condition, outputs: Path) -> SavedOutputs:
    outputs.mkdir(parents=True)
    request = RunRequest(
        runner=machine.runner,
        library=machine.library,
        model=subject.prepared.path if condition.level else subject.converted.path,
        cases=subject.cases,
        outputs=outputs,
        session=SessionSettings(optimization_level=condition.level or "none", threads=condition.threads),
        repetition=ONCE,
    )
    return saved_by(absolute(request), machine.words)


def saved_by(request: RunRequest, words: tuple[str, ...] = ()) -> SavedOutputs:
    ran = read_output(run_locally((*words, *runner_words(request)), request), request)
    assert request.outputs is not None
    cases = tuple(CaseOutputs(name=case.name, outputs=case.outputs) for case in ran.cases)
    return SavedOutputs(folder=request.outputs, cases=cases)


def _differences(
    subject: Subject,
    ours: SavedOutputs,
    compared: Literal["reference", "same graph"],
    machine: Machine,
    condition: Condition,
) -> Iterator[Noise]:
    theirs = subject.reference if compared == "reference" else subject.same_graph
    for case, output, pair in pairs(theirs, ours):
        largest, rms, cosine, ulps = difference_of(*pair, output.element_type)
        yield Noise(
            model=subject.name,
            case=case,
            output=output.name,
            element_type=output.element_type,
            quantized=subject.reference.quantized,
            machine=machine.name,
            condition=condition.name,
            compared=compared,
            largest=largest,
            rms=rms,
            cosine=cosine,
            ulps=ulps,
        )


def pairs(theirs: SavedOutputs, ours: SavedOutputs) -> Iterator[tuple[str, SavedOutput, tuple[Array, Array]]]:
    for one, other in zip(theirs.cases, ours.cases, strict=True):
        for output, mine in zip(one.outputs, other.outputs, strict=True):
            assert output.file
            assert mine.file
            arrays = load_array(theirs.folder / one.name / output.file), load_array(ours.folder / one.name / mine.file)
            yield one.name, output, arrays


def difference_of(theirs: Array, ours: Array, element_type: str) -> tuple[float, float, float, int]:
    """Return `largest`, `rms`, `cosine` and `ulps` of `Noise`; infinite where shapes or places of NaN differ."""
    if theirs.shape != ours.shape:
        return np.inf, np.inf, 0.0, 0
    one, other = (
        np.asarray(widened(each) if element_type == BFLOAT16 else each, np.float64) for each in (theirs, ours)
    )
    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return np.inf, np.inf, 0.0, 0
    one, other = np.nan_to_num(one), np.nan_to_num(other)
    apart, scale = np.abs(one - other), float(np.abs(one).max(initial=0.0))
    norms = float(np.linalg.norm(one)), float(np.linalg.norm(other))
    return (
        float(apart.max(initial=0.0)) / (scale or 1.0),
        float(np.linalg.norm(apart)) / (norms[0] or 1.0),
        float(np.sum(one * other)) / (norms[0] * norms[1]) if norms[0] * norms[1] else 1.0,
        _ulps(theirs, ours, np.abs(one) > TINY * scale) if element_type in {"float16", BFLOAT16} else 0,
    )


def _ulps(theirs: Array, ours: Array, large: Array) -> int:
    ordered = [_ordered(each.view(np.uint16).astype(np.int32)) for each in (theirs, ours)]
    return int(np.abs(ordered[0] - ordered[1])[large].max(initial=0))


def _ordered(bits: Array) -> Array:
    return np.asarray(np.where(bits & 0x8000, -(bits & 0x7FFF), bits))
