"""Where the tensors of a model in ORT format lie."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ort_samples import ort_model
from ortrim.errors import ModelError
from ortrim.models.ort_format import TensorPlace, misaligned, misaligned_tensors, tensor_places
from refusing import refused

DATA = Path(__file__).with_name("data")
BRANCHING = (DATA / "branching_first.ort").read_bytes()


def place_of(data: bytes) -> TensorPlace:
    (place,) = tensor_places(data, "m.ort")
    return place


def test_a_tensors_place_is_that_of_its_bytes() -> None:
    """Name, offset in the file, size, and the size of one element."""
    data = ort_model(1, 256)
    place = place_of(data)
    assert (place.name, place.size_bytes, place.element_bytes) == ("w", 256, 4)
    assert place.offset == len(data) - 256


@pytest.mark.parametrize(("kind", "element"), [(1, 4), (2, 1), (7, 8), (10, 2), (11, 8), (16, 2), (15, 8), (20, 1)])
def test_alignment_is_that_of_one_element(kind: int, element: int) -> None:
    """Each type counts by its own size: what lies well for floats may lie badly for doubles."""
    for padding in range(0, 16, 2):
        data = ort_model(kind, 256, padding)
        place = place_of(data)
        assert place.element_bytes == element
        assert place.excess == (len(data) - 256) % element
        assert bool(misaligned((place,))) == bool(place.excess)


def test_a_small_tensor_is_copied_wherever_it_lies() -> None:
    """ONNX Runtime reads in place from 128 bytes on."""
    small, large = (TensorPlace(name="w", offset=4, size_bytes=size, element_bytes=8) for size in (127, 128))
    assert misaligned((small, large)) == ("w (8-byte elements at offset 4)",)
    assert (small.excess, large.excess) == (4, 4)


def test_strings_have_no_place() -> None:
    """They are kept elsewhere in the file and always copied; a type that does not exist is not looked at."""
    assert tensor_places(ort_model(8, 256), "m.ort") == ()
    assert tensor_places(ort_model(99, 256), "m.ort") == ()


def test_a_model_of_inner_graphs_without_initializers_has_no_places(tmp_path: Path) -> None:
    """Its branches are looked into; there is nothing to be crooked."""
    path = tmp_path / "m.ort"
    path.write_bytes(BRANCHING)
    assert misaligned_tensors(path) == ()
    path.write_bytes(ort_model(7, 256, padding=4 if place_of(ort_model(7, 256)).excess == 0 else 0))
    assert len(misaligned_tensors(path)) == 1


@pytest.mark.parametrize("data", [b"", b"ORTM", b"\x08\0\0\0ORTM", BRANCHING[:200]])
def test_what_is_no_model_is_refused(data: bytes) -> None:
    assert refused(ModelError, tensor_places, data, "m.ort").code == "not-ort"


@settings(max_examples=200, deadline=None)
@given(edits=st.lists(st.tuples(st.integers(0, len(BRANCHING) - 1), st.integers(0, 255)), max_size=20))
def test_any_damage_is_read_or_refused(edits: list[tuple[int, int]]) -> None:
    """No byte makes it fail in another way, and no place lies outside the file."""
    damaged = bytearray(BRANCHING)
    for place, byte in edits:
        damaged[place] = byte
    reference, places = "not-ort", tuple[TensorPlace, ...]()
    try:
        places = tensor_places(bytes(damaged), "m.ort")
    except ModelError as error:
        reference = error.code
    assert reference == "not-ort"
    assert all(place.offset + place.size_bytes <= len(damaged) for place in places)
