"""The C# of `docs/start/unity.md`, by upstream's binding, on the library of a package for Unity."""

import ctypes
import json
import os
import re
import sys
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
import pytest

from csharp_binding import compile_csharp, upstream_binding
from demo_voices import probabilities
from ortrim.base.archives import unpack
from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.base.files import shipped_folder
from ortrim.cli.options import request_from
from ortrim.models.full_runtime import full_runtime
from ortrim.pipeline.building import build
from ortrim.planning.planned import planned_for

GUIDE: Final = Path(__file__).parents[2] / "docs" / "start" / "unity.md"
PROGRAM: Final = Path(__file__).with_name("data") / "unity" / "RunVoiceDetector.cs"
FRAME: Final = 64 + 512
NOT_IMPLEMENTED: Final = 9


@pytest.mark.needs("gcc")
def test_a_library_without_coreml_says_so_on_ios(tmp_path: Path) -> None:
    """C# is linked with the function whether or not the library has it."""
    library, stub = full_runtime(onnxruntime.__version__, None).library, tmp_path / "stub.so"
    source = shipped_folder("package") / "unity" / "onnxruntime_coreml.c"
    done = run(("gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, library, "-o", stub))
    assert done.returncode == 0, done.stderr
    ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
    append = ctypes.CDLL(str(stub)).OrtSessionOptionsAppendExecutionProvider_CoreML
    append.restype = ctypes.c_void_p
    status = append(None, 0)  # a code, then a text
    assert ctypes.c_int.from_address(status).value == NOT_IMPLEMENTED
    assert ctypes.string_at(status + 4) == b"CoreML: not in this library (providers)"


@pytest.mark.build
@pytest.mark.network
@pytest.mark.needs("apt-get", "mcs", "mono", "npm")
def test_it_finds_voices_as_the_full_runtime_does(tmp_path: Path) -> None:
    """Mono runs it, as Unity's editor does, and closes the library before it ends; npm reads the package."""
    request = request_from(None, target="linux-x64", output=str(tmp_path / "artifacts"), package=("unity",))
    console = Console(stdout=sys.stderr)
    build(request, console)
    (archive,) = (tmp_path / "artifacts").rglob("*.tgz")
    packed = run(("npm", "pack", "--dry-run", "--json", archive), cwd=tmp_path)
    assert packed.returncode == 0, packed.stderr
    (about,) = json.loads(packed.stdout)
    assert (about["name"], about["version"]) == ("com.ortrim.silero-vad", "1.21.0")
    unpack(archive, tmp_path / "unpacked")
    binding, detector = upstream_binding("1.21.0", tmp_path), tmp_path / "VoiceDetector.cs"
    (text,) = re.findall(r"```csharp\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    detector.write_text(text)
    compile_csharp([detector, PROGRAM], tmp_path / "run.exe", f"-r:{binding}")
    frames = np.random.default_rng(7).normal(0, 0.3, (6, FRAME)).astype(np.float32)
    frames.tofile(tmp_path / "samples")
    plugins = tmp_path / "unpacked" / "package" / "Plugins" / "Linux" / "x64"
    model = tmp_path / "unpacked" / "package" / "Models" / "silero-vad.ort.bytes"
    words = ("mono", tmp_path / "run.exe", model, tmp_path / "samples", str(FRAME))
    ran = run(words, environment=os.environ | {"LD_LIBRARY_PATH": str(plugins)}, timeout_seconds=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (prepared,) = planned_for(request, console).models.prepared
    np.testing.assert_allclose(
        [float(line) for line in ran.stdout.split()], probabilities(prepared.path, frames), rtol=1e-4, atol=1e-5
    )
