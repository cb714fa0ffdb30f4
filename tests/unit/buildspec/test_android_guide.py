"""The buildspec in `docs/start/android.md` is valid, and agrees with the code that follows it."""

import re
from pathlib import Path
from typing import Final

from ortrim.buildspec.load import load_spec
from ortrim.buildspec.targets import TARGETS, OperatingSystem
from ortrim.planning.planner import select_targets
from ortrim.platforms import target_problems

GUIDE: Final = (Path(__file__).parents[3] / "docs" / "start" / "android.md").read_text(encoding="utf-8")


def test_the_guides_buildspec(tmp_path: Path) -> None:
    """It names ABIs for one AAR with the model that the Kotlin opens, under the coordinates that Gradle is given."""
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    path = tmp_path / "app.toml"
    path.write_text(text)
    spec = load_spec(path, target_problems)
    targets = select_targets(spec, "android", None)
    assert len(targets) == 2
    assert {TARGETS[target.id].system for target in targets} == {OperatingSystem.ANDROID}
    assert spec.android.models_as_assets
    (model,) = spec.models
    assert f'openFd("models/{model.name}.ort")' in GUIDE
    assert f'implementation("ortrim:onnxruntime-{spec.name}:{spec.onnxruntime.version}-' in GUIDE
    assert f"ortrim-{spec.name}-android-{spec.onnxruntime.version}/maven" in GUIDE
    assert (model.style, "OptLevel.NO_OPT" in GUIDE) == ("fixed", True)
