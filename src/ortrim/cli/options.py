"""The command line's options, checked: one by one, those that say how to verify or where GitHub is, and the models."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, get_args

from ortrim.base.console import Console
from ortrim.base.files import require_writable, shipped_folder, write_if_changed
from ortrim.base.processor_cores import MOST_CORES, read_cores
from ortrim.buildspec.build_options import PROFILE_NAMES, ProfileName
from ortrim.buildspec.buildspec import CaseSpec, ExtraPackage, InputSpec, LoadedSpec
from ortrim.buildspec.load import name_from
from ortrim.buildspec.problems import NAME, nearest
from ortrim.buildspec.step_specs import WITHOUT_KEYS
from ortrim.buildspec.targets import selected
from ortrim.cli.namespace import is_file_like, unknown_word
from ortrim.cli.task import DEMO, HELP, PROFILES_IN_WORDS, option
from ortrim.compiling.container_engines import ContainerOptions, engine_named
from ortrim.compiling.containers import parse_flags, parse_mounts
from ortrim.errors import SpecError, UsageError, bad_option
from ortrim.pins.runtime import exact_version, known_version
from ortrim.planning.request import Request, is_buildspec, load
from ortrim.report.write import JSON_NAME

if TYPE_CHECKING:
    from ortrim.github.client import Remote
    from ortrim.planning.first_spec import FirstSpec

LONGEST: Final = 200
Name = TypeVar("Name", bound=str)


def run_name(word: str) -> str:
    """Return what identifies the run that made the models."""
    if len(word) <= LONGEST and word.isprintable():
        return word
    hint = f"give at most {LONGEST} printable characters"
    raise UsageError("bad-option", "this cannot name a training run", where="--training-run", hint=hint)


@dataclass(frozen=True, kw_only=True)
class Verifying:
    """How to verify, in the options' own words."""

    device: Sequence[str] | None = option(
        "device to verify on, may be repeated: host, qemu-user[:CPU], qemu-system[:CPU][@MIB], macho, adb[:SERIAL], "
        "ssh:[USER@]HOST[:PORT], or a device farm's: firebase:, devicefarm: (default: the host, else the "
        "emulators)",
    )
    cores: str | None = option(HELP["cores"])
    least_memory: bool = option(
        "find the least memory in which each model runs, on each qemu-system device (about ten starts)", default=False
    )
    trace: bool = option(HELP["trace"], default=False)
    training_run: str = option(HELP["training-run"], "")


VERIFYING: Final = Verifying()


@dataclass(frozen=True, kw_only=True)
class RemoteOptions:
    """Where builds at GitHub are, in the options' own words."""

    repo: str | None = option(
        "GitHub's repository, as [host/]owner/name (default: GITHUB_REPOSITORY, or git's remote origin)"
    )
    ref: str | None = option(
        "branch or tag to run the workflow of (default: this branch if GitHub has it, else the default branch)"
    )
    workflow: str | None = option(
        "workflow that compiles: build.yml, or one of the repository that calls it (default: build.yml)"
    )
    token_file: str | None = option(
        "file with a GitHub token (default: GH_TOKEN, GITHUB_TOKEN, or what gh auth token says)"
    )

    def require_possible(self, executor: str) -> None:
        """Refuse them for another executor than `github`."""
        for name, word in vars(self).items():
            if word is not None and executor != "github":
                raise bad_option(name.replace("_", "-"), word, "it goes with --executor github")

    def remote(self) -> "Remote":
        """Return where runs are."""
        from ortrim.github.client import Remote  # noqa: PLC0415 - only builds at GitHub need it
        from ortrim.github.runs import WORKFLOW_FILE  # noqa: PLC0415
        from ortrim.github.workflow_files import REF  # noqa: PLC0415
        from ortrim.package.manifest import WORKFLOW  # noqa: PLC0415 - it imports what reads bills of materials

        if self.workflow is not None and not WORKFLOW_FILE.fullmatch(self.workflow):
            hint = "give the name of a file in .github/workflows, such as app.yml"
            raise bad_option("workflow", self.workflow[:100], hint)
        if self.ref is not None and not REF.fullmatch(self.ref):
            raise bad_option("ref", self.ref[:100], "give the name of a branch or a tag")
        return Remote(
            repository=self.repo or "",
            ref=self.ref or "",
            token_file=None if self.token_file is None else Path(self.token_file),
            workflow=self.workflow or WORKFLOW,
        )


