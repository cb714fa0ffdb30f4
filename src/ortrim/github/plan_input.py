"""What another machine compiles from: the input of a plan without anything of the models, and the plan's digest.

One text carries it, small enough for an input of a dispatch. The machine that reads it checks it as it checks a
buildspec, decides everything again, and compiles only if the same plan comes of it.
"""

import base64
import binascii
import lzma
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from ortrim.base.console import Console
from ortrim.base.json import from_json, to_canonical_json
from ortrim.buildspec.buildspec import Budgets, BuildOptionChoices, BuildSpec, ModelSpec, RuntimeSpec, SessionSpec
from ortrim.buildspec.problems import Sha256, dotted
from ortrim.buildspec.rules import SoundParts, semantic_problems
from ortrim.compiling.dead_kernels import KINDS
from ortrim.compiling.plan import BuildPlan, PlannedModel, PlannedTarget, Toolchain, digest
from ortrim.errors import Diagnostic, PlanError
from ortrim.github.runs import LARGEST_INPUTS
from ortrim.models.hot_operators import OPERATOR
from ortrim.models.operators import parse_config, render_config
from ortrim.pins.runtime import runtime_pins
from ortrim.planning.planned import decide, optional_of
from ortrim.planning.planner import Contents, PlanInput
from ortrim.planning.request import toolchains_of
from ortrim.platforms import target_problems
from ortrim.platforms.platform import Compilation
from ortrim.sources.sources import SourceTree, fetch_sources

MOST_CHARACTERS: Final = LARGEST_INPUTS - 4096
"""What a dispatch can carry; the rest is for the other inputs."""
MOST_OUTPUT_CHARACTERS: Final = 120_000
"""What a job's output can carry: GitHub takes 1 MB of them, but Linux 128 KiB in one variable of the environment."""
LARGEST: Final = 16 << 20
DECODER_MEMORY: Final = 32 << 20
FILTERS: Final = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
SCHEMA: Final = "ortrim-plan-input/1"
WHERE: Final = "the plan among the inputs"
ELSEWHERE: Final = ("upstream", "debian")
"""Kinds of sources that another machine can fetch, too."""
COMPILERS: Final = ("zig", "ndk", "xcode")
"""Those that another machine can have, too."""
NO_MODEL: Final = ModelSpec(name="model")
"""A buildspec has one at least; whose, no plan of libraries says."""


@dataclass(frozen=True, kw_only=True)
class HandedInput:
    """The input of a plan, the digest of what came of it, and the version of ortrim that decided that."""

    schema: Literal["ortrim-plan-input/1"] = SCHEMA
    ortrim_version: Annotated[str, Field(pattern=r"^[0-9a-z.+]{1,64}$")]
    plan_digest: Sha256
    given: PlanInput


def remote_payload(plan: BuildPlan, targets: tuple[PlannedTarget, ...]) -> BuildPlan:
    """Return the plan of `targets` alone, without names and digests of models, packages and budgets."""
    for target in targets:
        _require_possible(target)
    bare = tuple(replace(each, budgets=Budgets()) for each in targets)
    return replace(plan, models=(), nchwc_models=(), assemblies=(), packages=(), targets=bare)


def _require_possible(target: PlannedTarget) -> None:
    job = target.job
    if not job.sources or job.sources[0].kind not in ELSEWHERE:
        raise _stays(job.target.identifier, "its sources are a folder of this machine", "onnxruntime.source")
    if job.toolchain.kind not in COMPILERS:
        raise _stays(job.target.identifier, f"{job.toolchain.kind} is a compiler of this machine", "targets.compiler")


def _stays(where: str, why: str, key: str) -> PlanError:
    hint = f"change {key} in the buildspec, or build on one machine, without --executor github"
    return PlanError("plan-cannot-travel", "can be built only on this machine", where=where, why=why, hint=hint)


def encode(given: PlanInput, plan: BuildPlan, most_characters: int = MOST_CHARACTERS) -> str:
    """Return the text from which `plan`, the `remote_payload`, is made again: letters, digits, `-` and `_`.

    The same gives the same text: xz, since the bytes that zlib writes differ between its builds.
    """
    handed = HandedInput(ortrim_version=plan.ortrim_version, plan_digest=digest(plan), given=_bare(given, plan))
    packed = lzma.compress(to_canonical_json(handed).encode(), lzma.FORMAT_XZ, lzma.CHECK_CRC32, filters=FILTERS)
    text = base64.urlsafe_b64encode(packed).rstrip(b"=").decode()
    if len(text) > most_characters:
        what = f"comes to {len(text):,} characters, and GitHub takes {most_characters:,}"
        hint = "build fewer targets or models at once: --target takes a glob"
        raise PlanError("plan-too-large", what, where=plan.spec_name, hint=hint)
    return text


def _bare(given: PlanInput, plan: BuildPlan) -> PlanInput:
    """Leave out all that another machine does not need to decide this plan."""
    wanted = {target.identifier for target in plan.targets}
    (kind,) = {target.job.sources[0].kind for target in plan.targets}
    spec = replace(
        given.spec,
        onnxruntime=RuntimeSpec(version=plan.ort_version, source="debian" if kind == "debian" else "upstream"),
        # What `--profile upstream` sets aside is refused beside that profile.
        build_options=given.spec.build_options if given.spec.profile != "upstream" else BuildOptionChoices(),
        budgets=Budgets(),
        session=SessionSpec(),
        models=(NO_MODEL,),
        packages=(),
        targets=tuple(replace(target, budgets=None) for target in given.spec.targets if target.id in wanted),
    )
    return PlanInput(
        spec=spec, contents=_nameless(given.contents), nchwc=_nameless(given.nchwc) if given.nchwc else None
    )


