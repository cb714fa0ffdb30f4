"""Models on a command line that have no buildspec: the options that go with them, and the buildspec made of both."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ortrim.base.console import Console
from ortrim.base.files import require_writable, write_if_changed
from ortrim.cli.options import profile_named
from ortrim.errors import UsageError, bad_option
from ortrim.pipeline.planned import possible_targets
from ortrim.pipeline.request import Request, is_buildspec
from ortrim.spec.buildspec import CaseSpec, InputSpec, LoadedSpec
from ortrim.spec.load import name_from
from ortrim.spec.values import NAME

if TYPE_CHECKING:
    from ortrim.pipeline.first_spec import FirstSpec

WORDS: Final = "files, folders, patterns, addresses or wheel:NAME==VERSION/MEMBER"
MODELS_OR_BUILDSPECS: Final = f"models: {WORDS}; or buildspecs, for their models; also without --model"
MODEL_HELP: Final[Mapping[str, str]] = {
    "model": f"models without a buildspec: {WORDS}; also without --model, as is a buildspec",
    "case": "a test case of your own for them, as NAME:INPUT=1x3x224x224; may be repeated (default: cases are found)",
    "data": "recorded inputs for them, an .npz file keyed by input name",
    "ort-version": "version of ONNX Runtime for them, such as 1.24.4 or newest (default: the proved one)",
}


CASE: Final = "write --case NAME:INPUT=1x3x224x224"
SIZE: Final = re.compile(r"[0-9]{1,9}")


def require_some(words: Sequence[str] | None, task: str) -> tuple[str, ...]:
    """Return the models that a task is given. Raises `UsageError` (`no-model`) when there are none."""
    if words:
        return tuple(words)
    raise UsageError("no-model", "no model is named", hint=f"name one: ortrim {task} MODEL.onnx")


@dataclass(frozen=True, kw_only=True)
class GivenModels:
    """What a command line says of models without a buildspec, in the options' own words."""

    models: Sequence[str]
    cases: Sequence[str] = ()
    data: str | None = None
    version: str | None = None
    profile: str | None = None

    def request(self, spec: str | None, request: Request, console: Console, *, to_run: bool = False) -> Request:
        """Return a request with the buildspec to use: the one named, or one made of the models, below the output.

        A request that is impossible, whatever the models' cases are, is refused before they are looked for. Raises
        `UsageError` (`bad-option`) and as `first_spec` and `possible_targets` do.
        """
        file = self._spec(spec, request, console, to_run=to_run)
        return request if file is None else replace(request, spec=file)

    def _spec(self, spec: str | None, request: Request, console: Console, *, to_run: bool) -> Path | None:
        """Return the buildspec; None if nothing is named."""
        output = request.output
        if spec is None and len(self.models) == 1 and is_buildspec(Path(self.models[0])):
            spec = self.models[0]
        elif spec is None and self.models:
            require_writable(output)
            made = self._made(None, console, lambda bare: possible_targets(bare, request, to_run=to_run))
            file = output / made.name / f"{made.name}.toml"
            write_if_changed(file, made.text(file.parent, console))
            console.note(f"{file}: the buildspec of these models, which ortrim writes; ortrim init makes one to edit")
            return file
        elif self.models:
            raise bad_option("spec", str(spec), "give models or one buildspec, not both")
        for option, words in (("case", self.cases), ("data", self.data), ("ort-version", self.version)):
            if words:
                raise bad_option(option, str(words), "it goes with models; a buildspec says this itself")
        return None if spec is None else Path(spec)

    def draft(self, folder: Path, target: str | None, console: Console) -> tuple[Path, str]:
        """Return the file of a buildspec for the models, in a folder that has none yet, and its text.

        Raises `UsageError` (`spec-exists`, `no-model`, `bad-option`) and as `first_spec` does.
        """
        require_some(self.models, "init")
        require_writable(folder)
        made = self._made(target, console)
        file = folder / f"{made.name}.toml"
        if file.exists():
            hint = "give another folder with --output, or remove the file"
            raise UsageError("spec-exists", "there is a file of this name already", where=str(file), hint=hint)
        return file, made.text(folder, console)

    def _made(
        self, target: str | None, console: Console, check: Callable[[LoadedSpec], object] = lambda _: None
    ) -> "FirstSpec":
        from ortrim.pipeline.first_spec import FirstChoices, first_spec  # noqa: PLC0415 - it imports onnx

        cases = tuple(_case(name, words) for name, words in self._words_by_case().items())
        data = () if self.data is None else (_recorded(Path(self.data)),)
        profile = None if self.profile is None else profile_named(self.profile)
        choices = FirstChoices(version=self.version, profile=profile, cases=(*cases, *data), target=target)
        return first_spec(self.models, choices, console, check)

    def _words_by_case(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for word in self.cases:
            name, colon, rest = word.partition(":")
            if not (colon and re.fullmatch(NAME, name)):
                raise bad_option("case", word[:100], CASE)
            found.setdefault(name, []).append(rest)
        return found


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
