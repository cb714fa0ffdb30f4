"""Files as a program's streams: for what is not text, or must not be a pipe."""

from collections.abc import Sequence
from pathlib import Path

from ortrim.tools.command import Completed


def redirected(
    words: Sequence[str], *, given: Path | None = None, printed: Path | None = None, complaints: Path | None = None
) -> tuple[str, ...]:
    """Return the command line that runs `words` with these files as standard input, output and error.

    The shell's text is made of fixed parts alone; paths and words reach it as arguments.
    """
    files = [(sign, path) for sign, path in (("<", given), (">", printed), ("2>", complaints)) if path is not None]
    if not files:
        return tuple(words)
    take = "".join(f"f{index}=$1; shift; " for index in range(len(files)))
    script = f'{take}exec "$@" ' + " ".join(f'{sign}"$f{index}"' for index, (sign, _) in enumerate(files))
    return ("/bin/sh", "-c", script, "sh", *(str(path) for _, path in files), *words)


def cut_tail(path: Path, start: bytes, completed: Completed, longest: int = 200) -> Completed:
    """Move what a file has from the last `start` on, within its last `longest` bytes, to a program's `stdout`."""
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        begin = max(0, size - longest)
        file.seek(begin)
        tail = file.read()
        at = tail.rfind(start)
        if at < 0:
            return completed
        file.truncate(begin + at)
    return Completed(
        argv=completed.argv,
        returncode=completed.returncode,
        stdout=tail[at:].decode("utf-8", errors="replace"),
        stderr=completed.stderr,
    )
