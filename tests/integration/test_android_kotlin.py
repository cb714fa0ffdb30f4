"""The guide's Kotlin, as it stands in `docs/start/android.md`: compiled for Android, and run on a trimmed library."""

import re
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from demo_voices import probabilities
from harness_java import android_jar
from java_demo import java_demo
from kotlin_compiler import kotlin_libraries, kotlinc
from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.cli.options import request_from
from ortrim.planning.planned import planned_for
from ortrim.platforms.android.aar import FOLDERS, classes_jar
from ortrim.platforms.android.jni import JAVA, find_jdk

pytestmark = [pytest.mark.network, pytest.mark.needs("apt-get", "dpkg-deb", "java", "javac")]
GUIDE: Final = Path(__file__).parents[2] / "docs" / "start" / "android.md"
APP: Final = Path(__file__).with_name("data") / "kotlin"
OFFSET: Final = 4100
"""Where the model begins in the APK: zipalign promises a multiple of four."""
ASSET: Final = "models/silero-vad.ort"
FRAME: Final = 64 + 512


@pytest.fixture(name="source")
def fixture_source(tmp_path: Path) -> Path:
    (text,) = [text for text in re.findall(r"```kotlin\n(.*?)```", GUIDE.read_text(), re.DOTALL) if "class " in text]
    path = tmp_path / "VoiceDetector.kt"
    path.write_text(text)
    return path


@pytest.fixture(name="android")
def fixture_android() -> Path:
    android = android_jar()
    if android is None:
        pytest.skip("Debian's mirrors do not have Android's classes any more")
    return android


def test_it_compiles_for_android(source: Path, android: Path, tmp_path: Path) -> None:
    """Against Android's real classes of API level 23, and those of an AAR."""
    request = request_from(None, target="linux-x64", output=str(tmp_path / "artifacts"))
    java = planned_for(request, Console()).sources.folder / JAVA
    (tmp_path / "classes.jar").write_bytes(classes_jar(find_jdk(), [java / name for name in FOLDERS]))
    done = kotlinc(source, [android, tmp_path / "classes.jar"], tmp_path / "out")
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert (tmp_path / "out" / "VoiceDetector.class").is_file()


@pytest.mark.build
def test_it_finds_voices_as_the_full_runtime_does(source: Path, android: Path, tmp_path: Path) -> None:
    """The same class on the demo's trimmed library, frame by frame, the model mapped from the midst of a file."""
    demo = java_demo(tmp_path)
    done = kotlinc(source, [android, demo.jar], tmp_path / "classes")
    assert done.returncode == 0, done.stderr
    demo.compile(sorted(APP.rglob("*.java")), tmp_path / "app", tmp_path / "classes", *kotlin_libraries())
    frames = np.random.default_rng(7).normal(0, 0.3, (6, FRAME)).astype(np.float32)
    frames.tofile(tmp_path / "samples")
    (tmp_path / "app.apk").write_bytes(bytes(OFFSET) + demo.planned.models.converted[0].path.read_bytes())
    words = demo.words("RunVoiceDetector", tmp_path / "app", tmp_path / "classes", *kotlin_libraries())
    ran = run((*words, tmp_path / "app.apk", ASSET, str(OFFSET), tmp_path / "samples", str(FRAME)), timeout_seconds=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "WARNING" not in ran.stdout, ran.stdout
    found = [float(line.split()[1]) for line in ran.stdout.splitlines() if line.startswith("probability ")]
    np.testing.assert_allclose(found, probabilities(demo.planned.models.prepared[0].path, frames), rtol=1e-4, atol=1e-5)