def _nameless(contents: Contents) -> Contents:
    """Keep of models what a library depends on: how they are optimized and laid out."""
    kinds = sorted({(model.style, model.level, model.layout) for model in contents.models})
    models = tuple(
        PlannedModel(
            name=NO_MODEL.name, onnx_sha256="", ort_sha256="", tests_sha256="", style=style, level=level, layout=layout
        )
        for style, level, layout in kinds
    )
    return replace(contents, models=models)


def plan_again(text: str, console: Console) -> tuple[BuildPlan, SourceTree]:
    """Return the plan that an encoded input comes to here, and the sources that it is for, which are fetched."""
    handed = decode(text)
    spec, here = handed.given.spec, installed_version("ortrim")
    if handed.ortrim_version != here:
        raise _differs("the whole", f"ortrim {handed.ortrim_version} made it, this is {here}")
    with console.step("fetch sources") as step:
        pins = runtime_pins(spec.onnxruntime.version)
        tree = fetch_sources(pins, spec.onnxruntime.source, announce=step.note, optional=optional_of(spec))
    plan = decide(handed.given, handed_toolchains(spec), tree.pins)
    plan = remote_payload(plan, plan.targets)
    if digest(plan) != handed.plan_digest:
        why = f"decided otherwise here: the digest of the plan is {digest(plan)[:12]}, not {handed.plan_digest[:12]}"
        raise _differs("the whole", why)
    return plan, tree


def handed_toolchains(spec: BuildSpec) -> dict[str, Toolchain]:
    """Return what compiles for each target on GitHub's machines. Raises `PlanError` where none can be named."""
    return toolchains_of(spec, spec.targets, Compilation(elsewhere=True, on_macs=True))


def decode(text: str) -> HandedInput:
    """Read back what `encode` wrote."""
    if len(text) > MOST_OUTPUT_CHARACTERS:
        what = f"has {len(text):,} characters, and {MOST_OUTPUT_CHARACTERS:,} are the most"
        raise PlanError("plan-too-large", what, where=WHERE)
    content = _unpacked(_packed(text))
    handed = _read(content)
    if to_canonical_json(handed).encode() != content:
        raise _other("it has content that this version does not know")
    for where, why in _unsound(handed.given):
        raise _differs(where, why)
    return handed


def _packed(text: str) -> bytes:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _damaged("no base64url") from None
    return data


def _unpacked(data: bytes) -> bytes:
    try:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, DECODER_MEMORY)
        content = unpacker.decompress(data, LARGEST + 1)
    except (lzma.LZMAError, EOFError):
        raise _damaged("not a valid xz stream") from None
    if len(content) > LARGEST:
        raise PlanError("plan-too-large", f"unpacks to more than {LARGEST:,} bytes", where=WHERE)
    if not unpacker.eof or unpacker.unused_data:
        raise _damaged("truncated, or followed by other data")
    return content


def _read(content: bytes) -> HandedInput:
    """Read an input; what does not fit is not repeated in the diagnostic."""
    try:
        return from_json(HandedInput, content)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        why = "it is of another schema" if place == "schema" else f"{place}: {first['type']}"
    raise _other(why)


def _unsound(given: PlanInput) -> Iterator[tuple[str, str]]:
    """Yield what types let through, and a buildspec or its models cannot come to; words of it become code."""
    spec = given.spec
    if not spec.targets:
        yield "the whole", "it has no target"
    if spec.onnxruntime.source not in ELSEWHERE:
        yield "the sources", f"of the kind {spec.onnxruntime.source}; possible: {', '.join(ELSEWHERE)}"
    parts = SoundParts(
        runtime=spec.onnxruntime,
        profile=spec.profile,
        build_options=spec.build_options,
        models=(),
        targets=tuple(enumerate(spec.targets)),
        linkage=spec.linkage,
        budgets=spec.budgets,
        session=spec.session,
    )
    for problem in semantic_problems(parts, Path(), target_problems):
        yield "the buildspec", f"{dotted(problem.location)} {problem.what}"
    for contents in (given.contents, given.nchwc):
        if contents is not None:
            yield from _unsound_contents(contents)


def _unsound_contents(contents: Contents) -> Iterator[tuple[str, str]]:
    try:
        read = parse_config(render_config(contents.operators))
    except Diagnostic:
        read = None
    if contents != _nameless(contents):
        yield "the contents", "models have names"
    if read != contents.operators:
        yield "the contents", "operators cannot be written as a configuration"
    if not all(map(OPERATOR.fullmatch, contents.hot_operators)):
        yield "the contents", "hot_operators has an invalid operator name"
    if not set(contents.unused_types) <= set(KINDS):
        yield "the contents", "unused_types has an unknown kind of value"


def _damaged(why: str) -> PlanError:
    return PlanError("plan-damaged", "cannot be read", where=WHERE, why=why)


def _other(why: str) -> PlanError:
    hint = "send and read it with the same version of ortrim"
    return PlanError("plan-other-schema", f"is not what {SCHEMA} says", where=WHERE, why=why, hint=hint)


def _differs(where: str, why: str) -> PlanError:
    what = "the plan differs from the one that this version of ortrim makes"
    hint = "dispatch with the same version of ortrim as the workflow"
    return PlanError("plan-not-ours", what, where=where, why=why, hint=hint)
