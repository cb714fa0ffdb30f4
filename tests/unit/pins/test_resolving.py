"""What pip would take on another Python, asked of the real pip with a folder of wheels as its only index."""

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from ortrim.base.command import Completed
from ortrim.errors import NetworkError, ToolError
from ortrim.pin_updates import update
from ortrim.pin_updates.update import Resolved, resolved

LINUX = ("manylinux_2_28_x86_64",)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder in which pip looks."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return tmp_path


def add(index: Path, name: str, tag: str, needs: tuple[str, ...] = ()) -> str:
    """Make a wheel of version 1.0 and return its digest."""
    path = index / f"{name}-1.0-{tag}.whl"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {each}" for each in needs)]
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}-1.0.dist-info/METADATA", "\n".join(lines) + "\n")
        wheel.writestr(f"{name}-1.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_each_python_and_machine_has_its_own_wheel(index: Path) -> None:
    """By its digest; what the requirement needs comes along, when that is wanted."""
    own = add(index, "runtime", "cp312-cp312-manylinux_2_28_x86_64", ("helper>=1",))
    other = add(index, "runtime", "cp312-cp312-manylinux_2_28_aarch64", ("helper>=1",))
    helper = add(index, "helper", "py3-none-any")
    wanted = Resolved(name="helper", version="1.0", sha256=helper), Resolved(name="runtime", version="1.0", sha256=own)
    assert resolved(["runtime==1.0"], "3.12", LINUX) == wanted
    alone = resolved(["runtime==1.0"], "3.12", ("manylinux_2_28_aarch64",), dependencies=False)
    assert alone == (Resolved(name="runtime", version="1.0", sha256=other),)


@pytest.mark.parametrize("python", ["3.11", "3.13"])
def test_a_python_without_a_wheel_has_none(index: Path, python: str) -> None:
    """That is an answer, not an error."""
    add(index, "runtime", "cp312-cp312-manylinux_2_28_x86_64")
    assert resolved(["runtime==1.0"], python, LINUX) is None
    assert resolved(["runtime==2.0"], "3.12", LINUX) is None


def answered(monkeypatch: pytest.MonkeyPatch, stderr: str, report: str = "") -> None:
    """Let pip say something."""

    def run(argv: tuple[object, ...], **_: object) -> Completed:
        if report:
            Path(str(argv[argv.index("--report") + 1])).write_text(report)
        return Completed(argv=(), returncode=0 if report else 1, stdout="", stderr=stderr)

    monkeypatch.setattr(update, "run", run)


def test_an_index_that_cannot_be_reached_is_not_an_absent_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pip says both in one breath; a version must not be given up for a broken network."""
    answered(monkeypatch, "WARNING: Retrying (Retry(total=0\nERROR: No matching distribution found for x==1")
    with pytest.raises(NetworkError) as caught:
        resolved(["x==1"], "3.12", LINUX)
    assert caught.value.code == "index-unreachable"


def test_anything_else_is_reported_in_pips_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken configuration, say."""
    answered(monkeypatch, "ERROR: something odd")
    with pytest.raises(ToolError) as caught:
        resolved(["x==1"], "3.12", LINUX)
    assert (caught.value.code, caught.value.why) == ("install-failed", "ERROR: something odd")


@pytest.mark.parametrize("hashes", ["{}", '{"hashes": {}}', '{"hashes": {"sha256": "no"}}', '{"hashes": {"md5": "a"}}'])
def test_an_index_without_digests_is_refused(monkeypatch: pytest.MonkeyPatch, hashes: str) -> None:
    """Nothing is pinned by its name alone."""
    entry = f'{{"metadata": {{"name": "x", "version": "1"}}, "download_info": {{"archive_info": {hashes}}}}}'
    answered(monkeypatch, "", f'{{"install": [{entry}]}}')
    with pytest.raises(NetworkError) as caught:
        resolved(["x==1"], "3.12", LINUX)
    assert caught.value.code == "bad-index-answer"
