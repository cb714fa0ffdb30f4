"""The container executor with an engine of a few lines that runs commands on this machine."""

import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from fake_engine import FakeEngine, fake_engine
from fake_ndk import VERSION, write_command_line_tools, write_ndk
from fake_sources import private_cache
from finished_builds import leave_compiled
from ortrim.base.cache import cache_folder, locked
from ortrim.base.command import run
from ortrim.base.files import sha256_of
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling import containers
from ortrim.compiling import containers as module
from ortrim.compiling.container_engines import BUILDAH, DOCKER, ContainerOptions, Mount, UsableEngine, probe
from ortrim.compiling.executor import Executor
from ortrim.compiling.plan import RunnerJob, Toolchain
from ortrim.compiling.workspace import finished_build
from ortrim.errors import (
    BuildError,
    Diagnostic,
    ExitCode,
    NetworkError,
    SourcesError,
    StorageError,
    ToolError,
    UsageError,
)
from ortrim.pins.shipped import IMAGES_FILE
from ortrim.platforms import ANDROID, LINUX, Platform
from ortrim.platforms.android.jni import Jdk, build_jni_library
from ortrim.platforms.android.ndk import ndk_toolchain
from ortrim.sources.debian import DebianPackage, PackageRequest
from ortrim.sources.root_file_systems import DebianRoot
from program_files import write_program
from refusing import refused
from sample_plans import sample_plan, system_gcc
from workshop import GOOD, LINKED, Workshop

PINS = f"""
[bases.python]
reference = "python:3.13-slim"
digest = "sha256:{"a" * 64}"
"""


