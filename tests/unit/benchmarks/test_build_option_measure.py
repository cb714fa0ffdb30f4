"""Measuring build options: what is built, what was built before, and what cannot be."""

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from shutil import copyfile
from typing import NoReturn

import pytest
from build_options import measure as module
from build_options.measure import Wanted, measure, measure_variants
from build_options.record import Outcome, Record, read_record
from build_options.report import markdown, rows
from build_options.variants import Variant, variants, with_build_options

from ortrim.base.console import Console
from ortrim.build.plan import BuildJob
from ortrim.errors import BuildError, ExitCode, StorageError, UsageError
from ortrim.pipeline.request import Request
from ortrim.report.figures import NONE
from ortrim.spec.build_options import PROFILES, BuildOptions

LIBRARY = Path(__file__).parents[1] / "binaries" / "data" / "tiny.so"


class Workshop:
    """Builds the same library for every variant, and fails or is interrupted at some."""

    def __init__(self, folder: Path) -> None:
        self.library = Path(copyfile(LIBRARY, folder / "library.so"))
        self.built: list[tuple[str, str]] = []
        self.ends: dict[tuple[str, str], BaseException] = {}

    def build(self, variant: Variant, _job: BuildJob) -> Path:
        """Build at once."""
        name = (variant.profile, variant.option)
        if name in self.ends:
            raise self.ends[name]
        self.built.append(name)
        return self.library


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """Return a workshop."""
    return Workshop(tmp_path)


def test_each_build_option_is_pulled_alone_and_let_go_alone() -> None:
    """In the profile that has none and in the one that is asked about; what is alike in both is left alone."""
    made = list(variants("upstream", "size", {}))
    names = [each.option for each in made if each.profile == "size"]
    assert [each.option for each in made if each.profile == "upstream"] == names
    assert names[0] == ""
    assert "packed_relocations" in names
    assert not {"precompiled_headers", "avx512_kernels"} & set(names)
    found = {(each.profile, each.option): each.build_options for each in made}
    assert found["upstream", "packed_relocations"] == BuildOptions(packed_relocations=True)
    assert found["size", "packed_relocations"] == replace(PROFILES["size"], packed_relocations=False)


def test_a_variants_job_has_its_build_options_and_arguments(job: BuildJob) -> None:
    """As planning would have made it, types that may be left out included."""
    assert with_build_options(job, PROFILES["balanced"], job.without_types) == job
    kept = with_build_options(job, replace(PROFILES["balanced"], type_reduction=False), ("float8",))
    assert (kept.build_options.type_reduction, kept.without_types) == (False, ())
    small = with_build_options(job, PROFILES["size"], ("float8",))
    assert (small.build_options.cold, small.without_types) == ("-Oz", ("float8",))
    assert small.arguments != job.arguments


def test_every_outcome_is_there_when_the_next_is_begun(workshop: Workshop, job: BuildJob, tmp_path: Path) -> None:
    """An interruption loses the variant under way; a second call goes on with it."""
    path = tmp_path / "out" / "build_options.json"
    workshop.ends["balanced", ""] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        measure_variants(job, "balanced", path, workshop.build)
    before = tuple(workshop.built)
    assert [(each.profile, each.option) for each in read_record(path).outcomes] == list(before)
    assert before[0] == ("upstream", "")
    workshop.ends.clear()
    record = measure_variants(job, "balanced", path, workshop.build)
    assert workshop.built[len(before)] == ("balanced", "")
    assert len(workshop.built) == len(set(workshop.built)) == len(record.outcomes)
    assert measure_variants(job, "balanced", path, workshop.build) == record
    assert {each.file_bytes for each in record.outcomes} == {LIBRARY.stat().st_size}


def test_what_cannot_be_linked_is_a_row_with_its_reason(workshop: Workshop, job: BuildJob, tmp_path: Path) -> None:
    """All others are built, and the next call tries it again."""
    path = tmp_path / "build_options.json"
    why = "ld.lld: error: undefined symbol: f\nmore"
    workshop.ends["upstream", "packed_relocations"] = BuildError("build-failed", "the build failed", why=why)
    record = measure_variants(job, "balanced", path, workshop.build)
    text = {name: alone for name, alone, _ in rows(record.outcomes, "upstream", "balanced")}
    assert text["packed_relocations"] == "build-failed: ld.lld: error: undefined symbol: f"
    assert text["unwind_tables"] == "+0"
    workshop.ends.clear()
    record = measure_variants(job, "balanced", path, workshop.build)
    assert workshop.built[-1] == ("upstream", "packed_relocations")
    assert not any(each.failure for each in record.outcomes)


def test_another_job_is_built_anew(workshop: Workshop, job: BuildJob, tmp_path: Path) -> None:
    """Its outcomes take the place of the older ones."""
    first = measure_variants(job, "size", tmp_path / "build_options.json", workshop.build)
    second = measure_variants(replace(job, exceptions=True), "size", tmp_path / "build_options.json", workshop.build)
    assert len(workshop.built) == 2 * len(first.outcomes)
    assert len(second.outcomes) == len(first.outcomes)


def test_what_is_missing_is_a_dash(make: Callable[..., Outcome]) -> None:
    """No difference is taken to a profile that is not there or cannot be built."""
    alone = (make("upstream", "", 100), make("upstream", "packed_relocations", 90))
    assert rows(alone, "upstream", "size") == (("all", "100", NONE), ("packed_relocations", "-10", NONE))
    broken = (*alone, make("size", "", failure="build-failed: no"), make("size", "packed_relocations", 80))
    assert rows(broken, "upstream", "size") == (("all", "100", "build-failed: no"), ("packed_relocations", "-10", NONE))
    assert "build-failed: a\\|b" in markdown((make("size", "", failure="build-failed: a|b"),), "upstream", "size")


@pytest.fixture
def make() -> Callable[..., Outcome]:
    """Return a function that makes an outcome."""

    def outcome(profile: str, option: str, size: int = 0, *, failure: str = "") -> Outcome:
        return Outcome(profile=profile, option=option, key="k", file_bytes=size, failure=failure)

    return outcome


def test_the_profile_without_build_options_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    """Nothing is planned, built or written."""
    text = StringIO()
    wanted = Wanted(spec=tmp_path / "none.toml", target="linux-x64", profile="upstream", output=tmp_path / "out")
    with pytest.raises(UsageError) as caught:
        measure(wanted, Console(stdout=text, stderr=text, environment={}))
    assert (caught.value.code, caught.value.exit_code) == ("bad-option", ExitCode.USAGE)
    assert "balanced, size, speed" in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_the_plan_is_that_of_the_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Which operators are hot, and which types go, hangs on it."""
    asked: list[Request] = []

    def planned(request: Request, *_: object, **__: object) -> NoReturn:
        asked.append(request)
        raise BuildError("enough", "this is all that was to be seen")

    monkeypatch.setattr(module, "make_planned", planned)
    text = StringIO()
    wanted = Wanted(spec=tmp_path / "s.toml", target="linux-x64", profile="size", output=tmp_path / "out")
    with pytest.raises(BuildError):
        measure(wanted, Console(stdout=text, stderr=text, environment={}))
    assert [each.profile for each in asked] == ["size"]


@pytest.mark.parametrize("text", ["", "{", '{"schema": "another/1"}', "[]"])
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    """Nothing is overwritten; without a file there is none."""
    path = tmp_path / "build_options.json"
    assert read_record(path) == Record()
    path.write_text(text)
    with pytest.raises(StorageError) as caught:
        read_record(path)
    assert caught.value.code == "measurements-damaged"
    assert path.read_text() == text
