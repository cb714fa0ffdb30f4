"""`invoke workflows`: GitHub's workflow files."""

from pathlib import Path

from invoke.context import Context
from invoke.tasks import task

from ortrim.tasks.boundary import boundary
from ortrim.workflows.rendering import FOLDER, released_specs, render_workflows, require_rendered, write_workflows


@task(help={"check": "write nothing; fail when a committed workflow is not what would be rendered"})
def workflows(_context: Context, check: bool = False) -> None:
    """Render .github/workflows from its templates."""
    with boundary() as console:
        texts = render_workflows(released_specs(Path("buildspecs")))
        if check:
            require_rendered(texts, FOLDER)
            return
        for path in write_workflows(texts, FOLDER):
            console.result(str(path))