def request_from(
    spec: str | None = None,
    *,
    target: str | None = None,
    profile: str | None = None,
    jobs: str | None = None,
    output: str = "artifacts",
    package: Sequence[str] = (),
    ndk: str | None = None,
    container: ContainerOptions | None = None,
    verifying: Verifying = VERIFYING,
) -> Request:
    """Return the request of a task."""
    return Request(
        spec=demo_spec() if spec is None else Path(spec),
        target=target,
        profile=profile_option(profile),
        jobs=None if jobs is None else whole_number(jobs, "jobs"),
        output=Path(output),
        packages=tuple(name_option("package", word, get_args(ExtraPackage), "wheel") for word in package),
        ndk=None if ndk is None else Path(ndk),
        container=container,
        devices=tuple(verifying.device or ()),
        cores=_cores(verifying.cores),
        least_memory=verifying.least_memory,
        trace=verifying.trace,
        training_run=run_name(verifying.training_run),
    )


def demo_spec() -> Path:
    """Return the demo buildspec: this folder's, or the one that ortrim ships."""
    own = Path("buildspecs") / DEMO
    return own if own.is_file() else shipped_folder("buildspecs") / DEMO


def container_options(
    executor: str, engine: str | None, mounts: Sequence[str], flags: Sequence[str]
) -> ContainerOptions | None:
    """Return how to build in a container, None for another executor."""
    match executor:
        case "container":
            if engine is not None:
                engine_named(engine)
            return ContainerOptions(engine=engine, mounts=parse_mounts(mounts), flags=parse_flags(flags))
        case "native" | "github":
            words = {"engine": engine, "mount": next(iter(mounts), None), "engine-flag": next(iter(flags), None)}
            for option, word in words.items():
                if word is not None:
                    raise bad_option(option, word, "it goes with --executor container")
            return None
        case _:
            raise bad_option("executor", executor, "choose native, container or github")


def name_option(option: str, word: str, names: Sequence[Name], in_words: str) -> Name:
    """Return which of the names an option says."""
    for name in names:
        if name == word:
            return name
    raise bad_option(option, word, f"choose {in_words}")


def profile_named(word: str) -> ProfileName:
    """Return the profile of a name."""
    return name_option("profile", word, PROFILE_NAMES, PROFILES_IN_WORDS)


def version_option(word: str | None) -> str | None:
    """Return the version of ONNX Runtime that `--ort-version` means. Raises `UsageError` for one that is not known."""
    if word is None:
        return None
    try:
        known_version(version := exact_version(word))
    except SpecError as error:
        raise UsageError(error.code, error.what, where="--ort-version", why=error.why, hint=error.hint) from error
    return version


def profile_option(word: str | None) -> ProfileName | None:
    """Return the profile of a name, None without one."""
    return None if word is None else profile_named(word)


def _cores(cores: str | None) -> tuple[int, ...]:
    found = () if cores is None else read_cores(cores)
    if cores is not None and not found:
        raise bad_option(
            "cores", cores[:100], f"give numbers and ranges from 0 to {MOST_CORES - 1}, such as 4-7 or 0,4-7"
        )
    return found


LARGEST_SIZE: Final = 2**31 - 1


def count_option(word: str, option: str) -> int | None:
    """Return the number that an option says, None for an empty word."""
    return whole_number(word, option, most=999_999) if word else None


def whole_number(word: str, option: str, *, least: int = 1, most: int = 9999) -> int:
    """Return the whole number that an option says."""
    if len(word) <= len(str(most)) and word.isascii() and word.isdecimal() and int(word) >= least:
        return int(word)
    raise bad_option(option, word, f"give a whole number from {least} to {most}")


def number_in(word: str) -> float:
    """Return the number that a word says, not-a-number for any other word."""
    try:
        return float(word)
    except ValueError:
        return math.nan


def size_option(word: str) -> tuple[str, int]:
    """Read the size of a dimension, `NAME=SIZE`."""
    name, _, size = word.rpartition("=")
    if not (name and len(size) <= 10 and size.isascii() and size.isdecimal() and int(size) <= LARGEST_SIZE):
        raise bad_option("dim", word[:100], "write --dim batch=1")
    return name, int(size)


