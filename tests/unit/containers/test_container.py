"""The container executor with an engine of a few lines that runs commands on this machine."""

import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from fake_engine import FakeEngine, fake_engine
from fake_ndk import VERSION, write_command_line_tools, write_ndk
from finished_builds import leave_compiled
from ortrim.base.cache import cache_folder
from ortrim.base.files import sha256_of
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.containers.engines import ContainerOptions, Mount
from ortrim.compiling.containers.executor import places_in_containers
from ortrim.compiling.native import Executor
from ortrim.compiling.plan import RunnerJob
from ortrim.compiling.trees import finished_build
from ortrim.errors import BuildError, Diagnostic, ExitCode, SourcesError, ToolError, UsageError
from ortrim.pins.shipped import IMAGES_FILE
from ortrim.platforms import ANDROID, LINUX, Platform
from ortrim.platforms.android.jni import Jdk, build_jni_library
from ortrim.platforms.android.ndk import ndk_toolchain
from sample_plans import sample_plan, system_gcc
from workshop import GOOD, LINKED, Workshop

PINS = f"""
[bases.python]
reference = "python:3.13-slim"
digest = "sha256:{"a" * 64}"
"""


@pytest.fixture
def docker(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """Have an engine, and a pinned base image."""
    pins = Path(os.environ["ORTRIM_PINS"])
    pins.mkdir(exist_ok=True)
    (pins / IMAGES_FILE).write_text(PINS)
    workshop.tool("ccache", "")
    return fake_engine(workshop.folder, monkeypatch)


def executor(workshop: Workshop, platform: Platform = LINUX, /, **options: object) -> Executor:
    """Return the executor of the workshop in a platform's containers."""
    given = ContainerOptions(**options)  # type: ignore[arg-type]
    return replace(workshop.executor(), place=places_in_containers(given, platform.images()))


def tree(workshop: Workshop) -> Path:
    """Return the one build tree in which a container has worked."""
    (found,) = cache_folder("trees").glob(f"{workshop.tree.name}-*")
    return found


def mounted(words: list[str]) -> dict[str, bool]:
    """Return the folders that a container was given, and whether it may write to them."""
    specifications = [after for word, after in pairwise(words) if word == "--mount"]
    return {each.split("src=")[1].split(",")[0]: not each.endswith("readonly") for each in specifications}


def test_a_build_in_a_container_is_the_native_one(workshop: Workshop, docker: FakeEngine) -> None:
    """The same results by the same digest; build.py runs in a container for each phase, with the image's Python."""
    workshop.write(GOOD)
    result = executor(workshop).run(workshop.job)
    assert result.folder == finished_build(workshop.job)
    assert result.symbols is not None
    assert result.symbols.read_bytes() == LINKED.read_bytes()
    assert workshop.progress == [(1, 2, "file1.cc"), (2, 2, "file2.cc")]
    trial, update, build = docker.calls("run")
    assert trial[-3:] == ["/bin/sh", "-c", ":"]
    for phase, words in (("--update", update), ("--build", build)):
        start = words.index("/usr/bin/env")
        assert words[words.index("/usr/bin/python3", start) :][:3] == ["/usr/bin/python3", "-S", "-s"]
        assert phase in words[start:]
    assert any(note.endswith("with docker 28.0.1") for note in workshop.notes)


def test_what_was_compiled_elsewhere_starts_no_container(workshop: Workshop, docker: FakeEngine) -> None:
    """Library, runner and JNI library are taken from where they lie."""
    (target,) = sample_plan("android-arm64-v8a").targets
    leave_compiled(target)
    container, jdk = executor(workshop), Jdk(javac=Path("javac"), version="17")
    result = container.run(target.job)
    assert container.run_runner(target.runner).is_file()
    assert build_jni_library(target.job, result, container, jdk).library.is_file()
    assert docker.calls("run") == []


def test_a_container_sees_the_jobs_folders_and_no_others(workshop: Workshop, docker: FakeEngine) -> None:
    """Under their own names: sources, tools and the runner's source to be read, tree and caches to be written."""
    workshop.write(GOOD)
    executor(workshop).run(workshop.job)
    folders = mounted(docker.calls("run")[-1])
    own = next(folder for folder in folders if "/containers/ortrim-" in folder)
    cache = workshop.folder / "cache"
    assert folders == {
        str(workshop.sources): False,
        str(workshop.folder / "tools"): False,
        str(workshop.folder / "runner"): False,
        own: False,
        str(tree(workshop)): True,
        **{folder: True for folder in folders if folder.startswith((str(cache / "compiler"), "/tmp/ortrim-"))},  # noqa: S108
    }


def test_the_compiler_cache_is_shared_and_reaches_no_store(
    workshop: Workshop, docker: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher is this machine's ccache over the same folder; a team's store has no network to be reached by."""
    monkeypatch.setenv("CCACHE_REMOTE_STORAGE", "redis://:password@cache.example.com")
    monkeypatch.setenv("SCCACHE_BUCKET", "objects")
    counters = '{"direct_cache_hit": 3, "preprocessed_cache_hit": 0, "cache_miss": 1}'
    counting = f"if [ $1 = --print-log-stats ]; then echo '{counters}'; fi"
    workshop.tool("ccache", counting)
    workshop.write(GOOD)
    result = executor(workshop).run(workshop.job)
    assert result.compiler_cache is not None
    assert result.compiler_cache.hits == 3
    words = docker.calls("run")[-1]
    assert str(cache_folder("compiler")) in mounted(words)
    assert "password" not in str(docker.calls())
    assert any(word.endswith(f"_COMPILER_LAUNCHER={workshop.folder / 'tools' / 'bin' / 'ccache'}") for word in words)


def test_trees_are_kept_apart_from_native_ones(workshop: Workshop, docker: FakeEngine) -> None:
    """CMake has written down where its Python is; a native build in that tree would look for the container's."""
    workshop.write(GOOD)
    executor(workshop).run(workshop.job)
    workshop.executor().run(replace(workshop.job, operator_config="ai.onnx;14;Relu\n"))
    assert workshop.tree.is_dir()
    assert tree(workshop) != workshop.tree


def test_what_was_built_natively_needs_no_engine(workshop: Workshop, docker: FakeEngine) -> None:
    """The same job is never built twice."""
    workshop.write(GOOD)
    native = workshop.executor().run(workshop.job)
    assert executor(workshop).run(workshop.job) == native
    assert docker.calls() == []


def test_the_image_is_built_once(workshop: Workshop, docker: FakeEngine) -> None:
    """From the base's digest; the second build finds it."""
    workshop.write(GOOD)
    executor(workshop).run(workshop.job)
    assert f"FROM python@sha256:{'a' * 64}\n" in docker.built()
    executor(workshop).run(replace(workshop.job, operator_config="ai.onnx;14;Relu\n"))
    assert len(docker.calls("build")) == 1


def test_a_failure_in_the_container_is_the_builds(workshop: Workshop, docker: FakeEngine) -> None:
    """With the compiler's words and the log, as natively; the tree stays, the container does not."""
    workshop.write('print("a.cc:1:2: error: wrong")\nsys.exit(1)')
    with pytest.raises(BuildError) as caught:
        executor(workshop).run(workshop.job)
    assert caught.value.why == "a.cc:1:2: error: wrong"
    assert workshop.log.read_text().splitlines()[-1] == "a.cc:1:2: error: wrong"
    assert len(docker.calls("rm")) == len(docker.calls("run"))
    assert tree(workshop).is_dir()
    assert workshop.nothing_finished()


def test_an_interruption_keeps_the_tree_and_no_container(workshop: Workshop, docker: FakeEngine) -> None:
    """The next run goes on there."""
    workshop.write('print("[1/2] Building a.o", flush=True)\ntime.sleep(60)')
    with pytest.raises(KeyboardInterrupt):
        replace(executor(workshop), on_progress=_interrupt).run(workshop.job)
    assert len(docker.calls("rm")) == len(docker.calls("run"))
    assert not list(cache_folder("containers").iterdir())
    workshop.write(GOOD)
    assert executor(workshop).run(workshop.job).library.is_file()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_mounts_and_flags_of_the_user_are_passed_on(workshop: Workshop, docker: FakeEngine) -> None:
    """To every container, the first that only tries out included."""
    own = workshop.folder / "own"
    own.mkdir()
    workshop.write(GOOD)
    options = {"mounts": (Mount(source=own, target="/opt/own"),), "flags": ("--memory=8g",)}
    executor(workshop, **options).run(workshop.job)
    for words in docker.calls("run"):
        assert f"type=bind,src={own},dst=/opt/own,readonly" in words
        assert "--memory=8g" in words


def test_a_mount_in_the_way_is_refused_before_anything_is_compiled(workshop: Workshop, docker: FakeEngine) -> None:
    """It would cover the sources."""
    workshop.write(GOOD)
    mount = Mount(source=workshop.folder, target=str(workshop.sources.parent))
    with pytest.raises(UsageError):
        executor(workshop, mounts=(mount,)).run(workshop.job)
    assert workshop.nothing_finished()


@pytest.mark.parametrize("kind", ["gcc", "clang"])
def test_this_machines_compiler_is_not_in_the_image(workshop: Workshop, docker: FakeEngine, kind: str) -> None:
    """The plan was made for this machine's version; what to do is reported, and no engine is asked."""
    toolchain = replace(system_gcc(), kind=kind)  # type: ignore[arg-type]
    with pytest.raises(ToolError) as caught:
        executor(workshop).run(replace(workshop.job, toolchain=toolchain))
    assert (caught.value.code, caught.value.exit_code) == ("compiler-not-in-image", ExitCode.TOOL)
    assert docker.calls() == []


def test_without_the_ndks_pin_nothing_is_built_for_android(workshop: Workshop, docker: FakeEngine) -> None:
    """The version and the command that pins it are named."""
    toolchain = ndk_toolchain(TARGETS["android-arm64-v8a"], 24, "27.2.12479018")
    with pytest.raises(SourcesError) as caught:
        executor(workshop, ANDROID).run(replace(workshop.job, toolchain=toolchain))
    assert caught.value.code == "image-not-pinned"
    assert "27.2.12479018" in caught.value.where
    assert docker.calls() == []


def test_a_job_for_android_finds_the_ndk_in_the_image(workshop: Workshop, docker: FakeEngine) -> None:
    """This machine need not have one; the plan's path to it is the image's."""
    downloads = cache_folder("downloads")
    write_ndk(downloads / "ndk.zip")
    write_command_line_tools(downloads / "tools.zip")
    entries = ((f"ndk;{VERSION}", "ndk.zip"), ("cmdline-tools;19.0", "tools.zip"))
    pins = [f'[archives."{name}"]\nfile = "{file}"\nsha256 = "{sha256_of(downloads / file)}"' for name, file in entries]
    jdk = f'[bases.jdk]\nreference = "jdk:17"\ndigest = "sha256:{"b" * 64}"'
    Path(os.environ["ORTRIM_PINS"], IMAGES_FILE).write_text("\n".join((PINS, jdk, *pins)))
    toolchain = ndk_toolchain(TARGETS["android-arm64-v8a"], 24, VERSION)
    arguments = (*workshop.job.arguments, "--android_ndk_path", "${ndk}")
    workshop.write("sys.exit(1)")
    with pytest.raises(BuildError):
        executor(workshop, ANDROID).run(replace(workshop.job, toolchain=toolchain, arguments=arguments))
    words = docker.calls("run")[-1]
    assert words[words.index("--android_ndk_path") + 1] == f"/opt/android/ndk/{VERSION}"
    assert f"ADD ndk.tar /opt/android/ndk/{VERSION}/" in docker.built()
    assert any(word.startswith(f"ORTRIM_COMPILER_C=/opt/android/ndk/{VERSION}/toolchains/") for word in words)


@pytest.mark.parametrize(
    ("start", "text", "reference"),
    [
        (
            "docker info",
            "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?",
            "engine-not-running",
        ),
        (
            "docker info",
            "permission denied while trying to connect to the Docker daemon socket",
            "engine-not-permitted",
        ),
        ("docker build", "dial tcp: lookup registry.example.com: no such host", "image-unreachable"),
        ("docker build", "write /x: no space left on device", "disk-full"),
        ("docker build", "manifest unknown", "image-not-found"),
        ("docker run", "OCI runtime create failed: Operation not permitted", "engine-not-permitted"),
    ],
)
def test_what_fails_before_the_build_is_reported_by_its_cause(
    workshop: Workshop, docker: FakeEngine, start: str, text: str, reference: str
) -> None:
    """Of the engine that was asked for; nothing is left of the image, no tree is made."""
    docker.answer(start, 1, text + "\n")
    with pytest.raises(Diagnostic) as caught:
        executor(workshop, engine="docker").run(workshop.job)
    assert caught.value.code == reference
    assert not [path for path in cache_folder("trees").iterdir() if path.is_dir()]
    if start != "docker run":
        assert not [path for path in cache_folder("images").iterdir() if path.is_dir()]


def test_an_image_whose_shell_fails_is_told(workshop: Workshop, docker: FakeEngine) -> None:
    """For instance one that somebody has changed under the same name."""
    program = docker.home / "bin" / "docker"
    program.write_text(program.read_text().replace("words[entry + 3:]", "[*words[entry + 3:-3], '/bin/false']"))
    with pytest.raises(ToolError) as caught:
        executor(workshop).run(workshop.job)
    assert caught.value.code == "no-container-engine"
    assert "its shell ends with 1" in caught.value.why


TO_OUTPUT = 'while [ "$1" != -o ]; do shift; done; '


def compiler(workshop: Workshop, script: str) -> RunnerJob:
    """Make the compiler a few lines of shell; return the job of the runner."""
    path = workshop.folder / "tools" / "ziglang" / "zig"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    (target,) = sample_plan(workshop.job.target.identifier).targets
    return target.runner


def test_a_runner_is_compiled_in_a_container_once(workshop: Workshop, docker: FakeEngine) -> None:
    """The native executor would return the same."""
    job = compiler(workshop, TO_OUTPUT + 'echo ran > "$2"')
    runner = executor(workshop).run_runner(job)
    assert runner.read_text() == "ran\n"
    calls = len(docker.calls())
    assert executor(workshop).run_runner(job) == workshop.executor().run_runner(job) == runner
    assert len(docker.calls()) == calls


def test_a_runner_that_links_an_archive_sees_its_folder(workshop: Workshop, docker: FakeEngine) -> None:
    """The finished build that holds it, to be read."""
    job = replace(compiler(workshop, TO_OUTPUT + 'echo ran > "$2"'), links="f" * 64)
    (cache_folder("builds") / ("f" * 20)).mkdir()
    executor(workshop).run_runner(job)
    assert mounted(docker.calls("run")[-1])[str(cache_folder("builds") / ("f" * 20))] is False


def test_a_runner_that_does_not_compile_shows_the_error(workshop: Workshop, docker: FakeEngine) -> None:
    """As natively."""
    with pytest.raises(BuildError) as caught:
        executor(workshop).run_runner(compiler(workshop, 'echo "runner.c:3:1: error: no" >&2; exit 1'))
    assert caught.value.why == "runner.c:3:1: error: no"
