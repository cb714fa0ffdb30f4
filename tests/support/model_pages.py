"""The demo's page, made up from its recorded report, and one of everything with hostile names."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ortrim.analysis import page
from ortrim.analysis.cost.memory import LiveTensor, ModelCost, NodeCost, Peak, by_operator
from ortrim.analysis.lint.rules import LintFinding, ModelFindings
from ortrim.models.graph_facts import GraphFacts, NodeFacts, WeightFacts
from ortrim.models.models import ModelFacts, OrtModel, TensorInfo
from ortrim.parity.measurements import OutputParity, Verdict
from ortrim.steps.report import CaseLeft, ModelCounts, PreparationReport, StepReport
from sample_reports import recorded_report

MODEL_NAME: Final = "silero_vad"
SCRIPT: Final = "<script>alert('1')</script>\"'\x1b[2J"
NODES: Final = (
    NodeCost(name="conv1", operator="Conv", macs=4_000_000, operations=0, parameters=120, parameter_bytes=480,
             output_bytes=9000),
    NodeCost(name="gemm1", operator="Gemm", macs=1_000_000, operations=0, parameters=60, parameter_bytes=240,
             output_bytes=400),
    NodeCost(name="relu1", operator="Relu", macs=0, operations=2250, parameters=0, parameter_bytes=0,
             output_bytes=9000),
)  # fmt: skip
COST: Final = ModelCost(
    model=MODEL_NAME,
    sha256="a" * 64,
    case="short",
    inputs=(("x", (1, 512)), ("state", (2, 1, None))),
    macs=5_000_000,
    operations=2250,
    parameters=180,
    parameter_bytes=720,
    peak=Peak(
        size_bytes=18_000,
        node="relu1",
        tensors=(LiveTensor(name="c", size_bytes=9000), LiveTensor(name="r", size_bytes=9000)),
        timeline=(("conv1", 11_000), ("relu1", 18_000), ("gemm1", 9400)),
    ),
    memory=Peak(
        size_bytes=21_000,
        node="relu1",
        tensors=(LiveTensor(name="c", size_bytes=9000), LiveTensor(name="(the kernel's own)", size_bytes=12_000)),
        timeline=(("conv1", 11_000), ("relu1", 21_000), ("gemm1", 9400)),
    ),
    constant_nodes=2,
    at_least=False,
    unknown=(),
    operators=by_operator(NODES),
    nodes=NODES,
)
GRAPH: Final = GraphFacts(
    model=ModelFacts(
        sha256="a" * 64,
        size_bytes=2_850_000,
        ir_version=8,
        opsets=(("", 16), ("com.microsoft", 1)),
        inputs=(TensorInfo(name="x", element_type="float32", shape=("batch", 512)),),
        outputs=(TensorInfo(name="y", element_type="float32", shape=None),),
        node_count=3,
    ),
    producer="pytorch 2.9.0",
    nodes=(
        NodeFacts(name="conv1", domain="ai.onnx", operator="Conv", inputs=(), outputs=()),
        NodeFacts(name="gemm1", domain="com.microsoft", operator="QGemm", inputs=(), outputs=()),
    ),
    weights=(WeightFacts(name="w", element_type="float32", dimensions=(120,), size_bytes=480),),
)
CONVERTED: Final = OrtModel(
    name=MODEL_NAME, path=Path("model.ort"), sha256="b" * 64, size_bytes=2_230_000, ort_version="1.21.0", style="fixed",
    level="extended", config="",
)  # fmt: skip
LINT: Final = ModelFindings(
    model=MODEL_NAME,
    file="model.onnx",
    sha256="a" * 64,
    ort_version="1.21.0",
    findings=tuple(
        LintFinding(code="does-not-run", level="error", place=f"node {number}", words="it fails") for number in range(7)
    ),
    not_checked=("some sizes",),
)
SHARE: Final = page.SizeShare(
    parts={page.OWN: 100_000, page.COMMON: 80_000, page.RUNTIME: 900_000, page.MODEL: 2_230_000},
    kernels=(("Conv", 80_000, ("wake",)), ("Gemm", 100_000, ())),
)


def steps() -> PreparationReport:
    first = ModelCounts(size_bytes=3_000_000, nodes=40, parameters=700, opsets=(("ai.onnx", 16),),
                        operators=(("ai.onnx:Conv", 10), ("ai.onnx:Identity", 30)))  # fmt: skip
    second = replace(first, size_bytes=2_850_000, nodes=10, operators=(("ai.onnx:Conv", 10),))
    parity = OutputParity(
        model=MODEL_NAME, case="short", output="y", element_type="float32", shape=(1,), max_absolute=1e-6,
        difference=1e-6, allowed=1e-4, cosine=1.0, nan_mismatch=0, verdict=Verdict.PASS,
    )  # fmt: skip
    return PreparationReport(
        model=MODEL_NAME,
        ort_version="1.21.0",
        original_sha256="c" * 64,
        sha256="a" * 64,
        original=first,
        prepared=second,
        steps=(
            StepReport(number=1, use="simplify", options="", outcome="changed", before=first, after=second,
                       parity=(parity,)),
            StepReport(number=2, use="float16", options="keep = 'Conv'", outcome="left out", reason="breaks parity",
                       before=second, after=second, cases_left=(CaseLeft(case="long", reason="too long"),)),
        ),
    )  # fmt: skip


def sample_subject(**changes: Any) -> page.ModelSubject:
    whole = page.ModelSubject(
        name=MODEL_NAME,
        product="demo",
        target="linux-x64",
        graph=GRAPH,
        converted=CONVERTED,
        costs=(COST,),
        lint=LINT,
        steps=steps(),
        share=SHARE,
        times=(("host", {"Conv": 800.0, "Relu": 40.0}),),
        report=recorded_report(),
    )
    return replace(whole, **changes)


def hostile_subject() -> page.ModelSubject:
    """Return a model in which everything that has a name has one that tries to be markup and to steer a terminal."""
    tensor = TensorInfo(name=SCRIPT, element_type=SCRIPT, shape=(SCRIPT, None))
    facts = replace(GRAPH.model, inputs=(tensor,), outputs=(tensor,), opsets=((SCRIPT, 1),))
    node = NodeFacts(name=SCRIPT, domain=SCRIPT, operator=SCRIPT, inputs=(), outputs=())
    weight = replace(GRAPH.weights[0], name=SCRIPT)
    graph = replace(GRAPH, model=facts, producer=SCRIPT, nodes=(node,), weights=(weight,))
    costs = tuple(replace(each, name=SCRIPT, operator=SCRIPT, unknown=(SCRIPT,)) for each in NODES)
    peak = Peak(size_bytes=5, node=SCRIPT, tensors=(LiveTensor(name=SCRIPT, size_bytes=5),), timeline=((SCRIPT, 5),))
    cost = replace(
        COST, model=SCRIPT, case=SCRIPT, inputs=((SCRIPT, None),), unknown=(SCRIPT,), operators=by_operator(costs),
        nodes=costs, peak=peak, memory=peak,
    )  # fmt: skip
    finding = replace(LINT.findings[0], place=SCRIPT, words=SCRIPT)
    lint = replace(LINT, findings=(finding,), not_checked=(SCRIPT,))
    report = recorded_report()
    (device,) = report.devices
    runs = tuple(replace(run, model=SCRIPT) for run in device.runs)
    parity = tuple(replace(each, model=SCRIPT, output=SCRIPT, reason=SCRIPT) for each in device.parity)
    device = replace(device, device=SCRIPT, runs=runs, parity=parity)
    step = replace(steps().steps[1], use=SCRIPT, options=SCRIPT, reason=SCRIPT, notes=(SCRIPT,))
    return sample_subject(
        name=SCRIPT,
        product=SCRIPT,
        target=SCRIPT,
        graph=graph,
        costs=(cost,),
        lint=lint,
        steps=replace(steps(), steps=(step,)),
        share=replace(SHARE, kernels=((SCRIPT, 1, (SCRIPT,)),)),
        times=((SCRIPT, {SCRIPT: 1.0}),),
        report=replace(report, devices=(device,)),
    )
