"""Rounds, libraries and models as `invoke measure.preparation` records them, made up."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from footprint.contenders import Contest
from footprint.record import Round
from footprint.subject import Built, Model, Subject
from preparation.record import Change, ModelFigures, PreparationRecord
from preparation.subject import GIVEN, PREPARED

from footprint_samples import MACHINE, contest, library, sample, turn
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import ModelFacts, OrtModel, PreparedModel
from ortrim.spec.buildspec import ModelSpec, SessionSettings
from ortrim.verify.cases import Case

BOTH: Final = (GIVEN, PREPARED)
TIMES: Final[Mapping[str, float]] = {GIVEN: 4.0, PREPARED: 3.0}
"""Milliseconds of the first case."""
LIBRARIES: Final = (library(GIVEN, 1_300_000), library(PREPARED, 1_200_000))
BEFORE: Final = ModelFigures(onnx_bytes=2_850_000, nodes=63, operator_types=14, ort_bytes=2_300_000)
AFTER: Final = ModelFigures(onnx_bytes=2_200_000, nodes=51, operator_types=12, ort_bytes=2_100_000)


def change(**changes: Any) -> Change:
    """Return what became of the model `net` of the spec `demo`."""
    values: dict[str, Any] = {"spec": "demo", "model": "net", "key": "k", "given": BEFORE, "prepared": AFTER}
    return Change(**values | {"outputs": 16, "outputs_agree": 16, "largest_difference": 2.5e-6} | changes)


def both_turn(number: int = 1, *, slower: float = 1.0, **changes: Any) -> Round:
    """Return a round of both; they are `slower` alike."""
    samples = tuple(sample(name, times=TIMES, slower=slower) for name in BOTH)
    return replace(turn(number), samples=samples, **changes)


def preparation_record(*rounds: Round, changes: tuple[Change, ...] = ()) -> PreparationRecord:
    """Return a record of some rounds, with both libraries."""
    return PreparationRecord(machine=MACHINE, libraries=LIBRARIES, rounds=rounds, changes=changes or (change(),))


def both_contest(spec: str = "demo", **changes: str) -> Contest:
    """Return a contest of both; `changes` are other digests of libraries, by contender."""
    whole = contest()
    first = whole.contenders[0]
    contenders = tuple(
        replace(first, name=name, library=first.library.with_name(f"{name}.so"), library_sha256=changes.get(name, "a"))
        for name in BOTH
    )
    return replace(whole, spec=spec, contenders=contenders)


def built_model(folder: Path, *, size: int, config: str, cases: tuple[Case, ...] = ()) -> Model:
    """Return a model of a spec as it was planned; nothing reads its files."""
    facts = ModelFacts(
        sha256="a" * 64, size_bytes=size, ir_version=8, opsets=(("ai.onnx", 17),), inputs=(), outputs=(), node_count=9
    )
    converted = OrtModel(
        name="net",
        path=folder / "net.ort",
        sha256=f"{size:064}",
        size_bytes=size // 2,
        ort_version="1.21.0",
        style="fixed",
        level="extended",
        config=config,
    )
    return Model(
        prepared=PreparedModel(name="net", path=folder / "net.onnx", facts=facts),
        converted=converted,
        session=SessionSettings(),
        spec=ModelSpec(name="net"),
        cases=cases,
    )


def built_subject(folder: Path, contender: str, *models: Model) -> Subject:
    """Return a spec's build; its library and its runner are files of a few bytes."""
    files = {name: folder / name for name in ("runner", f"{contender}.so")}
    for name, file in files.items():
        file.write_text(name)
    runtime = FullRuntime(version="1.21.0", words=(), environment={}, packages=folder, library=folder / "none")
    libraries = {contender: Built(path=files[f"{contender}.so"], models=models)}
    return Subject(name="demo", runtime=runtime, libraries=libraries, runner=files["runner"], folder=folder)
