"""The steps of build.yml, as the committed file says them, in a clean clone: compiled and delivered on two machines."""

import json
import shutil
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.cache import cache_folder
from ortrim.base.checksums import SUMS, check_sums
from ortrim.errors import ExitCode
from ortrim.github.workflow_files import WorkflowInputs, read_inputs
from ortrim.package.manifest import FACTS
from ortrim.sources.checkouts import git
from workflow_runner import Runner, clean_clone, read_workflows

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.slow]

SHARED: Final = ("apt", "downloads", "packages", "sources", "zig")
"""Parts of the cache that hold only what was fetched."""
ENDINGS: Final = (ExitCode.OK, ExitCode.BUDGET)
"""A machine that has other work misses deadlines, and then a delivery ends with the code of missed budgets."""


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Return a runner that was asked for the demo, in a clone of what is committed."""
    values = {"toJSON(inputs)": json.dumps({"target": "linux-x64"}), "vars.DEBIAN_MIRROR": ""}
    return Runner(clone=clean_clone(tmp_path), values=values)


@pytest.fixture
def other_machine(tmp_path: Path) -> Path:
    """Return the cache of a machine on which nothing was compiled."""
    folder = tmp_path / "cache"
    folder.mkdir()
    for name in SHARED:
        (folder / name).symlink_to(cache_folder(name))
    return folder


def own_cache() -> Path:
    """Return the user's cache, in which a demo that was built before need not be compiled again."""
    return cache_folder("builds").parent


@pytest.mark.needs("git")
def test_a_build_goes_through_all_jobs(runner: Runner, other_machine: Path) -> None:
    """Planned and compiled on one machine, packaged and verified on another, with the delivery whole in the end."""
    assert read_inputs(runner.values["toJSON(inputs)"]) == WorkflowInputs(
        spec=read_inputs("{}").spec, target="linux-x64", profile=None
    )
    jobs = read_workflows(runner.clone)["build.yml"]["jobs"]
    runner.do(jobs["plan"], {}, own_cache())
    for entry in runner.matrix(jobs["compile"]):
        runner.do(jobs["compile"], entry, own_cache())
    shutil.rmtree(runner.clone / "artifacts", ignore_errors=True)
    for entry in runner.matrix(jobs["deliver"]):
        runner.do(jobs["deliver"], entry, other_machine, codes=ENDINGS)
    delivery = runner.clone / "delivery"
    check_sums(delivery)
    assert (delivery / SUMS).read_text().count("\n") == 7
    assert git(runner.clone, "rev-parse", "HEAD").strip() in (delivery / FACTS).read_text()
    assert "silero-vad for linux-x64" in (runner.clone.parent / "summary").read_text()


@pytest.mark.needs("git")
def test_the_demo_is_compared_in_a_clean_clone(runner: Runner) -> None:
    """The step of update-pins.yml that builds, with a record that names the last version alone."""
    job = read_workflows(runner.clone)["update-pins.yml"]["jobs"]["update"]
    proposal = runner.clone / "artifacts" / "proposal"
    proposal.mkdir(parents=True)
    (proposal / "versions.json").write_text(json.dumps({"last": "1.21.0"}))
    runner.do(job, {}, own_cache(), only=["Build the demo with the last version and the newest"])
    assert "ONNX Runtime 1.21.0: " in runner.printed[-1].stdout
    assert (proposal / "last" / "report.json").is_file()
