"""`lint`: what is wrong with models, before anything is built for them."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from math import prod
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote

from ortrim.analysis.lint import rules
from ortrim.analysis.lint.rules import BY_CODE, RULES, WHOLE, LintFinding, ModelFindings, judge
from ortrim.analysis.size import size_of
from ortrim.base.cache import cache_folder
from ortrim.base.console import Console, first_lines
from ortrim.base.files import storage_errors, write_atomically
from ortrim.buildspec.buildspec import CaseSpec
from ortrim.errors import Diagnostic, ModelError, ToolError, bad_option
from ortrim.models import prepare
from ortrim.models.full_runtime import FullRuntime, full_runtime, run_script
from ortrim.models.graph_facts import GraphFacts, dimension_name, dynamic_dimensions, operators_of
from ortrim.models.kernels import missing_kernel
from ortrim.models.models import TensorInfo
from ortrim.models.onnx_files import check_limits, read_onnx
from ortrim.models.refusals import plain_words
from ortrim.parity.inputs import recorded_inputs
from ortrim.pins.runtime import limits_of, runtime_pins, supported_versions
from ortrim.planning.models import ready_models
from ortrim.planning.request import Request, is_buildspec, load
from ortrim.planning.version_choice import version_to_judge
from ortrim.size.accounting import NO_OPERATOR, Leaf, by_operator, shares

RUN_SECONDS: Final = 60.0
GRACE_SECONDS: Final = 30.0
MEMORY_BYTES: Final = 8 * 2**30
TIMES_MODEL: Final = 6
"""How much address space a model may take, in its own sizes, beyond what any may."""
CONSTANT: Final = ("ai.onnx", "Constant")
"""Has no kernel: loading makes initializers of them."""
LARGEST_SIZE: Final = 2**16
MOST_SIZES: Final = 16
"""Of a model's own that are tried besides the usual ones."""
PLAIN_NAME: Final = re.compile(r"[^+*/() ]+")
"""A dimension whose size no other decides, unlike `past + 1`."""


def look(
    path: Path, graph: GraphFacts, runtime: FullRuntime, *, run: bool, cases: Sequence[CaseSpec] = ()
) -> rules.LintFacts:
    """Ask the full runtime about a model; each question in a process of its own, with a time limit.

    It is run at the sizes of the user's own `cases` first.
    """
    facts = rules.LintFacts(graph=graph, version=runtime.version)
    facts = _with_operators(facts, path.resolve(), runtime)
    if not run:
        return replace(facts, not_checked=(*facts.not_checked, "loading and running: --no-run was given"))
    return _with_runs(facts, path.resolve(), runtime, cases)


def _with_operators(facts: rules.LintFacts, path: Path, runtime: FullRuntime) -> rules.LintFacts:
    from ortrim.models.graph_facts import inlined_operators  # noqa: PLC0415 - it imports onnx

    graph = facts.graph
    used = {(node.domain, node.operator) for node in graph.nodes}
    own = used - {CONSTANT, *graph.functions} - inlined_operators(used, dict(graph.model.opsets))
    try:
        answer = _asked(runtime, "lint_operators.py", {"operators": sorted(own), "model": str(path)}, path, graph)
    except (ModelError, ToolError) as error:
        _reraise_unless_about_the_model(error)
        return replace(facts, not_checked=(f"kernels and mobile execution providers: {error.what}",))
    facts = replace(
        facts, kernels=rules.KernelFacts(without=_pairs(answer["without"]), unheard=_pairs(answer["unheard"]))
    )
    if answer["unusable"]:
        words = f"mobile execution providers: upstream's checker cannot be used here: {answer['unusable'][:300]}"
        return replace(facts, not_checked=(words,))
    found = ({**each, "unsupported": tuple(each["unsupported"])} for each in answer["providers"])
    return replace(facts, providers=tuple(rules.ProviderFacts(**each) for each in found))


def _with_runs(facts: rules.LintFacts, path: Path, runtime: FullRuntime, cases: Sequence[CaseSpec]) -> rules.LintFacts:
    graph, inputs = facts.graph, facts.graph.model.inputs
    why_not = _not_runnable(graph)
    request = {
        "inputs": [_input(value) for value in inputs],
        "dimensions": () if why_not else dynamic_dimensions(inputs),
        "run": not why_not,
        "seconds": RUN_SECONDS,
        "sizes": own_sizes(graph),
        "first": [_sizes_of(case, inputs) for case in cases],
    }
    try:
        with _loadable(path, graph) as model:
            answer = _asked(runtime, "lint_runs.py", {**model, **request}, path, graph)
    except (ModelError, ToolError) as error:
        _reraise_unless_about_the_model(error)
        return replace(facts, run=rules.RunFacts(crash=error.what))
    trials = [(tuple(each["sizes"].items()), plain_words(each["failure"], path)) for each in answer["trials"]]
    run = rules.RunFacts(load_failure=plain_words(answer["load"], path), trials=tuple(trials))
    kernels = facts.kernels if answer["load"] else rules.KernelFacts()
    if found := missing_kernel(answer["load"]) if answer["load"] else None:
        kernels = replace(kernels or rules.KernelFacts(), missing=((found.domain or "ai.onnx", found.name), found.node))
    words = [f"some sizes: {each}" for each in (why_not, answer["skipped"]) if each]
    return replace(facts, run=run, kernels=kernels, not_checked=(*facts.not_checked, *words))


