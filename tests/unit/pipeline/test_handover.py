"""What a run hands over: packages, proof and sums under names that no other target has."""

from pathlib import Path
from typing import Any, Protocol

import pytest

from ortrim.console import Console
from ortrim.errors import StorageError
from ortrim.package.sums import SUMS, check_sums
from ortrim.pipeline.converted import Request
from ortrim.pipeline.handover import add_reports, hand_over
from ortrim.pipeline.planned import Planned, make_planned, target_folder

REPORTS = ("report.html", "report.json", "report.md")
LINUX = "ortrim-sample-linux-x64-1.21.0"
ANDROID = "ortrim-sample-android-1.21.0"


class Stages(Protocol):
    """What conftest.py offers."""

    console: Console

    def request(self, body: str = "", **changes: Any) -> Request:
        """Return a request for a buildspec with one model."""


@pytest.fixture
def planned(stages: Stages) -> Planned:
    """Return a plan for Linux and two ABIs of Android whose packages and reports are there, with much beside them."""
    made = make_planned(stages.request(target="linux-x64,android-x86_64,android-arm64-v8a"), stages.console)
    for target in made.plan.targets:
        folder = target_folder(made, target)
        fill(folder, *REPORTS, "build.log", "outputs/reference/x.npy")
        for report in REPORTS:
            (folder / report).write_text(f"{target.job.target.identifier} {report}")
    fill(
        made.folder / "linux-x64",
        f"{LINUX}.tar.gz",
        *(f"{LINUX}/{name}" for name in ("manifest.json", "sbom.cdx.json")),
    )
    documents = ("LICENSE", "manifest.json", "sbom.cdx.json", SUMS)
    files = (f"{ANDROID}.aar", f"{ANDROID}-jniLibs.zip", "maven/org/demo/demo.pom", *documents)
    fill(made.folder / "android" / ANDROID, *files)
    return made


def fill(folder: Path, *names: str) -> None:
    """Make files in a folder."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_everything_that_is_for_users_is_handed_over(planned: Planned, tmp_path: Path) -> None:
    """Packages, proof and reports of each target; no logs, no outputs, nothing unpacked."""
    written = hand_over(planned, tmp_path / "delivery")
    names = [path.relative_to(tmp_path / "delivery").as_posix() for path in written]
    abis = [f"ortrim-sample-android-{abi}-1.21.0" for abi in ("arm64-v8a", "x86_64")]
    assert sorted(names) == sorted([
        *(f"{name}.{report}" for name in (LINUX, *abis) for report in REPORTS),
        *(f"{LINUX}.{name}" for name in ("tar.gz", "manifest.json", "sbom.cdx.json")),
        *(f"{ANDROID}.{name}" for name in ("aar", "LICENSE", "manifest.json", "sbom.cdx.json")),
        f"{ANDROID}-jniLibs.zip",
        "maven/org/demo/demo.pom",
        SUMS,
    ])  # fmt: skip
    assert (tmp_path / "delivery" / f"{LINUX}.report.md").read_text() == "linux-x64 report.md"


def test_the_sums_are_of_every_file(planned: Planned, tmp_path: Path) -> None:
    """They can be checked with what checks packages, and with sha256sum."""
    hand_over(planned, tmp_path / "delivery")
    check_sums(tmp_path / "delivery")


def test_reports_from_a_further_device_stand_beside(planned: Planned, tmp_path: Path) -> None:
    """Under names of their own; the sums have them, too."""
    hand_over(planned, tmp_path / "delivery")
    before = len(list((tmp_path / "delivery").iterdir()))
    add_reports(planned, tmp_path / "delivery", "on-emulator")
    after = list((tmp_path / "delivery").iterdir())
    assert len(after) == before + 9
    assert (tmp_path / "delivery" / f"{LINUX}-on-emulator.report.md").is_file()
    check_sums(tmp_path / "delivery")


def test_a_folder_that_holds_something_is_refused(planned: Planned, tmp_path: Path) -> None:
    """What lay there would be attested as if it had been built."""
    fill(tmp_path / "delivery", "stranger")
    with pytest.raises(StorageError) as caught:
        hand_over(planned, tmp_path / "delivery")
    assert caught.value.reference == "path-in-the-way"
    assert [path.name for path in (tmp_path / "delivery").iterdir()] == ["stranger"]


def test_a_report_that_is_missing_is_told(planned: Planned, tmp_path: Path) -> None:
    """There is no delivery without proof."""
    (planned.folder / "linux-x64" / "report.json").unlink()
    with pytest.raises(StorageError):
        hand_over(planned, tmp_path / "delivery")
    assert not (tmp_path / "delivery" / SUMS).exists()
