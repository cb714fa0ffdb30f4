"""Java's compiler: class files for Android, and the headers that a JNI library is compiled with."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.errors import BuildError, ToolError
from ortrim.tools.base import install_command
from ortrim.tools.command import run

RELEASE: Final = "8"
"""Java 8: the newest whose class files every D8 reads, the API that Android has from the start, and what upstream's own
Gradle files compile the same sources for on a desktop. A newer javac warns of its age, which `-options` silences."""
VERSION: Final = re.compile(r"javac (\d+[\w.+-]*)")
OLDEST: Final = 9
"""The first that knows `--release`."""
PACKAGE: Final = "default-jdk-headless"
ANSWER_SECONDS: Final = 30


@dataclass(frozen=True, kw_only=True)
class Jdk:
    """A Java development kit: its compiler, the compiler's version, and the folders that have `jni.h`."""

    javac: Path
    version: str

    @property
    def includes(self) -> tuple[Path, ...]:
        """Return the folders of `jni.h` and of what it includes; none in a kit that came without them."""
        folder = self.javac.resolve().parents[1] / "include"
        return (folder, *sorted(path.parent for path in folder.glob("*/jni_md.h"))) if folder.is_dir() else ()


def find_jdk(environment: Mapping[str, str] = os.environ) -> Jdk:
    """Return the kit that `JAVA_HOME` names, else the one on PATH.

    Raises `ToolError` (`javac-missing`, `javac-broken`, `javac-too-old`).
    """
    home = environment.get("JAVA_HOME")
    found = shutil.which("javac", path=f"{home}/bin" if home else environment.get("PATH"))
    hint = f"run: {install_command(PACKAGE)}; or set JAVA_HOME to a JDK"
    if found is None:
        what = "Java's compiler is needed for the classes of an AAR"
        why = f"JAVA_HOME is {home}, and there is no bin/javac in it" if home else "there is no javac on PATH"
        raise ToolError("javac-missing", what, where="javac", why=why, hint=hint)
    version = _version_of(found, hint)
    if int(re.split(r"\D", version)[0]) < OLDEST:
        what = f"version {version} is too old, {OLDEST} or newer is needed"
        raise ToolError("javac-too-old", what, where=found, hint=hint)
    return Jdk(javac=Path(found), version=version)


def compile_java(jdk: Jdk, sources: Sequence[Path], classes: Path, headers: Path) -> None:
    """Compile Java files into the folder `classes`, and write the headers of native methods into `headers`.

    Nothing of the machine gets into the classes: neither paths, nor the time, nor what else is on a class path. Raises
    `BuildError` `java-not-compiled`.
    """
    options = ("-encoding", "UTF-8", "--release", RELEASE, "-Xlint:-options", "-nowarn", "-proc:none", "-implicit:none")
    apart = ("-classpath", str(classes), "-d", str(classes), "-h", str(headers))
    done = run((jdk.javac, *options, *apart, *sources), environment=_environment())
    if done.returncode != 0:
        why = "\n".join((done.stderr or done.stdout).strip().splitlines()[:5])
        hint = f"javac {jdk.version} compiled them; another JDK may do: set JAVA_HOME"
        raise BuildError("java-not-compiled", "the Java API does not compile", where="javac", why=why, hint=hint)


def _version_of(javac: str, hint: str) -> str:
    done = run((javac, "-version"), environment=_environment(), timeout_seconds=ANSWER_SECONDS)
    found = VERSION.search(done.stdout + done.stderr)  # Java 8 tells it on the error stream
    if done.returncode != 0 or found is None:
        why = (done.stderr or done.stdout).strip()[-300:]
        what = f"'javac -version' names no version (exit code {done.returncode})"
        raise ToolError("javac-broken", what, where=javac, why=why, hint=hint)
    return found[1]


def _environment() -> dict[str, str]:
    """Return an environment without `JAVA_TOOL_OPTIONS` and the like, which would change what is compiled."""
    return {"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)}
