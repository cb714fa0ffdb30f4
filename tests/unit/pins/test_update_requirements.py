"""The requirements of what `prepare` and `compare` install: the newest versions, all of them or none."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from ortrim.bench.engines.catalogue import ENGINES, engine_requirements
from ortrim.errors import ExitCode, NetworkError, SourcesError
from ortrim.pin_updates import update
from ortrim.pin_updates.update import FILES, Resolved, update_requirements
from ortrim.pins.shipped import pin_text

VERSION = "9.9.0"
NEEDED = "needed"
"""A package that every other one needs."""


class Index:
    """Takes the place of pip: what was asked for, and which packages are missing on which machine."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[str, ...], str, bool]] = []
        self.missing: set[tuple[str, str]] = set()
        self.failing = ""

    def __call__(
        self, requirements: Sequence[str], _python: str, platforms: Sequence[str], *, dependencies: bool = True
    ) -> tuple[Resolved, ...] | None:
        """Answer as `resolved` does."""
        machine = platforms[0].rpartition("_")[2]
        self.asked.append((tuple(requirements), machine, dependencies))
        names = [each.partition("==")[0] for each in requirements]
        if self.failing in names:
            raise NetworkError("index-unreachable", "pip cannot reach the package index")
        if any((name, machine) in self.missing for name in names):
            return None
        taken = [*names, *([NEEDED] if dependencies else [])]
        digests = {name: f"{sum(map(ord, name + machine)):064x}" for name in taken}
        return tuple(Resolved(name=name, version=VERSION, sha256=digests[name]) for name in sorted(taken))


@pytest.fixture(name="index")
def fixture_index(monkeypatch: pytest.MonkeyPatch) -> Index:
    """Answer for pip."""
    made = Index()
    monkeypatch.setattr(update, "resolved", made)
    return made


@pytest.fixture(name="pins")
def fixture_pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of pins that are to be updated."""
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    return tmp_path / "pins"


def names_in(text: str | None) -> list[str]:
    """Return the packages that a requirements file pins."""
    return re.findall(r"^([a-z0-9-]+)==", text or "", re.MULTILINE)


def test_every_file_that_is_installed_from_is_known() -> None:
    """The engines, their converters and the steps' tools; and each of them pins what it is called after."""
    engines = {f"engine-{name}" for engine in ENGINES.values() for name in (engine.package, engine.converter) if name}
    assert set(FILES) == {"onnxslim", "onnxsim", "onnx", *engines}
    for name, (_, wanted) in FILES.items():
        assert set(wanted.packages) <= set(names_in(pin_text(f"requirements/{name}.txt"))), name


def test_the_newest_versions_are_pinned_with_what_they_need(index: Index, pins: Path) -> None:
    """On each machine, in files that ortrim reads in the place of its own; those that stand alone by themselves."""
    written = update_requirements(lambda _: None)
    assert sorted(path.relative_to(pins).as_posix() for path in written) == sorted(
        f"requirements/{name}.txt" for name in FILES
    )
    text = engine_requirements("openvino")
    assert names_in(text) == [NEEDED, "openvino"]
    assert "Made by: invoke pins.update --requirements\n" in text
    assert f"openvino=={VERSION} \\\n    --hash=sha256:" in text
    assert text.count("--hash=sha256:") == 2 * 3
    assert names_in(engine_requirements("ncnn")) == ["ncnn", "numpy", "pnnx"]
    assert engine_requirements("litert-converter").count("--hash=") == 2
    assert (("onnx2tf",), "64", True) in index.asked


def test_a_machine_without_one_of_the_wheels_has_the_others(index: Index, pins: Path) -> None:
    """Each is asked for by itself then."""
    index.missing.add(("tract", "arm64"))
    update_requirements(lambda _: None)
    entries = dict(re.findall(r"^(\w+)==(.*(?:\n .*)*)", engine_requirements("tract"), re.MULTILINE))
    assert {name: entry.count("--hash") for name, entry in entries.items()} == {"tract": 2, "numpy": 3, NEEDED: 3}


def test_nothing_is_written_unless_all_were_found(index: Index, pins: Path) -> None:
    """A package that is gone, or an index that cannot be reached, leaves the pins as they were."""
    index.missing.add(("ai-edge-litert", "64"))
    with pytest.raises(SourcesError) as gone:
        update_requirements(lambda _: None)
    assert (gone.value.code, gone.value.exit_code) == ("no-wheel", ExitCode.SOURCES)
    index.failing = "ncnn"
    with pytest.raises(NetworkError):
        update_requirements(lambda _: None)
    assert not pins.exists()
