"""Leaving kernels out of a library that nothing in it can reach: link, look, and link again until nothing changes."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from ortrim.binaries.link_map import read_link_map
from ortrim.core.kernel_table import CONSTRUCTORS, kernel_table
from ortrim.core.plan import BuildJob, digest
from ortrim.core.superseded_kernels import superseded_kernels
from ortrim.core.unreached_kernels import LinkedObject, reached_kernels, table_kernels
from ortrim.executors.compilation import Outcome
from ortrim.executors.paths import JobPaths
from ortrim.executors.tree_objects import read_objects
from ortrim.executors.workspace import UNREACHED
from ortrim.platforms.upstream import WIDE_VECTORS
from ortrim.storage.files import storage_errors, write_if_changed

SYMBOL: Final = "ortrim_unreached"
HOOKS: Final = "${hooks}/"
MLAS: Final = "${sources}/onnxruntime/onnxruntime/core/mlas/lib/"
DONE: Final = "unreached.job"
"""Names the job for which the script is complete."""
UNTOLD: Final = "which kernels nothing reaches cannot be told: all are kept"
LOOKS: Final = 8
"""How often a library is looked at; the second look finds nothing new unless kernels ask for kernels."""


def leave_out_unreached(
    paths: JobPaths, job: BuildJob, linked: Outcome, link: Callable[[], Outcome], on_note: Callable[[str], None]
) -> Outcome:
    """Link a library again without the kernels that nothing in it reaches; `linked` is the link before.

    The first link leaves all of them out, and each later one takes back what turned out to be asked for, so that what
    is left depends on nothing but the job. A link that fails is the outcome: were all kernels kept then, a machine
    short of memory would give another library of the same digest. Raises as `read_objects` and `read_link_map` do.
    """
    texts, key = mlas_texts(paths), digest(job)
    table = kernel_table(texts, superseded_kernels(texts.get(CONSTRUCTORS[0], ""), job.cpu))
    if not table.entries:
        on_note(UNTOLD)
        return linked
    done = paths.hooks / DONE
    if not _is_done(done, key):
        linked = _link_without(table_kernels(table, _linked_objects(paths)), paths, link)
    for _ in range(LOOKS):
        left_out = read_script(paths)
        if linked.failed:
            return linked
        reached = reached_kernels(left_out, table, _linked_objects(paths))
        if not reached:
            write_if_changed(done, key)
            return linked
        linked = _link_without(left_out - reached, paths, link)
    on_note(UNTOLD)
    return _link_without(frozenset(), paths, link)


def _is_done(done: Path, key: str) -> bool:
    """Whether the last link is what a job came to; if not, it is no longer known what the last link is."""
    with storage_errors(done):
        if done.exists() and done.read_text(encoding="utf-8") == key:
            return True
        done.unlink(missing_ok=True)
        return False


def _link_without(symbols: frozenset[str], paths: JobPaths, link: Callable[[], Outcome]) -> Outcome:
    write_script(paths, symbols)
    return link()


def write_script(paths: JobPaths, symbols: Iterable[str]) -> None:
    """Say which symbols the next link is to leave out."""
    lines = (f'"{symbol}" = {SYMBOL} + {number};\n' for number, symbol in enumerate(sorted(symbols)))
    write_if_changed(paths.hooks / UNREACHED, "".join(lines))


def read_script(paths: JobPaths) -> frozenset[str]:
    """Return the symbols that the last link left out."""
    script = paths.hooks / UNREACHED
    with storage_errors(script):
        return frozenset(line.split('"')[1] for line in script.read_text(encoding="utf-8").splitlines())


def mlas_texts(paths: JobPaths) -> dict[str, str]:
    """Return the texts of MLAS's sources and headers, and of our own constructor, by base name.

    Those of the same name are joined.
    """
    texts: dict[str, str] = {}
    folder = Path(paths.resolve(MLAS))
    with storage_errors(folder):
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            texts[file.name] = texts.get(file.name, "") + file.read_text(encoding="utf-8", errors="replace")
        return texts | {WIDE_VECTORS: (paths.hooks / WIDE_VECTORS).read_text(encoding="utf-8")}


def _linked_objects(paths: JobPaths) -> tuple[LinkedObject, ...]:
    live = _files_with_code(paths)
    return tuple(
        LinkedObject(source=name, defined=each.defined, undefined=each.undefined, live=f"{name}.o" in live)
        for each in read_objects(paths, (MLAS, HOOKS))
        for name in [each.unit.rsplit("/", 1)[1]]
    )


def _files_with_code(paths: JobPaths) -> frozenset[str]:
    """Return the base names of the objects of which the last link took code, those in archives, too."""
    return frozenset(
        inner.file.removesuffix(")").rsplit("/", 1)[-1].rsplit("(", 1)[-1]
        for output in read_link_map(paths.link_map)
        for inner in output.inputs
        if inner.section.startswith(".text") and inner.size_bytes
    )
