"""The files of `.github/workflows`, rendered from templates; the committed ones are checked to be up to date."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal

import pydantic

from ortrim.base.checksums import SUMS
from ortrim.base.files import storage_errors, write_if_changed
from ortrim.base.json import first_fault
from ortrim.buildspec.build_options import PROFILE_NAMES, ProfileName
from ortrim.buildspec.targets import TARGETS, Target
from ortrim.compiling.plan import BuildPlan
from ortrim.errors import Diagnostic, DiagnosticGroup, PlanError, UsageError, bad_option
from ortrim.github.repositories import FULL_NAME
from ortrim.github.runner_setup import PHONES
from ortrim.github.runs import LARGEST_INPUTS
from ortrim.models.hot_operators import SUFFIX as HOT_SUFFIX
from ortrim.package.manifest import ATTESTED, FAILED, PREFIX
from ortrim.pins.shipped import ActionPin, action_pins, action_reference, image_pins
from ortrim.platforms import platform_of
from ortrim.platforms.android.ndk import RELEASES

VARIABLE: Final = "ORTRIM_INPUTS"
DEFAULT_SPEC: Final = "buildspecs/silero-vad.toml"
OF_THE_SPEC: Final = "as in the buildspec"
PATTERN: Final = re.compile(r"[a-z0-9*?\[\]!,_-]{1,400}")
REF: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
IDENTIFIER: Final = re.compile(r"[A-Za-z0-9-]{0,64}")
DEVICE: Final = re.compile(r"(firebase|devicefarm):[A-Za-z0-9][A-Za-z0-9 ._:/+-]{0,199}")
"""A device of a farm; the farm itself says whether there is one of that name."""
MOST_DEVICES: Final = 8
PAYLOAD: Final = re.compile(r"[A-Za-z0-9_=-]*")


@dataclass(frozen=True, kw_only=True)
class Input:
    """One input of the workflow as GitHub shows it; `options` are those of a choice."""

    name: str
    description: str
    kind: Literal["string", "boolean", "choice"] = "string"
    default: str = ""
    options: tuple[str, ...] = ()


INPUTS: Final = (
    Input(name="spec", description="Buildspec, a path in this repository", default=DEFAULT_SPEC),
    Input(name="target", description="Target identifier, glob or prefix", default="linux-x64"),
    Input(
        name="profile", description="Profile", kind="choice", default=OF_THE_SPEC, options=(OF_THE_SPEC, *PROFILE_NAMES)
    ),
    Input(name="ref", description="Commit, branch or tag to build, if not the one above"),
    Input(name="attest", description="Attest the provenance of what is built", kind="boolean", default="false"),
    Input(name="devices", description="Devices of farms, such as firebase:MediumPhone.arm-34, with commas between"),
    Input(name="correlation_id", description="Set by a program that dispatches, to find its run"),
    Input(name="plan", description="Set by a program that dispatches: a plan, in place of a buildspec"),
)


def _own_profile(value: object) -> object:
    return None if value == OF_THE_SPEC else value


def _split(value: object) -> object:
    if isinstance(value, str):
        return tuple(dict.fromkeys(value.split(","))) if value else ()
    return value


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=pydantic.ConfigDict(extra="forbid"))
class WorkflowInputs:
    """The inputs of one run; `profile` is None for the buildspec's own, `plan` empty without one.

    `devices` are names of farms' devices as `--device` takes them.
    """

    spec: PurePosixPath = PurePosixPath(DEFAULT_SPEC)
    target: str = "linux-x64"
    profile: Annotated[ProfileName | None, pydantic.BeforeValidator(_own_profile)] = None
    ref: str = ""
    attest: bool = False
    devices: Annotated[tuple[str, ...], pydantic.BeforeValidator(_split)] = ()
    correlation_id: str = ""
    plan: str = ""


def read_inputs(text: str) -> WorkflowInputs:
    """Read the JSON document of a run's inputs."""
    if not text.strip():
        hint = "the workflow build.yml sets it; on your own machine run: invoke build"
        raise UsageError(
            "no-workflow-inputs", "is not set: this task is a step of a workflow", where=VARIABLE, hint=hint
        )
    if len(text) > 2 * LARGEST_INPUTS:
        raise _bad("the whole", "longer than GitHub takes")
    try:
        inputs = pydantic.TypeAdapter(WorkflowInputs).validate_json(text)
    except pydantic.ValidationError as error:
        place, _, why = first_fault(error).partition(": ")
        raise _bad(place, why) from error
    _check(inputs)
    return inputs


