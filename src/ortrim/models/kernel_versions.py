"""The opsets of the CPU's kernels in the full runtime, which are those of a trimmed one of the same version."""

from collections.abc import Iterable
from pathlib import Path

from ortrim.models.scripts import run_script
from ortrim.tools.full_runtime import FullRuntime

Key = tuple[str, str]


def kernel_versions(
    keys: Iterable[Key], *, runtime: FullRuntime, folder: Path
) -> dict[Key, tuple[tuple[int, int], ...]]:
    """Return the first and last opset of each kernel of operators, given and keyed by domain and name.

    Works in a folder below `folder`. Raises `ConvertError` (`converter-crashed`) or `ToolError`.
    """
    wanted = set(keys)
    found: dict[Key, set[tuple[int, int]]] = {key: set() for key in wanted}
    for name in sorted({name for _, name in wanted}):
        answer = run_script(runtime, "kernels.py", {"operator": name}, folder=folder, where=name)
        for kernel in answer["kernels"]:
            first, last = kernel["opsets"]
            found.get((kernel["domain"], name), set()).add((first, last))
    return {key: tuple(sorted(ranges)) for key, ranges in found.items()}
