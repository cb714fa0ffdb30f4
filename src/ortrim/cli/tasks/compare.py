"""`invoke compare`: the same models in other inference engines."""

from collections.abc import Sequence
from pathlib import Path

from ortrim.base.console import Console
from ortrim.base.json import to_json
from ortrim.bench.engines import ENGINES, USUAL, engine_tables
from ortrim.cli.options import CASE_HELP, GivenModels, count_option, request_from
from ortrim.cli.task import task
from ortrim.errors import bad_option


@task(
    help={
        "engine": f"one of {', '.join(ENGINES)}; may be repeated (default: {', '.join(USUAL)})",
        "only": "model by its name, may be repeated (default: all)",
        "case": f"{CASE_HELP}; a NAME alone: only the case of this name",
        "library": "trimmed library to compare (default: the buildspec's finished build)",
        "rounds": "how often each engine is run for each case (default: 5)",
        "threads": "threads of each engine (default: 1)",
    },
)
def compare(
    console: Console,
    models: GivenModels,
    engine: Sequence[str],
    only: Sequence[str],
    library: str = "",
    rounds: str = "",
    threads: str = "",
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Run models in other inference engines as well."""
    from ortrim.bench.comparison import ROUNDS, Compared, compare_engines, write_comparison  # noqa: PLC0415

    names, models = models.required("compare").chosen_cases()
    compared = Compared(
        engines=tuple(engine),
        models=tuple(only),
        cases=names,
        library=library_option(library),
        rounds=count_option(rounds, "rounds") or ROUNDS,
        threads=count_option(threads, "threads") or 1,
        request=models.request(request_from(output=output), console),
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
