"""`invoke compare`: the same models in other inference engines."""

from collections.abc import Sequence
from pathlib import Path

from invoke.context import Context

from ortrim.base.json import to_json
from ortrim.cli.boundary import boundary
from ortrim.cli.given_models import MODEL_HELP, GivenModels, require_some
from ortrim.cli.options import count_option, help_for, request_from
from ortrim.cli.task import task
from ortrim.engines.catalogue import ENGINES, USUAL
from ortrim.engines.report import engine_tables
from ortrim.errors import bad_option


@task(
    positional=[],
    iterable=["model", "engine", "only", "case"],
    help={
        "model": MODEL_HELP["model"],
        "engine": f"one of {', '.join(ENGINES)}; may be repeated (default: {', '.join(USUAL)})",
        "only": "model by its name, may be repeated (default: all)",
        "case": "case of the models, may be repeated (default: all)",
        "library": "trimmed library to compare (default: the buildspec's finished build)",
        "rounds": "how often each engine is run for each case (default: 5)",
        "threads": "threads of each engine (default: 1)",
        **help_for("profile", "output", "json"),
    },
)
def compare(
    _context: Context,
    engine: Sequence[str],
    only: Sequence[str],
    case: Sequence[str],
    model: list[str] | None = None,
    library: str = "",
    rounds: str = "",
    threads: str = "",
    profile: str | None = None,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Run models in other inference engines as well."""
    from ortrim.engines.comparison import ROUNDS, Compared, compare_engines, write_comparison  # noqa: PLC0415

    with boundary(json_mode=json) as console:
        given = GivenModels(models=require_some(model, "compare"), profile=profile)
        compared = Compared(
            engines=tuple(engine),
            models=tuple(only),
            cases=tuple(case),
            library=library_option(library),
            rounds=count_option(rounds, "rounds") or ROUNDS,
            threads=count_option(threads, "threads") or 1,
            request=given.request(None, request_from(None, profile=profile, output=output), console),
        )
        comparison = compare_engines(compared, console)
        folder = write_comparison(comparison, compared.request.output)
        if json:
            console.result(to_json(comparison).rstrip())
            return
        console.render(engine_tables(comparison))
        console.note(f"written to {folder}")


def library_option(word: str) -> Path | None:
    """Return the library that is meant, None for an empty word. Raises `UsageError` (`bad-option`)."""
    if word and not Path(word).is_file():
        raise bad_option("library", word, "give the path of a library")
    return Path(word).absolute() if word else None