@pytest.fixture
def docker(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    pins = Path(os.environ["ORTRIM_PINS"])
    pins.mkdir(exist_ok=True)
    (pins / IMAGES_FILE).write_text(PINS)
    workshop.tool("ccache", "")
    return fake_engine(workshop.folder, monkeypatch)


def executor(workshop: Workshop, platform: Platform = LINUX, /, **options: object) -> Executor:
    given = ContainerOptions(**options)  # type: ignore[arg-type]
    return replace(workshop.executor(), execution=containers.environments_in_containers(given, platform.images()))


def tree(workshop: Workshop) -> Path:
    (found,) = cache_folder("trees").glob(f"{workshop.tree.name}-*")
    return found


def mounted(words: list[str]) -> dict[str, bool]:
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
    (target,) = sample_plan("android-arm64-v8a").targets
    leave_compiled(target)
    container, jdk = executor(workshop), Jdk(javac=Path("javac"), version="17")
    result = container.run(target.job)
    assert container.run_runner(target.runner).is_file()
    assert build_jni_library(target.job, result, container, jdk).is_file()
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
    workshop.write(GOOD)
    native = workshop.executor().run(workshop.job)
    assert executor(workshop).run(workshop.job) == native
    assert docker.calls() == []


def test_the_image_is_built_once(workshop: Workshop, docker: FakeEngine) -> None:
    workshop.write(GOOD)
    executor(workshop).run(workshop.job)
    assert f"FROM python@sha256:{'a' * 64}\n" in docker.built()
    executor(workshop).run(replace(workshop.job, operator_config="ai.onnx;14;Relu\n"))
    assert len(docker.calls("build")) == 1


def test_a_failure_in_the_container_is_the_builds(workshop: Workshop, docker: FakeEngine) -> None:
    workshop.write('print("a.cc:1:2: error: wrong")\nsys.exit(1)')
    assert refused(BuildError, executor(workshop).run, workshop.job).why == "a.cc:1:2: error: wrong"
    assert workshop.log.read_text().splitlines()[-1] == "a.cc:1:2: error: wrong"
    assert len(docker.calls("rm")) == len(docker.calls("run"))
    assert tree(workshop).is_dir()
    assert workshop.nothing_finished()


def test_an_interruption_keeps_the_tree_and_no_container(workshop: Workshop, docker: FakeEngine) -> None:
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
    own = workshop.folder / "own"
    own.mkdir()
    workshop.write(GOOD)
    options = {"mounts": (Mount(source=own, target="/opt/own"),), "flags": ("--memory=8g",)}
    executor(workshop, **options).run(workshop.job)
    for words in docker.calls("run"):
        assert f"type=bind,src={own},dst=/opt/own,readonly" in words
        assert "--memory=8g" in words


def test_a_mount_in_the_way_is_refused_before_anything_is_compiled(workshop: Workshop, docker: FakeEngine) -> None:
    workshop.write(GOOD)
    mount = Mount(source=workshop.folder, target=str(workshop.sources.parent))
    refused(UsageError, executor(workshop, mounts=(mount,)).run, workshop.job)
    assert workshop.nothing_finished()


@pytest.mark.parametrize("kind", ["gcc", "clang"])
def test_this_machines_compiler_is_not_in_the_image(workshop: Workshop, docker: FakeEngine, kind: str) -> None:
    """The plan was made for this machine's version; what to do is reported, and no engine is asked."""
    toolchain = replace(system_gcc(), kind=kind)  # type: ignore[arg-type]
    error = refused(ToolError, executor(workshop).run, replace(workshop.job, toolchain=toolchain))
    assert (error.code, error.exit_code) == ("compiler-not-in-image", ExitCode.TOOL)
    assert docker.calls() == []


def test_a_job_for_android_finds_the_ndk_in_the_image(workshop: Workshop, docker: FakeEngine) -> None:
    pins = Path(os.environ["ORTRIM_PINS"], IMAGES_FILE)
    pins.write_text(f"{PINS}[bases.jdk]\n{JDK}")
    pin_sdk(pins)
    toolchain = ndk_toolchain(TARGETS["android-arm64-v8a"], 24, VERSION)
    arguments = (*workshop.job.arguments, "--android_ndk_path", "${ndk}")
    workshop.write("sys.exit(1)")
    refused(
        BuildError, executor(workshop, ANDROID).run, replace(workshop.job, toolchain=toolchain, arguments=arguments)
    )
    words = docker.calls("run")[-1]
    assert words[words.index("--android_ndk_path") + 1] == f"/opt/android/ndk/{VERSION}"
    assert f"ADD ndk.tar /opt/android/ndk/{VERSION}/" in docker.built()
    assert any(word.startswith(f"ORTRIM_COMPILER_C=/opt/android/ndk/{VERSION}/toolchains/") for word in words)


@pytest.mark.parametrize(
    ("start", "text", "reference"),
    [
        ("docker info", "Cannot connect to the Docker daemon at unix:///x.", "engine-not-running"),
        ("docker build", "write /x: no space left on device", "disk-full"),
        ("docker run", "OCI runtime create failed: Operation not permitted", "engine-not-permitted"),
    ],
)
def test_what_fails_before_the_build_is_reported_by_its_cause(
    workshop: Workshop, docker: FakeEngine, start: str, text: str, reference: str
) -> None:
    docker.answer(start, 1, text + "\n")
    assert refused(Diagnostic, executor(workshop, engine="docker").run, workshop.job).code == reference
    assert not [path for path in cache_folder("trees").iterdir() if path.is_dir()]
    if start != "docker run":
        assert not [path for path in cache_folder("images").iterdir() if path.is_dir()]


def test_an_image_whose_shell_fails_is_told(workshop: Workshop, docker: FakeEngine) -> None:
    """For instance one that somebody has changed under the same name."""
    program = docker.home / "bin" / "docker"
    program.write_text(program.read_text().replace("words[entry + 3:]", "[*words[entry + 3:-3], '/bin/false']"))
    error = refused(ToolError, executor(workshop).run, workshop.job)
    assert error.code == "no-container-engine"
    assert "its shell ends with 1" in error.why


TO_OUTPUT = 'while [ "$1" != -o ]; do shift; done; '


def compiler(workshop: Workshop, script: str) -> RunnerJob:
    write_program(workshop.folder / "tools" / "ziglang" / "zig", script)
    (target,) = sample_plan(workshop.job.target.identifier).targets
    return target.runner


def test_a_runner_is_compiled_in_a_container_once(workshop: Workshop, docker: FakeEngine) -> None:
    job = compiler(workshop, TO_OUTPUT + 'echo ran > "$2"')
    runner = executor(workshop).run_runner(job)
    assert runner.read_text() == "ran\n"
    calls = len(docker.calls())
    assert executor(workshop).run_runner(job) == workshop.executor().run_runner(job) == runner
    assert len(docker.calls()) == calls


def test_a_runner_that_links_an_archive_sees_its_folder(workshop: Workshop, docker: FakeEngine) -> None:
    job = replace(compiler(workshop, TO_OUTPUT + 'echo ran > "$2"'), links="f" * 64)
    (cache_folder("builds") / ("f" * 20)).mkdir()
    executor(workshop).run_runner(job)
    assert mounted(docker.calls("run")[-1])[str(cache_folder("builds") / ("f" * 20))] is False


ZIG = sample_plan().targets[0].job.toolchain
NDK = ndk_toolchain(TARGETS["android-arm64-v8a"], 24, VERSION)
PINNED = 'reference = "{name}:1"\ndigest = "sha256:{digest}"\n'
PYTHON, JDK = (PINNED.format(name=name, digest=digit * 64) for name, digit in (("python", "a"), ("jdk", "b")))


def image_recipe(toolchain: Toolchain, announce: Callable[[str], None]) -> containers.ImageRecipe:
    images: containers.Images = (ANDROID if toolchain.kind == "ndk" else LINUX).images()
    return images.image_recipe(toolchain, announce)


def silent(_: str) -> None:
    """Say nothing."""


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    private_cache(tmp_path, monkeypatch)
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    (tmp_path / "pins").mkdir()
    path = tmp_path / "pins" / IMAGES_FILE
    path.write_text(f"[bases.python]\n{PYTHON}[bases.jdk]\n{JDK}")
    return path


@pytest.fixture
def docker_container_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pins: Path) -> FakeEngine:
    return fake_engine(tmp_path, monkeypatch)


