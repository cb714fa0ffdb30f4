"""Builders that the tests of verification share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

from ortrim.models.models import ModelFacts, PreparedModel, TensorInfo
from ortrim.parity.runner import CaseRun, MemoryUse, RunnerOutput

TINY = '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] y) { y = Relu(x) }'
MakeModel = Callable[..., PreparedModel]
MakeOutput = Callable[..., RunnerOutput]


@pytest.fixture
def make_model(tmp_path: Path) -> MakeModel:
    """Make a prepared model from (name, element type, shape) of its inputs; its file has one node all the same."""

    def make(*inputs: tuple[str, str, tuple[int | str | None, ...] | None]) -> PreparedModel:
        infos = tuple(TensorInfo(name=name, element_type=kind, shape=shape) for name, kind, shape in inputs)
        facts = ModelFacts(
            sha256="a" * 64,
            size_bytes=1,
            ir_version=8,
            opsets=(("ai.onnx", 17),),
            inputs=infos,
            outputs=(),
            node_count=1,
        )
        onnx.save(onnx.parser.parse_model(TINY), tmp_path / "tiny.onnx")
        return PreparedModel(name="tiny", path=tmp_path / "tiny.onnx", facts=facts)

    return make


@pytest.fixture
def make_output() -> MakeOutput:
    """Make what the runner reports, with the same latency in every run of each case unless samples are given."""

    def make(
        load: float = 10.0,
        peak: int = 10_000_000,
        inference_peak: int | None = None,
        loaded: int | None = 2,
        **latencies: Any,
    ) -> RunnerOutput:
        cases = [_case(name, samples) for name, samples in (latencies or {"only": 1.0}).items()]
        return RunnerOutput(
            schema="ortrim-runner/1",
            status="ok",
            runtime_version="1.21.0",
            open_ms=1.0,
            load_ms=load,
            cases=tuple(cases),
            memory=MemoryUse(
                opened_rss_bytes=1,
                loaded_rss_bytes=loaded,
                peak_rss_bytes=peak,
                inference_peak_rss_bytes=inference_peak,
                peak_source="VmHWM",
            ),
        )

    return make


def _case(name: str, given: float | tuple[float, ...]) -> CaseRun:
    samples = given if isinstance(given, tuple) else (given,) * 3
    small = (0.001,) * len(samples)
    return CaseRun(
        name=name,
        first_run_ms=5.0,
        outputs=(),
        runs=len(samples),
        input_ms=small,
        inference_ms=samples,
        output_ms=small,
    )
