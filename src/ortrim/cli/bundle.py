"""`invoke bundle`: what builds fetch, in one file for machines without a network."""

import json as json_module
from pathlib import Path

from invoke.context import Context

from ortrim.base.build_bundle import VARIABLE
from ortrim.base.console import counted
from ortrim.base.json import to_data
from ortrim.cli.boundary import boundary
from ortrim.cli.options import help_for
from ortrim.cli.task import task
from ortrim.pipeline.bundling import make_bundle


@task(
    help={
        **help_for("target", "json"),
        "spec": "buildspec whose models are fetched, too (default: none, for all whose models are files)",
        "version": "version of ONNX Runtime (default: the buildspec's)",
        "output": "file to write (default: ortrim-bundle-VERSION.zip)",
    }
)
def bundle(
    _context: Context,
    spec: str | None = None,
    version: str | None = None,
    target: str | None = None,
    output: str | None = None,
    json: bool = False,
) -> None:
    """Write all that builds fetch into one file."""
    with boundary(json_mode=json) as console:
        chosen = None if spec is None else Path(spec)
        path, manifest = make_bundle(chosen, version, target, None if output is None else Path(output), console)
        if json:
            console.result(json_module.dumps({"path": str(path), **to_data(manifest)}, indent=2))
        else:
            size = path.stat().st_size
            console.note(f"{path}: {counted(len(manifest.files), 'file')}, {counted(size, 'byte')}")
            built = f"--spec {spec}" if spec else "MODEL.onnx"
            console.note(f"build with it where there is no network: {VARIABLE}={path.name} ortrim build {built}")