def pin_sdk(pins: Path) -> None:
    downloads = cache_folder("downloads")
    write_ndk(downloads / "ndk.zip")
    write_command_line_tools(downloads / "tools.zip")
    entries = ((f"ndk;{VERSION}", "ndk.zip"), ("cmdline-tools;19.0", "tools.zip"))
    with pins.open("a") as file:
        for name, archive in entries:
            file.write(f'[archives."{name}"]\nfile = "{archive}"\nsha256 = "{sha256_of(downloads / archive)}"\n')


@pytest.mark.usefixtures("pins")
def test_zig_needs_a_base_and_nothing_else() -> None:
    """By digest, with the human tag as a comment; the label that tells whose leftovers are whose comes first."""
    recipe = image_recipe(ZIG, silent)
    lines = recipe.dockerfile.splitlines()
    base = lines.index(f"FROM python@sha256:{'a' * 64}")
    assert lines[base - 1] == "# python:1"
    assert lines[base + 1].startswith(f'LABEL ortrim.image="{recipe.tag}" ortrim.builder="')
    assert recipe.tag.startswith("ortrim-linux:")
    assert recipe.files == {}


def test_an_image_is_named_after_all_that_it_is_made_of(pins: Path) -> None:
    first = image_recipe(ZIG, silent)
    assert image_recipe(ZIG, silent) == first
    pins.write_text(pins.read_text().replace("a" * 64, "c" * 64))
    assert image_recipe(ZIG, silent).tag != first.tag