def _check(inputs: WorkflowInputs) -> None:
    _require(REF, inputs.ref or "none", "ref", "a commit, a branch or a tag")
    _require(PATTERN, inputs.target, "target", "an identifier, a glob or a prefix")
    _require(IDENTIFIER, inputs.correlation_id, "correlation_id", "up to 64 letters, digits and dashes")
    _require(PAYLOAD, inputs.plan, "plan", "an encoded plan of invoke build --executor github")
    if inputs.attest and inputs.ref:
        raise _bad("attest", "an attestation names the commit of the run: dispatch the workflow on that ref instead")
    if inputs.devices and inputs.ref:
        raise _bad(
            "devices",
            "a farm's credentials are only for the run's own commit: dispatch the workflow on that ref instead",
        )
    if inputs.plan:
        if inputs.devices:
            raise _bad("devices", "a plan is only compiled: its models are on the machine that made it")
        if inputs.attest:
            raise _bad("attest", "a plan is only compiled: the machine that made it also packages it")
    for device in inputs.devices:
        _require(DEVICE, device, "devices", "of the form firebase:... or devicefarm:...")
    if len(inputs.devices) > MOST_DEVICES:
        raise _bad("devices", f"more than {MOST_DEVICES} devices")
    spec = inputs.spec
    if spec.is_absolute() or ".." in spec.parts or spec.suffix != ".toml" or not str(spec).isprintable():
        raise _bad("spec", "give the path of a .toml file in the repository")


def _require(form: re.Pattern[str], text: str, name: str, wanted: str) -> None:
    if not form.fullmatch(text):
        raise _bad(name, f"not {wanted}")


def _bad(name: str, why: str) -> UsageError:
    what, hint = f"the input {name} is not possible", "see the inputs of .github/workflows/build.yml"
    return UsageError("bad-workflow-inputs", what, where=VARIABLE, why=why, hint=hint)


UBUNTU: Final = "ubuntu-24.04"
UBUNTU_ARM: Final = "ubuntu-24.04-arm"
MACOS: Final = "macos-15"
"""A Mac with Apple's own processor, which compiles for Intel's too; it has the Xcode that the pins name."""
WINDOWS: Final = "windows-2025"
RUNNERS: Final = {"linux-x64": UBUNTU, "linux-arm64": UBUNTU_ARM, "macos-arm64": MACOS}
"""What GitHub has of the machines that compile, each as the target that it is itself -> its label."""
MOST_JOBS: Final = 256
"""What GitHub takes of a matrix."""
COMPILING_MINUTES: Final = 120
DELIVERING_MINUTES: Final = 60


@dataclass(frozen=True, kw_only=True)
class CompileJob:
    """One target to be compiled, the name of its artifact, the label of its runner, and how long it may take."""

    target: str
    artifact: str
    runner: str
    minutes: int


@dataclass(frozen=True, kw_only=True)
class DeliverJob:
    """What is packaged, verified and handed over together: a target, or all those of an assembly.

    `targets` are their identifiers with commas between; `artifacts` is the pattern of the artifacts that hold them
    compiled, `artifact` the name of the delivery's own.
    """

    name: str
    targets: str
    artifacts: str
    artifact: str
    runner: str
    minutes: int


