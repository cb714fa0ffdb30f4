import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ortrim.base.files import shipped_folder
from ortrim.buildspec.buildspec import CaseSpec, InputSpec, ModelSpec
from ortrim.buildspec.problems import Scalar
from ortrim.errors import Diagnostic, ExitCode, SpecError, VerifyError
from ortrim.models.models import PreparedModel
from ortrim.parity import inputs as cases
from ortrim.parity.inputs import load_array, make_cases
from refusing import refused

MakeModel = Callable[..., PreparedModel]


def made(model: PreparedModel, case: CaseSpec | None, folder: Path) -> list[Any]:
    spec = ModelSpec(name="tiny", path=Path("tiny.onnx"), cases=(case,) if case else ())
    (found,) = make_cases(model, spec, folder, folder / "cases")
    return [load_array(path) for path in sorted(found.folder.iterdir())]


def test_without_cases_there_is_one_of_size_one(make_model: MakeModel, tmp_path: Path) -> None:
    """Every dynamic dimension is 1 when nothing says otherwise."""
    (array,) = made(make_model(("x", "float32", ("batch", None, 3))), None, tmp_path)
    assert array.shape == (1, 1, 3)
    assert array.dtype == np.float32


def test_dimensions_are_put_in_by_name(make_model: MakeModel, tmp_path: Path) -> None:
    model = make_model(("x", "float32", ("batch", 4)), ("y", "int64", ("batch",)))
    x, y = made(model, CaseSpec(name="c", dimensions={"batch": 5}), tmp_path)
    assert (x.shape, y.shape) == ((5, 4), (5,))


def test_defaults_of_random_values(make_model: MakeModel, tmp_path: Path) -> None:
    """Floats lie between -1 and 1, integers between 0 and 9, booleans are both."""
    types = ("float32", "float16", "int8", "uint64", "bool", "string", "bfloat16")
    model = make_model(*((kind, kind, (1000,)) for kind in types))
    floats, halves, small, large, truth, texts, brain = made(model, CaseSpec(name="c"), tmp_path)
    assert -1 <= floats.min() < -0.9 < 0.9 < floats.max() <= 1
    assert halves.dtype == np.float16
    assert (set(small), set(large)) == (set(range(10)), set(range(10)))
    assert set(truth) == {False, True}
    assert "Zürich" in set(texts)
    assert brain.dtype == np.uint16


