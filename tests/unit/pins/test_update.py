"""Entries of new versions, and what upstream's files say of them."""

import hashlib
import os
import re
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fake_engine import FakeEngine, fake_engine
from loopback_service import Asked, LoopbackService, Reply
from ortrim.base.command import Completed
from ortrim.bench.engines import ENGINES, engine_requirements
from ortrim.compiling.container_engines import DOCKER, UsableEngine
from ortrim.errors import Diagnostic, NetworkError, SourcesError, ToolError
from ortrim.models.full_runtime import runtime_entry
from ortrim.pin_updates import update as pin_update
from ortrim.pin_updates.update import (
    FILES,
    Resolved,
    commit_text,
    converter_text,
    ndk_of,
    release_number,
    resolved,
    update_image_pins,
    update_requirements,
    with_values,
    with_version,
)
from ortrim.pins.runtime import VERSIONS_FILE, CommitPin, VersionLimits, read_commit_pin
from ortrim.pins.shipped import IMAGES_FILE, pin_text, read_image_pins
from ortrim.platforms.android.ndk import REPOSITORY
from refusing import refused

SHIPPED = pin_text(VERSIONS_FILE) or ""
TEMPLATE = """\
  parameters:
  - name: AndroidNdkVersion
    type: string
    default: "26.1.10909125"  # LTS version

  steps:
  - bash: |
"""


def added(version: str, ndk: str | None = None) -> str:
    return with_version(SHIPPED, version, VersionLimits(opset=26, ml_opset=5, ir_version=13), ndk)


@pytest.mark.parametrize("version", ["1.24.1", "1.22.3", "1.9.9", "10.0.0"])
def test_an_entry_takes_its_place(version: str) -> None:
    """Versions stay in their order, and all else stays as it was, comments too."""
    before, after = tomllib.loads(SHIPPED), tomllib.loads(added(version, "28.0.13004108"))
    entry = {"max_opset": 26, "max_ml_opset": 5, "max_ir_version": 13, "ndk": "28.0.13004108"}
    assert after["versions"].pop(version) == entry
    assert after == before
    names = list(tomllib.loads(added(version))["versions"])
    assert names == sorted(names, key=lambda name: release_number(name) or ())
    kept = [line for line in added(version).splitlines() if line.startswith("#")]
    assert kept == [line for line in SHIPPED.splitlines() if line.startswith("#")]


def test_an_ndk_that_is_not_known_is_left_out() -> None:
    assert "ndk" not in tomllib.loads(added("1.24.1"))["versions"]["1.24.1"]


@pytest.mark.parametrize("text", ["1.22", "1.22.0-rc1", "v1.22.0", "1.22.0.1", "", "1.2.x", "1.22.0\n", "99999.0.0"])
def test_what_is_no_release_has_no_number(text: str) -> None:
    assert release_number(text) is None


def test_the_ndk_is_upstreams_own() -> None:
    assert ndk_of(TEMPLATE) == "26.1.10909125"


@pytest.mark.parametrize("text", ["", 'default: "1.2.3"\n', TEMPLATE.replace("26.1.10909125", "latest"), "\xff" * 99])
def test_a_template_that_says_nothing_gives_none(text: str) -> None:
    assert ndk_of(text) is None


def test_what_is_written_of_a_commit_reads_back() -> None:
    whole = CommitPin(
        commit="a" * 40, tree="b" * 40, witnesses=("one", "two"), left_out={"docs": f"tree {'c' * 40}"},
        archives={"d" * 40: "e" * 64},
    )  # fmt: skip
    for pin in (whole, CommitPin(commit="a" * 40)):
        assert read_commit_pin(commit_text("1.24.1", pin), "upstream.toml") == pin


VERSION = "9.9.0"
NEEDED = "needed"
"""A package that every other one needs."""


class Index:
    def __init__(self) -> None:
        self.asked: list[tuple[tuple[str, ...], str, bool]] = []
        self.missing: set[tuple[str, str]] = set()
        self.failing = ""

    def __call__(
        self, requirements: Sequence[str], _python: str, platforms: Sequence[str], *, dependencies: bool = True
    ) -> tuple[Resolved, ...] | None:
        machine = platforms[0].rpartition("_")[2]
        self.asked.append((tuple(requirements), machine, dependencies))
        names = [each.partition("==")[0] for each in requirements]
        if self.failing in names:
            raise NetworkError("index-unreachable", "pip cannot reach the package index")
        if any((name, machine) in self.missing for name in names):
            return None
        taken = [*names, *([NEEDED] if dependencies else [])]
        digests = {name: f"{sum(map(ord, name + machine)):064x}" for name in taken}
        return tuple(Resolved(name=name, version=VERSION, sha256=digests[name]) for name in sorted(taken))


