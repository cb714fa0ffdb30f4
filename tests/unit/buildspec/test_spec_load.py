"""Loading buildspecs: all problems at once, names by default, and what holds for any data whatever."""

import datetime as dt
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildspec_reference import ERROR_CODES
from ortrim.base.console import Console
from ortrim.base.json import to_data
from ortrim.buildspec import buildspec
from ortrim.buildspec.load import _parsed, load_spec, spec_from_data
from ortrim.buildspec.targets import TARGETS
from ortrim.buildspec.tolerances import Tolerance
from ortrim.errors import Diagnostic, DiagnosticGroup, SpecError
from ortrim.pins.runtime import default_version
from ortrim.platforms import target_problems

MODEL = '[[models]]\nname = "m"\npath = "m.onnx"\n'
FILE = Path("/dev/kws.toml")  # its folder exists and holds no model


def test_all_problems_are_said_at_once_in_the_order_of_the_file(refused: Callable[[str], str]) -> None:
    text = (
        'exceptions = 1\n[[models]]\nname = "a"\nstyle = "x"\n[[models]]\nname = "b"\n'
        '[budgets]\np50_ms = 2\np99_ms = 1\n[[targets]]\nid = "linux"\n[[targets]]\nglibc = "2"\n'
    )
    told = [line for line in refused(text).splitlines() if line.startswith("  kws")]
    assert told == [
        "  kws.toml: 'exceptions' must be true or false, not an integer",
        "  kws.toml: 'models[0].style' must be 'fixed' or 'runtime', not 'x'",
        "  kws.toml: 'models[1]' has no source",
        "  kws.toml: 'budgets' allow 1 ms at the 99th percentile, less than the 2 ms of the median",
        "  kws.toml: 'targets[0].id' is 'linux', which is not a target",
        "  kws.toml: 'targets[1].glibc' must be a glibc version, such as 2.17, not '2'",
        "  kws.toml: 'targets[1].id' is missing",
    ]


def test_each_problem_is_a_diagnostic_of_its_own(folder: Path) -> None:
    file = folder / "kws.toml"
    file.write_text("exceptions = 1\nzzz = 1\n")
    with pytest.raises(DiagnosticGroup) as caught:
        load_spec(file, target_problems)
    assert [error.code for error in caught.value.diagnostics] == ["wrong-type", "unknown-key", "missing-key"]
    assert {error.where for error in caught.value.diagnostics} == {str(file)}
    assert {type(error) for error in caught.value.diagnostics} == {SpecError}


def test_targets_may_be_called_by_other_names(load: Callable[[str], buildspec.LoadedSpec]) -> None:
    """They are read as the one identifier, which plans and files go by, and that is said."""
    loaded = load(MODEL + '[[targets]]\nid = "linux-amd64"\nglibc = "2.28"\n[[targets]]\nid = "iphone"\n')
    assert [target.id for target in loaded.targets] == ["linux-x64", "ios-arm64"]
    assert loaded.notes == (
        "'targets[0].id': target 'linux-amd64' is linux-x64",
        "'targets[1].id': target 'iphone' is ios-arm64",
    )
    assert load(MODEL + '[[targets]]\nid = "linux-x64"\n').notes == ()


def test_of_many_problems_the_first_are_reported(refused: Callable[[str], str], folder: Path) -> None:
    told = refused(MODEL + '[[targets]]\nid = "linux-x64"\n' * 2000)
    assert len(told) < 4000
    assert told.count("error: duplicate-name") == 20
    assert told.endswith("\nand 1,979 more errors")
    with pytest.raises(DiagnosticGroup) as caught:
        load_spec(folder / "kws.toml", target_problems)
    assert len(caught.value.diagnostics) == 1999
    stderr = io.StringIO()
    Console(stderr=stderr, environment={"GITHUB_ACTIONS": "true"}).diagnostic(caught.value)
    assert stderr.getvalue().count("::error") == 20


@pytest.mark.parametrize(
    ("file_name", "name"),
    [("kws.toml", "kws"), ("KWS v2.toml", "kws-v2"), ("-a_.toml", "a"), ("a.b.toml", "a.b"), ("x" * 70, "x" * 64)],
)
def test_the_name_comes_from_the_file(folder: Path, file_name: str, name: str) -> None:
    (folder / file_name).write_text(MODEL)
    assert load_spec(folder / file_name, target_problems).name == name


