"""The pins of the engines."""

import re

import pytest

from ortrim.bench.engines import ENGINES, engine_requirements

NAMES = sorted({name for engine in ENGINES.values() for name in (engine.package, engine.converter) if name})


@pytest.mark.parametrize("name", NAMES)
def test_every_line_is_pinned_with_hashes(name: str) -> None:
    entries = re.split(r"(?m)^(?=[^ #\n])", engine_requirements(name))[1:]
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==\S+( ; [^\\]+)? \\\n +--hash=sha256:[0-9a-f]{64}", entry), entry
    assert not re.findall(r"https?://|file:|--index|--find-links", engine_requirements(name))


def test_heavy_requirements_of_the_converter_are_left_out() -> None:
    """What pnnx declares and its program does not need is half a gigabyte."""
    assert "torch" not in engine_requirements("ncnn")
