"""The demo for this machine with its Java API, as an app would have it: trimmed libraries, classes, and a compiler."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.cli.options import request_from
from ortrim.compiling.plan import BuildJob
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import Planned, planned_for
from ortrim.platforms.android.aar import classes_jar
from ortrim.platforms.android.jni import JAVA, Jdk, build_jni_library, find_jdk

DESKTOP: Final = ("java", "jvm")
"""What upstream's `build.gradle` compiles for a desktop's Java."""


@dataclass(frozen=True, kw_only=True)
class JavaDemo:
    """The demo's plan, its libraries in one folder, headers, the Java API as a jar, that API's sources, a compiler."""

    planned: Planned
    job: BuildJob
    libraries: Path
    headers: Path
    jar: Path
    java: Path
    jdk: Jdk

    def compile(self, sources: Sequence[Path], folder: Path, *more: Path) -> None:
        classpath = ":".join(map(str, [self.jar, *more]))
        done = run((self.jdk.javac, "-Xlint:all", "-Werror", "-classpath", classpath, "-d", folder, *sources))
        assert done.returncode == 0, done.stdout + done.stderr

    def words(self, program: str, *classpath: Path) -> tuple[str | Path, ...]:
        """Return the command line that runs a class on the trimmed library, with JNI's checks on."""
        machine = (self.jdk.javac.with_name("java"), f"-Donnxruntime.native.path={self.libraries}", "-Xcheck:jni")
        return (*machine, "-classpath", ":".join(map(str, [self.jar, *classpath])), program)


def java_demo(folder: Path) -> JavaDemo:
    console, jdk = Console(), find_jdk()
    request = request_from(None, target="linux-x64", output=str(folder / "artifacts"))
    planned = planned_for(request, console, to_run=True)
    (target,) = planned.plan.targets
    with console.step("build") as step:
        executor = executor_for(planned, target, request, step)
        result = executor.run(target.job)
    binding = build_jni_library(target.job, result, executor, jdk)
    libraries = folder / "libraries"
    libraries.mkdir()
    for path in (result.library, binding):
        (libraries / path.name).symlink_to(path)
    java = planned.sources.folder / JAVA
    jar = folder / "onnxruntime.jar"
    jar.write_bytes(classes_jar(jdk, [java / name for name in DESKTOP]))
    return JavaDemo(
        planned=planned,
        job=target.job,
        libraries=libraries,
        headers=result.headers,
        jar=jar,
        java=java,
        jdk=jdk,
    )