@contextmanager
def _loadable(path: Path, graph: GraphFacts) -> Iterator[dict[str, object]]:
    """Yield the request's words for a model as `prepare` copies it: with the constants in it that decide shapes."""
    if graph.external_bytes:
        model = read_onnx(path, str(path))
        if prepare.take_in_shapes(model, path.parent, str(path)):
            conversions = cache_folder("conversions")
            with storage_errors(conversions), TemporaryDirectory(dir=conversions) as folder:
                copy = Path(folder) / path.name
                copy.write_bytes(model.SerializeToString())
                yield {"model": str(copy), "beside": str(path.parent)}
            return
    yield {"model": str(path), "beside": ""}


def _asked(
    runtime: FullRuntime, script: str, request: dict[str, object], path: Path, graph: GraphFacts
) -> dict[str, Any]:
    """Run a script within limits of time and memory: folding a model's constants may take any amount of both."""
    limited = {**request, "memory_bytes": MEMORY_BYTES + TIMES_MODEL * (graph.model.size_bytes + graph.external_bytes)}
    limit = RUN_SECONDS + GRACE_SECONDS
    folder = cache_folder("conversions")
    return run_script(runtime, script, limited, folder=folder, where=str(path), timeout_seconds=limit)


def _reraise_unless_about_the_model(error: ModelError | ToolError) -> None:
    """Tell a crash or an endless run, which are the model's doing, from a runtime that does not start."""
    if error.code not in {"crashes-runtime", "tool-timeout"}:
        raise error


def _not_runnable(graph: GraphFacts) -> str:
    """Return why the inputs cannot be made, empty when they can."""
    for value in graph.model.inputs:
        if value.shape is None:
            return f"input '{value.name}' does not say how many dimensions it has"
    names = dynamic_dimensions(graph.model.inputs)
    tied = [name for name in names if PLAIN_NAME.fullmatch(name) is None]
    return f"the size '{tied[0]}' depends on others" if tied else ""


def _input(value: TensorInfo) -> dict[str, object]:
    shape = [
        size if isinstance(size, int) else dimension_name(value, axis) for axis, size in enumerate(value.shape or ())
    ]
    return {"name": value.name, "type": value.element_type, "shape": shape}


def _sizes_of(case: CaseSpec, inputs: tuple[TensorInfo, ...]) -> dict[str, int]:
    shapes = {name: given.shape or () for name, given in case.inputs.items()}
    if case.data:
        shapes = {
            info.name: array.shape for info, array in zip(inputs, recorded_inputs(case.data, inputs), strict=True)
        }
    return {
        dimension_name(info, axis): given
        for info in inputs
        for axis, (size, given) in enumerate(zip(info.shape or (), shapes.get(info.name, ()), strict=False))
        if not isinstance(size, int)
    }


def _pairs(found: list[list[str]]) -> tuple[rules.Operator, ...]:
    return tuple(sorted((domain, name) for domain, name in found))


def own_sizes(graph: GraphFacts) -> tuple[int, ...]:
    """Return sizes that a model may have been exported with: those of its weights, and of shapes that it fixes."""
    shapes = [weight.values for weight in graph.weights if weight.values and weight.element_type in {"int32", "int64"}]
    fixed = {prod(shape) for shape in shapes if min(shape) > 0} | {size for shape in shapes for size in shape}
    fixed |= {size for weight in graph.weights for size in weight.dimensions}
    return tuple(sorted(size for size in fixed if 1 < size <= LARGEST_SIZE)[-MOST_SIZES:])


SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: Final = {"error": "error", "advice": "note"}
FIRST_LINE: Final = {"startLine": 1}
"""A model has no lines, and GitHub shows no result without one."""


def sarif_log(models: Sequence[ModelFindings], *, version: str) -> dict[str, Any]:
    """Return the log as JSON-ready data; `version` is ortrim's."""
    driver = {"name": "ortrim", "semanticVersion": version, "rules": [_rule(rule) for rule in RULES]}
    results = [_result(finding, model) for model in models for finding in model.findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: rules.LintRule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"Why: {rule.why}. Fix: {rule.fix}."},
        "defaultConfiguration": {"level": LEVELS[rule.level]},
    }


