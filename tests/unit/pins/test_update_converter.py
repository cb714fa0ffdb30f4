"""The requirements of a new version's full runtime: each wheel by its digest, for the Pythons that take it."""

import re
from collections.abc import Sequence

import pytest

from ortrim.errors import ExitCode, SourcesError
from ortrim.models.full_runtime import runtime_entry
from ortrim.pin_updates import update
from ortrim.pin_updates.update import Resolved, converter_text

NUMPY = {"3.11": "2.4.6", "3.12": "2.5.5", "3.13": "2.5.5", "3.14": "2.5.5"}
"""What pip took for onnxruntime 1.31.1 in November 2026."""


def digest(*words: str) -> str:
    """Return a digest that is not another's."""
    return "".join(f"{ord(letter):02x}" for letter in "".join(words))[-64:].rjust(64, "0")


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Return an index: by Python, the machines for which it has wheels of the runtime."""
    wheels = {python: {"x86_64", "aarch64", "arm64"} for python in NUMPY}

    def resolved(
        requirements: Sequence[str], python: str, platforms: Sequence[str], *, dependencies: bool = True
    ) -> tuple[Resolved, ...] | None:
        machine = platforms[0]
        if not any(machine.endswith(f"_{each}") for each in wheels[python]):
            return None
        assert dependencies == (list(requirements) == ["onnxruntime==1.31.1"])
        runtime = Resolved(name="onnxruntime", version="1.31.1", sha256=digest("o", python, machine))
        numpy = Resolved(name="numpy", version=NUMPY[python], sha256=digest("n", python, machine))
        return (numpy, runtime, Resolved(name="packaging", version="26.3", sha256=digest("p")))

    monkeypatch.setattr(update, "resolved", resolved)
    return wheels


def test_every_wheel_is_pinned(index: dict[str, set[str]]) -> None:
    """Of four Pythons on three machines; what is the same everywhere is there once, and needs no marker."""
    text = converter_text("1.31.1", lambda _: None)
    entries = {line.split("==")[0]: line for line in re.findall(r"^[a-z].*$", text, re.MULTILINE)}
    assert entries["onnxruntime"] == "onnxruntime==1.31.1 \\"
    assert entries["packaging"] == "packaging==26.3 \\"
    assert text.count("--hash=sha256:") == 12 + 12 + 1
    assert runtime_entry(text, "1.31.1").count("--hash") == 12


def test_what_pythons_take_apart_is_marked(index: dict[str, set[str]]) -> None:
    """A Python takes exactly one version of each package."""
    text = converter_text("1.31.1", lambda _: None)
    assert "numpy==2.4.6 ; python_version == '3.11' \\\n" in text
    assert (
        "numpy==2.5.5 ; python_version == '3.12' or python_version == '3.13' or python_version == '3.14' \\\n" in text
    )


def test_a_python_that_was_dropped_is_left_out(index: dict[str, set[str]]) -> None:
    """So is a machine; the others are pinned."""
    index["3.11"].clear()
    index["3.12"].discard("arm64")
    text = converter_text("1.31.1", lambda _: None)
    assert "2.4.6" not in text
    assert "numpy==2.5.5 \\\n" in text
    assert runtime_entry(text, "1.31.1").count("--hash") == 8


def test_a_version_without_wheels_is_refused(index: dict[str, set[str]]) -> None:
    """Nothing could convert a model for it."""
    for machines in index.values():
        machines.discard("x86_64")
    with pytest.raises(SourcesError) as caught:
        converter_text("1.31.1", lambda _: None)
    assert (caught.value.code, caught.value.exit_code) == ("no-converter", ExitCode.SOURCES)
    assert "3.11, 3.12, 3.13, 3.14" in caught.value.what
