"""The workflows' texts: up to date, and without what must never stand in one; the real tools read their structure."""

import re
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from ortrim.cli.namespace import namespace_for
from ortrim.errors import DiagnosticGroup, SourcesError, StorageError, UsageError
from ortrim.github import workflow_files
from ortrim.github.fetch.offers import PLAIN
from ortrim.pins.shipped import read_action_pins
from refusing import refused

ROOT = Path(__file__).parents[3]
TEXTS = workflow_files.render_workflows(workflow_files.released_specs(ROOT / "buildspecs"))
ACTIONS = {name: (ROOT / name).read_text() for name in ("action.yml", ".github/actions/setup/action.yml")}
"""What other repositories and build.yml use, as it is committed."""


def values_of(key: str) -> list[tuple[str, str]]:
    found = re.compile(rf"^ +(?:- )?{key}: '?(.*?)'?$", re.MULTILINE)
    return [(name, value) for name, text in (TEXTS | ACTIONS).items() for value in found.findall(text)]


RUNS = values_of("run")
USES = values_of("uses")


def test_the_committed_files_are_up_to_date() -> None:
    """What is in .github/workflows is what the templates and the pins come to, and there is nothing else."""
    workflow_files.require_rendered(TEXTS, ROOT / workflow_files.FOLDER)
    assert sorted(path.name for path in (ROOT / workflow_files.FOLDER).iterdir()) == sorted(
        f"{name}.yml" for name in workflow_files.NAMES
    )


@pytest.mark.parametrize(("name", "run"), RUNS)
def test_a_step_calls_one_task(name: str, run: str) -> None:
    """No logic in YAML: one command of this repository, without a second line, a pipe, or an expression of GitHub's.

    Where other repositories are checked out, it is that of ortrim's own checkout: an action's, or the one on PATH.
    """
    words = r'(?: --?[a-z-]+| "\$[A-Z]+"| [a-z0-9./:_-]+)*'
    above = {"build.yml": "", "action.yml": "", ".github/actions/setup/action.yml": "/../../.."}
    checkout = rf"\./bootstrap (invoke|pytest) [a-z._/-]+{words}|\.ci/(run|fresh|wheel)|python \.ci/windows"
    own = rf'"\$GITHUB_ACTION_PATH{re.escape(above.get(name, ""))}/bootstrap" ' if name in ACTIONS else ""
    assert re.fullmatch(rf"{own}ortrim ci\.[a-z]+{words}" if name in above else checkout, run), name
    assert "${{" not in run