@pytest.mark.parametrize("kind", ["string", "bfloat16", "bool", "int8", "float16"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_random_values_of_every_shape(make_model: MakeModel, tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    (array,) = made(make_model(("x", kind, shape)), CaseSpec(name="c"), tmp_path)
    assert array.shape == shape


def test_an_input_more_changes_no_other(make_model: MakeModel, tmp_path: Path) -> None:
    """Each input has a random stream of its own, from the seed, the case and its name."""
    x, y = ("x", "float32", (50,)), ("y", "float32", (50,))
    alone = made(make_model(x), CaseSpec(name="c"), tmp_path / "1")
    both = made(make_model(y, x), CaseSpec(name="c"), tmp_path / "2")
    other = made(make_model(x), CaseSpec(name="c", seed=1), tmp_path / "3")
    assert np.array_equal(alone[0], both[1])
    assert not np.array_equal(both[0], both[1])
    assert not np.array_equal(alone[0], other[0])


def test_random_values_are_the_same_for_ever(make_model: MakeModel, tmp_path: Path) -> None:
    """The values that a seed stands for are part of the contract: reports of different days compare."""
    (array,) = made(make_model(("x", "int32", (8,))), CaseSpec(name="c", seed=7), tmp_path)
    assert array.tolist() == [6, 9, 2, 6, 0, 5, 3, 1]


def test_exceptions_for_single_inputs(make_model: MakeModel, tmp_path: Path) -> None:
    """A shape, one value, or bounds can be given for one input."""
    model = make_model(("a", "float32", ("n",)), ("b", "int64", ()), ("c", "int32", (100,)))
    inputs = {"a": InputSpec(shape=(3,)), "b": InputSpec(value=16000), "c": InputSpec(low=5, high=6)}
    a, b, c = made(model, CaseSpec(name="c", inputs=inputs), tmp_path)
    assert a.shape == (3,)
    assert (b.shape, int(b)) == ((), 16000)
    assert set(c) == {5, 6}


CHOICES: dict[str, tuple[Scalar, ...]] = {
    "string": ("berlin", "lyon", "porto"),
    "int64": (-1, 7, 2**62),
    "float32": (0.5, 3000.0, "nan"),
    "bool": (True, False),
    "bfloat16": (1.0, 2.0, 3.0),
}


@pytest.mark.parametrize("kind", CHOICES)
def test_every_choice_occurs_before_any_does_again(make_model: MakeModel, tmp_path: Path, kind: str) -> None:
    """In a tensor that has room for all, and else over cases whose seeds follow each other."""
    model, choices = make_model(("x", kind, ("n",))), CHOICES[kind]
    inputs = {"x": InputSpec(choices=choices)}
    case = CaseSpec(name="c", dimensions={"n": 8}, inputs=inputs)
    (whole,) = made(model, case, tmp_path / "whole")
    assert len({repr(each) for each in whole}) == len({repr(each) for each in whole[: len(choices)]}) == len(choices)
    alone = [
        made(model, CaseSpec(name=f"c{seed}", seed=seed, inputs=inputs), tmp_path / "alone")[0][0]
        for seed in range(len(choices))
    ]
    assert len({repr(each) for each in alone}) == len(choices)


def test_choices_may_be_those_of_each_position(make_model: MakeModel, tmp_path: Path) -> None:
    """As the features of a classic model, each of which has a scale of its own."""
    model = make_model(("x", "float32", ("n", 2)))
    inputs = {"x": InputSpec(choices=((0.25, 0.75), (1000.0, 2000.0, 3000.0)))}
    (array,) = made(model, CaseSpec(name="c", dimensions={"n": 64}, inputs=inputs), tmp_path)
    assert [set(column) for column in array.T] == [{0.25, 0.75}, {1000, 2000, 3000}]
    assert len({tuple(row) for row in array}) == 6


X = ("x", "float32", ("batch", 4))
BAD = {
    "unknown-input": CaseSpec(name="c", inputs={"z": InputSpec()}),
    "unknown-dimension": CaseSpec(name="c", dimensions={"batches": 2}),
    "shape-mismatch": CaseSpec(name="c", inputs={"x": InputSpec(shape=(2, 5))}),
    "wrong-value": CaseSpec(name="c", inputs={"x": InputSpec(value="text")}),
    "empty-range": CaseSpec(name="c", inputs={"x": InputSpec(low=2.0)}),
    "input-too-large": CaseSpec(name="c", dimensions={"batch": 2**31 - 1}),
}


@pytest.mark.parametrize("reference", BAD)
def test_cases_that_do_not_fit_are_refused(make_model: MakeModel, tmp_path: Path, reference: str) -> None:
    """Each misfit is a diagnostic of the buildspec that names model, case and input, and nothing is left behind."""
    error = refused(SpecError, made, make_model(X), BAD[reference], tmp_path)
    assert (error.code, error.exit_code) == (reference, ExitCode.SPEC)
    assert "case 'c'" in error.where
    assert not list((tmp_path / "cases").glob("c-*"))


HUGE = 2**31 - 1
BEYOND: dict[str, tuple[list[tuple[str, str, tuple[int | str, ...]]], dict[str, int]]] = {
    "a product beyond 64 bits": ([("x", "float32", ("n", "n", "n"))], {"n": HUGE}),
    "a product beyond 64 bits, were it not for the 0": ([("x", "float32", ("n", "n", "n", 0))], {"n": HUGE}),
    "many inputs that are large together": ([(f"x{n}", "float32", ("n",)) for n in range(40)], {"n": 10_000_000}),
    "strings, which take more than their pointers": ([("x", "string", ("n",))], {"n": 20_000_000}),
    "64 dimensions": ([("x", "float32", (1,) * 64)], {}),
    "65 dimensions, more than NumPy has": ([("x", "float32", (1,) * 65)], {}),
}


@pytest.mark.parametrize("kind", BEYOND)
def test_inputs_that_no_machine_should_make_are_refused(make_model: MakeModel, tmp_path: Path, kind: str) -> None:
    """At once, before memory is taken for any of them."""
    inputs, dimensions = BEYOND[kind]
    started = time.process_time()
    error = refused(SpecError, made, make_model(*inputs), CaseSpec(name="c", dimensions=dimensions), tmp_path)
    assert error.code == "input-too-large"
    assert "case 'c'" in error.where
    assert time.process_time() - started < 20  # to make them would take minutes, were there memory for them
    assert not list((tmp_path / "cases").glob("c-*"))


def test_as_many_dimensions_as_the_runner_takes(make_model: MakeModel, tmp_path: Path) -> None:
    """32, as its own `MAX_RANK` says."""
    (array,) = made(make_model(("x", "float32", (1,) * 32)), CaseSpec(name="c"), tmp_path)
    assert array.ndim == 32
    assert "MAX_RANK = 32" in (shipped_folder("runner") / "tensor.h").read_text()


def test_a_hundred_inputs_are_made(make_model: MakeModel, tmp_path: Path) -> None:
    """Their files sort as the runner counts them, also beyond 999 inputs: it counts, and lists no folder."""
    model = make_model(*((f"x{n}", "float32", (0,)) for n in range(100)))
    assert len(made(model, CaseSpec(name="c"), tmp_path)) == 100


def test_memory_that_does_not_suffice_is_said(
    make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small machine, or a limit on this process: not the buildspec's fault, and no traceback."""

    def short(*_: Any, **_options: Any) -> None:
        raise MemoryError("Unable to allocate 1.00 GiB")

    monkeypatch.setattr(cases, "generated_array", short)
    error = refused(VerifyError, made, make_model(X), CaseSpec(name="c"), tmp_path)
    assert error.code == "out-of-memory"
    assert "1.00 GiB" in error.why


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("uint8", InputSpec(value=256)),
        ("uint8", InputSpec(low=-1.0)),
        ("int8", InputSpec(high=128.0)),
        ("int32", InputSpec(value=1.5)),
        ("int32", InputSpec(low=0.5)),
        ("int32", InputSpec(value=True)),
        ("float32", InputSpec(value=True)),
        ("bool", InputSpec(value=1)),
        ("bool", InputSpec(high=2.0)),
        ("string", InputSpec(value=1)),
        ("string", InputSpec(choices=("a", 1))),
        ("float32", InputSpec(choices=(1.0, "a"))),
        ("int32", InputSpec(choices=(1.5,))),
    ],
)
def test_values_that_a_type_does_not_have(make_model: MakeModel, tmp_path: Path, kind: str, spec: InputSpec) -> None:
    """A value is never rounded or wrapped to make it fit."""
    error = refused(SpecError, made, make_model(("x", kind, (1,))), CaseSpec(name="c", inputs={"x": spec}), tmp_path)
    assert error.code == "wrong-value"


def test_a_near_miss_is_hinted_at(make_model: MakeModel, tmp_path: Path) -> None:
    assert refused(SpecError, made, make_model(X), BAD["unknown-dimension"], tmp_path).hint == "did you mean 'batch'?"


def test_an_input_of_unknown_rank_needs_a_shape(make_model: MakeModel, tmp_path: Path) -> None:
    """Such an input is not taken for a scalar; the hint says what to write, and any rank will do."""
    model = make_model(("input:0", "float32", None))
    error = refused(SpecError, made, model, None, tmp_path)
    assert (error.code, error.exit_code) == ("unknown-rank", ExitCode.SPEC)
    assert 'inputs = { "input:0" = { shape = ' in error.hint
    assert not list((tmp_path / "cases").glob("default-*"))
    for shape in ((), (2, 3)):
        case = CaseSpec(name="c", inputs={"input:0": InputSpec(shape=shape)})
        assert made(model, case, tmp_path)[0].shape == shape


def test_cases_are_written_once(make_model: MakeModel, tmp_path: Path) -> None:
    model = make_model(X)
    spec = ModelSpec(name="tiny", path=Path("t"), cases=(CaseSpec(name="c"),))
    first, second = (make_cases(model, spec, tmp_path, tmp_path)[0] for _ in range(2))
    other = ModelSpec(name="tiny", path=Path("t"), cases=(CaseSpec(name="c", seed=1),))
    assert first == second
    assert make_cases(model, other, tmp_path, tmp_path)[0].digest != first.digest


def test_a_data_file_that_changes_makes_another_case(make_model: MakeModel, tmp_path: Path) -> None:
    model, case = make_model(("x", "float32", (2,))), CaseSpec(name="c", data=Path("d.npz"))
    spec = ModelSpec(name="tiny", path=Path("t"), cases=(case,))
    digests = []
    for value in (1, 2):
        np.savez(tmp_path / "d.npz", x=np.full(2, value, np.float32))
        (found,) = make_cases(model, spec, tmp_path, tmp_path / "cases")
        digests.append(found.digest)
        assert load_array(found.folder / "input_000.npy").tolist() == [value, value]
    assert digests[0] != digests[1]


def test_refused_recordings_leave_nothing(make_model: MakeModel, tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros(3, np.float32))
    error = refused(
        Diagnostic, made, make_model(("x", "float32", (2,))), CaseSpec(name="c", data=Path("d.npz")), tmp_path
    )
    assert error.exit_code == ExitCode.VERIFY
    assert not list((tmp_path / "cases").glob("c-*"))
