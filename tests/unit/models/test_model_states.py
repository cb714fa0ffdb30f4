"""Which output of a model is the next run's input."""

import pytest

from ortrim.models.models import TensorInfo
from ortrim.models.states import fed_by


def infos(*names: str, kind: str = "float32", shape: tuple[int | str, ...] = (1, 4, 8)) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo(name=name, element_type=kind, shape=shape) for name in names)


@pytest.mark.parametrize(
    ("name", "output", "fed"),
    [
        ("state", "stateN", True),
        ("past_0", "present_0", True),
        ("past_conv.2", "present_conv.2", True),
        ("past_key_values.0.decoder.key", "present.0.decoder.key", True),
        ("cache_last_channel_len", "cache_last_channel_next_len", True),
        ("processed_lens", "new_processed_lens", True),
        ("hidden", "logits", False),
        ("past_key_values.0.encoder.key", "present.0.encoder.key", False),
        ("encoder_hidden_states", "last_hidden_states", False),
        ("sound", "sound_out", False),
    ],
)
@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_a_state_is_known_by_both_names(name: str, output: str, kind: str, *, fed: bool) -> None:
    """As exporters write them, for caches, recurrent states and counters; what an encoder gave stays as it is."""
    assert fed_by(infos(name, kind=kind), infos(output, kind=kind)) == ({name: output} if fed else {})


def test_only_floats_are_paired_by_names_that_are_merely_alike() -> None:
    """A counter that is fed what it is not would crash the model."""
    assert fed_by(infos("cache_a1"), infos("cache_a2")) == {"cache_a1": "cache_a2"}
    assert fed_by(infos("cache_a1", kind="int64"), infos("cache_a2", kind="int64")) == {}


def test_another_type_of_the_same_name_is_a_pair_that_does_not_fit() -> None:
    """Whoever wants it fed hears why it cannot be."""
    assert fed_by(infos("past.0"), infos("present.0", kind="float16", shape=(1,))) == {"past.0": "present.0"}


def test_each_layer_gets_its_own() -> None:
    """Whatever the order of inputs and outputs; encoders' caches take no decoder's output."""
    layers = [f"{layer}.{side}.{part}" for layer in (1, 11, 0) for side in ("decoder", "encoder") for part in "kv"]
    outputs = sorted(f"present.{layer}.decoder.{part}" for layer in (0, 1, 11) for part in "kv")
    found = fed_by(infos(*(f"past_key_values.{layer}" for layer in layers)), infos(*outputs))
    assert found == {each.replace("present", "past_key_values"): each for each in outputs}
