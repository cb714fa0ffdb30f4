"""What a package is made from, and the checks that it is all there."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.artifacts import JobResult
from ortrim.core.models import OrtModel
from ortrim.core.operators import RequiredOperators
from ortrim.core.plan import BuildJob, BuildPlan
from ortrim.errors import PackageError
from ortrim.storage.files import sha256_of

REQUIRED_HEADERS: Final = ("onnxruntime_c_api.h", "onnxruntime_cxx_api.h")


@dataclass(frozen=True, kw_only=True)
class ComponentLicence:
    """The licence of a component that is compiled in: an SPDX expression and the file with the text."""

    component: str
    identifier: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class PackageInputs:
    """All that a package of one target is made from.

    `licence` and `notices` are upstream's `LICENSE` and `ThirdPartyNotices.txt`;
    `licences` are the texts of all components that are compiled in, which upstream's notices may leave out.
    """

    plan: BuildPlan
    job: BuildJob
    result: JobResult
    models: tuple[OrtModel, ...]
    operators: RequiredOperators
    licence: Path
    notices: Path
    licences: tuple[ComponentLicence, ...]

    @property
    def name(self) -> str:
        """Name of the package: of its folder, and of its archive without the suffix."""
        return f"ortrim-{self.plan.spec_name}-{self.job.target.identifier}-{self.plan.ort_version}"

    @property
    def headers(self) -> tuple[Path, ...]:
        """Upstream's public headers, those of execution providers among them, in order of their names."""
        return tuple(sorted(path for path in self.result.headers.glob("*.h") if path.is_file()))


def check_inputs(inputs: PackageInputs) -> None:
    """Refuse inputs that are absent or not those of the plan.

    Raises `PackageError` (`package-input-missing`, `model-changed`).
    """
    files = [inputs.result.library, inputs.licence, inputs.notices, *(licence.path for licence in inputs.licences)]
    files += [inputs.result.headers / name for name in REQUIRED_HEADERS]
    files += [inputs.result.archive] if inputs.result.archive is not None else []
    for path in (*files, *(model.path for model in inputs.models)):
        if not path.is_file():
            hint = "build again: what the package is made from has been removed or was never made"
            what = "a file that belongs into the package is not there"
            raise PackageError("package-input-missing", what, where=str(path), hint=hint)
    _check_models(inputs)


def _check_models(inputs: PackageInputs) -> None:
    planned = {model.name: model.ort_sha256 for model in inputs.plan.models}
    given = {model.name: sha256_of(model.path) for model in inputs.models}
    for name in sorted(planned.keys() | given.keys()):
        if planned.get(name) != given.get(name):
            why = f"planned {planned.get(name, 'not at all')}\nactual  {given.get(name, 'not given')}"
            hint = "run the build from its first stage: the runtime was reduced to another model"
            raise PackageError(
                "model-changed", "a model is not the one that was planned", where=name, why=why, hint=hint
            )