@pytest.fixture(name="packages")
def fixture_index(monkeypatch: pytest.MonkeyPatch) -> Index:
    made = Index()
    monkeypatch.setattr(pin_update, "resolved", made)
    return made


@pytest.fixture(name="pins")
def fixture_pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    return tmp_path / "pins"


def names_in(text: str | None) -> list[str]:
    return re.findall(r"^([a-z0-9-]+)==", text or "", re.MULTILINE)


def test_every_file_that_is_installed_from_is_known() -> None:
    engines = {f"engine-{name}" for engine in ENGINES.values() for name in (engine.package, engine.converter) if name}
    assert set(FILES) == {"onnxslim", "onnxsim", "onnx", *engines}
    for name, (_, wanted) in FILES.items():
        assert set(wanted.packages) <= set(names_in(pin_text(f"requirements/{name}.txt"))), name


def test_the_newest_versions_are_pinned_with_what_they_need(packages: Index, pins: Path) -> None:
    """On each machine, in files that ortrim reads in the place of its own; those that stand alone by themselves."""
    written = update_requirements(lambda _: None)
    assert sorted(path.relative_to(pins).as_posix() for path in written) == sorted(
        f"requirements/{name}.txt" for name in FILES
    )
    text = engine_requirements("openvino")
    assert names_in(text) == [NEEDED, "openvino"]
    assert "Made by: invoke pins.update --requirements\n" in text
    assert f"openvino=={VERSION} \\\n    --hash=sha256:" in text
    assert text.count("--hash=sha256:") == 2 * 3
    assert names_in(engine_requirements("ncnn")) == ["ncnn", "numpy", "pnnx"]
    assert engine_requirements("litert-converter").count("--hash=") == 2
    assert (("onnx2tf",), "64", True) in packages.asked


def test_a_machine_without_one_of_the_wheels_has_the_others(packages: Index, pins: Path) -> None:
    packages.missing.add(("tract", "arm64"))
    update_requirements(lambda _: None)
    entries = dict(re.findall(r"^(\w+)==(.*(?:\n .*)*)", engine_requirements("tract"), re.MULTILINE))
    assert {name: entry.count("--hash") for name, entry in entries.items()} == {"tract": 2, "numpy": 3, NEEDED: 3}


def test_nothing_is_written_unless_all_were_found(packages: Index, pins: Path) -> None:
    packages.missing.add(("ai-edge-litert", "64"))
    gone = refused(SourcesError, update_requirements, lambda _: None)
    assert gone.code == "no-wheel"
    packages.failing = "ncnn"
    refused(NetworkError, update_requirements, lambda _: None)
    assert not pins.exists()


NUMPY = {"3.11": "2.4.6", "3.12": "2.5.5", "3.13": "2.5.5", "3.14": "2.5.5"}
"""What pip took for onnxruntime 1.31.1 in November 2026."""


def digest(*words: str) -> str:
    return "".join(f"{ord(letter):02x}" for letter in "".join(words))[-64:].rjust(64, "0")


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    wheels = {python: {"x86_64", "aarch64", "arm64"} for python in NUMPY}

    def resolved(
        requirements: Sequence[str], python: str, platforms: Sequence[str], *, dependencies: bool = True
    ) -> tuple[Resolved, ...] | None:
        machine = platforms[0]
        if not any(machine.endswith(f"_{each}") for each in wheels[python]):
            return None
        assert dependencies == (list(requirements) == ["onnxruntime==1.31.1"])
        runtime = Resolved(name="onnxruntime", version="1.31.1", sha256=digest("o", python, machine))
        numpy = Resolved(name="numpy", version=NUMPY[python], sha256=digest("n", python, machine))
        return (numpy, runtime, Resolved(name="packaging", version="26.3", sha256=digest("p")))

    monkeypatch.setattr(pin_update, "resolved", resolved)
    return wheels


def test_every_wheel_is_pinned(index: dict[str, set[str]]) -> None:
    """Of four Pythons on three machines; what is the same everywhere is there once, and needs no marker."""
    text = converter_text("1.31.1", lambda _: None)
    entries = {line.split("==")[0]: line for line in re.findall(r"^[a-z].*$", text, re.MULTILINE)}
    assert entries["onnxruntime"] == "onnxruntime==1.31.1 \\"
    assert entries["packaging"] == "packaging==26.3 \\"
    assert text.count("--hash=sha256:") == 12 + 12 + 1
    assert runtime_entry(text, "1.31.1").count("--hash") == 12


