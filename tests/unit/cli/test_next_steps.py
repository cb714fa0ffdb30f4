"""What a build says last: how its packages get into an app, and how to build for another target."""

import io
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.base.console import Console
from ortrim.cli.rendering import show_next
from ortrim.planning.request import Request
from sample_reports import recorded_report

REQUEST = Request(spec=Path("app.toml"), output=Path("out"))


def said(target: str, package: str, *others: str) -> list[str]:
    """Return the lines after a build for a target, and for others in the same package."""
    stdout = io.StringIO()
    report = replace(recorded_report(), name="app", plan_digest="0123456789abcdef", target=target, package=package)
    reports = (report, *(replace(report, target=other) for other in others))
    show_next(Console(stdout=stdout, stderr=io.StringIO(), environment={}, width=200), reports, REQUEST)
    return stdout.getvalue().splitlines()


def test_the_command_that_unpacks_a_package_names_it() -> None:
    """As it is seen from where the build was started."""
    lines = said("linux-x64", "p.tar.gz")
    assert "tar xzf out/app/0123456789ab/linux-x64/p.tar.gz" in lines[1]
    assert lines[-1] == "for another target: invoke build app.toml --target android"


def test_targets_in_one_package_are_told_once() -> None:
    """An AAR of several ABIs."""
    lines = said("android-arm64-v8a", "../android/a/a.aar", "android-x86_64")
    assert lines.count("in an app:") == 1
    assert "cp -r out/app/0123456789ab/android/a/maven" in lines[1]
    assert lines[-1].endswith("--target ios")


@pytest.mark.parametrize("target", ["linux-arm64", "ios-arm64"])
def test_every_line_is_filled_in(target: str) -> None:
    assert not any(brace in line for line in said(target, "x/p") for brace in "{}")
