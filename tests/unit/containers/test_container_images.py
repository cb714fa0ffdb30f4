"""Which image a toolchain needs, what its file says, and when it is built again."""

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_engine import FakeEngine, fake_engine
from fake_ndk import VERSION, write_command_line_tools, write_ndk
from fake_sources import private_cache
from ortrim.base.cache import cache_folder
from ortrim.base.files import sha256_of
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.containers import executor as module
from ortrim.compiling.containers.engines import DOCKER, probe
from ortrim.compiling.containers.executor import ImageRecipe, Images, ready_image
from ortrim.compiling.containers.root_file_systems import DebianRoot
from ortrim.compiling.plan import Toolchain
from ortrim.errors import SourcesError, ToolError
from ortrim.pins.shipped import IMAGES_FILE
from ortrim.platforms import ANDROID, LINUX
from ortrim.platforms.android.ndk import ndk_toolchain
from ortrim.sources.debian import DebianPackage, PackageRequest
from sample_plans import sample_plan

ZIG = sample_plan().targets[0].job.toolchain
NDK = ndk_toolchain(TARGETS["android-arm64-v8a"], 24, VERSION)
PINNED = 'reference = "{name}:1"\ndigest = "sha256:{digest}"\n'
PYTHON, JDK = (PINNED.format(name=name, digest=digit * 64) for name, digit in (("python", "a"), ("jdk", "b")))


def image_recipe(toolchain: Toolchain, announce: Callable[[str], None]) -> ImageRecipe:
    """Return the recipe of a toolchain's image, as its platform gives it."""
    images: Images = (ANDROID if toolchain.kind == "ndk" else LINUX).images()
    return images.image_recipe(toolchain, announce)


def silent(_: str) -> None:
    """Say nothing."""


@pytest.fixture(autouse=True)
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a cache and pins of the test's own, on a machine for which there is an NDK."""
    private_cache(tmp_path, monkeypatch)
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    (tmp_path / "pins").mkdir()
    path = tmp_path / "pins" / IMAGES_FILE
    path.write_text(f"[bases.python]\n{PYTHON}[bases.jdk]\n{JDK}")
    return path


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """Have an engine."""
    return fake_engine(tmp_path, monkeypatch)


def pin_sdk(pins: Path) -> None:
    """Lay an NDK and tools where downloads are kept, and pin them."""
    downloads = cache_folder("downloads")
    write_ndk(downloads / "ndk.zip")
    write_command_line_tools(downloads / "tools.zip")
    entries = ((f"ndk;{VERSION}", "ndk.zip"), ("cmdline-tools;19.0", "tools.zip"))
    with pins.open("a") as file:
        for name, archive in entries:
            file.write(f'[archives."{name}"]\nfile = "{archive}"\nsha256 = "{sha256_of(downloads / archive)}"\n')


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
    """Another base is another image; the same one has the same name."""
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


def test_a_base_that_is_not_pinned_is_refused(pins: Path) -> None:
    """Without packages there is nothing in its place."""
    pins.write_text('[bases.python]\nreference = "python:3"\n')
    with pytest.raises(SourcesError) as caught:
        image_recipe(ZIG, silent)
    assert caught.value.code == "image-not-pinned"


def test_a_machine_without_packages_is_refused(pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told which there are."""
    pins.write_text('[bases.python]\nreference = "python:3"\nsuite = "trixie"\npackages = ["libc6"]\n')
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    with pytest.raises(ToolError) as caught:
        image_recipe(ZIG, silent)
    assert caught.value.code == "unsupported-host"


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
    """Each by its name, before anything is fetched."""
    pin_sdk(pins)
    pins.write_text(
        pins.read_text().replace(f"[{missing}]", "[bases.other]" if "bases" in missing else '[archives."x;1"]')
    )
    with pytest.raises(SourcesError) as caught:
        image_recipe(NDK, silent)
    assert caught.value.code == "image-not-pinned"
    assert missing.replace('"', "") in caught.value.where


def test_there_is_no_ndk_for_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Google publishes none for Linux there."""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(ToolError) as caught:
        image_recipe(NDK, silent)
    assert caught.value.code == "no-ndk-for-host"
    assert 'android.toolchain = "zig"' in caught.value.hint


def test_an_image_leaves_its_file_and_its_log(docker: FakeEngine, pins: Path) -> None:
    """And nothing of the gigabytes that it was made of."""
    pin_sdk(pins)
    recipe = image_recipe(NDK, silent)
    ready_image(probe(DOCKER), recipe, silent)
    (record,) = [path for path in cache_folder("images").iterdir() if path.is_dir()]
    assert sorted(path.name for path in record.iterdir()) == ["Dockerfile", "build.log"]
    assert (record / "Dockerfile").read_text() == recipe.dockerfile == docker.built()
    assert (record / "build.log").read_text() == "Step 1/1 : FROM scratch\n"


def test_an_image_that_somebody_removed_is_built_again(docker: FakeEngine) -> None:
    """The record alone is no image."""
    recipe, usable = image_recipe(ZIG, silent), probe(DOCKER)
    ready_image(usable, recipe, silent)
    ready_image(usable, recipe, silent)
    assert len(docker.calls("build")) == 1
    (docker.home / "images").write_text("")
    ready_image(usable, recipe, silent)
    assert len(docker.calls("build")) == 2


def test_an_image_that_cannot_be_built_leaves_nothing(docker: FakeEngine) -> None:
    """Neither record nor context."""
    docker.answer("docker build", 1, "failed\n")
    with pytest.raises(ToolError):
        ready_image(probe(DOCKER), image_recipe(ZIG, silent), silent)
    assert not [path for path in cache_folder("images").iterdir() if path.is_dir()]


def test_the_context_can_be_read_by_an_engine_of_another_user(docker: FakeEngine) -> None:
    """A daemon may not be who runs ortrim."""
    program = docker.home / "bin" / "docker"
    check = "assert os.stat(words[-1]).st_mode & 0o005 == 0o005"
    program.write_text(program.read_text().replace('print("Step 1/1 : FROM scratch")', check))
    ready_image(probe(DOCKER), image_recipe(ZIG, silent), silent)
    assert docker.calls("build")