WORDS: Final = "files, folders, patterns, addresses or wheel:NAME==VERSION/MEMBER"
MODELS_OR_BUILDSPECS: Final = f"models: {WORDS}; or buildspecs, for their models; also without --model"
MODEL_HELP: Final = f"models without a buildspec: {WORDS}; also without --model, as is a buildspec"
CASE_HELP: Final = (
    "a test case of your own for models, as NAME:INPUT=1x3x224x224; may be repeated (default: cases are found)"
)
CASE: Final = "write --case NAME:INPUT=1x3x224x224"
SIZE: Final = re.compile(r"[0-9]{1,9}")
NAMED_ELSEWHERE: Final = ("wheel:", "https://", "http://")
"""How words begin that name models which are no files here."""


@dataclass(frozen=True, kw_only=True)
class GivenModels:
    """What a command line says of the models of a task, in the options' own words; each field is an option.

    Words are models without a buildspec, or one buildspec, which `spec` may name as well.
    """

    model: Sequence[str] | None = option(MODEL_HELP)
    spec: str | None = option(f"a buildspec; also without --spec (default: the demo, {DEMO})")
    case: Sequence[str] | None = option(CASE_HELP)
    data: str | None = option("recorded inputs for models, an .npz file keyed by input name")
    ort_version: str | None = option(
        "version of ONNX Runtime, such as 1.24.4 or newest (default: the buildspec's, else the newest proved one "
        "that reads the models and can be had)"
    )
    profile: str | None = option(HELP["profile"])

    @property
    def words(self) -> tuple[str, ...]:
        """All that names models."""
        return (*(self.model or ()), *(() if self.spec is None else (self.spec,)))

    @property
    def in_options(self) -> bool:
        """Whether options say what a buildspec has keys for."""
        return bool(self.model) and self.spec is None and not any(is_buildspec(Path(word)) for word in self.words)

    def required(self, task: str) -> "GivenModels":
        """Return the same, for a task that has no default."""
        if self.words:
            return self
        raise UsageError("no-model", "no model is named", hint=f"name one: invoke {task} MODEL.onnx")

    def chosen_cases(self) -> tuple[tuple[str, ...], "GivenModels"]:
        """Return the cases that are named alone, of those that there are, and what is given but for these."""
        names = tuple(word for word in self.case or () if re.fullmatch(NAME, word))
        return names, replace(self, case=[word for word in self.case or () if word not in names])

    def request(self, request: Request, console: Console, *, to_run: bool = False) -> Request:
        """Return a request with the buildspec to use: the one named, or one made of the models, below the output.

        A request that is impossible, whatever the models' cases are, is refused before they are looked for. Raises
        `UsageError` (`bad-option`, `unknown-word`) and as `first_spec` and `possible_targets` do.
        """
        version = version_option(self.ort_version)
        request = replace(request, profile=profile_option(self.profile), version=version)
        if not self.in_options:
            return replace(request, spec=self._buildspec() or request.spec)
        from ortrim.planning.planned import possible_targets  # noqa: PLC0415 - it imports onnx, as `first_spec` does

        require_writable(request.output)
        bare = self.first_spec(console, request)
        possible_targets(bare.loaded(), request, to_run=to_run)
        file = request.output / bare.name / f"{bare.name}.toml"
        write_if_changed(file, bare.with_cases(console).text(file.parent, console))
        console.note(f"{file}: the buildspec of these models, which ortrim writes; invoke init makes one to edit")
        return replace(request, spec=file)

    def loaded(self, request: Request, console: Console, steps: Sequence[str] = ()) -> LoadedSpec:
        """Return the buildspec of a request, or one of the models, which no file has, with these steps."""
        for step in steps:
            if not self.in_options:
                raise bad_option("step", step[:100], "it goes with models; a buildspec says this itself")
            if step not in WITHOUT_KEYS:
                raise bad_option("step", step[:100], nearest(step, WITHOUT_KEYS, f"choose {', '.join(WITHOUT_KEYS)}"))
        if self.in_options:
            return self.first_spec(console, request, steps=steps).with_cases(console).loaded()
        return load(self.request(request, console))

    def draft(self, folder: Path, target: str | None, console: Console) -> tuple[Path, str]:
        """Return the file of a buildspec for the models, in a folder that has none yet, and its text."""
        require_writable(folder)
        made = self.required("init").first_spec(console, target=target).with_cases(console)
        file = folder / f"{made.name}.toml"
        if file.exists():
            hint = "give another folder with --output, or remove the file"
            raise UsageError("spec-exists", "there is a file of this name already", where=str(file), hint=hint)
        return file, made.text(folder, console)

    def first_spec(
        self, console: Console, request: Request | None = None, *, target: str | None = None, steps: Sequence[str] = ()
    ) -> "FirstSpec":
        """Return the buildspec of the models, with the user's own cases alone, and a target to write down."""
        from ortrim.planning import first_spec  # noqa: PLC0415 - it imports onnx

        require_named(self.words)
        choices = first_spec.FirstChoices(
            version=version_option(self.ort_version),
            profile=profile_option(self.profile),
            cases=self.cases(),
            target=target,
            built_for=request.target if request else None,
            steps=tuple(steps),
        )
        return first_spec.first_spec(self.words, choices, console, request.output if request else None)

    def cases(self) -> tuple[CaseSpec, ...]:
        """Return the user's own cases."""
        data = () if self.data is None else (_recorded(Path(self.data)),)
        return (*(_case(name, words) for name, words in self._words_by_case().items()), *data)

    def _buildspec(self) -> Path | None:
        """Return the one buildspec; None if nothing is named."""
        words = self.words
        if len(words) > 1:
            raise bad_option("spec", words[-1][:100], "give models or one buildspec, not both")
        for name, word in (("case", self.case), ("data", self.data)):
            if word:
                raise bad_option(name, str(word), "it goes with models; a buildspec says this itself")
        if self.model:
            require_named(self.model)
        return Path(words[0]) if words else None

    def _words_by_case(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for word in self.case or ():
            name, colon, rest = word.partition(":")
            if not (colon and re.fullmatch(NAME, name)):
                raise bad_option("case", word[:100], CASE)
            found.setdefault(name, []).append(rest)
        return found


def require_named(words: Sequence[str]) -> None:
    """Raise `UsageError` (`unknown-word`) for the first word that can name no model, nor a buildspec."""
    for word in words:
        path = Path(word)
        if word.startswith(NAMED_ELSEWHERE) or any(mark in word for mark in "*?[") or _exists(path):
            continue
        if path.parent != Path() and not _exists(path.parent):
            raise unknown_word(word, "there is no such file", f"there is no folder {str(path.parent)!r}")
        what = "there is no such file" if is_file_like(word) else "no model, buildspec or task has this name"
        raise unknown_word(word, what, f"name {WORDS}, or a buildspec")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def latest_folders(words: Sequence[str], output: Path, target: str | None) -> dict[str, Path]:
    """Return the folders of the latest reports, by target, of the build whose name is the one word.

    None for words that name anything else, of which files and folders come first. Raises `UsageError` (`unknown-word`)
    for a name that no build has.
    """
    (word, *more) = words or ("",)
    if more or not re.fullmatch(NAME, word) or _exists(Path(word)):
        return {}
    reports = sorted(output.glob(f"*/*/*/{JSON_NAME}"), key=lambda report: report.stat().st_mtime)
    found = {each.parent.name: each.parent for each in reports if each.parts[-4] == word}
    if not found and "." not in word:
        what, builds = f"no build in {output} has this name", {each.parts[-4] for each in reports}
        raise unknown_word(word, what, f"built are: {', '.join(sorted(builds)) or 'none'}", builds)
    wanted = found if target is None else {each for part in target.split(",") for each in selected(part, tuple(found))}
    return {name: found[name] for name in sorted(wanted)}


def _case(name: str, words: Sequence[str]) -> CaseSpec:
    shapes = {}
    for word in words:
        given, _, shape = word.rpartition("=")
        sizes = shape.split("x") if given else []
        if not sizes or any(not SIZE.fullmatch(size) for size in sizes):
            raise bad_option("case", word[:100], CASE)
        shapes[given] = InputSpec(shape=tuple(map(int, sizes)))
    return CaseSpec(name=name, inputs=shapes)


def _recorded(data: Path) -> CaseSpec:
    if not data.exists():
        raise bad_option("data", str(data)[:100], "give an .npz file, or a folder with input_0.pb")
    return CaseSpec(name=name_from(data) or "recorded", data=data.absolute())
