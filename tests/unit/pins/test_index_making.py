"""`invoke pins.index` on a made-up ONNX Runtime: what is built, what is compared, and what is written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_library import ONLY_ADD, SYMBOLS, UNITS, index_of, write_library
from ortrim.binaries.elf import read_library
from ortrim.compiling.plan import CompiledUnits
from ortrim.compiling.size.library import OTHER_BYTES
from ortrim.compiling.translation_units import Variant, shipped_index
from ortrim.errors import BuildError, ExitCode
from ortrim.pin_updates import new_versions
from ortrim.pin_updates.new_versions import make_unit_index
from ortrim.planning import models as converted
from ortrim.planning.request import Request
from pipeline_stages import Stages
from workshop import Workshop

TINY = Path(__file__).parents[1] / "binaries" / "data" / "tiny.so"
VARIANT = Variant(ort_version="1.21.0", target="linux-x64", toolchain="zig", exceptions=True)


@pytest.fixture
def workshop(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """Make sources whose build.py is the made-up library's, for a model that needs Add."""
    monkeypatch.setenv("ORTRIM_PINS", str(stages.folder / "pins"))
    workshop = Workshop(stages.folder / "workshop")
    write_library(workshop, library=TINY.read_bytes())
    convert = vars(converted)["convert"]

    def converted_to_add(*words: Any, **options: Any) -> Any:
        return replace(convert(*words, **options), config=ONLY_ADD)

    monkeypatch.setattr(converted, "convert", converted_to_add)
    monkeypatch.setattr(new_versions, "executor_for", lambda *_: workshop.executor(cached=False))
    return workshop


def request(stages: Stages) -> Request:
    """Return a request for flags that no shipped index is for."""
    wanted = stages.request()
    wanted.spec.write_text(f"exceptions = true\n{wanted.spec.read_text()}")
    return wanted


def pins(stages: Stages) -> list[Path]:
    """Return the indices in the user's pins folder."""
    return sorted((stages.folder / "pins").rglob("*.json"))


def test_an_index_is_made_of_all_and_proved_on_the_buildspec(stages: Stages, workshop: Workshop) -> None:
    """All operators are compiled once; then the buildspec's, in full and selected; the index is where pins are read."""
    (made,) = make_unit_index(request(stages), stages.console)
    assert made.index == index_of(VARIANT)
    assert made.units == CompiledUnits(compiled=8, total=len(UNITS))
    assert pins(stages) == [made.path]
    assert shipped_index(VARIANT) == made.index
    assert made.same_bytes
    assert not list(workshop.log.parent.glob("unpruned.*"))


def refused(stages: Stages) -> BuildError:
    """Fail to make an index; none may be written."""
    with pytest.raises(BuildError) as caught:
        make_unit_index(request(stages), stages.console)
    assert caught.value.exit_code is ExitCode.BUILD
    assert caught.value.where == "linux-x64"
    assert pins(stages) == []
    return caught.value


def test_a_selected_library_that_differs_is_refused(stages: Stages, workshop: Workshop) -> None:
    """What differs is named, and the library of all files is kept for a closer look."""
    other = TINY.read_bytes().replace(b"OrtGetApiBase", b"OrtGetApiBass")
    differing = f"LIBRARY_BYTES = LIBRARY_BYTES if len(chosen()) == {len(UNITS)} else {other!r}"
    write_library(workshop, library=TINY.read_bytes(), before_linking=differing)
    error = refused(stages)
    assert error.code == "pruning-differs"
    assert error.why == "exported symbols: ('OrtGetApiBase',) and ('OrtGetApiBass',)"
    assert read_library(workshop.log.parent / "unpruned.so").exported == read_library(TINY).exported
    assert str(workshop.log.parent / "unpruned.so") in error.hint


OTHER_ORDER = TINY.read_bytes()[:-1] + b"!"
"""A library that differs in a byte that nothing is read from."""


@pytest.mark.parametrize("same", [True, False])
def test_the_order_of_the_linkers_own_tables_is_free(stages: Stages, workshop: Workshop, *, same: bool) -> None:
    """When the maps of both links are the same; else other bytes are other code."""
    full = f"len(chosen()) == {len(UNITS)}"
    link_map = "'map'" if same else f"str({full})"
    differing = (
        f"LIBRARY_BYTES = LIBRARY_BYTES if {full} else {OTHER_ORDER!r}\n"
        f"leave = lambda name: (build / name).write_text({link_map})"
    )
    write_library(workshop, library=TINY.read_bytes(), before_linking=differing)
    if same:
        (made,) = make_unit_index(request(stages), stages.console)
        assert not made.same_bytes
    else:
        assert refused(stages).why == OTHER_BYTES


def test_a_selection_that_does_not_link_is_refused(stages: Stages, workshop: Workshop) -> None:
    """That everything links in its place, as a user's build would do, does not make the index right."""
    failing = f"if len(chosen()) < {len(UNITS)}:\n    print('undefined symbol: phantom')\n    sys.exit(1)"
    write_library(workshop, library=TINY.read_bytes(), before_linking=failing)
    error = refused(stages)
    assert (error.code, error.why) == ("pruning-differs", "the selected files do not link")


@pytest.mark.parametrize("phase", ["all operators", "the buildspec"])
def test_a_build_that_fails_is_reported_as_every_other(stages: Stages, workshop: Workshop, phase: str) -> None:
    """Whether it is that of all operators or that of the buildspec."""
    condition = "'no_ops' in" if phase == "all operators" else "'Add' in"
    config = "pathlib.Path(sys.argv[sys.argv.index('--include_ops_by_config') + 1]).read_text()"
    failing = f"if {condition} {config}:\n    print('a.cc:1:1: error: no')\n    sys.exit(1)"
    write_library(workshop, before_linking=failing)
    error = refused(stages)
    assert (error.code, error.why) == ("build-failed", "a.cc:1:1: error: no")


def test_the_made_up_library_has_an_object_for_every_unit() -> None:
    """And the reduced registrations beside the full ones."""
    assert set(SYMBOLS) == {*UNITS.values(), "provider-add"}
