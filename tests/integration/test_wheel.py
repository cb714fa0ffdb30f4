"""What travels with `pip install`: app teams have no checkout."""

import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest

from onnx_samples import relu, write
from ortrim.base.cache import cache_folder
from ortrim.base.command import Completed, run
from ortrim.errors import ExitCode
from own_caches import link_parts
from package_index import index_tools, package_index

ROOT: Final = Path(__file__).parents[2]
MOST_BYTES: Final = 2_000_000
FETCHED: Final = ("apt", "downloads", "packages", "sources")
"""Parts of the cache that hold only what was fetched."""
KEPT: Final = ("LANG", "PATH", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
IGNORED: Final = shutil.ignore_patterns("__pycache__", "*.pyc")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of what is committed, with the locked build backend and without any index."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("src", "runner", "buildspecs", "docker"):
        shutil.copytree(ROOT / name, source / name, ignore=IGNORED)
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation")
    done = run((*command, "--wheel-dir", folder, source), timeout_seconds=120)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("ortrim-*.whl"))


def files_below(folder: Path, prefix: str) -> set[str]:
    """List files with the names that they have in a wheel."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {f"{prefix}/{path.as_posix()}" for path in paths if "__pycache__" not in path.parts}


def test_the_wheel_holds_code_and_data(wheel: Path) -> None:
    """All modules, pins, templates and scripts, the runner's source and the demo are there, and nothing else."""
    expected = files_below(ROOT / "src" / "ortrim", "ortrim")
    expected |= files_below(ROOT / "runner", "ortrim/resources/runner")
    expected |= {"ortrim/resources/buildspecs/silero-vad.toml"}
    expected |= files_below(ROOT / "docker", "ortrim/resources/docker")
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
    assert names == expected
    assert wheel.stat().st_size <= MOST_BYTES


def test_the_program_starts_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Installed in a folder of its own, the program lists its tasks from any folder."""
    install = (
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        tmp_path / "site",
    )
    assert run((*install, wheel), timeout_seconds=120).returncode == 0
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = run(
        (tmp_path / "site" / "bin" / "ortrim", "--list"), cwd=tmp_path, environment=environment, timeout_seconds=60
    )
    assert done.returncode == 0, done.stderr
    assert "build" in done.stdout
    where = run((sys.executable, "-c", "import ortrim; print(ortrim.__file__)"), cwd=tmp_path, environment=environment)
    assert where.stdout == f"{tmp_path}/site/ortrim/__init__.py\n"


@pytest.mark.network
def test_uv_runs_it_from_an_index(wheel: Path, tmp_path: Path) -> None:
    """With a new HOME and in an empty folder: a model's plan; what an extra brings is asked for in uv's words."""
    (cache := tmp_path / "home" / ".cache" / "ortrim").mkdir(parents=True)
    link_parts(cache, {kind: cache_folder(kind) for kind in FETCHED})
    (work := tmp_path / "work").mkdir()
    write(work / "model.onnx", relu())
    with package_index(tmp_path / "index") as index:
        shutil.copy(wheel, tmp_path / "index")
        own = {"HOME": str(tmp_path / "home"), "UV_INDEX": f"{index}/simple/", "UV_PYTHON": sys.executable}
        environment = {name: os.environ[name] for name in KEPT if name in os.environ} | own

        def uvx_ortrim(*words: str) -> Completed:
            return run((index_tools() / "bin" / "uvx", "ortrim", *words), cwd=work, environment=environment)

        assert uvx_ortrim("--version").stdout == f"ortrim {wheel.name.split('-')[1]}\n"
        planned = uvx_ortrim("plan", "model.onnx", "--target", "linux-x64")
        assert planned.returncode == 0, planned.stderr
        assert "Relu (float)" in planned.stdout
        refused = uvx_ortrim("build", "model.onnx", "--target", "ios-arm64")
    assert refused.returncode == ExitCode.TOOL
    assert "error: tool-missing\n  lief: is not installed" in refused.stderr
    assert 'hint: uvx "ortrim[apple]"' in refused.stderr
