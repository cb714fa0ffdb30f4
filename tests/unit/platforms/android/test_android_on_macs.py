"""Planning for Android on a Mac, and reaching the compiler there: the NDK's layout is real, its programs are not."""

import platform
from pathlib import Path

import pytest

from ndk_layout import NDK_VERSION, lay_out_ndk
from ortrim.base.command import run
from ortrim.compiling.workspace import BuildInputs, job_environment, prepare_workspace
from ortrim.planning import request as inputs
from ortrim.planning.planned import Planned, planned_for
from ortrim.planning.request import host_target
from ortrim.platforms import platform_of
from ortrim.platforms.android.ndk import PREBUILT
from pipeline_stages import Stages
from program_files import write_program

SHOW = '#!/bin/sh\necho "$0 $1"\n'


@pytest.mark.parametrize("machine", ["arm64", "x86_64"])
def test_a_mac_with_an_ndk_compiles_for_android(stages: Stages, monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    """The plan is the one of any host; each wrapper and launcher calls a program of the folder for Macs."""
    on_linux = plan(stages, monkeypatch, "Linux", "x86_64")
    on_mac = plan(stages, monkeypatch, "Darwin", machine)
    assert on_mac.plan == on_linux.plan
    (target,) = on_mac.plan.targets
    toolchain = target.job.toolchain
    assert (toolchain.kind, toolchain.version) == ("ndk", NDK_VERSION)

    folder = stages.folder / "Darwin" / PREBUILT["Darwin", machine]
    inputs = BuildInputs(
        sources=stages.folder,
        tools=stages.folder,
        runner=stages.folder,
        hooks=make(stages.folder / "hooks"),
        installed=platform_of(target.job.target).installed,
    )
    paths = prepare_workspace(stages.folder / "job", inputs, toolchain)
    environment = {"PATH": "/usr/bin:/bin"} | job_environment(paths, toolchain)
    for name, program in {"cc": "clang", "c++": "clang++", "ar": "llvm-ar", "objcopy": "llvm-objcopy"}.items():
        write_program(folder / "bin" / program, SHOW)
        done = run((paths.wrappers / name, "word"), environment=environment)
        assert done.stdout.startswith(f"{folder / 'bin' / program} "), done
    assert run((paths.wrappers / "cc",), environment=environment).stdout.split()[-1] == f"--target={toolchain.triple}"


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


def plan(stages: Stages, monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> Planned:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(inputs, "host_target", host_target)
    ndk = lay_out_ndk(stages.folder / system, prebuilt=PREBUILT[system, machine])
    monkeypatch.setenv("ANDROID_NDK_HOME", str(ndk))
    request = stages.request('[[targets]]\nid = "android-arm64-v8a"\n[android]\njava = false\n', target="android")
    return planned_for(request, stages.console, to_run=True)
