"""ONNX Runtime for real in a container: the library is the native executor's, byte for byte."""

from dataclasses import replace
from pathlib import Path

import pytest

from container_storage import container_storage, containers
from ortrim.base.console import Console
from ortrim.base.files import sha256_of
from ortrim.cli.options import demo_spec
from ortrim.compiling.container_engines import ContainerOptions
from ortrim.compiling.containers import environments_in_containers
from ortrim.compiling.plan import digest
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import planned_for
from ortrim.planning.request import Request
from ortrim.platforms import LINUX

pytestmark = [
    pytest.mark.slow,
    pytest.mark.build,
    pytest.mark.container,
    pytest.mark.network,
    pytest.mark.needs("buildah", "apt-get"),
    pytest.mark.needs("root"),  # whose the stores of these tests are
]


def test_the_demos_library_built_in_a_container_is_the_native_one(tmp_path: Path) -> None:
    """The same job, by digest, compiled there from nothing: no object comes from this machine's compiler cache."""
    request = Request(spec=demo_spec(), target="linux-x64", output=tmp_path / "output")
    console = Console()
    planned = planned_for(request, console)
    (target,) = planned.plan.targets
    with console.step("natively") as step:
        native = executor_for(planned, target, request, step)
        library = sha256_of(native.run(target.job).library)
    with container_storage(tmp_path / "containers"), console.step("in a container") as step:
        executor = replace(executor_for(planned, target, request, step), log=tmp_path / "build.log")
        options, images = ContainerOptions(engine="buildah"), LINUX.images()
        inside = replace(executor, execution=environments_in_containers(options, images)).run(target.job)
        assert inside.folder.name == digest(target.job)[:20]
        assert inside.folder.is_relative_to(tmp_path / "containers")
        assert inside.compiler_cache is not None
        assert inside.compiler_cache.hits == 0
        assert sha256_of(inside.library) == library
        assert containers("buildah") == []