def test_what_pythons_take_apart_is_marked(index: dict[str, set[str]]) -> None:
    """A Python takes exactly one version of each package."""
    text = converter_text("1.31.1", lambda _: None)
    assert "numpy==2.4.6 ; python_version == '3.11' \\\n" in text
    assert (
        "numpy==2.5.5 ; python_version == '3.12' or python_version == '3.13' or python_version == '3.14' \\\n" in text
    )


def test_a_python_that_was_dropped_is_left_out(index: dict[str, set[str]]) -> None:
    index["3.11"].clear()
    index["3.12"].discard("arm64")
    text = converter_text("1.31.1", lambda _: None)
    assert "2.4.6" not in text
    assert "numpy==2.5.5 \\\n" in text
    assert runtime_entry(text, "1.31.1").count("--hash") == 8


def test_a_version_without_wheels_is_refused(index: dict[str, set[str]]) -> None:
    for machines in index.values():
        machines.discard("x86_64")
    caught = refused(SourcesError, converter_text, "1.31.1", lambda _: None)
    assert caught.code == "no-converter"
    assert "3.11, 3.12, 3.13, 3.14" in caught.what


PINS = """\
# What a reader should know.
[bases.python]
reference = "python:3.13-slim"
digest = "sha256:{old}"
suite = "trixie"

# Of the SDK.
[archives."ndk;27.2.12479018"]

[archives."cmdline-tools;19.0"]
file = "old.zip"
sha256 = "{old}"
""".format(old="0" * 64)
DIGEST = f"sha256:{'a' * 64}"
NDK, TOOLS = b"the ndk", b"the tools"
PACKAGE = (
    '<remotePackage path="{path}"><archives><archive><complete><checksum>{sha1}</checksum><url>{file}</url></complete>'
    "<host-os>linux</host-os></archive></archives></remotePackage>"
)


def sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


class Server(LoopbackService):
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"/ndk.zip": NDK, "/tools.zip": TOOLS}
        self.list(NDK)
        super().__init__()

    def name_of(self, asked: Asked) -> str:
        return asked.path

    def answer(self, asked: Asked) -> Reply:
        return Reply(body=self.files[asked.path]) if asked.path in self.files else Reply(status=404)

    def list(self, ndk: bytes) -> None:
        packages = (("ndk;27.2.12479018", ndk, "ndk.zip"), ("cmdline-tools;19.0", TOOLS, "tools.zip"))
        entries = (PACKAGE.format(path=path, sha1=sha1(content), file=file) for path, content, file in packages)
        self.files["/repository2-3.xml"] = f"<list>{''.join(entries)}</list>".encode()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    engine = fake_engine(tmp_path, monkeypatch)
    program = engine.home / "bin" / "docker"
    program.write_text(f"#!/bin/sh\necho \"$@\" >>'{engine.home}/words'\necho python@{DIGEST}\n")
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    (tmp_path / "pins").mkdir()
    (tmp_path / "pins" / IMAGES_FILE).write_text(PINS)
    return engine


def update(server: Server) -> Path:
    usable = UsableEngine(engine=DOCKER, version="28", rootless=False)
    return update_image_pins(usable, mirrors=((REPOSITORY, server.address),))


def test_every_digest_is_computed_from_the_thing_itself(docker: FakeEngine, server: Server, tmp_path: Path) -> None:
    """Images by what the registry says, archives by their bytes; comments and the rest of the file stay."""
    path = update(server)
    assert path == tmp_path / "pins" / IMAGES_FILE
    pins = read_image_pins(path.read_text())
    assert pins.base("python").digest == DIGEST
    assert pins.archive("ndk;27.2.12479018") == ("ndk.zip", hashlib.sha256(NDK).hexdigest())
    assert pins.archive("cmdline-tools;19.0") == ("tools.zip", hashlib.sha256(TOOLS).hexdigest())
    assert "0" * 64 not in path.read_text()
    assert path.read_text().startswith("# What a reader should know.\n[bases.python]\n")
    assert (docker.home / "words").read_text().splitlines()[0] == "pull --quiet python:3.13-slim"


def test_the_same_again_changes_nothing(docker: FakeEngine, server: Server) -> None:
    first = update(server).read_text()
    assert update(server).read_text() == first


@pytest.mark.parametrize("archives", ["another digest", "no archive", "no list"])
def test_an_archive_that_cannot_be_pinned_keeps_its_pin(
    docker: FakeEngine, server: Server, tmp_path: Path, archives: str
) -> None:
    """Its SHA-1 is not the one in Google's list, or it is not there; the others are pinned, and the error is raised."""
    if archives == "another digest":
        server.list(b"another")
    else:
        del server.files["/ndk.zip" if archives == "no archive" else "/repository2-3.xml"]
    caught = refused(Diagnostic, update, server)
    assert caught.code == ("digest-mismatch" if archives == "another digest" else "download-refused")
    old, pins = read_image_pins(PINS), read_image_pins((tmp_path / "pins" / IMAGES_FILE).read_text())
    assert pins.base("python").digest == DIGEST
    assert pins.archives["ndk;27.2.12479018"] == old.archives["ndk;27.2.12479018"]
    assert (pins.archives == old.archives) == (archives == "no list")