def compile_jobs(plan: BuildPlan) -> tuple[CompileJob, ...]:
    """Return a job for each target of a plan; all of them come before any of `deliver_jobs`."""
    targets = [planned.job.target for planned in plan.targets]
    if len(targets) > MOST_JOBS:
        what = f"{len(targets)} targets are more than the {MOST_JOBS} jobs that GitHub takes at once"
        raise PlanError("matrix-too-large", what, where=plan.spec_name, hint="select fewer targets")
    return tuple(
        CompileJob(
            target=target.identifier,
            artifact=compiled_artifact(plan, target.identifier),
            runner=runner_of(target),
            minutes=COMPILING_MINUTES,
        )
        for target in targets
    )


def runner_of(target: Target) -> str:
    """Return the label of the runner on which a target is compiled."""
    return RUNNERS[platform_of(target).build_machine(target)]


def compiled_artifact(plan: BuildPlan, target: str) -> str:
    """Return the name of the artifact of a compiled target; several buildspecs may be built in one run.

    What one assembly joins has names that begin alike.
    """
    family = platform_of(TARGETS[target]).NAME
    return f"compiled-{plan.spec_name}-{target if target.startswith(family) else f'{family}-{target}'}"


def matrix_json(jobs: tuple[CompileJob, ...] | tuple[DeliverJob, ...]) -> str:
    """Return jobs as the matrix that `fromJSON` reads, in one line."""
    return json.dumps({"include": [asdict(job) for job in jobs]}, separators=(",", ":"))


def deliver_jobs(plan: BuildPlan) -> tuple[DeliverJob, ...]:
    """Return a job for each target of a plan that no assembly joins, then one for each assembly."""
    assembled = {identifier for assembly in plan.assemblies for identifier in assembly.targets}
    own = [target.identifier for target in plan.targets if target.identifier not in assembled]
    return (
        *(_delivery(plan, name, (name,), compiled_artifact(plan, name)) for name in own),
        *(
            _delivery(plan, each.identifier, each.targets, f"compiled-{plan.spec_name}-{each.identifier}-*")
            for each in plan.assemblies
        ),
    )


def _delivery(plan: BuildPlan, name: str, targets: tuple[str, ...], artifacts: str) -> DeliverJob:
    return DeliverJob(
        name=name,
        targets=",".join(targets),
        artifacts=artifacts,
        artifact=f"{PREFIX}{plan.spec_name}-{name}",
        runner=runner_of(TARGETS[targets[0]]),
        minutes=DELIVERING_MINUTES,
    )


FOLDER: Final = Path(".github/workflows")
NAMES: Final = ("build", "ci", "publish", "release", "update-pins")
HEADER: Final = (
    "# Rendered by `invoke workflows` from src/ortrim/resources/github/{}.yml.j2: edit that file, not this one."
)
GRADLE: Final = "8.9"
"""What the Gradle project of the app for device farms says that it needs."""
APP_GRADLE: Final = "9.6.0"
"""What the plugin of the app in our own tests needs at least."""
NDKS: Final = tuple(RELEASES[major] for major in ("27", "28"))
"""Those with which CI tests."""
HINT: Final = "run: invoke workflows"


def render_workflows(specs: tuple[str, ...], pins: Mapping[str, ActionPin] | None = None) -> dict[str, str]:
    """Return the text of each workflow by its file's name.

    `specs` are the buildspecs that a release builds, as paths in the repository.
    """
    pinned = action_pins() if pins is None else pins
    values = {
        "action": partial(action_reference, pinned),
        "image": _image,
        "inputs": INPUTS,
        "failed": FAILED,
        "mark": ATTESTED,
        "sums": SUMS,
        "specs": specs,
        "gradle": GRADLE,
        "app_gradle": APP_GRADLE,
        "ndks": NDKS,
        "phones": tuple(PHONES),
        "ubuntu": UBUNTU,
        "ubuntu_arm": UBUNTU_ARM,
        "macos": MACOS,
        "windows": WINDOWS,
    }
    return {f"{name}.yml": rendered(name, {**values, "header": HEADER.format(name)}) for name in NAMES}


