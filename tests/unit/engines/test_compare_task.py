"""`compare` at its boundary; what is compared is made up here, and real in the integration tests."""

from pathlib import Path
from typing import Any

import pytest

from engine_samples import sample_comparison
from ortrim.bench import comparison
from ortrim.bench.comparison import Compared
from ortrim.errors import Interrupted
from program_runs import Run


@pytest.fixture
def asked(ortrim: Run, monkeypatch: pytest.MonkeyPatch) -> list[Compared]:
    kept: list[Compared] = []

    def compare(compared: Compared, _: object) -> Any:
        kept.append(compared)
        return sample_comparison()

    monkeypatch.setattr(comparison, "compare_engines", compare)
    Path("m.toml").touch()
    return kept


def test_the_words_are_what_is_asked_for(ortrim: Run, asked: list[Compared], tmp_path: Path) -> None:
    """Several engines, models and cases; the tables are shown, and where the files are."""
    (tmp_path / "l.so").write_bytes(b"x")
    words = ("--engine", "mnn", "--engine", "tract", "--only", "a", "--case", "one", "--rounds", "2")
    ended = ortrim("compare", "m.toml", *words, "--threads", "2", "--library", str(tmp_path / "l.so"))
    assert ended.code == 0
    (compared,) = asked
    assert (compared.request.spec, compared.engines, compared.models) == (Path("m.toml"), ("mnn", "tract"), ("a",))
    assert (compared.cases, compared.rounds, compared.threads) == (("one",), 2, 2)
    assert compared.library == tmp_path / "l.so"
    assert "onnxruntime" in ended.out
    assert "cannot run (convert)" in ended.out
    assert Path("artifacts/compare/product/compare.md").is_file()


def test_json_is_one_document(ortrim: Run, asked: list[Compared]) -> None:
    ended = ortrim("compare", "m.toml", "--json")
    assert ended.code == 0
    assert ended.document()["cases"][0]["rows"][3]["reason"].startswith("pnnx ended")
    assert asked[0].engines == ()
    assert asked[0].library is None


@pytest.mark.parametrize(
    "words",
    [
        ("--rounds", "0"),
        ("--rounds", "many"),
        ("--threads", "-1"),
        ("--library", "none.so"),
        ("--library", "."),
        ("--profile", "tiny?"),
    ],
)
def test_impossible_words_are_refused(ortrim: Run, asked: list[Compared], words: tuple[str, str]) -> None:
    ended = ortrim("compare", "m.onnx", *words)
    assert ended.code == 2
    assert "bad-option" in ended.err
    assert asked == []
    assert not Path("artifacts").exists()


def test_a_model_has_to_be_named(ortrim: Run, asked: list[Compared]) -> None:
    assert ortrim("compare").code == 2
    assert asked == []


def test_ctrl_c_ends_with_its_own_code(ortrim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "compare_engines", interrupt)
    Path("m.toml").touch()
    assert ortrim("compare", "m.toml").code == Interrupted.exit_code