def test_an_image_that_cannot_be_pulled_keeps_its_pin(docker: FakeEngine, server: Server, tmp_path: Path) -> None:
    (docker.home / "bin" / "docker").write_text("#!/bin/sh\necho 'manifest unknown' >&2\nexit 1\n")
    caught = refused(Diagnostic, update, server)
    assert "manifest unknown" in caught.why
    old, pins = read_image_pins(PINS), read_image_pins((tmp_path / "pins" / IMAGES_FILE).read_text())
    assert pins.bases == old.bases
    assert pins.archive("cmdline-tools;19.0")[0] == "tools.zip"


def test_values_go_to_their_own_tables() -> None:
    text = with_values(PINS, {("archives", "cmdline-tools;19.0"): ('file = "x.zip"',)})
    assert text == PINS.replace(f'file = "old.zip"\nsha256 = "{"0" * 64}"', 'file = "x.zip"')


LINUX = ("manylinux_2_28_x86_64",)


@pytest.fixture
def index_resolving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return tmp_path


def add(index_resolving: Path, name: str, tag: str, needs: tuple[str, ...] = ()) -> str:
    path = index_resolving / f"{name}-1.0-{tag}.whl"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {each}" for each in needs)]
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}-1.0.dist-info/METADATA", "\n".join(lines) + "\n")
        wheel.writestr(f"{name}-1.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_each_python_and_machine_has_its_own_wheel(index_resolving: Path) -> None:
    """By its digest; what the requirement needs comes along, when that is wanted."""
    own = add(index_resolving, "runtime", "cp312-cp312-manylinux_2_28_x86_64", ("helper>=1",))
    other = add(index_resolving, "runtime", "cp312-cp312-manylinux_2_28_aarch64", ("helper>=1",))
    helper = add(index_resolving, "helper", "py3-none-any")
    wanted = Resolved(name="helper", version="1.0", sha256=helper), Resolved(name="runtime", version="1.0", sha256=own)
    assert resolved(["runtime==1.0"], "3.12", LINUX) == wanted
    alone = resolved(["runtime==1.0"], "3.12", ("manylinux_2_28_aarch64",), dependencies=False)
    assert alone == (Resolved(name="runtime", version="1.0", sha256=other),)


@pytest.mark.parametrize("python", ["3.11", "3.13"])
def test_a_python_without_a_wheel_has_none(index_resolving: Path, python: str) -> None:
    add(index_resolving, "runtime", "cp312-cp312-manylinux_2_28_x86_64")
    assert resolved(["runtime==1.0"], python, LINUX) is None
    assert resolved(["runtime==2.0"], "3.12", LINUX) is None


def answered(monkeypatch: pytest.MonkeyPatch, stderr: str, report: str = "") -> None:
    def run(argv: tuple[object, ...], **_: object) -> Completed:
        if report:
            Path(str(argv[argv.index("--report") + 1])).write_text(report)
        return Completed(argv=(), returncode=0 if report else 1, stdout="", stderr=stderr)

    monkeypatch.setattr(pin_update, "run", run)


def test_an_index_that_cannot_be_reached_is_not_an_absent_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, "WARNING: Retrying (Retry(total=0\nERROR: No matching distribution found for x==1")
    caught = refused(NetworkError, resolved, ["x==1"], "3.12", LINUX)
    assert caught.code == "index-unreachable"


def test_anything_else_is_reported_in_pips_words(monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, "ERROR: something odd")
    caught = refused(ToolError, resolved, ["x==1"], "3.12", LINUX)
    assert (caught.code, caught.why) == ("install-failed", "ERROR: something odd")


@pytest.mark.parametrize("hashes", ["{}", '{"hashes": {}}', '{"hashes": {"sha256": "no"}}', '{"hashes": {"md5": "a"}}'])
def test_an_index_without_digests_is_refused(monkeypatch: pytest.MonkeyPatch, hashes: str) -> None:
    entry = f'{{"metadata": {{"name": "x", "version": "1"}}, "download_info": {{"archive_info": {hashes}}}}}'
    answered(monkeypatch, "", f'{{"install": [{entry}]}}')
    caught = refused(NetworkError, resolved, ["x==1"], "3.12", LINUX)
    assert caught.code == "bad-index-answer"