def test_packages_stand_in_for_a_digest(pins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted, for this machine; their versions and digests are in the file, so that others are another image."""
    asked: list[PackageRequest] = []
    version = "1.0"

    def root(request: PackageRequest, _: object) -> DebianRoot:
        asked.append(request)
        package = DebianPackage(name="libc6", version=version, architecture="amd64", suite="trixie", sha256="e" * 64)
        return DebianRoot(archive=tmp_path / "root.tar", packages=(package,))

    monkeypatch.setattr(module, "debian_root", root)
    pins.write_text('[bases.python]\nreference = "python:3"\nsuite = "trixie"\npackages = ["zlib1g", "libc6"]\n')
    recipe = image_recipe(ZIG, silent)
    assert asked[0] == PackageRequest(names=("libc6", "zlib1g"), suite="trixie", architecture="amd64")
    assert f"# libc6 1.0 sha256:{'e' * 64}\nFROM scratch\n" in recipe.dockerfile
    assert recipe.files == {"root.tar": tmp_path / "root.tar"}
    version = "1.1"
    assert image_recipe(ZIG, silent).tag != recipe.tag


def test_a_machine_without_packages_is_refused(pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pins.write_text('[bases.python]\nreference = "python:3"\nsuite = "trixie"\npackages = ["libc6"]\n')
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    caught = refused(ToolError, image_recipe, ZIG, silent)
    assert caught.code == "unsupported-host"


def test_android_needs_ndk_tools_and_a_jdk(pins: Path) -> None:
    """All by digest; the NDK lies where jobs look for it, and its version is checked in the image too."""
    pin_sdk(pins)
    recipe = image_recipe(NDK, silent)
    assert set(recipe.files) == {"ndk.tar", "cmdline-tools.tar"}
    assert all(path.is_file() for path in recipe.files.values())
    assert f"COPY --from=jdk@sha256:{'b' * 64} /opt/java/openjdk /opt/java/openjdk\n" in recipe.dockerfile
    assert f"ADD ndk.tar /opt/android/ndk/{VERSION}/\n" in recipe.dockerfile
    assert f'grep -qx "Pkg.Revision = {VERSION}" source.properties' in recipe.dockerfile
    assert "ADD cmdline-tools.tar /opt/android/cmdline-tools/19.0/\n" in recipe.dockerfile


@pytest.mark.parametrize("missing", ["bases.jdk", f'archives."ndk;{VERSION}"', 'archives."cmdline-tools;19.0"'])
def test_android_without_one_of_them_is_refused(pins: Path, missing: str) -> None:
    pin_sdk(pins)
    pins.write_text(
        pins.read_text().replace(f"[{missing}]", "[bases.other]" if "bases" in missing else '[archives."x;1"]')
    )
    caught = refused(SourcesError, image_recipe, NDK, silent)
    assert caught.code == "image-not-pinned"
    assert missing.replace('"', "") in caught.where


@pytest.mark.usefixtures("pins")
def test_there_is_no_ndk_for_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    caught = refused(ToolError, image_recipe, NDK, silent)
    assert caught.code == "no-ndk-for-host"
    assert 'android.toolchain = "zig"' in caught.hint


def test_an_image_leaves_its_file_and_its_log(docker_container_images: FakeEngine, pins: Path) -> None:
    pin_sdk(pins)
    recipe = image_recipe(NDK, silent)
    containers.ready_image(probe(DOCKER), recipe, silent)
    (record,) = [path for path in cache_folder("images").iterdir() if path.is_dir()]
    assert sorted(path.name for path in record.iterdir()) == ["Dockerfile", "build.log"]
    assert (record / "Dockerfile").read_text() == recipe.dockerfile == docker_container_images.built()
    assert (record / "build.log").read_text() == "Step 1/1 : FROM scratch\n"


def test_an_image_that_somebody_removed_is_built_again(docker_container_images: FakeEngine) -> None:
    recipe, usable = image_recipe(ZIG, silent), probe(DOCKER)
    containers.ready_image(usable, recipe, silent)
    containers.ready_image(usable, recipe, silent)
    assert len(docker_container_images.calls("build")) == 1
    (docker_container_images.home / "images").write_text("")
    containers.ready_image(usable, recipe, silent)
    assert len(docker_container_images.calls("build")) == 2


def test_the_context_can_be_read_by_an_engine_of_another_user(docker_container_images: FakeEngine) -> None:
    program = docker_container_images.home / "bin" / "docker"
    check = "assert os.stat(words[-1]).st_mode & 0o005 == 0o005"
    program.write_text(program.read_text().replace('print("Step 1/1 : FROM scratch")', check))
    containers.ready_image(probe(DOCKER), image_recipe(ZIG, silent), silent)
    assert docker_container_images.calls("build")


TAG = "ortrim-linux:0123"


@pytest.fixture
def image(tmp_path: Path) -> tuple[Path, str]:
    context = tmp_path / "context"
    context.mkdir()
    (context / "Dockerfile").write_text(f"FROM scratch\n{containers.image_label(TAG)}\n")
    return (context, TAG)


def test_a_failed_build_is_reported_and_shows_no_password(
    docker: FakeEngine, image: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://user:pass-word@proxy:8080")
    docker.answer("docker build", 1, "use http://user:pass-word@proxy:8080\nwrite /x: no space left on device\n")
    lines: list[str] = []
    error = refused(StorageError, containers.build_image, probe(DOCKER), *image, tmp_path, lines.append)
    assert error.code == "disk-full"
    assert TAG in error.where
    assert lines[0] == "use http://...@proxy:8080"
    (words,) = docker.calls("build")
    assert "https_proxy" in [words[at + 1] for at, word in enumerate(words) if word == "--build-arg"]
    assert "pass-word" not in json.dumps(docker.calls())


BUILDAH_SCRIPT = """\
#!/bin/sh
echo "$@" >>'{home}/words'
case "$*" in
--version) echo buildah version 1.28.2 ;;
containers*) printf 'mine\\nanothers\\n' ;;
*container\\ mine) echo '{mine}' ;;
*container\\ anothers) echo '{anothers}' ;;
esac
"""


def test_what_a_killed_build_of_the_same_image_left_is_removed_first(
    docker: FakeEngine, image: tuple[Path, str], tmp_path: Path
) -> None:
    program = docker.home / "bin" / "buildah"
    mine, anothers = (json.dumps({"History": [containers.image_label(tag)]}) for tag in (TAG, "ortrim-linux:4567"))
    write_program(program, BUILDAH_SCRIPT.format(home=docker.home, mine=mine, anothers=anothers))
    containers.build_image(UsableEngine(engine=BUILDAH, version="1.28.2", rootless=False), *image, tmp_path, print)
    words = (docker.home / "words").read_text().splitlines()
    assert [line for line in words if line.startswith("rm")] == ["rm mine"]
    assert words[-1].startswith("build ")


@pytest.mark.parametrize("answer", ["", "<none>", "sha256:abc", f"sha256:{'A' * 64}"])
def test_an_image_without_a_digest_is_refused(docker: FakeEngine, answer: str) -> None:
    program = docker.home / "bin" / "docker"
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    error = refused(
        NetworkError, containers.pulled_digest, UsableEngine(engine=DOCKER, version="28", rootless=False), "python:3.13"
    )
    assert error.code == "image-without-digest"


PATIENCE = 20.0


@pytest.fixture
def usable(docker: FakeEngine) -> UsableEngine:
    return probe(DOCKER)


def run_words(
    usable: UsableEngine, on_line: Callable[[str], None], *words: str, flags: tuple[str, ...] = (), folder: str = "/"
) -> int:
    environment, mounts = {"NAME": "a value"}, (Mount(source=Path("/srv"), target="/srv"),)
    return containers.run_in(
        usable, "image:1", words, on_line, environment=environment, folder=Path(folder), mounts=mounts, flags=flags
    )


def folders() -> list[str]:
    return [path.name for path in cache_folder("containers").iterdir()]


def test_a_command_sees_its_environment_and_nothing_else(usable: UsableEngine, tmp_path: Path) -> None:
    lines: list[str] = []
    code = run_words(usable, lines.append, "/bin/sh", "-c", "/usr/bin/env; /bin/pwd; exit 7", folder=str(tmp_path))
    assert code == 7
    assert "NAME=a value" in lines
    assert lines[-1] == str(tmp_path)
    assert not [line for line in lines if line.startswith(("PATH=", "HOME=", "ORTRIM_CACHE="))]
    assert folders() == []


def test_both_streams_come_in_the_order_in_which_they_were_written(usable: UsableEngine) -> None:
    """An engine may pass them on by two ways; a compiler's error belongs after the line that it is about."""
    lines: list[str] = []
    script = "for n in 1 2 3 4; do echo out $n; echo err $n >&2; done"
    run_words(usable, lines.append, "/bin/sh", "-c", script)
    assert lines == [f"{stream} {n}" for n in range(1, 5) for stream in ("out", "err")]