def write_workflows(texts: Mapping[str, str], folder: Path) -> tuple[Path, ...]:
    """Write what differs and return those files."""
    return tuple(folder / name for name, text in texts.items() if write_if_changed(folder / name, text))


def require_rendered(texts: Mapping[str, str], folder: Path) -> None:
    """Check that a folder holds what would be rendered, and no other workflow that pretends to be."""
    problems = [_outdated(folder / name, text) for name, text in texts.items()]
    found: tuple[Diagnostic, ...] = tuple(problem for problem in problems if problem)
    if found:
        raise found[0] if len(found) == 1 else DiagnosticGroup(found)


def released_specs(folder: Path) -> tuple[str, ...]:
    """Return the buildspecs of a repository's folder, in order, as paths in the repository.

    The files of hot operators beside them are none.
    """
    names = (path.name for path in folder.glob("*.toml") if not path.name.endswith(HOT_SUFFIX))
    return tuple(sorted(f"{folder.name}/{name}" for name in names))


def _image(name: str) -> str:
    pin = image_pins().base(name)
    return f"{pin.pinned} # {pin.reference}"


def _outdated(path: Path, text: str) -> Diagnostic | None:
    with storage_errors(path):
        found = path.read_bytes() if path.is_file() else None
    if found == text.encode():
        return None
    what = "differs from the rendered workflow" if found is not None else "has not been rendered"
    return UsageError("workflow-outdated", what, where=str(path), hint=HINT)


def rendered(name: str, values: Mapping[str, Any]) -> str:
    """Return a template with values in it."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 - slow to import

    environment = Environment(  # noqa: S701 - workflows, not HTML
        loader=FunctionLoader(_template),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
    )
    text = environment.get_template(f"{name}.yml.j2").render(values)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def _template(name: str) -> str:
    return (files("ortrim") / "resources" / "github" / name).read_text(encoding="utf-8")


FLOATING: Final = "v1"
"""The tag that is ortrim's newest version."""
DEFAULT_TARGET: Final = "linux-x64"
PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./,-]*")
"""What YAML takes for nothing but text."""


@dataclass(frozen=True, kw_only=True)
class CalledProgram:
    """Ortrim's own repository, as `OWNER/NAME`, and the commit, tag or branch of it that builds."""

    repository: str
    ref: str


def called_program(word: str) -> CalledProgram:
    """Return what OWNER/NAME or OWNER/NAME@REF means."""
    repository, at, given = word.partition("@")
    ref = given if at else FLOATING
    if not (FULL_NAME.fullmatch(repository) and REF.fullmatch(ref)):
        raise bad_option("github", word[:100], "give ortrim's repository, as OWNER/NAME or OWNER/NAME@REF")
    return CalledProgram(repository=repository, ref=ref)


def calling_workflow(spec: Path, program: CalledProgram, target: str | None) -> tuple[Path, str]:
    """Return the file of a workflow that builds a buildspec, where there is none yet, and its text.

    It is in the repository around the buildspec's file, which need not be there yet; without any, in the file's folder.
    """
    root = repository_around(spec)
    path = spec.resolve().relative_to(root).as_posix()
    if not path.isprintable() or "${{" in path:
        raise bad_option("output", repr(path)[:100], "give a folder that a workflow can name")
    file = root / FOLDER / f"{spec.stem}.yml"
    if file.exists():
        hint = "remove the file, or leave out --github"
        raise UsageError("spec-exists", "there is a workflow of this name already", where=str(file), hint=hint)
    return file, calling_text(spec.stem, path, program, target or DEFAULT_TARGET)


def calling_text(name: str, spec: str, program: CalledProgram, target: str) -> str:
    """Return the text of a workflow that builds a buildspec, a path in its repository."""
    return rendered("_calling", {"name": name, "program": program, "spec": _quoted(spec), "target": _quoted(target)})


def repository_around(file: Path) -> Path:
    """Return the folder of the git repository in which a file lies, its own folder if that is in none."""
    folder = file.resolve().parent
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def _quoted(text: str) -> str:
    return text if PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
