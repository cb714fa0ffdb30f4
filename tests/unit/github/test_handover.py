"""What a run hands over: packages, proof and sums under names that no other target has."""

from pathlib import Path

import pytest

from ortrim.base.checksums import SUMS, check_sums
from ortrim.base.json import from_json
from ortrim.errors import StorageError
from ortrim.github.jobs import add_reports, checked_out_commit, hand_over, mark_delivery
from ortrim.package.manifest import FACTS, FAILED, DeliveryFacts
from ortrim.planning.planned import Planned, planned_for, target_folder
from ortrim.sources.commits import git
from pipeline_stages import Stages
from refusing import refused

REPORTS = ("report.html", "report.json", "report.md")
COMMIT = 40 * "a"
LINUX = "ortrim-sample-linux-x64-1.21.0"
ANDROID = "ortrim-sample-android-1.21.0"
WHEEL = "ortrim_sample-1.21.0-py3-none-manylinux_2_28_x86_64.whl"


@pytest.fixture
def planned(stages: Stages) -> Planned:
    """Return a plan for Linux and two ABIs of Android whose packages and reports are there, with much beside them."""
    made = planned_for(stages.request(target="linux-x64,android-x86_64,android-arm64-v8a"), stages.console)
    for target in made.plan.targets:
        folder = target_folder(made, target)
        fill(folder, *REPORTS, "build.log", "outputs/reference/x.npy")
        for report in REPORTS:
            (folder / report).write_text(f"{target.identifier} {report}")
    fill(
        made.folder / "linux-x64",
        f"{LINUX}.tar.gz",
        f"{LINUX}-symbols.tar.gz",
        WHEEL,
        *(f"{LINUX}/{name}" for name in ("manifest.json", "sbom.cdx.json")),
    )
    documents = ("LICENSE", "manifest.json", "sbom.cdx.json", SUMS)
    files = (f"{ANDROID}.aar", f"{ANDROID}-jniLibs.zip", "maven/org/demo/demo.pom", *documents)
    fill(made.folder / "android" / ANDROID, *files)
    return made


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_everything_that_is_for_users_is_handed_over(planned: Planned, tmp_path: Path) -> None:
    """Packages, proof and reports of each target; no logs, no outputs, nothing unpacked."""
    written = hand_over(planned, tmp_path / "delivery", COMMIT)
    names = [path.relative_to(tmp_path / "delivery").as_posix() for path in written]
    abis = [f"ortrim-sample-android-{abi}-1.21.0" for abi in ("arm64-v8a", "x86_64")]
    assert sorted(names) == sorted([
        *(f"{name}.{report}" for name in (LINUX, *abis) for report in REPORTS),
        *(f"{LINUX}.{name}" for name in ("tar.gz", "manifest.json", "sbom.cdx.json")),
        f"{LINUX}-symbols.tar.gz",
        f"wheel/{WHEEL}",
        *(f"{ANDROID}.{name}" for name in ("aar", "LICENSE", "manifest.json", "sbom.cdx.json")),
        f"{ANDROID}-jniLibs.zip",
        "maven/org/demo/demo.pom",
        FACTS,
        SUMS,
    ])  # fmt: skip
    assert (tmp_path / "delivery" / f"{LINUX}.report.md").read_text() == "linux-x64 report.md"


def test_a_delivery_says_which_commit_it_was_made_of(planned: Planned, tmp_path: Path) -> None:
    """And its sums are of that, too; nothing where nobody knows."""
    for name, commit in (("one", COMMIT), ("none", "")):
        hand_over(planned, tmp_path / name, commit)
        assert from_json(DeliveryFacts, (tmp_path / name / FACTS).read_bytes()) == DeliveryFacts(commit=commit)
        assert f"  {FACTS}\n" in (tmp_path / name / SUMS).read_text()
        check_sums(tmp_path / name)


def test_a_delivery_says_that_it_failed(planned: Planned, tmp_path: Path) -> None:
    """Until it is known to have passed; its sums are right either way."""
    folder = tmp_path / "delivery"
    hand_over(planned, folder, COMMIT, "not-verified")
    for code in ("not-verified", "parity-lost"):
        mark_delivery(folder, code)
        assert (folder / FAILED).read_text() == f"{code}\n"
        check_sums(folder)
    mark_delivery(folder, "")
    assert not (folder / FAILED).exists()
    check_sums(folder)


@pytest.mark.needs("git")
def test_the_commit_is_that_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Detached, too, as a workflow checks out; none outside of a repository, and before the first commit."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for name in ("GIT_DIR", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    assert checked_out_commit(tmp_path) == ""
    git(tmp_path, "init", "--quiet")
    assert checked_out_commit(tmp_path) == ""
    own = ("-c", "user.name=x", "-c", "user.email=x@y")
    for message in ("one", "two"):
        git(tmp_path, *own, "commit", "--quiet", "--allow-empty", "--message", message)
    git(tmp_path, "checkout", "--quiet", "--detach", "HEAD~1")
    (tmp_path / "deeper").mkdir()
    assert checked_out_commit(tmp_path / "deeper") == git(tmp_path, "rev-parse", "HEAD").strip()
    assert len(checked_out_commit(tmp_path)) == 40


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The delivery can be made all the same."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert checked_out_commit(tmp_path) == ""


def test_reports_from_a_further_device_stand_beside(planned: Planned, tmp_path: Path) -> None:
    hand_over(planned, tmp_path / "delivery", COMMIT)
    before = len(list((tmp_path / "delivery").iterdir()))
    add_reports(planned, tmp_path / "delivery", "on-emulator")
    after = list((tmp_path / "delivery").iterdir())
    assert len(after) == before + 9
    assert (tmp_path / "delivery" / f"{LINUX}-on-emulator.report.md").is_file()
    check_sums(tmp_path / "delivery")


def test_a_folder_that_holds_something_is_refused(planned: Planned, tmp_path: Path) -> None:
    """What lay there would be attested as if it had been built."""
    fill(tmp_path / "delivery", "stranger")
    assert refused(StorageError, hand_over, planned, tmp_path / "delivery", COMMIT).code == "path-in-the-way"
    assert [path.name for path in (tmp_path / "delivery").iterdir()] == ["stranger"]


def test_a_report_that_is_missing_is_reported(planned: Planned, tmp_path: Path) -> None:
    """There is no delivery without proof."""
    (planned.folder / "linux-x64" / "report.json").unlink()
    with pytest.raises(StorageError):
        hand_over(planned, tmp_path / "delivery", COMMIT)
    assert not (tmp_path / "delivery" / SUMS).exists()