def test_the_engine_is_reported_all_and_removes_the_container(usable: UsableEngine, docker: FakeEngine) -> None:
    """Its name is a new one each time; the folder with the pipe is mounted, read-only, beside the command's own."""
    names = []
    for _ in range(2):
        run_words(usable, print, "/bin/true", flags=("--memory=8g",))
        words = docker.calls("run")[-1]
        names.append(words[words.index("--name") + 1])
        own = cache_folder("containers") / names[-1]
        assert f"type=bind,src={own},dst={own},readonly" in words
        assert "type=bind,src=/srv,dst=/srv,readonly" in words
        assert "--memory=8g" in words
        assert words[words.index("--user") + 1] == f"{os.geteuid()}:{os.getegid()}"
        assert docker.calls("rm")[-1] == ["rm", "--force", names[-1]]
    assert len(set(names)) == 2
    assert all(name.startswith(f"ortrim-{containers.owner()}-") for name in names)


def test_an_engine_that_starts_nothing_is_the_one_that_failed(usable: UsableEngine, docker: FakeEngine) -> None:
    """Even with an exit code that a command could have had; its own words tell why."""
    docker.answer("docker run", 1, "docker: Error response from daemon: bind source path does not exist: /srv.\n")
    lines: list[str] = []
    assert refused(ToolError, run_words, usable, lines.append, "/bin/true").code == "folder-not-shared"
    assert lines == []
    assert folders() == []
    assert docker.calls("rm")


