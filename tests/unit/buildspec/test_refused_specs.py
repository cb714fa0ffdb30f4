"""Buildspecs that are refused, in the exact words that the user reads: `data/structure.txt`, `data/contradictions.txt`.

What is of the right structure there may not fit together here.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ortrim.buildspec.buildspec import LoadedSpec

MODEL = '\n[[models]]\nname = "m"\npath = "m.onnx"\n'
CASE = MODEL + '[[models.cases]]\nname = "c"\n'
REMOTE = f'[[models]]\nname = "m"\nsha256 = "{"0" * 64}"\n'
SHORT = {"<model>\n": MODEL, "<case>\n": CASE, "<remote>\n": REMOTE}
"""What buildspecs of the data have in common, as it is written there."""


def recorded(name: str) -> Iterator[tuple[str, str, str]]:
    """Yield what is wrong with each buildspec in a file, its text, and the words with which it is refused."""
    text = (Path(__file__).parent / "data" / name).read_text(encoding="utf-8")
    for record in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, rest = record.partition("\n")
        spec, _, words = rest.partition("--\n")
        for short, long in SHORT.items():
            spec = spec.replace(short, long)
        yield title, spec, words.rstrip("\n")


REFUSED = [*recorded("structure.txt"), *recorded("contradictions.txt")]


@pytest.mark.parametrize(("spec", "words"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED])
def test_a_bad_spec_is_refused_in_exact_words(refused: Callable[[str], str], spec: str, words: str) -> None:
    assert refused(spec) == words


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (f'profile = "{"x" * 5000}"\n', f"'speed' or 'upstream', not '{'x' * 71}..."),
        (f'[[models]]\nname = "n"\npath = "{"x" * 300}"\n', f"names '{'x' * 71}..., which is not a file"),
        (f"{MODEL}{'.'.join('abcdefgh' * 9)} = 1", "'models[0].a' is not a known key"),
        (f"{MODEL}cases = {'[' * 60}{']' * 60}", "'models[0].cases[0][0][0][0][0]' is nested too deeply"),
    ],
)
def test_endless_and_bottomless_values_are_cut_short(refused: Callable[[str], str], spec: str, words: str) -> None:
    assert words in refused(f"{spec}\n{MODEL}")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3:8080", "[::1]:80", "LOCALHOST"])
def test_plain_http_goes_on_loopback(load: Callable[[str], LoadedSpec], host: str) -> None:
    assert load(REMOTE + f'url = "http://{host}/m.onnx"').models[0].url == f"http://{host}/m.onnx"


@pytest.mark.parametrize("data", ["inputs.npz", "test_data_set_0"])
def test_both_kinds_of_recorded_inputs_are_found(load: Callable[[str], LoadedSpec], data: str) -> None:
    loaded = load(CASE + f'data = "{data}"')
    recorded = loaded.models[0].cases[0].data
    assert recorded is not None
    assert loaded.resolve(recorded).exists()


@pytest.mark.parametrize("text", ['profile = "upstream"\nbuild_options = {}', 'build_options = { hot = "-O3" }'])
def test_build_options_and_upstreams_profile_are_fine_alone(load: Callable[[str], LoadedSpec], text: str) -> None:
    """A table that chooses nothing changes nothing."""
    assert load(text + MODEL).profile in {"upstream", "balanced"}


def test_the_same_case_name_in_two_models_is_fine(load: Callable[[str], LoadedSpec]) -> None:
    loaded = load(CASE + CASE.replace('"m"', '"n"'))
    assert [model.cases[0].name for model in loaded.models] == ["c", "c"]


def test_choices_for_android_go_at_the_top_whatever_the_targets(load: Callable[[str], LoadedSpec]) -> None:
    text = 'linkage = "static"\nandroid = { api = 30 }' + MODEL
    targets = '[[targets]]\nid = "linux-x64"\n[[targets]]\nid = "android-x86"\nlinkage = "shared"\nandroid.api = 28'
    loaded = load(text + targets)
    assert loaded.android.api == 30
    assert loaded.targets[1].android is not None
    assert loaded.targets[1].android.api == 28
