"""The files of `.github/workflows`, rendered from templates; the committed ones are checked to be up to date."""

from collections.abc import Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from ortrim.core.hot_operators import SUFFIX as HOT_SUFFIX
from ortrim.errors import Diagnostic, DiagnosticGroup, UsageError
from ortrim.pins.actions import ActionPin, action_pins, action_reference
from ortrim.pins.images import image_pins
from ortrim.storage.files import storage_errors, write_if_changed
from ortrim.workflows.inputs import INPUTS, UPLOADED
from ortrim.workflows.matrix import MACOS, UBUNTU, UBUNTU_ARM

FOLDER: Final = Path(".github/workflows")
NAMES: Final = ("build", "ci", "release", "update-pins")
HEADER: Final = "# Rendered by `invoke workflows` from src/ortrim/data/github/{}.yml.j2: change that, not this."
GRADLE: Final = "8.9"
"""What the Gradle project of the app for device farms says that it needs."""
HINT: Final = "run: invoke workflows"


def render_workflows(specs: tuple[str, ...], pins: Mapping[str, ActionPin] | None = None) -> dict[str, str]:
    """Return the text of each workflow by its file's name.

    `specs` are the buildspecs that a release builds, as paths in the repository. Raises `SourcesError`
    (`action-not-pinned`, `image-not-pinned`, `bad-pin-file`).
    """
    pinned = action_pins() if pins is None else pins
    values = {
        "action": partial(action_reference, pinned),
        "image": _image,
        "inputs": INPUTS,
        "uploaded_folder": UPLOADED,
        "specs": specs,
        "gradle": GRADLE,
        "ubuntu": UBUNTU,
        "ubuntu_arm": UBUNTU_ARM,
        "macos": MACOS,
    }
    return {f"{name}.yml": _rendered(name, values) for name in NAMES}


def write_workflows(texts: Mapping[str, str], folder: Path) -> tuple[Path, ...]:
    """Write what differs and return those files. Raises `StorageError` as `write_if_changed` does."""
    return tuple(folder / name for name, text in texts.items() if write_if_changed(folder / name, text))


def require_rendered(texts: Mapping[str, str], folder: Path) -> None:
    """Check that a folder holds what would be rendered, and no other workflow that pretends to be.

    Raises `UsageError` `workflow-outdated`, one for each file.
    """
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
    what = "is not what would be rendered" if found is not None else "has not been rendered"
    return UsageError("workflow-outdated", what, where=str(path), hint=HINT)


def _rendered(name: str, values: Mapping[str, Any]) -> str:
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
    text = environment.get_template(f"{name}.yml.j2").render({**values, "header": HEADER.format(name)})
    return "\n".join(line.rstrip() for line in text.split("\n"))


def _template(name: str) -> str:
    return (files("ortrim") / "data" / "github" / name).read_text(encoding="utf-8")
