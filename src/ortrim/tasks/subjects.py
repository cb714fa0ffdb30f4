"""The options of `bench` and `profile` that say what is run: whose models, in which library, on which cores."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ortrim.pipeline.bench.subjects import Asked
from ortrim.tasks.counts import size_option
from ortrim.tasks.options import bad_option, demo_spec, help_for, request_from

SUBJECT_HELP: Final[Mapping[str, str]] = MappingProxyType({
    "model": "an .onnx file",
    "spec": "buildspec whose models and cases are run (default: the demo)",
    "library": "built, wheel or the path of a library (default: the buildspec's finished build, else the wheel)",
    **help_for("dim", "profile", "cores", "output", "json"),
})  # fmt: skip


def asked_for(
    model: str,
    spec: str,
    *,
    library: str,
    dim: Sequence[str],
    profile: str | None,
    cores: str | None,
    output: str,
) -> Asked:
    """Return what is to be run. Raises `UsageError` (`bad-option`)."""
    if model and spec:
        raise bad_option("model", model, "give --model or --spec, not both")
    request = request_from(model or spec or str(demo_spec()), profile=profile, cores=cores, output=output)
    return Asked(request=request, library=library, dimensions=dict(map(size_option, dim)))
