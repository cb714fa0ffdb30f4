"""A spec without and with the steps of its models: what is built, and what is refused before."""

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from preparation import subject as module
from preparation.measure import SPECS
from preparation.subject import GIVEN, PREPARED, Pair, built_pair, require_same_cases, without_steps

from ortrim.base.console import Console
from ortrim.errors import Diagnostic, ExitCode, UsageError
from ortrim.platforms import target_problems
from ortrim.spec.buildspec import LoadedSpec
from ortrim.spec.load import load_spec
from ortrim.verify.cases import Case
from preparation_samples import built_model, built_subject

MODEL = '[[models]]\nname = "net"\npath = "net.onnx"\n'
MakeCase = Callable[..., Case]


@pytest.fixture
def make_case(tmp_path: Path) -> MakeCase:
    """Return a function that writes a case with some inputs, as another plan or step would."""

    def make(*inputs: bytes, name: str = "one") -> Case:
        folder = tmp_path / f"cases-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        for number, content in enumerate(inputs):
            (folder / f"input_{number:03}.npy").write_bytes(content)
        return Case(name=name, folder=folder, digest=folder.name)

    return make


def test_steps_are_taken_from_every_model_and_nothing_else() -> None:
    """Sources, cases and tolerances stay; so does what was loaded."""
    loaded = load_spec(SPECS[0], target_problems)
    bare = without_steps(loaded)
    assert [model.steps for model in bare.spec.models] == [()]
    steps = (model.steps for model in loaded.spec.models)
    again = tuple(replace(model, steps=own) for model, own in zip(bare.spec.models, steps, strict=True))
    assert replace(bare, spec=replace(bare.spec, models=again)) == loaded


def test_the_same_inputs_are_the_same_cases_wherever_they_lie(make_case: MakeCase) -> None:
    """Those of a prepared model were written by its steps, under digests of their own."""
    require_same_cases("m", (make_case(b"1", b"2"),), (make_case(b"1", b"2"),))


def test_other_files_in_a_cases_folder_do_not_count(make_case: MakeCase) -> None:
    """The runner reads inputs alone."""
    one, other = make_case(b"1"), make_case(b"1")
    (other.folder / "note.txt").write_text("mine")
    require_same_cases("m", (one,), (other,))


@pytest.mark.parametrize("other", [(), (b"1",), (b"2", b"1"), (b"1", b"3"), (b"1", b"2", b"3")])
def test_other_inputs_are_refused(make_case: MakeCase, other: tuple[bytes, ...]) -> None:
    """Less of them, in another order or with other values."""
    with pytest.raises(UsageError) as caught:
        require_same_cases("x.toml: model 'net'", (make_case(b"1", b"2"),), (make_case(*other),))
    assert (caught.value.code, caught.value.exit_code) == ("cases-differ", ExitCode.USAGE)
    assert (caught.value.where, caught.value.why) == ("x.toml: model 'net'", "cases that differ: one")


def test_cases_that_a_step_left_out_are_named(make_case: MakeCase) -> None:
    """And only these."""
    stays, goes = make_case(b"1"), make_case(b"2", name="two")
    with pytest.raises(UsageError) as caught:
        require_same_cases("m", (stays, goes), (stays,))
    assert caught.value.why == "cases that differ: two"


