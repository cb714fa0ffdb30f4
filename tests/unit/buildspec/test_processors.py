"""The processors that a library may take for granted."""

import re

import pytest

from ortrim.buildspec.problems import NAME
from ortrim.buildspec.targets import CPUS, TARGETS, Architecture, OperatingSystem, zig_cpu


def test_every_architecture_has_processors_with_names_that_buildspecs_take() -> None:
    """Each can be written in a buildspec and handed to a shell as it is."""
    assert set(CPUS) == {target.architecture for target in TARGETS.values() if target.system is OperatingSystem.LINUX}
    for names in CPUS.values():
        for name, argument in names.items():
            assert re.fullmatch(NAME, name)
            assert re.fullmatch(r"[a-z0-9_]+([+-][a-z0-9_]+)*", argument)


def test_without_a_name_the_architectures_own_least_is_meant() -> None:
    """ARMv7 alone must say it, because NEON is part of the target."""
    assert {kind: zig_cpu(kind, None) for kind in Architecture if zig_cpu(kind, None)} == {
        Architecture.ARM: "generic+v7a+neon"
    }


def test_a_processor_of_another_architecture_is_unknown() -> None:
    with pytest.raises(KeyError):
        zig_cpu(Architecture.X64, "cortex-a53")
