"""What steps need that start other programs: here their scripts run in this process."""

import json
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ortrim.base.scripts import Python
from ortrim.models.full_runtime import FullRuntime
from ortrim.steps import step
from ortrim.steps.step import Workplace


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """Return a step's place, whose scripts run in this process, which is quicker than one of their own."""
    monkeypatch.setattr(step, "run_script", _in_process)
    folder = tmp_path / "work"
    folder.mkdir()
    runtime = FullRuntime(version="1.21.0", words=(), environment={}, packages=tmp_path, library=tmp_path)
    return Workplace(runtime=runtime, folder=folder, base=tmp_path, where="model 'm', step 1", cases={})


def _in_process(
    python: Python,
    script: Path,
    request: Mapping[str, object],
    *,
    folder: Path,
    timeout_seconds: float,
) -> dict[str, Any]:
    path = folder / "request.json"
    path.write_text(json.dumps(dict(request)))
    main: Callable[[Path], None] = runpy.run_path(str(script))["main"]
    main(path)
    answer: dict[str, Any] = json.loads(path.with_name("answer.json").read_text())
    return answer