def test_both_builds_run_the_same_cases_each_with_its_own_model(tmp_path: Path, make_case: MakeCase) -> None:
    """In one runner; each has the settings of its own model."""
    cases = (make_case(b"1"),)
    given = built_model(tmp_path, size=100, config="", cases=cases)
    prepared = built_model(tmp_path, size=90, config="", cases=(make_case(b"1"),))
    prepared = replace(prepared, session=replace(given.session, threads=2))
    pair = Pair(
        given=built_subject(tmp_path, GIVEN, given),
        prepared=built_subject(tmp_path, PREPARED, prepared),
        reports=(None,),
    )
    (contest,) = pair.contests()
    assert (contest.spec, contest.model, contest.cases) == ("demo", "net", cases)
    assert [(each.name, each.library.name, each.session.threads) for each in contest.contenders] == [
        (GIVEN, "given.so", 1), (PREPARED, "prepared.so", 2),
    ]  # fmt: skip
    assert [each.model_sha256 for each in contest.contenders] == [
        given.converted.sha256, prepared.converted.sha256,
    ]  # fmt: skip
    assert len({each.library_sha256 for each in contest.contenders}) == 2


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Build nothing, and return what was."""
    asked: list[str] = []

    def build(_planned: Any, _request: Any, words: str, _console: Any) -> tuple[Path, Path]:
        asked.append(words)
        return Path("/library"), Path("/runner")

    monkeypatch.setattr(module, "build_first", build)
    monkeypatch.setattr(module, "built_of", lambda _planned, library: library)
    monkeypatch.setattr(module, "subject_of", lambda planned, libraries, *_: (planned.steps, tuple(libraries)))
    return asked


def planning(*cases: Case) -> Callable[..., Any]:
    """Return a planning whose model has the cases, the first without its steps, the last with them."""

    def plan(loaded: LoadedSpec, *_: Any, **_options: Any) -> Any:
        steps = loaded.spec.models[0].steps
        case = cases[-1] if steps else cases[0]
        done = SimpleNamespace(report="report") if steps else None
        models = SimpleNamespace(prepared=(SimpleNamespace(name="net"),), preparations=(done,))
        return SimpleNamespace(models=models, cases=((case,),), steps=len(steps))

    return plan


@pytest.fixture
def pair_of(tmp_path: Path) -> Callable[[str], Any]:
    """Return a function that makes the pair of a spec with a text."""

    def make(text: str) -> Any:
        shown = StringIO()
        spec = tmp_path / "demo.toml"
        spec.write_text(text)
        (tmp_path / "net.onnx").touch()
        return built_pair(spec, 1, tmp_path / "out", Console(stdout=shown, stderr=shown, environment={}))

    return make


STEPS = 'steps = [{ use = "simplify" }, { use = "strip" }]\n'


def test_a_spec_is_built_without_and_with_its_steps(
    make_case: MakeCase, built: list[str], pair_of: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other; what the steps did comes along."""
    monkeypatch.setattr(module, "planned_of", planning(make_case(b"1"), make_case(b"1")))
    pair = pair_of(MODEL + STEPS)
    assert (pair.given, pair.prepared, pair.reports) == ((0, (GIVEN,)), (2, (PREPARED,)), ("report",))
    assert built == ["with its models given", "with its models prepared"]


def test_inputs_that_differ_are_refused_before_anything_is_built(
    make_case: MakeCase, built: list[str], pair_of: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the spec and the model."""
    monkeypatch.setattr(module, "planned_of", planning(make_case(b"1"), make_case(b"2")))
    with pytest.raises(UsageError, match="other inputs") as caught:
        pair_of(MODEL + STEPS)
    assert caught.value.where.endswith("demo.toml: model 'net'")
    assert built == []


def test_a_spec_without_steps_is_refused_before_it_is_planned(built: list[str], pair_of: Callable[[str], Any]) -> None:
    """There is nothing to measure."""
    with pytest.raises(UsageError) as caught:
        pair_of(MODEL)
    assert (caught.value.code, caught.value.exit_code, built) == ("no-steps", ExitCode.USAGE, [])


@pytest.mark.parametrize("text", ["", "[[models]", MODEL + 'steps = [{ use = "shrink" }]\n'])
def test_a_spec_that_cannot_be_read_is_refused(built: list[str], pair_of: Callable[[str], Any], text: str) -> None:
    """As everywhere."""
    with pytest.raises(Diagnostic) as caught:
        pair_of(text)
    assert (caught.value.exit_code, built) == (ExitCode.SPEC, [])