def test_an_engine_that_says_nothing_and_starts_nothing_failed_too(usable: UsableEngine, docker: FakeEngine) -> None:
    docker.answer("docker run", 0, "")
    assert refused(ToolError, run_words, usable, print, "/bin/true").code == "engine-failed"


def test_a_command_that_does_not_exist_ends_as_in_a_shell(usable: UsableEngine) -> None:
    lines: list[str] = []
    assert run_words(usable, lines.append, "/does/not/exist") == 127
    assert "/does/not/exist" in lines[-1]


def test_a_container_that_cannot_be_removed_spoils_nothing(usable: UsableEngine, docker: FakeEngine) -> None:
    docker.answer("docker rm", 1, "Error: No such container\n")
    assert run_words(usable, print, "/bin/true") == 0


def test_only_what_dead_runs_left_is_removed(usable: UsableEngine, docker: FakeEngine) -> None:
    prefix = f"ortrim-{containers.owner()}-"
    dead, folder_only = f"{prefix}dead", f"{prefix}folder"
    for name in (dead, folder_only):
        (cache_folder("containers") / name).mkdir()
    with containers.own_folder() as alive:
        (docker.home / "leftovers").write_text(f"{dead}\n{alive.name}\nortrim-somebody-else\npostgres\n")
        assert containers.remove_leftovers(usable) == (dead,)
        assert [words[-1] for words in docker.calls("rm")] == [dead]
        assert (alive / "alive").is_fifo()
        assert not (cache_folder("containers") / folder_only).exists()
    assert folders() == []


def test_an_engine_that_cannot_list_has_no_leftovers(usable: UsableEngine, docker: FakeEngine) -> None:
    docker.answer("docker ps", 1, "Cannot connect to the Docker daemon")
    assert containers.remove_leftovers(usable) == ()


def test_a_container_in_use_is_held(docker: FakeEngine) -> None:
    with containers.own_folder() as folder:
        assert f".{folder.name}.lock" in folders()
    assert folders() == []
    with locked(cache_folder("containers") / "other"):
        assert folders() == [".other.lock"]


def lifeline(tmp_path: Path, *words: str) -> tuple[int, int, int]:
    """Start the lifeline on a pipe; return its process, the pipe's end that ortrim holds, and its output's."""
    os.mkfifo(tmp_path / "alive")
    held = os.open(tmp_path / "alive", os.O_RDWR)
    reading, writing = os.pipe()
    argv = [sys.executable, "-I", "-S", "-c", containers.LIFELINE, str(tmp_path / "alive"), *words]
    process = os.posix_spawn(
        sys.executable, argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)], setsid=True
    )
    os.close(writing)
    return process, held, reading


def ended(process: int) -> int:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return -1


@pytest.mark.parametrize("how", ["closed", "terminated"])
def test_the_lifeline_ends_with_ortrim(tmp_path: Path, how: str) -> None:
    process, held, reading = lifeline(tmp_path, "/bin/sleep", "60")
    with os.fdopen(reading) as output:
        assert output.readline() == f"{containers.STARTED}\n"
        if how == "closed":
            os.close(held)
        else:
            os.kill(process, signal.SIGTERM)
        assert ended(process) == (137 if how == "closed" else 143)
        run(("/bin/sh", "-c", f"kill -9 -{process}"))  # a container's end would end its other processes


def test_a_lifeline_whose_ortrim_is_dead_already_does_not_wait_for_it(tmp_path: Path) -> None:
    """Opening a pipe that nobody holds must not wait for somebody."""
    process, held, reading = lifeline(tmp_path, "/bin/sleep", "60")
    os.close(held)
    assert ended(process) == 137
    os.close(reading)
    run(("/bin/sh", "-c", f"kill -9 -{process}"))


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("exit 0", 0)])
def test_the_lifeline_ends_as_its_command(tmp_path: Path, script: str, code: int) -> None:
    process, held, reading = lifeline(tmp_path, "/bin/sh", "-c", script)
    assert ended(process) == code
    os.close(held)
    os.close(reading)
