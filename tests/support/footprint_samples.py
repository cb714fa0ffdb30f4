"""Rounds and libraries as `invoke measure.footprint` records them, made up."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from build_time.record import Machine
from footprint.contenders import WHEEL, WHEEL_ORT, Contender, Contest
from footprint.record import CaseSample, Library, ModelKind, Record, Round, Sample

from ortrim.spec.buildspec import SessionSettings
from ortrim.verify.cases import Case
from ortrim.verify.devices.device import CaseRun, MemoryUse, RunnerOutput, RunRequest

MACHINE: Final = Machine(cores=2, cpu="A processor", memory_bytes=24 * 10**9, system="Linux 6.1", load_average=0.1)
NAMES: Final = (WHEEL, WHEEL_ORT, "upstream", "balanced")
TIMES: Final[Mapping[str, float]] = {WHEEL: 4.0, WHEEL_ORT: 5.0, "upstream": 6.0, "balanced": 4.5}
"""Milliseconds of the first case; the second takes ten times as long."""


def sample(contender: str, *, times: Mapping[str, float] = TIMES, slower: float = 1.0) -> Sample:
    """Return what one process of a contender took."""
    p50 = times[contender] * slower
    return Sample(
        contender=contender,
        load_ms=10.0 * p50,
        peak_rss_bytes=round(1e6 * times[contender]),
        cases=tuple(
            CaseSample(case=name, runs=200, first_run_ms=3 * p50 * factor, p50_ms=p50 * factor, p99_ms=2 * p50 * factor)
            for name, factor in (("one", 1.0), ("two", 10.0))
        ),
    )


def turn(number: int = 1, *, key: str = "k", started: str = "", busy: float = 0.1, slower: float = 1.0) -> Round:
    """Return a round of the four contenders; all of them are `slower` alike."""
    return Round(
        spec="demo",
        model="net",
        key=key,
        number=number,
        started=started or f"2026-01-01T00:00:{number:02}",
        busy_processors=busy,
        samples=tuple(sample(name, slower=slower) for name in NAMES),
    )


def library(contender: str, size: int, *, packed: bool = False) -> Library:
    """Return a library of that many bytes."""
    return Library(
        spec="demo",
        contender=contender,
        sha256="ab" * 32,
        file_bytes=size,
        compressed_bytes=size // 3,
        outputs=0 if contender == WHEEL else 2,
        outputs_agree=0 if contender == WHEEL else 2,
        packed=packed,
    )


def record(*rounds: Round, packed: bool = False, kind: tuple[bool, bool] | None = None) -> Record:
    """Return a record of some rounds, with the libraries; `kind`: whether the model has convolutions, and a layout."""
    sizes = {WHEEL: 20_000_000, "upstream": 1_800_000, "balanced": 1_200_000, "size": 900_000}
    libraries = tuple(library(name, size, packed=packed and name != WHEEL) for name, size in sizes.items())
    kinds = (ModelKind(spec="demo", model="net", convolutions=kind[0], layout=kind[1]),) if kind else ()
    return Record(machine=MACHINE, libraries=libraries, kinds=kinds, rounds=rounds)


def contest(**changes: str) -> Contest:
    """Return a contest of the four contenders; `changes` are other digests of libraries, by contender."""
    contenders = tuple(
        Contender(
            name=name,
            library=Path(f"/lib/{name}.so"),
            library_sha256=changes.get(name, "a"),
            model=Path(f"/model{'.onnx' if name == WHEEL else '.ort'}"),
            model_sha256="b",
            session=SessionSettings(),
        )
        for name in NAMES
    )
    cases = tuple(Case(name=name, folder=Path("/cases") / name, digest=name * 2) for name in ("one", "two"))
    return Contest(
        spec="demo", model="net", runner=Path("/runner"), runner_sha256="c", cases=cases, contenders=contenders
    )


class TimedDevice:
    """A device that remembers what it ran, and fails or is interrupted at a given run.

    A library's name says what a process takes, by `times`.
    """

    def __init__(self, times: Mapping[str, float] = TIMES) -> None:
        self.ran: list[str] = []
        self.ends: dict[int, BaseException] = {}
        self._times = times

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run at once."""
        if len(self.ran) in self.ends:
            raise self.ends.pop(len(self.ran))
        self.ran.append(request.library.stem)
        return _output(request, self._times[request.library.stem])

    def close(self) -> None:
        """Leave nothing."""


def _output(request: RunRequest, p50: float) -> RunnerOutput:
    """Return what a process would print."""
    times = (p50, p50, 9 * p50)
    runs = tuple(
        CaseRun(
            name=case.name,
            first_run_ms=3 * p50,
            outputs=(),
            runs=3,
            input_ms=times,
            inference_ms=times,
            output_ms=times,
        )
        for case in request.cases
    )
    memory = MemoryUse(
        opened_rss_bytes=1, loaded_rss_bytes=2, peak_rss_bytes=3, inference_peak_rss_bytes=3, peak_source="VmHWM"
    )
    return RunnerOutput(
        schema="ortrim-runner/1",
        status="ok",
        runtime_version="1.21.0",
        open_ms=1.0,
        load_ms=7.0,
        cases=runs,
        memory=memory,
    )
