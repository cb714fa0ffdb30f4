"""`invoke bundle`: what builds fetch, in one file for machines without a network."""

from pathlib import Path

from ortrim.base.build_bundle import VARIABLE
from ortrim.base.console import Console, counted
from ortrim.base.json import to_data
from ortrim.cli.options import WORDS, GivenModels, request_from, version_option
from ortrim.cli.task import task
from ortrim.pipeline.bundling import make_bundle


@task(
    without=("case", "data", "profile"),
    help={
        "model": f"models that are fetched, too: {WORDS}; or one buildspec (default: none, for all that are files)",
        "spec": "a buildspec; also without --spec",
        "output": "file to write (default: ortrim-bundle-VERSION.zip)",
    },
)
def bundle(
    console: Console,
    models: GivenModels,
    target: str | None = None,
    output: str | None = None,
    json: bool = False,
) -> None:
    """Write all that builds fetch into one file."""
    bare = models.first_spec().loaded if models.in_options else lambda: models.loaded(request_from(), console)
    loaded = bare() if models.words else None
    file, version = None if output is None else Path(output), version_option(models.ort_version)
    path, manifest = make_bundle(loaded, version, target, file, console)
    if json:
        console.document({"path": str(path), **to_data(manifest)})
    else:
        size = path.stat().st_size
        console.note(f"{path}: {counted(len(manifest.files), 'file')}, {counted(size, 'byte')}")
        built = " ".join(models.words or ("MODEL.onnx",))
        console.note(f"build with it where there is no network: {VARIABLE}={path.name} invoke build {built}")
