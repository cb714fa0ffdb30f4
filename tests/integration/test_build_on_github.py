"""`invoke build --executor github` from another folder, through the command line, to the report."""

import io
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import onnx
import pytest

from dispatched_work import DispatchedWork, stored
from github_checks import check_requests
from github_service import TOKEN, GitHubService
from github_state import Artifact, VirtualClock
from github_wire import Reply
from ortrim.base.cache import cache_folder
from ortrim.base.command import Completed, run
from ortrim.base.console import Console
from ortrim.base.json import to_canonical_json
from ortrim.cli.options import request_from
from ortrim.github.jobs import compile_planned, plan_run
from ortrim.github.plan_input import HandedInput, decode
from ortrim.github.workflow_files import read_inputs
from ortrim.planning.models import converted_models
from ortrim.planning.request import load

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.needs("git")]

FETCHED: Final = ("apt", "downloads", "packages", "sources", "zig")
"""Parts of the cache that hold only what was fetched."""
SPEC: Final = """
name = "app"
targets = [{ id = "linux-x64", glibc = "2.28" }]

[[models]]
name = "tell-nobody"
path = "../../private/tell-nobody.onnx"

[[models.cases]]
name = "first"
dimensions = { batch = 1, sequence = 576 }
inputs = { sr = { value = 16000 }, state = { value = 0.0 } }
"""
PROGRAM: Final = "from ortrim.cli.program import main; main()"
MARK: Final = "zq17x"
PART: Final = 24
"""How many bytes of the model in a row are looked for in what was sent."""
JOBS: Final = ("plan", "compile linux-x64")


def compile_as_dispatched(folder: Path, asked: dict[str, Any]) -> tuple[Artifact, ...]:
    """Do what build.yml does with a plan, and return what it leaves."""
    console = Console(quiet=True, stdout=io.StringIO(), stderr=io.StringIO())
    inputs = read_inputs(json.dumps(asked))
    assert len(plan_run(inputs, console)[0].targets) == 1
    compile_planned(inputs.plan, "linux-x64", folder, console)
    shutil.rmtree(folder / "logs", ignore_errors=True)
    return (stored(31, "compiled-app-linux-x64", folder),)


@dataclass(frozen=True, kw_only=True)
class Laptop:
    """Somebody's checkout with a buildspec in it, a model beside it, and GitHub."""

    checkout: Path
    model: Path
    service: GitHubService
    workflow: DispatchedWork
    environment: dict[str, str]

    def ortrim(self, *words: str) -> Completed:
        argv = (sys.executable, "-c", PROGRAM, *words)
        return run(argv, cwd=self.checkout, environment=self.environment, timeout_seconds=1800)

    def build(self) -> Completed:
        return self.ortrim("build", "--spec", "buildspecs/app.toml", "--executor", "github")

    def sent(self) -> HandedInput:
        return decode(self.workflow.dispatched()[0]["plan"])


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs_of(attribute.g)


def marked(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give everything inside a model a name that is nowhere else; what goes in and comes out keeps its own."""
    kept = {value.name for value in (*model.graph.input, *model.graph.output)}
    for graph in graphs_of(model.graph):
        del graph.value_info[:]
        for each in (*graph.initializer, *graph.node, *graph.output):
            each.name = each.name if each.name in kept else f"{MARK}{each.name}"
        for node in graph.node:
            node.input[:] = [name if name in kept or not name else f"{MARK}{name}" for name in node.input]
            node.output[:] = [name if name in kept or not name else f"{MARK}{name}" for name in node.output]
    return model


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    root = tmp_path_factory.mktemp("laptop")
    checkout, private, cache = root / "checkout", root / "private", root / "cache"
    for folder in (checkout / "buildspecs", private, cache):
        folder.mkdir(parents=True)
    (checkout / "buildspecs" / "app.toml").write_text(SPEC)
    demo = converted_models(load(request_from(None, output=str(root))), Console(quiet=True)).prepared[0]
    onnx.save(marked(onnx.load(demo.path)), private / "tell-nobody.onnx")
    for name in FETCHED:
        (cache / name).symlink_to(cache_folder(name))
    with GitHubService(VirtualClock()).running() as service:
        for words in (
            ("init", "-q", "--initial-branch", "main"),
            ("remote", "add", "origin", f"{service.url.rpartition(':')[0]}/octo/ort.git"),
        ):
            assert run(("git", *words), cwd=checkout).returncode == 0
        own = {"ORTRIM_CACHE": str(cache), "GITHUB_API_URL": service.url, "GH_TOKEN": TOKEN}
        own |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        rest = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "GH_"))}
        workflow = DispatchedWork(service, partial(compile_as_dispatched, root / "compiled"), JOBS)
        yield Laptop(
            checkout=checkout, model=private / "tell-nobody.onnx", service=service, workflow=workflow,
            environment={**rest, **own},
        )  # fmt: skip
        check_requests(service)


def test_a_build_goes_to_github_and_comes_home(laptop: Laptop) -> None:
    """Dispatched, followed, fetched over a link that breaks, packaged and verified here, with what it took."""
    laptop.service.fault("GET .*/jobs", Reply(status=502))
    laptop.service.blobs.cuts.append(100_000)
    done = laptop.build()
    assert laptop.workflow.errors == []
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    (report,) = laptop.checkout.glob("artifacts/app/*/linux-x64/report.json")
    told = json.loads(report.read_text())
    assert told["verdict"] == "pass"
    assert [device["verdict"] for device in told["devices"]] == ["pass"]
    assert (report.parent / told["package"]).is_file()
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "compile linux-x64: success" in lines
    assert any("2 of them repeated" in line and line.endswith("0 of them twice") for line in lines), done.stdout
    assert laptop.service.lines("storage")[0].endswith(" 200")
    assert laptop.service.lines("storage")[1].endswith(" 206")


def test_the_same_build_needs_nobody(laptop: Laptop) -> None:
    asked = len(laptop.service.seen)
    done = laptop.build()
    assert done.returncode == 0, done.stderr
    assert "no run is dispatched" in done.stdout
    assert len(laptop.service.seen) == asked


def test_the_run_is_listed_and_can_be_taken_up(laptop: Laptop) -> None:
    """By the record that lies beside the plan."""
    listed = laptop.ortrim("runs")
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.splitlines()[1].split()[:3] == ["5000", "success", "linux-x64"]
    done = laptop.ortrim("attach", "5000", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reports"][0]["target"] == "linux-x64"


def test_the_models_stay_at_home(laptop: Laptop) -> None:
    """No byte of them, no name in them, no path of this machine and no token is in anything that was sent."""
    sent = [f"{seen.method} {seen.path} {seen.query}".encode() + b"\0" + seen.body for seen in laptop.service.seen]
    sent += [
        " ".join(f"{n}: {v}" for n, v in seen.headers.items() if n != "authorization").encode()
        for seen in laptop.service.seen
    ]
    everything = b"\n".join([*sent, to_canonical_json(laptop.sent()).encode()])
    private = {MARK, "tell-nobody", "stateN", TOKEN, str(laptop.checkout), str(laptop.model.parent), str(Path.home())}
    private |= {laptop.environment["ORTRIM_CACHE"], str(cache_folder("builds").parent)}
    content = laptop.model.read_bytes()
    assert content.count(MARK.encode()) > 50
    assert [word for word in sorted(private) if word.encode() in everything] == []
    parts = (content[place : place + PART] for place in range(0, len(content), PART))
    assert not any(part in everything for part in parts if len(set(part)) > 4)