def _result(finding: rules.LintFinding, model: ModelFindings) -> dict[str, Any]:
    identity = f"{finding.code}\n{finding.place}\n{PurePath(model.model).name}"
    return {
        "ruleId": finding.code,
        **({"ruleIndex": RULES.index(BY_CODE[finding.code])} if finding.code in BY_CODE else {}),
        "level": LEVELS[finding.level],
        "message": {"text": finding.words},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": _uri(model.file)}, "region": FIRST_LINE},
                "logicalLocations": [{"fullyQualifiedName": finding.place, "kind": "element"}],
            }
        ],
        "partialFingerprints": {"ortrim/v1": hashlib.sha256(identity.encode(errors="replace")).hexdigest()},
    }


def _uri(path: str) -> str:
    """Return a path as a code: relative ones stay so, to be found from the repository's folder.

    A model that was fetched goes by its address, or by its wheel: where our copy lies says nothing to a reader.
    """
    if path.startswith((prepare.WHEEL, *prepare.ADDRESSES)):
        return quote(path, safe=OF_ADDRESSES)
    pure = PurePath(path)
    words = quote(pure.as_posix().encode(errors="surrogateescape"))  # a file's name need not be text
    return f"file://{words}" if pure.is_absolute() else words


OF_ADDRESSES: Final = ":/?#[]@!$&'()*+,;=%~"
"""What an address may have as it is."""
MOST_LINES: Final = 12


@dataclass(frozen=True, kw_only=True)
class LintRequest:
    """What is to be judged, for one version of ONNX Runtime: words that name models, or buildspecs for theirs.

    A buildspec's models are judged after their steps, or as `given`. `library` names a library, or a buildspec with a
    finished build, whose operators' sizes are reported; without it that is the buildspec itself. `request`
    has the target and profile of such a build. `cases` are the user's own, at whose sizes the models are run first.
    """

    models: tuple[str, ...]
    request: Request
    ort_version: str | None = None
    library: str = ""
    cases: tuple[CaseSpec, ...] = ()
    given: bool = False
    run: bool = True


@dataclass(frozen=True, kw_only=True)
class LintSubject:
    """One model to judge: the name by which it is shown, where it lies, and what a code review shows in its place."""

    name: str
    path: Path
    ort_version: str
    file: str
    steps: tuple[str, ...] = ()
    cases: tuple[CaseSpec, ...] = ()


def lint_models(asked: LintRequest, console: Console) -> tuple[ModelFindings, ...]:
    """Judge models; one that cannot be judged has the one finding that says why, or is raised if it is alone."""
    subjects = [subject for word in asked.models for subject in _subjects(word, asked, console)]
    sizes, untold = _library_sizes(asked, console)
    found = []
    with console.step("lint models") as step:
        graphs = _graphs(subjects)
        for number, (subject, graph) in enumerate(zip(subjects, graphs, strict=True)):
            step.progress(number, len(subjects), subject.name)
            if isinstance(graph, ModelError):
                found.append(_refused(subject, graph))
                continue
            others = (each for each in graphs if each is not graph and isinstance(each, GraphFacts))
            elsewhere = frozenset().union(*map(operators_of, others))
            found.append(findings_of(subject, graph, sizes, elsewhere, untold=untold, run=asked.run))
    return tuple(found)


def failure_of(models: Sequence[ModelFindings]) -> Diagnostic | None:
    """Return the diagnostic with which the command ends; None when nothing worse than advice was found."""
    lines = [f"{model.model}: {error.code}: {error.words}" for model in models for error in model.errors]
    if not lines:
        return None
    bad = sum(bool(model.errors) for model in models)
    rules = (BY_CODE.get(error.code) for model in models for error in model.errors)
    kind = max((rule.kind if rule else ModelError for rule in rules), key=lambda each: each.exit_code)
    return kind(
        "lint-errors",
        f"{bad} of {len(models)} models have errors",
        why=first_lines(lines, MOST_LINES),
        hint="each error is shown with its fix",
    )


def write_sarif(models: Sequence[ModelFindings], path: Path) -> None:
    """Write the findings for code review. Raises `StorageError`."""
    write_atomically(path, json.dumps(sarif_log(models, version=version("ortrim")), indent=2) + "\n")


