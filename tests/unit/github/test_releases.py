"""Releases: a draft of exactly what was delivered, and published only when it is one."""

import json
import shutil
from pathlib import Path

import pytest

from fake_programs import FakePrograms, fake_programs
from ortrim.base.checksums import SUMS
from ortrim.base.json import to_json
from ortrim.errors import DiagnosticGroup, ExitCode, NetworkError, PackageError, UsageError
from ortrim.github.jobs import mark_delivery, with_sums
from ortrim.github.release import draft_release, expected_deliveries, notes_of, publish_release, require_signed
from ortrim.github.repositories import TOKEN
from ortrim.github.workflow_files import deliver_jobs
from ortrim.package.manifest import ATTESTED, FACTS, DeliveryFacts
from ortrim.planning.planned import planned_for
from pipeline_stages import Stages
from refusing import refused

CHANGES = "# Changelog\n\n## 1.1.0 (unreleased)\n\n- two\n\n## 1.0.0\n\n- one\n- more\n\n## 0.9.0\n"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePrograms:
    """Have a `gh` that keeps what a release is made of."""
    monkeypatch.setenv(TOKEN, "t")
    return fake_programs(tmp_path / "programs", monkeypatch, "gh")


@pytest.fixture
def programs(hub: FakePrograms) -> FakePrograms:
    hub.answer("gh", "release", "list", stdout="[]\n")
    return hub


def leave_mark(delivery: Path) -> None:
    mark = delivery.with_name(f"{ATTESTED}{delivery.name}")
    mark.mkdir(exist_ok=True)
    shutil.copyfile(delivery / SUMS, mark / SUMS)


@pytest.fixture
def delivered(tmp_path: Path) -> Path:
    for target in ("linux-x64", "linux-arm64"):
        folder = tmp_path / "deliveries" / f"delivered-demo-{target}"
        (folder / "maven").mkdir(parents=True)
        (folder / f"ortrim-demo-{target}.tar.gz").write_text(target)
        (folder / "maven" / "demo.pom").write_text("<project/>")
        (folder / FACTS).write_text(to_json(DeliveryFacts(commit=40 * "a")))
        with_sums(folder)
        leave_mark(folder)
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    return tmp_path / "deliveries"


def draft(delivered: Path, tag: str = "v1.0.0") -> tuple[str, ...]:
    return draft_release(tag, delivered, delivered.parent / "CHANGELOG.md")


def test_what_buildspecs_come_to_is_what_their_runs_deliver(stages: Stages) -> None:
    """Under the names of the artifacts: a target of its own, or what an assembly joins."""
    targets = ("linux-x64", "linux-arm64", "android-x86", "android-arm64-v8a", "macos-arm64", "ios-arm64")
    body = "".join(f'[[targets]]\nid = "{name}"\n' for name in targets)
    request = stages.request(body, target="*", elsewhere=True, on_macs=True)
    delivered = deliver_jobs(planned_for(request, stages.console).plan)
    expected = expected_deliveries([request.spec])
    assert sorted(expected) == [f"delivered-sample-{name}" for name in ("android", "apple", "linux-arm64", "linux-x64")]
    assert sorted(expected) == sorted(job.artifact for job in delivered)


@pytest.mark.parametrize("drafts", [1, 2])
def test_an_earlier_draft_is_replaced(hub: FakePrograms, delivered: Path, drafts: int) -> None:
    """As of a run that failed and whose jobs are run again; GitHub may have several. The tag stays."""
    releases = [{"tagName": "v1.0.0", "isDraft": True}] * drafts + [{"tagName": "v0.9.0", "isDraft": False}]
    hub.answer("gh", "release", "list", stdout=json.dumps(releases))
    assert len(draft(delivered)) == 5
    _, *removed, created = hub.calls
    assert removed == [["gh", "release", "delete", "v1.0.0", "--yes"]] * drafts
    assert created[:4] == ["gh", "release", "create", "v1.0.0"]