def test_a_file_name_that_makes_no_name_is_refused(folder: Path) -> None:
    (folder / "模型.toml").write_text(MODEL)
    with pytest.raises(DiagnosticGroup) as caught:
        load_spec(folder / "模型.toml", target_problems)
    assert str(caught.value) == (
        f"error: missing-key\n  {folder}/模型.toml: 'name' is missing\n"
        "  hint: add one; the file's name, '模型.toml', does not make one"
    )


def test_a_file_name_of_any_bytes_can_be_told(folder: Path) -> None:
    file = Path(os.fsdecode(bytes(folder) + b"/kws\xff.toml"))
    file.write_text("")
    with pytest.raises(DiagnosticGroup) as caught:
        load_spec(file, target_problems)
    assert str(caught.value).encode().decode().count("kws\\udcff.toml: 'models' is missing") == 1


def test_values_arrive_as_written(load: Callable[[str], buildspec.LoadedSpec], folder: Path) -> None:
    loaded = load(
        MODEL + 'tolerances.float16.absolute = 1\ncases = [{ name = "c", dimensions = { "a.b" = 2 }, inputs = {'
        " i = { value = 3 }, f = { value = 3.0 }, b = { value = true }, s = { value = 'x' },"
        " r = { shape = [1, 2] } } }]\n"
    )
    case = loaded.models[0].cases[0]
    assert [repr(case.inputs[name].value) for name in "ifbs"] == ["3", "3.0", "True", "'x'"]
    assert (case.dimensions, case.inputs["r"].shape) == ({"a.b": 2}, (1, 2))
    assert loaded.models[0].tolerances == {"float16": Tolerance(absolute=1)}
    assert loaded.resolve(Path("m.onnx")) == folder / "m.onnx"


KEYS = st.sampled_from(
    ["name", "models", "cases", "inputs", "sr", "value", "low", "shape", "targets", "id", "budgets", "tolerances",
     "float32", "path", "url", "wheel", "member", "sha256", "level", "layout", "onnxruntime", "source", "p50_ms"]
) | st.text(max_size=3)  # fmt: skip
VALUES = (
    st.text(max_size=8)
    | st.sampled_from(["m", "all", "nchwc8", "linux-x64", "path", "2.28", "0" * 64, "x==1", "http://[", "../x", "/"])
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.booleans()
    | st.datetimes()
    | st.dates()
    | st.times()
)
TREES = st.recursive(VALUES, lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=4))
DOCUMENTS = st.dictionaries(KEYS, TREES, max_size=5)


def _told(document: dict[str, Any]) -> tuple[Diagnostic, ...]:
    try:
        assert isinstance(spec_from_data(document, FILE, target_problems), buildspec.LoadedSpec)
    except DiagnosticGroup as group:
        return group.diagnostics
    return ()


@settings(deadline=5000)
@given(DOCUMENTS)
def test_any_data_is_a_buildspec_or_a_diagnostic(document: dict[str, Any]) -> None:
    told = _told(document)
    assert {error.code for error in told} <= set(ERROR_CODES)
    assert all(line.isprintable() for error in told for line in str(error).splitlines())


def _places(data: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place, *(found for key, below in items for found in _places(below, (*place, key)))]


