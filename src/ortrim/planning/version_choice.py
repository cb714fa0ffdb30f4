"""Which ONNX Runtime models without a buildspec get: the newest proved one that reads them and can be had."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from ortrim.compiling.upstream_arguments import optional_sources
from ortrim.errors import ModelError
from ortrim.models.models import ModelFacts
from ortrim.models.onnx_files import check_limits, facts_of, read_onnx, unsupported
from ortrim.models.prepare import files_named
from ortrim.pins.runtime import default_version, proofs, runtime_pins, supported_versions
from ortrim.planning.request import host_target
from ortrim.sources.sources import why_absent


def chosen_version(
    models: Mapping[str, ModelFacts], targets: Sequence[str], note: Callable[[str], None], *, last: str = ""
) -> str:
    """Return the version for models, by their places, and for targets; `note` is told which it is, and why.

    That of the `last` build stays if it is proved for the targets and reads the models: a plan does not change with the
    network. Else it is the newest that is proved for the targets, reads every model, and has sources that can be had
    here; the default is taken for all targets and its sources are not asked for. Raises `ModelError` as `check_limits`
    does, with what stands in the way of each.
    """
    proved = proofs()
    optional = optional_sources(())
    obstacles: dict[str, str] = {}
    for version in sorted(proved, key=lambda each: each != last):
        why = _unread(version, models)
        if not why and version != default_version():
            unproved = [target for target in targets if target not in proved[version].targets]
            absent = "" if unproved or version == last else why_absent(runtime_pins(version), optional)
            why = f"not proved for {', '.join(unproved)}" if unproved else absent and f"not to be had: {absent}"
        if not why:
            kept = ", as in the last build" if version == last else ""
            newer = "".join(f"; {words}" for words in _in_the_way(obstacles))
            proof = proved[version]
            note(f"ONNX Runtime {version}{kept}, proved by {proof.by} on {proof.on:%-d %B %Y}{newer}")
            return version
        obstacles[version] = why
    for where, facts in models.items():
        try:
            check_limits(facts, default_version(), where)
        except ModelError as error:
            error.why = "\n".join(_in_the_way(obstacles))
            raise
    return default_version()


def _in_the_way(obstacles: Mapping[str, str]) -> Iterator[str]:
    """Say what stands in the way of versions, of those with one reason once."""
    for why in dict.fromkeys(obstacles.values()):
        versions = [version for version, own in obstacles.items() if own == why]
        yield f"{', '.join(versions)} {'is' if len(versions) == 1 else 'are'} {why}"


def version_to_judge(word: str) -> str:
    """Return the version for judging the models that a word names: the chosen one, the default if none reads them."""
    facts, host = {}, host_target()
    for name, file in files_named(word, supported_versions()[-1]):
        with suppress(ModelError):
            facts[name] = facts_of(read_onnx(file, name), sha256="", size_bytes=0, where=name)
    try:
        return chosen_version(facts, (host.identifier,) if host else (), lambda _: None)
    except ModelError:
        return default_version()


def _unread(version: str, models: Mapping[str, ModelFacts]) -> str:
    found = (words for facts in models.values() for _, _, words, _ in unsupported(facts, version))
    return next((f"not enough: {words.partition(';')[0]}" for words in found), "")
