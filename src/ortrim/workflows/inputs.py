"""What `build.yml` is asked for: its inputs, described once for the workflow's text and for reading them back.

They reach a step as one JSON document in the environment (`${{ toJSON(inputs) }}`), so that no word of them is ever
part of a script. GitHub checks little of them: everything is checked again here.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Literal

import pydantic

from ortrim.core.profiles import PROFILE_NAMES, ProfileName
from ortrim.errors import UsageError
from ortrim.github.dispatch import LARGEST_INPUTS

VARIABLE: Final = "ORTRIM_INPUTS"
DEFAULT_SPEC: Final = "buildspecs/silero-vad.toml"
OF_THE_SPEC: Final = "as in the buildspec"
PATTERN: Final = re.compile(r"[a-z0-9*?\[\]!,_-]{1,400}")
REF: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
IDENTIFIER: Final = re.compile(r"[A-Za-z0-9-]{0,64}")
DEVICE: Final = re.compile(r"(firebase|devicefarm|browserstack):[A-Za-z0-9][A-Za-z0-9 ._:/+-]{0,199}")
"""A device of a farm; the farm itself says whether there is one of that name."""
MOST_DEVICES: Final = 8
MODELS: Final = re.compile(r"refs/ortrim/models/[0-9a-f]{16}")
"""The ref that `invoke build --upload-models` makes for one run."""
UPLOADED: Final = "uploaded"
"""The folder into which a run checks that out."""
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
    Input(name="models", description="Set by a program that dispatches: a ref with a buildspec and its models"),
    Input(name="plan", description="Set by a program that dispatches: a plan, in place of a buildspec"),
)


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The inputs of one run, checked; `profile` is None for the buildspec's own, `plan` empty without one.

    `devices` are names of farms' devices as `--device` takes them.
    """

    spec: PurePosixPath
    target: str
    profile: ProfileName | None
    ref: str = ""
    attest: bool = False
    devices: tuple[str, ...] = ()
    correlation_id: str = ""
    models: str = ""
    plan: str = ""


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=pydantic.ConfigDict(extra="forbid"))
class _Document:
    spec: str = DEFAULT_SPEC
    target: str = "linux-x64"
    profile: Literal["as in the buildspec"] | ProfileName = "as in the buildspec"
    ref: str = ""
    attest: bool = False
    devices: str = ""
    correlation_id: str = ""
    models: str = ""
    plan: str = ""


def read_inputs(text: str) -> Inputs:
    """Read the JSON document of a run's inputs.

    Raises `UsageError`: `no-workflow-inputs` outside a workflow, `bad-workflow-inputs`.
    """
    if not text.strip():
        hint = "the workflow build.yml sets it; on your own machine run: invoke build"
        raise UsageError(
            "no-workflow-inputs", "is not set: this task is a step of a workflow", where=VARIABLE, hint=hint
        )
    if len(text) > 2 * LARGEST_INPUTS:
        raise _bad("the whole", "longer than GitHub takes")
    try:
        document = pydantic.TypeAdapter(_Document).validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _bad(".".join(map(str, first["loc"])) or "the whole", first["msg"]) from error
    return _checked(document)


def _checked(document: _Document) -> Inputs:
    _require(REF, document.ref or "none", "ref", "a commit, a branch or a tag")
    _require(PATTERN, document.target, "target", "an identifier, a glob or a prefix")
    _require(IDENTIFIER, document.correlation_id, "correlation_id", "up to 64 letters, digits and dashes")
    _require_own_models(document)
    _require(PAYLOAD, document.plan, "plan", "what invoke build --executor github makes of a plan")
    if document.attest and document.ref:
        raise _bad("attest", "an attestation names the commit of the run: dispatch the workflow on that ref instead")
    if document.devices and document.ref:
        raise _bad(
            "devices", "a farm's credentials are for what is dispatched: dispatch the workflow on that ref instead"
        )
    if document.plan:
        _require_compiled_only(document)
    return Inputs(
        spec=_path(document.spec),
        target=document.target,
        profile=None if document.profile == OF_THE_SPEC else document.profile,
        ref=document.ref,
        attest=document.attest,
        devices=_devices(document.devices),
        correlation_id=document.correlation_id,
        models=document.models,
        plan=document.plan,
    )


def _require_compiled_only(document: _Document) -> None:
    """Refuse for a plan what happens after compiling: a run that left it out would seem to have done it."""
    if document.devices:
        raise _bad("devices", "a plan is compiled only: its models are where it was made")
    if document.attest:
        raise _bad("attest", "a plan is compiled only: it is packaged where it was made")


def _devices(text: str) -> tuple[str, ...]:
    devices = tuple(dict.fromkeys(text.split(","))) if text else ()
    for device in devices:
        _require(DEVICE, device, "devices", "of the form firebase:..., devicefarm:... or browserstack:...")
    if len(devices) > MOST_DEVICES:
        raise _bad("devices", f"more than {MOST_DEVICES} devices")
    return devices


def _require_own_models(document: _Document) -> None:
    """Check that what was uploaded is what is built, and that nobody vouches for it or takes it further."""
    if not document.models:
        return
    _require(MODELS, document.models, "models", "a ref that invoke build --upload-models makes")
    if PurePosixPath(document.spec).parts[:1] != (UPLOADED,):
        raise _bad("spec", f"with models, it lies in {UPLOADED}/")
    for name in ("attest", "devices", "plan"):
        if getattr(document, name):
            raise _bad(name, "it does not go with models that were uploaded")


def _path(text: str) -> PurePosixPath:
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts or path.suffix != ".toml" or not text.isprintable():
        raise _bad("spec", "give the path of a .toml file in the repository")
    return path


def _require(form: re.Pattern[str], text: str, name: str, wanted: str) -> None:
    if not form.fullmatch(text):
        raise _bad(name, f"not {wanted}")


def _bad(name: str, why: str) -> UsageError:
    what, hint = f"the input {name} is not possible", "see the inputs of .github/workflows/build.yml"
    return UsageError("bad-workflow-inputs", what, where=VARIABLE, why=why, hint=hint)