def _replaced(data: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    copy = data.copy()
    copy[place[0]] = _replaced(data[place[0]], place[1:], value)
    return copy


SOUND = {
    "name": "kws",
    "exceptions": True,
    "onnxruntime": {"version": "1.21.0", "source": "auto"},
    "budgets": {"library_ratio": 0.1},
    "models": [
        {
            "name": "m",
            "wheel": "x==1",
            "member": "m.onnx",
            "sha256": "0" * 64,
            "cases": [{"name": "c", "seed": 1, "dimensions": {"n": 2}, "inputs": {"x": {"shape": [1], "low": 0}}}],
            "tolerances": {"float32": {"cosine": 0.9}},
        }
    ],
    "targets": [{"id": "linux-x64", "glibc": "2.28", "budgets": {"load_ms": 3}}],
}


@settings(deadline=5000)
@given(st.sampled_from(_places(SOUND)[1:]), st.datetimes() | st.lists(st.dates(), min_size=1, max_size=1))
def test_a_date_anywhere_is_found_where_it_stands(place: tuple[Any, ...], value: Any) -> None:
    assert spec_from_data(SOUND, FILE, target_problems).name == "kws"
    with pytest.raises(DiagnosticGroup) as caught:
        spec_from_data(_replaced(SOUND, place, value), FILE, target_problems)
    last = f"[{place[-1]}]" if isinstance(place[-1], int) else str(place[-1])
    assert {error.code for error in caught.value.diagnostics} == {"wrong-type"}
    assert all(f"{last}'" in error.what or f"{last}[0]'" in error.what for error in caught.value.diagnostics)


@settings(deadline=5000)
@given(st.sampled_from(_places(SOUND)[1:]), TREES)
def test_any_change_to_a_good_buildspec_is_good_or_a_diagnostic(place: tuple[Any, ...], value: Any) -> None:
    assert {error.code for error in _told(_replaced(SOUND, place, value))} <= set(ERROR_CODES)


def _names() -> st.SearchStrategy[str]:
    return st.from_regex(r"[a-z0-9][a-z0-9._-]{0,9}", fullmatch=True)


def _unique(strategy: st.SearchStrategy[Any], key: str, least: int) -> st.SearchStrategy[tuple[Any, ...]]:
    unique = st.lists(strategy, min_size=least, max_size=3, unique_by=lambda value: getattr(value, key))
    return unique.map(tuple)


FINITE = st.floats(-1e9, 1e9)
SCALARS = FINITE | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5)
COLUMNS = st.lists(SCALARS, min_size=1, max_size=3).map(tuple)
INPUTS = st.builds(
    buildspec.InputSpec, shape=st.none() | st.lists(st.integers(0, 9)).map(tuple), value=SCALARS
) | st.builds(buildspec.InputSpec, choices=COLUMNS | st.lists(COLUMNS, min_size=1, max_size=3).map(tuple))
CASES = st.builds(
    buildspec.CaseSpec,
    name=_names(),
    data=st.none(),
    seed=st.integers(0, 2**63 - 1),
    dimensions=st.dictionaries(st.text(max_size=4), st.integers(0, 2**31 - 1), max_size=3),
    inputs=st.dictionaries(st.text(max_size=4), INPUTS, max_size=3),
)
MODELS = st.builds(
    buildspec.ModelSpec,
    name=_names(),
    path=st.none(),
    url=st.just("https://example.org/m.onnx"),
    wheel=st.none(),
    member=st.none(),
    sha256=st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
    level=st.just("all"),
    layout=st.sampled_from(["nchwc8", "nchwc16", "s8s8"]),
    session=st.none() | st.builds(buildspec.SessionSpec, arena=st.booleans(), threads=st.integers(1, 1024)),
    cases=_unique(CASES, "name", 0),
    tolerances=st.dictionaries(st.sampled_from(["float32", "int8"]), st.builds(Tolerance, cosine=st.floats(-1, 1))),
)
TARGETS_WANTED = st.builds(
    buildspec.TargetSpec, id=st.sampled_from(sorted(TARGETS)), compiler=st.just("zig"), budgets=st.none()
)
SPECS = st.builds(
    buildspec.BuildSpec,
    name=_names(),
    onnxruntime=st.just(buildspec.RuntimeSpec(version="1.20.1", source="upstream")),
    exceptions=st.booleans(),
    budgets=st.builds(buildspec.Budgets, library_ratio=st.floats(1e-9, 10), p50_ms=st.just(1.5), p99_ms=st.just(2.5)),
    models=_unique(MODELS, "name", 1),
    targets=_unique(TARGETS_WANTED, "id", 0),
)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{_toml(key)} = {_toml(below)}" for key, below in value.items() if below is not None) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@settings(deadline=5000)
@given(SPECS)
def test_a_buildspec_survives_the_way_through_toml(spec: buildspec.BuildSpec) -> None:
    text = "\n".join(f"{key} = {_toml(value)}" for key, value in to_data(spec).items() if value is not None)
    assert spec_from_data(_parsed(text, "kws.toml"), FILE, target_problems).as_written() == spec


def test_a_date_is_not_taken_for_its_text() -> None:
    document = {"name": dt.date(2020, 1, 1), "models": [{"name": "m", "url": "https://a/b", "sha256": "0" * 64}]}
    with pytest.raises(DiagnosticGroup, match="'name' is a date or time, which is not a type of any key"):
        spec_from_data(document, FILE, target_problems)


@pytest.mark.parametrize(
    ("given", "version"), [({}, default_version()), ({"version": "1.30"}, "1.30.0"), ({"version": "1.24.4"}, "1.24.4")]
)
def test_everything_later_sees_the_exact_version(given: dict[str, str], version: str) -> None:
    """A minor version and none at all are words for one."""
    document = {**SOUND, "onnxruntime": given}
    assert spec_from_data(document, FILE, target_problems).onnxruntime.version == version