def test_what_was_published_is_not_drafted_again(hub: FakePrograms, delivered: Path) -> None:
    """It is neither removed nor changed, and a draft beside it is neither."""
    releases = [{"tagName": "v1.0.0", "isDraft": each} for each in (True, False)]
    hub.answer("gh", "release", "list", stdout=json.dumps(releases))
    assert refused(NetworkError, draft, delivered).code == "not-a-draft"
    assert [call[2] for call in hub.calls] == ["list"]


def test_a_service_that_cannot_be_asked_ends_the_draft(hub: FakePrograms, delivered: Path) -> None:
    hub.answer("gh", "release", "list", code=1, stderr="HTTP 502: Bad Gateway\n")
    with pytest.raises(NetworkError):
        draft(delivered)
    assert [call[2] for call in hub.calls] == ["list"]


@pytest.mark.parametrize("tag", ["", "1.0.0", "v", "main", "v1", "-v1.0.0", "v1.0.0 --clobber", "v1.0.0\n", "v1.0.0/x"])
def test_what_is_no_tag_of_a_version_is_refused(programs: FakePrograms, delivered: Path, tag: str) -> None:
    """Before anything is read or asked."""
    assert refused(UsageError, draft, delivered, tag).code == "bad-tag"
    with pytest.raises(UsageError):
        publish_release(tag)
    assert programs.calls == []


@pytest.mark.parametrize("tag", ["v1.0.0-rc.1", "v1.0.0rc1", "v0.1"])
def test_tags_of_versions_that_are_not_final_are_tags(programs: FakePrograms, delivered: Path, tag: str) -> None:
    """They are refused only for want of notes."""
    assert refused(PackageError, draft, delivered, tag).code == "no-notes"
    assert programs.calls == []


def test_the_notes_are_those_of_the_version(tmp_path: Path) -> None:
    """From its heading to the next, or to the first below it; a date or a word may follow the version."""
    file = tmp_path / "CHANGELOG.md"
    file.write_text(CHANGES)
    assert notes_of("v1.0.0", file) == "- one\n- more\n"
    assert notes_of("v1.1.0", file) == "- two\n"
    file.write_text("## 1.1.0\n\nIn short.\n\n### Build\n\n- two\n\n## 1.0.0\n\n### Build\n\n- one\n")
    assert notes_of("v1.1.0", file) == "In short.\n"
    assert notes_of("v1.0.0", file) == "### Build\n\n- one\n"
    for tag in ("v0.9.0", "v1.0", "v2.0.0"):
        assert refused(PackageError, notes_of, tag, file).code == "no-notes"


def test_a_file_that_is_not_what_was_delivered_is_refused(programs: FakePrograms, delivered: Path) -> None:
    """Nothing is uploaded when one byte of one file differs, also deeper down."""
    (delivered / "delivered-demo-linux-x64" / "maven" / "demo.pom").write_text("<other/>")
    error = refused(DiagnosticGroup, draft, delivered)
    assert (error.code, error.exit_code) == ("digest-mismatch", ExitCode.PACKAGE)
    assert programs.calls == []


@pytest.mark.parametrize(
    "line", ["", "x", f"{'a' * 64}  ../../secret", f"{'a' * 64}  /etc/passwd", f"{'a' * 64}  missing", f"{'g' * 64}  x"]
)
def test_a_damaged_list_of_sums_is_refused(programs: FakePrograms, delivered: Path, line: str) -> None:
    """A line that leads elsewhere, names nothing, or is none."""
    sums = delivered / "delivered-demo-linux-x64" / SUMS
    sums.write_text(f"{sums.read_text()}{line}\n")
    with pytest.raises((PackageError, DiagnosticGroup)) as caught:
        draft(delivered)
    assert caught.value.code == ("file-missing" if line.endswith("missing") else "checksums-damaged")
    assert programs.calls == []


def test_a_file_that_was_not_delivered_is_refused(programs: FakePrograms, delivered: Path) -> None:
    (delivered / "delivered-demo-linux-x64" / "stray.txt").write_text("x")
    assert refused(DiagnosticGroup, draft, delivered).code == "unlisted-file"
    assert programs.calls == []


