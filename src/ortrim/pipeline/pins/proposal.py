"""The words of a pull request with new pins: which versions came, what the newest costs, and what is left to do."""

from collections.abc import Iterator
from pathlib import Path

from ortrim.pipeline.pins.version_builds import read_built
from ortrim.report.against import against
from ortrim.report.markdown_text import escaped, table
from ortrim.report.step_summary import step_summary
from ortrim.workflows.updates import Refused, VersionsUpdate, read_update


def proposal_body(folder: Path) -> str:
    """Return Markdown about the record and the reports in a folder. Raises as `read_update` and `read_report` do."""
    update = read_update(folder)
    if update is None:
        return "Nothing was built with these pins.\n"
    reports = read_built(update, folder)
    measured = against(*reports) if len(reports) == 2 else step_summary(reports)
    return "\n".join((*_sections(update), measured))


def _sections(update: VersionsUpdate) -> Iterator[str]:
    if update.pinned:
        yield f"New versions of ONNX Runtime, pinned by their digests: {', '.join(update.pinned)}.\n"
        yield _left_to_do(update)
    else:
        yield f"No version of ONNX Runtime after {update.last} was pinned.\n"
    if update.refused:
        yield f"Not pinned:\n\n{_refusals(update.refused)}\n"
    if update.unbuilt:
        yield f"**The demo could not be built with {update.newest}:**\n\n{_refusals((update.unbuilt,))}\n"
        yield f"What follows is the demo with {update.last}.\n"


def _left_to_do(update: VersionsUpdate) -> str:
    return (
        "Buildspecs take what they name, and the default version stays as it is. There is no index of units for a new"
        " version, so building it compiles every source file. To make one, run"
        f" `invoke pins.index --version {update.newest}` on this branch and commit what it writes.\n"
    )


def _refusals(refused: tuple[Refused, ...]) -> str:
    rows = ((each.version, f"`{each.reference}`", *map(escaped, (each.what, each.why))) for each in refused)
    return table(("version", "reference", "what", "why"), rows)
