"""The models of a package, and the settings to load them with."""

from typing import Final

from ortrim.core.sessions import session_json
from ortrim.package.contents import PackagedFile
from ortrim.package.inputs import PackageInputs

MODELS: Final = "models"
SESSION: Final = "session.json"


def model_files(inputs: PackageInputs, folder: str = MODELS) -> tuple[PackagedFile, ...]:
    """Return the converted models of a package and `session.json`, all in one folder."""
    settings = {model.name: model.session for model in inputs.plan.models}
    text = session_json(inputs.plan.ort_version, settings)
    return (
        *(PackagedFile(path=f"{folder}/{model.name}.ort", content=model.path) for model in inputs.models),
        PackagedFile(path=f"{folder}/{SESSION}", content=text.encode()),
    )
