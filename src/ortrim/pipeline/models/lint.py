"""`lint`: what is wrong with models, before anything is built for them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from ortrim.binaries.leaves import NO_OPERATOR, by_operator, shares
from ortrim.console import Console
from ortrim.core.buildspec import RuntimeSpec
from ortrim.core.graph_facts import GraphFacts, operators_of
from ortrim.errors import Diagnostic, ModelError, UsageError
from ortrim.lint.facts import LintFacts, RuntimeFacts
from ortrim.lint.judgement import Linted, ModelFindings, judge
from ortrim.lint.sarif import sarif_log
from ortrim.models.copies import require_files
from ortrim.models.limits import LARGEST_MODEL_BYTES, OLDEST_OPSET, limits_of
from ortrim.pins.runtime import runtime_pins, supported_versions
from ortrim.pipeline.converted import Request, load
from ortrim.pipeline.inspection.sizes import size_of
from ortrim.pipeline.models.files import is_buildspec, require_model
from ortrim.pipeline.models.lint_runtime import Looked, look
from ortrim.pipeline.models.ready import ready_models
from ortrim.storage.files import write_atomically
from ortrim.tools.full_runtime import FullRuntime, full_runtime

MOST_LINES: Final = 12

NOT_ASKED: Final = "kernels, mobile execution providers, loading and running: invoke lint and invoke page ask for them"

Sizes = tuple[tuple[str, int], ...]


@dataclass(frozen=True, kw_only=True)
class LintRequest:
    """What is to be judged: models, or buildspecs whose models are meant, for one version of ONNX Runtime.

    A buildspec's models are judged after their steps, or as `given`. `library` names a library, or a buildspec with a
    finished build, whose operators' sizes are told; without it that is the buildspec itself. `request`
    has the target and profile of such a build.
    """

    models: tuple[Path, ...]
    request: Request
    ort_version: str | None = None
    library: str = ""
    given: bool = False
    run: bool = True


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """One model to judge: the name by which it is shown, where it lies, and what a code review shows in its place."""

    name: str
    path: Path
    ort_version: str
    file: Path
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Library:
    """Each operator's bytes, why they are not known, and the operators that other models need as well."""

    sizes: Sizes | None
    untold: tuple[str, ...]
    elsewhere: frozenset[tuple[str, str]]


def lint_models(asked: LintRequest, console: Console) -> Linted:
    """Judge models; bad ones end with a diagnostic or have findings.

    Raises `UsageError` (`no-model`, `bad-option`), `ModelError` for a file that is no model or that lacks the files
    with its weights (`missing-external-data`), what a buildspec's models raise, `ToolError` when the full runtime
    cannot be had, and what `size_of` raises.
    """
    subjects = [subject for path in asked.models for subject in _subjects(path, asked, console)]
    if not subjects:
        raise UsageError("no-model", "there is no model to judge", hint="name a .onnx file or a buildspec")
    sizes, untold = _library_sizes(asked, console)
    found = []
    with console.step("lint models") as step:
        graphs = _graphs(subjects)
        for number, (subject, graph) in enumerate(zip(subjects, graphs, strict=True)):
            step.progress(number, len(subjects), subject.name)
            others = (each for each in graphs if each is not graph)
            library = Library(sizes=sizes, untold=untold, elsewhere=frozenset().union(*map(operators_of, others)))
            found.append(_findings(subject, graph, library, run=asked.run))
    return Linted(models=tuple(found))


def findings_of(
    name: str, path: Path, graph: GraphFacts, ort_version: str, library: Library, *, run: bool | None
) -> ModelFindings:
    """Judge one model that was read; without `run` being said, by its file alone. Raises as `lint_models` does."""
    subject = _Subject(name=name, path=path, ort_version=ort_version, file=path)
    return _findings(subject, graph, library, run=run)


def failure_of(linted: Linted) -> Diagnostic | None:
    """Return the diagnostic with which the command ends; None when nothing worse than advice was found."""
    lines = [f"{model.model}: {error.reference}: {error.words}" for model in linted.models for error in model.errors]
    if not lines:
        return None
    bad = sum(bool(model.errors) for model in linted.models)
    rest = [f"and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    return ModelError(
        "lint-errors",
        f"{bad} of {len(linted.models)} models have errors",
        why="\n".join((*lines[:MOST_LINES], *rest)),
        hint="each error is shown with the step that mends it; docs/lint.md lists the rules",
    )


