"""A project of Gradle, and what its dependencies come to. Debian's is 4.4.1, which reads no module metadata."""

import re
from pathlib import Path
from typing import Final

from ortrim.base.command import Completed, run

GUIDE: Final = Path(__file__).parents[2] / "docs" / "start" / "android.md"
BUILD: Final = """\
allprojects {{
    repositories {{ maven {{ url "$rootDir/ours" }}; maven {{ url "$rootDir/others" }} }}
    configurations {{ resolved }}
}}
{rule}
dependencies {{ {dependencies} }}
task show {{ doLast {{ configurations.resolved.files.each {{ println "file $it.path" }} }} }}
"""


def guide_rule(coordinates: str) -> str:
    """Return the guide's lines that put a package in the official AAR's place, in the words of Gradle before 6.6."""
    (text,) = re.findall(r"<!-- replacing the official AAR -->\n```kotlin\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    text, found = re.subn(r"ortrim:onnxruntime-android-app:[\w.-]+", coordinates, text)
    assert (found, ".using(" in text, text.count(".withoutArtifactSelectors()")) == (1, True, 1)
    return in_old_words(text)


def in_old_words(rule: str) -> str:
    """Return a rule that puts a package in another's place in the words of Gradle before 6.6."""
    return re.sub(r"\s*\.withoutArtifactSelectors\(\)", "", rule).replace(".using(", ".with(")


def gradle(project: Path, dependencies: tuple[str, ...], rule: str = "") -> Completed:
    words = "; ".join(f'resolved "{each}"' for each in dependencies)
    return run_gradle(project, BUILD.format(rule=rule, dependencies=words), "show")


def run_gradle(project: Path, build: str, task: str) -> Completed:
    (project / "settings.gradle").touch()
    (project / "build.gradle").write_text(build)
    options = ("--no-daemon", "--quiet", "--offline", "--gradle-user-home", project / "home")
    return run(("gradle", *options, task), cwd=project, timeout_seconds=300)


def resolved_files(project: Path, dependencies: tuple[str, ...], rule: str = "") -> list[Path]:
    done = gradle(project, dependencies, rule)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [Path(line.removeprefix("file ")) for line in done.stdout.splitlines() if line.startswith("file ")]
    return sorted(found, key=lambda path: path.name)
