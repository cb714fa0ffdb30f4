"""A pipeline whose expensive stages are small: no conversion, no sources, no compiling."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_sources import private_cache
from ndk_layout import forget_ndks
from onnx_samples import relu, write
from ort_samples import ort_model
from ortrim.base.console import Console
from ortrim.base.files import sha256_of, write_atomically
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import PlannedTarget, digest
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.prepare import prepare
from ortrim.pipeline import building
from ortrim.planning import models, planned
from ortrim.planning import request as inputs
from ortrim.planning.planned import Planned, target_folder
from ortrim.planning.request import Request
from ortrim.report.write import write_reports
from ortrim.sources.sources import SourceTree
from ortrim.verify.reports import ReportedArtifact
from sample_plans import SOURCES
from sample_reports import recorded_report


def leave_report(planned: Planned, target: PlannedTarget) -> Path:
    """Leave the package and the report of a finished build, and return their folder."""
    folder = target_folder(planned, target)
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / "package.tar.gz"
    package.write_bytes(b"package")
    artifact = ReportedArtifact(name=package.name, size_bytes=7, sha256=sha256_of(package), build_id=None)
    report = replace(recorded_report(), name=planned.plan.spec_name, target=folder.name, artifacts=(artifact,))
    write_reports(replace(report, plan_digest=digest(planned.plan), package=package.name), folder)
    return folder


class Stages:
    """Which stages ran, in order, and the console that they wrote to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[str] = []
        self.stdout = io.StringIO()
        self.console = Console(stdout=self.stdout, stderr=io.StringIO(), environment={})
        write(folder / "tiny.onnx", relu())

    def request(self, body: str = "", **changes: Any) -> Request:
        """Write a buildspec with the model `tiny` and what `body` adds to it, and return a request for it."""
        path = self.folder / "sample.toml"
        path.write_text(f'[[models]]\nname = "tiny"\npath = "tiny.onnx"\n{body}', encoding="utf-8")
        return Request(**{"spec": path, "output": self.folder / "artifacts", **changes})


def small_stages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Stages:
    """Replace conversion and sources on an x86-64 host; the cache is the folder's own."""
    private_cache(folder, monkeypatch)
    forget_ndks(monkeypatch)
    made = Stages(folder)

    def stage(name: str, result: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            made.ran.append(name)
            return result(*arguments, **options)

        return run

    runtime = FullRuntime(version="1.21.0", words=(), environment={}, packages=folder, library=folder / "full.so")
    monkeypatch.setattr(models, "full_runtime", lambda *_: runtime)
    monkeypatch.setattr(models, "convert", stage("convert", _converted))
    monkeypatch.setattr(models, "prepare", stage("prepare", prepare))
    tree = SourceTree(folder=folder, kind="upstream", pins=SOURCES, notes=("upstream: taken from the cache",))
    monkeypatch.setattr(planned, "fetch_sources", stage("sources", lambda *_, **__: tree))
    monkeypatch.setattr(inputs, "host_target", lambda: TARGETS["linux-x64"])
    for check in ("make_references", "require_ready"):
        monkeypatch.setattr(building, check, lambda *_: None)
    return made


def _converted(model: PreparedModel, *_: Any, **__: Any) -> OrtModel:
    # Beside the copy's folder, which holds what was recorded of it and nothing else.
    path = model.path.parent.with_suffix(".ort")
    write_atomically(path, ort_model(1, 4))
    return OrtModel(
        name=model.name, path=path, sha256=sha256_of(path), size_bytes=1, ort_version="1.21.0",
        style="fixed", level="extended", config="ai.onnx;14;Relu\n",
    )  # fmt: skip