def write_sarif(linted: Linted, path: Path) -> None:
    """Write the findings for code review. Raises `StorageError`."""
    log = sarif_log(linted, version=version("ortrim"))
    write_atomically(path, json.dumps(log, indent=2) + "\n")


def _subjects(path: Path, asked: LintRequest, console: Console) -> Iterator[_Subject]:
    _check_version(asked.ort_version)
    if not is_buildspec(path):
        require_model(path)
        yield _Subject(name=str(path), path=path, ort_version=asked.ort_version or RuntimeSpec().version, file=path)
        return
    loaded = load(Request(spec=path, version=asked.ort_version))
    ready = ready_models(loaded, console, given=asked.given)
    for spec, each in zip(loaded.spec.models, ready, strict=True):
        file = path.parent / spec.path if spec.path else path
        yield _Subject(
            name=str(file) if spec.path else f"{path}: {spec.name}",
            path=each.model.path,
            ort_version=loaded.spec.onnxruntime.version,
            file=file,
            steps=each.steps,
        )


def _check_version(word: str | None) -> None:
    if word not in {None, *supported_versions()}:
        hint = f"choose one of {', '.join(supported_versions())}"
        raise UsageError("bad-option", f"{word!r} is not possible here", where="--ort-version", hint=hint)


def _graphs(subjects: list[_Subject]) -> list[GraphFacts]:
    from ortrim.models.graph_reading import read_graph  # noqa: PLC0415 - it imports onnx

    graphs = [read_graph(subject.path) for subject in subjects]
    for subject, graph in zip(subjects, graphs, strict=True):
        names = sorted({weight.external for weight in graph.weights if weight.external})
        require_files(subject.path.parent, tuple(names), subject.name)
    return graphs


def _findings(subject: _Subject, graph: GraphFacts, library: Library, *, run: bool | None) -> ModelFindings:
    looked = _looked(subject, graph, run=run)
    facts = LintFacts(
        graph=graph,
        runtime=_runtime_facts(subject.ort_version),
        kernels=looked.kernels,
        run=looked.run,
        providers=looked.providers,
        library=library.sizes,
        elsewhere=library.elsewhere,
    )
    return ModelFindings(
        model=subject.name,
        file=str(subject.file),
        steps=subject.steps,
        sha256=graph.model.sha256,
        ort_version=subject.ort_version,
        findings=judge(facts),
        not_checked=(*looked.not_checked, *library.untold),
    )


def _looked(subject: _Subject, graph: GraphFacts, *, run: bool | None) -> Looked:
    if run is None:
        return Looked(not_checked=(NOT_ASKED,))
    pins = runtime_pins(subject.ort_version)
    runtime: FullRuntime = full_runtime(pins.version, pins.converter_requirements)
    return look(subject.path, graph, runtime, run=run)


def _runtime_facts(ort_version: str) -> RuntimeFacts:
    pins, limits = runtime_pins(ort_version), limits_of(ort_version)
    return RuntimeFacts(
        version=ort_version,
        oldest_opset=OLDEST_OPSET,
        max_bytes=LARGEST_MODEL_BYTES,
        max_opset=pins.max_opset,
        max_ml_opset=limits.ml_opset if limits else None,
        max_ir_version=pins.max_ir_version,
    )


def _library_sizes(asked: LintRequest, console: Console) -> tuple[Sizes | None, tuple[str, ...]]:
    """Return each operator's bytes in the library that was named, or in the finished build of the one buildspec.

    A buildspec whose models do not convert, or that was not built, is not refused: what is wrong is to be found here.
    """
    specs = [path for path in asked.models if is_buildspec(path)]
    word = asked.library or (str(specs[0]) if len(specs) == len(asked.models) == 1 else "")
    if not word:
        return None, ("what operators cost: no library was named (--library)",)
    with console.step("find what operators cost") as step:
        try:
            accounting = size_of(word, asked.request, None, console.hushed(step)).accounting
        except Diagnostic as error:
            if asked.library:
                raise
            return None, (f"what operators cost: {error.what}{f'; {error.hint}' if error.hint else ''}",)
    groups = shares(accounting.leaves, by_operator)
    return tuple((group.name[0], group.size_bytes) for group in groups if group.name[0] != NO_OPERATOR), ()