def test_a_link_in_place_of_a_file_is_refused(programs: FakePrograms, delivered: Path, tmp_path: Path) -> None:
    """Even one to the same bytes."""
    file = delivered / "delivered-demo-linux-x64" / "ortrim-demo-linux-x64.tar.gz"
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert refused(DiagnosticGroup, draft, delivered).code == "file-missing"
    assert programs.calls == []


def test_two_files_of_one_name_are_refused(programs: FakePrograms, delivered: Path) -> None:
    other = delivered / "delivered-other"
    other.mkdir()
    (other / "ortrim-demo-linux-x64.tar.gz").write_text("another")
    with_sums(other)
    error = refused(PackageError, draft, delivered)
    assert (error.code, error.where) == ("name-twice", "ortrim-demo-linux-x64.tar.gz")
    assert programs.calls == []


def test_nothing_is_no_release(programs: FakePrograms, delivered: Path) -> None:
    """When no target was delivered, or none passed, there is no draft either."""
    for name in ("linux-x64", "linux-arm64"):
        mark_delivery(delivered / f"delivered-demo-{name}", "parity-lost")
    for folder, why in ((delivered / "none", ""), (delivered, "demo-linux-x64: parity-lost")):
        error = refused(PackageError, draft_release, "v1.0.0", folder, delivered.parent / "CHANGELOG.md")
        assert error.code == "nothing-delivered"
        assert why in error.why
    assert programs.calls == []


def view(*names: str, draft: bool = True) -> str:
    return json.dumps({"isDraft": draft, "assets": [{"name": name} for name in names]})


@pytest.mark.parametrize(
    ("said", "reference"),
    [
        (view(), "nothing-drafted"),
        (view(SUMS), "nothing-drafted"),
        (view("a.tar.gz"), "nothing-drafted"),
        (view(SUMS, "a.tar.gz", draft=False), "not-a-draft"),
    ],
)
def test_what_is_no_whole_draft_is_not_published(programs: FakePrograms, said: str, reference: str) -> None:
    """Nothing that everybody has seen is changed."""
    programs.answer("gh", "release", "view", stdout=said)
    with pytest.raises((PackageError, NetworkError)) as caught:
        publish_release("v1.0.0")
    assert caught.value.code == reference
    assert len(programs.calls) == 1


def tagged(programs: FakePrograms, kind: str, *, verified: bool = False) -> None:
    """Have GitHub know a tag, annotated (`tag`) or not (`commit`)."""
    answer = {"ref": "refs/tags/v1.0.0", "object": {"type": kind, "sha": "a" * 40}}
    programs.answer("gh", "api", "repos/{owner}/{repo}/git/ref/tags/v1.0.0", stdout=json.dumps(answer))
    verification = {"verification": {"verified": verified, "reason": "valid" if verified else "unknown_key"}}
    programs.answer("gh", "api", f"repos/{{owner}}/{{repo}}/git/tags/{'a' * 40}", stdout=json.dumps(verification))


def test_the_tag_of_a_version_is_signed(programs: FakePrograms) -> None:
    tagged(programs, "tag", verified=True)
    require_signed("v1.0.0", "1.0.0")


@pytest.mark.parametrize(("kind", "why"), [("tag", "unknown_key"), ("commit", "it is not annotated")])
def test_a_tag_that_nobody_signed_is_refused(programs: FakePrograms, kind: str, why: str) -> None:
    tagged(programs, kind)
    error = refused(UsageError, require_signed, "v1.0.0", "1.0.0")
    assert (error.code, error.where, error.why) == ("tag-not-signed", "v1.0.0", why)


@pytest.mark.parametrize(("tag", "version"), [("v1", "1"), ("1.0.0", "1.0.0"), ("v1.0.1", "1.0.0"), ("v1.0", "1.0.0")])
def test_a_tag_of_another_version_is_refused(programs: FakePrograms, tag: str, version: str) -> None:
    """GitHub is not asked."""
    assert refused(UsageError, require_signed, tag, version).code == "bad-tag"
    assert programs.calls == []
