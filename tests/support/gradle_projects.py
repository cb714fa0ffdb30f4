"""A project of Gradle, and what its dependencies come to. Debian's is 4.4.1, which reads no module metadata."""

from pathlib import Path
from typing import Final

from ortrim.base.command import Completed, run

BUILD: Final = """\
allprojects {{
    repositories {{ maven {{ url "$rootDir/ours" }}; maven {{ url "$rootDir/others" }} }}
    configurations {{ resolved }}
}}
{rule}
dependencies {{ {dependencies} }}
task show {{ doLast {{ configurations.resolved.files.each {{ println "file $it.path" }} }} }}
"""


def gradle(project: Path, dependencies: tuple[str, ...], rule: str = "") -> Completed:
    words = "; ".join(f'resolved "{each}"' for each in dependencies)
    (project / "settings.gradle").touch()
    (project / "build.gradle").write_text(BUILD.format(rule=rule, dependencies=words))
    options = ("--no-daemon", "--quiet", "--offline", "--gradle-user-home", project / "home")
    return run(("gradle", *options, "show"), cwd=project, timeout_seconds=300)


def resolved_files(project: Path, dependencies: tuple[str, ...], rule: str = "") -> list[Path]:
    done = gradle(project, dependencies, rule)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [Path(line.removeprefix("file ")) for line in done.stdout.splitlines() if line.startswith("file ")]
    return sorted(found, key=lambda path: path.name)
