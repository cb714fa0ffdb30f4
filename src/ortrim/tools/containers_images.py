"""Images that ortrim builds: there, or made, with nothing left of an attempt that was killed."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ortrim.errors import NetworkError
from ortrim.tools.command import run, stream
from ortrim.tools.containers import ImageBuild
from ortrim.tools.containers_choice import ANSWER_SECONDS, UsableEngine
from ortrim.tools.containers_errors import engine_error, proxies_in, without_credentials
from ortrim.tools.containers_owned import owner

LAST_LINES: Final = 200
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\b")


def image_exists(usable: UsableEngine, tag: str) -> bool:
    """Whether the engine has an image."""
    return run(usable.engine.image_exists(tag), timeout_seconds=ANSWER_SECONDS).returncode == 0


def build_image(usable: UsableEngine, image: ImageBuild, temporary: Path, on_line: Callable[[str], None]) -> None:
    """Build an image. The caller holds the lock of its tag.

    The engine's temporary files go to `temporary`. Its steps see the user's proxies; `on_line` gets what it prints
    without their credentials. Raises what `engine_error` returns. If ortrim is killed, the engine is told to stop.
    """
    _remove_unfinished(usable, image.tag)
    lines: list[str] = []

    def take(line: str) -> None:
        lines.append(line)
        on_line(without_credentials(line, os.environ))

    words = (*_ending_with_us(), *usable.engine.build(image, proxies_in(os.environ)))
    code = stream(words, take, environment={**os.environ, "TMPDIR": str(temporary)})
    if code != 0:
        raise engine_error(usable.name, f"build {image.tag}", "\n".join(lines[-LAST_LINES:]), os.environ)


def pulled_digest(usable: UsableEngine, reference: str) -> str:
    """Fetch an image by its tag and return the digest (`sha256:...`) that its registry gives it.

    Raises what `engine_error` returns, or `NetworkError` `image-without-digest`.
    """
    for words in (usable.engine.pull(reference), usable.engine.digest(reference)):
        done = run(words)
        if done.returncode != 0:
            raise engine_error(usable.name, f"pull {reference}", done.stdout + done.stderr, os.environ)
    found = DIGEST.search(done.stdout)
    if found is None:
        what = "the registry gives it no digest, so that nobody could fetch the same again"
        raise NetworkError("image-without-digest", what, where=reference, why=done.stdout.strip()[:300])
    return found[0]


def _remove_unfinished(usable: UsableEngine, tag: str) -> None:
    """Remove what a killed build of this image left; the label, which comes first in its file, tells whose it is."""
    words = usable.engine.list_unfinished()
    listed = run(words, timeout_seconds=ANSWER_SECONDS).stdout if words else ""
    for name in filter(None, map(str.strip, listed.splitlines())):
        described = run(usable.engine.inspect(name), timeout_seconds=ANSWER_SECONDS).stdout
        if image_label(tag).replace('"', r"\"") in described:
            run(usable.engine.remove(name), timeout_seconds=ANSWER_SECONDS)


def image_label(tag: str) -> str:
    """Return the instruction that comes first in an image's file, and tells what a killed build of ours has left."""
    return f'LABEL ortrim.image="{tag}" ortrim.builder="{owner()}"'


def _ending_with_us() -> tuple[str, ...]:
    """Return the words that end a program when this one is killed: util-linux's, where it is installed."""
    return ("setpriv", "--pdeathsig", "TERM") if shutil.which("setpriv") else ()