def _subjects(word: str, asked: LintRequest, console: Console) -> Iterator[LintSubject]:
    if asked.ort_version is not None and asked.ort_version not in supported_versions():
        raise bad_option("ort-version", asked.ort_version, f"choose one of {', '.join(supported_versions())}")
    path = Path(word)
    if not is_buildspec(path):
        version = asked.ort_version or version_to_judge(word)
        for name, file in prepare.files_named(word, version):
            yield LintSubject(name=name, path=file, ort_version=version, file=name, cases=asked.cases)
        return
    loaded = load(Request(spec=path, version=asked.ort_version))
    ready = ready_models(loaded, console, given=asked.given)
    for spec, each in zip(loaded.models, ready, strict=True):
        file = path.parent / spec.path if spec.path else path
        yield LintSubject(
            name=str(file) if spec.path else f"{path}: {spec.name}",
            path=each.model.path,
            ort_version=loaded.onnxruntime.version,
            file=str(file),
            steps=each.steps,
            cases=asked.cases,
        )


def _graphs(subjects: list[LintSubject]) -> list[GraphFacts | ModelError]:
    """Read the models; in the place of one that cannot be judged beside others stands why."""
    graphs: list[GraphFacts | ModelError] = []
    for subject in subjects:
        try:
            graphs.append(_graph(subject))
        except ModelError as error:
            if len(subjects) == 1:
                raise
            graphs.append(error)
    return graphs


def _graph(subject: LintSubject) -> GraphFacts:
    from ortrim.models.graph_facts import read_graph  # noqa: PLC0415 - it imports onnx

    graph = read_graph(subject.path)
    names = sorted({weight.external for weight in graph.weights if weight.external})
    prepare.require_files(subject.path.parent, tuple(names), subject.name)
    try:
        check_limits(graph.model, subject.ort_version, subject.name)
    except ModelError as error:
        if error.code not in BY_CODE:
            raise
    else:
        prepare.run_checker(subject.path, subject.name)
    return graph


def _refused(subject: LintSubject, error: ModelError) -> ModelFindings:
    words = "; ".join(filter(None, (error.what, *error.why.splitlines()[:1], error.hint)))
    return ModelFindings(
        model=subject.name,
        file=subject.file,
        sha256="",
        ort_version=subject.ort_version,
        findings=(LintFinding(code=error.code, level="error", place=WHOLE, words=words),),
    )


def findings_of(
    subject: LintSubject,
    graph: GraphFacts,
    sizes: rules.Sizes | None,
    elsewhere: frozenset[rules.Operator],
    *,
    untold: tuple[str, ...],
    run: bool,
) -> ModelFindings:
    """Judge one model that was read, also by running it if `run` is said.

    `sizes` are each operator's bytes, `untold` says why they are not known, and `elsewhere` are the operators that
    other models need as well.
    """
    facts = _looked(subject, graph, run=run)
    return ModelFindings(
        model=subject.name,
        file=subject.file,
        steps=subject.steps,
        sha256=graph.model.sha256,
        ort_version=subject.ort_version,
        findings=judge(replace(facts, library=sizes, elsewhere=elsewhere)),
        not_checked=(*facts.not_checked, *untold),
    )


def _looked(subject: LintSubject, graph: GraphFacts, *, run: bool) -> rules.LintFacts:
    pins = runtime_pins(subject.ort_version)
    runtime: FullRuntime = full_runtime(pins.version, pins.converter_requirements)
    limits = limits_of(subject.ort_version)
    if limits is None or graph.model.ir_version <= limits.ir_version:
        return look(subject.path, graph, runtime, run=run, cases=subject.cases)
    with TemporaryDirectory() as folder:
        prepare.with_ir_version(subject.path, limits.ir_version, Path(folder), subject.name)
        return look(Path(folder) / prepare.MODEL_FILE, graph, runtime, run=run, cases=subject.cases)


def _library_sizes(asked: LintRequest, console: Console) -> tuple[rules.Sizes | None, tuple[str, ...]]:
    """Return each operator's bytes in the library that was named, or in the finished build of the one buildspec.

    A buildspec whose models do not convert, or that was not built, is not refused: what is wrong is to be found here.
    """
    (first, *others) = asked.models
    word = asked.library or (first if is_buildspec(Path(first)) and not others else "")
    if not word:
        return None, ("what operators cost: no library was named (--library)",)
    with console.step("find what operators cost") as step:
        try:
            accounting = size_of(word, asked.request, None, console.hushed(step)).accounting
        except Diagnostic as error:
            if asked.library:
                raise
            return None, (f"what operators cost: {error.what}{f'; {error.hint}' if error.hint else ''}",)
    return operator_sizes(accounting.leaves), ()


def operator_sizes(leaves: Iterable[Leaf]) -> rules.Sizes:
    """Return each operator's bytes."""
    groups = shares(leaves, by_operator)
    return tuple((group.name[0], group.size_bytes) for group in groups if group.name[0] != NO_OPERATOR)
