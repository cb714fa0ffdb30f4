"""Files that are written of a bench when they are asked for."""

from pathlib import Path

from ortrim.bench.settings import settings_at
from ortrim.core.bench import BenchReport, ModelBench
from ortrim.core.sessions import SessionSettings, session_json
from ortrim.report.bench_markdown import bench_markdown
from ortrim.storage.files import write_atomically


def write_markdown(report: BenchReport, path: Path) -> None:
    """Write the results as Markdown. Raises `StorageError`."""
    write_atomically(path, bench_markdown(report))


def write_session(report: BenchReport, path: Path) -> None:
    """Write a `session.json` with the recommended settings of each model, its default's without one.

    Raises `StorageError`.
    """
    sessions = {model.model.name: _settings(model) for model in report.models}
    write_atomically(path, session_json(report.plan.library.ort_version, sessions))


def _settings(model: ModelBench) -> SessionSettings:
    """Return the settings for the converted model, which `session.json` is about, wherever they were measured."""
    wanted = model.recommended or model.model.points[0].name
    point = next(each for each in model.model.points if each.name == wanted)
    return settings_at(point, style="fixed", aligned=bool(point.session.in_place), onnx=False)