@pytest.mark.parametrize("run", [run for _, run in RUNS if re.search("bootstrap invoke|ortrim ci", run)])
def test_a_step_calls_a_task_that_exists(run: str) -> None:
    """With options that it has."""
    name, *words = re.split(r"bootstrap invoke |ortrim ", run)[1].split()
    task = namespace_for((name,))[name]
    known = {flag for argument in task.get_arguments() for flag in argument.names}
    assert {word.removeprefix("--") for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize(("name", "uses"), USES)
def test_an_action_is_named_by_its_commit(name: str, uses: str) -> None:
    """With the tag as a comment; what is of this repository is of the same commit, whoever calls."""
    own = r"\$/\.github/(workflows/build\.yml|actions/setup)"
    assert re.fullmatch(rf"[\w.-]+/[\w./-]+@[0-9a-f]{{40}} # v\d+\.\d+\.\d+|{own}", uses), name


def test_an_image_is_named_by_its_digest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the tag as a comment; one that is not pinned cannot be rendered."""
    images = re.findall(r"^ +image: (.*)$", TEXTS["ci.yml"], re.MULTILINE)
    assert [re.sub("[0-9a-f]{64}", "", image) for image in images] == [f"debian@sha256: # debian:{n}" for n in (12, 13)]
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    (tmp_path / "images.toml").write_text('[bases.debian-12]\nreference = "debian:12"\n')
    assert refused(SourcesError, workflow_files.render_workflows, ()).code == "image-not-pinned"


@pytest.mark.parametrize("name", TEXTS)
def test_a_workflow_may_nothing_by_default(name: str) -> None:
    """Each job says what it may, and each permission what it is for."""
    text = TEXTS[name]
    assert "\npermissions: {}\n" in text
    lines = re.findall(r"^      ([a-z-]+: (?:read|write))(.*)$", text, re.MULTILINE)
    assert lines
    assert all(comment.startswith(" # ") for _, comment in lines)


@pytest.mark.parametrize("name", TEXTS)
def test_no_run_is_dropped_for_another(name: str) -> None:
    """The group has the run's own number in it, and nothing in progress is cancelled."""
    (group,) = re.findall(r"^concurrency:\n  group: (.*)\n  cancel-in-progress: false$", TEXTS[name], re.MULTILINE)
    assert "${{ github.run_id }}" in group


def test_no_checkout_keeps_its_token() -> None:
    """Steps that follow find no token in the repository's settings."""
    for text in TEXTS.values():
        assert text.count("uses: actions/checkout@") == text.count("persist-credentials: false")


def test_attested_builds_use_no_cache() -> None:
    """What another run left has no part in what is attested or released; what a named commit leaves is not kept."""
    steps = re.split(r"^      - ", TEXTS["build.yml"], flags=re.MULTILINE)
    cached = [step for step in steps if "actions/cache" in step]
    assert len(cached) == 2
    assert all("if: ${{ !inputs.attest && !inputs.ref && github.ref_type != 'tag' }}" in step for step in cached)
    assert "actions/cache" not in TEXTS["release.yml"]


def run_name(**given: str) -> str:
    asked = SimpleNamespace(**({each.name: "" for each in workflow_files.INPUTS} | given))
    known = {"inputs": asked, "github": SimpleNamespace(run_id="77"), "format": str.format}
    (text,) = re.findall(r"^run-name: (.*)$", TEXTS["build.yml"], re.MULTILINE)

    def evaluated(found: re.Match[str]) -> str:
        return str(eval(found[1].replace("&&", "and").replace("||", "or"), {}, known))  # noqa: S307 - our own text

    return re.sub(r"\$\{\{ (.*?) \}\}", evaluated, text)


def test_a_run_s_name_says_what_it_is() -> None:
    """`invoke fetch --latest` takes runs of the repository's own state alone, and knows them by their names."""
    plain = run_name(target="linux-*,android")
    marked = run_name(target="*", correlation_id="3f-a")
    assert (plain, marked) == ("build linux-*,android [77]", "build * [3f-a]")
    assert PLAIN.fullmatch(plain)
    assert PLAIN.fullmatch(marked)
    other = run_name(target="*", ref="v1.0")
    assert other == "build * of v1.0 [77]"
    assert not PLAIN.fullmatch(other)


@pytest.mark.parametrize("target", ["", "*", "a b", "x] [1]", "* [7] of", "x\n"])
@pytest.mark.parametrize("ref", ["x", "[1]", "] [", " ", "a\nb"])
def test_no_input_hides_that_a_run_is_of_another_ref(target: str, ref: str) -> None:
    """Whatever somebody dispatches with."""
    assert not PLAIN.fullmatch(run_name(target=target, ref=ref))


def test_a_release_builds_every_buildspec() -> None:
    """In order of their names; none is forgotten when one is added."""
    assert re.findall(r"^          - (buildspecs/\S+)$", TEXTS["release.yml"], re.MULTILINE) == [
        f"buildspecs/{path.name}"
        for path in sorted((ROOT / "buildspecs").glob("*.toml"))
        if ".hot" not in path.suffixes
    ]


def test_hot_operators_beside_a_buildspec_are_no_buildspec(tmp_path: Path) -> None:
    """Their file is TOML, too, and a release does not build it."""
    for name in ("vad.toml", "vad.hot.toml", "kws.toml"):
        (tmp_path / name).touch()
    assert workflow_files.released_specs(tmp_path) == (f"{tmp_path.name}/kws.toml", f"{tmp_path.name}/vad.toml")


def test_an_action_without_commit_cannot_be_rendered() -> None:
    pins = read_action_pins('[actions."actions/checkout"]\ntag = "v7.0.1"\n')
    assert refused(SourcesError, workflow_files.render_workflows, (), pins).code == "action-not-pinned"


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    """A second rendering writes nothing; a file that somebody changed is put right."""
    folder = tmp_path / "workflows"
    assert len(workflow_files.write_workflows(TEXTS, folder)) == len(workflow_files.NAMES)
    assert workflow_files.write_workflows(TEXTS, folder) == ()
    (folder / "ci.yml").write_text("name: mine\n")
    assert workflow_files.write_workflows(TEXTS, folder) == (folder / "ci.yml",)
    workflow_files.require_rendered(TEXTS, folder)


def test_a_file_that_was_changed_by_hand_is_reported(tmp_path: Path) -> None:
    workflow_files.write_workflows(TEXTS, tmp_path)
    (tmp_path / "ci.yml").write_bytes(b"\xff")
    error = refused(UsageError, workflow_files.require_rendered, TEXTS, tmp_path)
    assert error.code == "workflow-outdated"
    assert error.where == str(tmp_path / "ci.yml")
    (tmp_path / "build.yml").unlink()
    group = refused(DiagnosticGroup, workflow_files.require_rendered, TEXTS, tmp_path)
    assert [each.where for each in group.diagnostics] == [str(tmp_path / "build.yml"), str(tmp_path / "ci.yml")]


def test_a_folder_that_is_in_the_way_is_reported(tmp_path: Path) -> None:
    """Nothing is half written."""
    (tmp_path / "workflows").write_text("a file")
    assert (
        refused(StorageError, workflow_files.write_workflows, TEXTS, tmp_path / "workflows").code == "path-in-the-way"
    )
    assert (tmp_path / "workflows").read_text() == "a file"


def test_what_is_committed_can_be_run() -> None:
    """CI's own script is executable, and what actions start."""
    for name in (".ci/run", "bootstrap", ".github/actions/setup/../../../bootstrap"):
        assert (ROOT / name).stat().st_mode & stat.S_IXUSR
