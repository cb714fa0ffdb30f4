"""The wheel for Python: what installers read of it."""

import base64
import csv
import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename

from ortrim.buildspec.targets import TARGETS
from ortrim.package.wheel import make_wheel, module_name, platform_tag
from sample_package import build_job, make_inputs


def test_each_file_is_recorded_with_its_digest(tmp_path: Path) -> None:
    wheel = make_wheel(make_inputs(tmp_path / "built"), tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith("/RECORD"))
        rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
        assert sorted(path for path, _, _ in rows) == sorted(archive.namelist())
        for path, digest, size in rows:
            content = archive.read(path)
            expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            assert (path == record and not digest) or (digest, size) == (f"sha256={expected}", str(len(content)))


def test_installers_find_what_they_read(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path / "built")
    wheel = make_wheel(inputs, tmp_path)
    name, version, _, tags = parse_wheel_filename(wheel.name)
    module = module_name(inputs.plan.spec_name)
    with zipfile.ZipFile(wheel) as archive:
        about = f"{module}-{version}.dist-info"
        metadata = Metadata.from_email(archive.read(f"{about}/METADATA"))
        assert (metadata.name, str(metadata.version)) == (name, inputs.plan.ort_version)
        assert {f"Tag: {tag}" for tag in tags} <= set(archive.read(f"{about}/WHEEL").decode().splitlines())
        licences = {f"{about}/licenses/{each}" for each in metadata.license_files or ()}
        inside = {f"{module}/{each}" for each in ("__init__.py", "libonnxruntime.so", "models/session.json")}
        assert licences | inside | {f"{about}/sboms/sbom.cdx.json"} <= set(archive.namelist())


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path / "built")
    first = make_wheel(inputs, tmp_path / "first").read_bytes()
    assert make_wheel(inputs, tmp_path / "second").read_bytes() == first


@pytest.mark.parametrize(
    ("target", "glibc", "tag"),
    [
        ("linux-x64", "2.17", "manylinux_2_17_x86_64"),
        ("linux-x64", "", "linux_x86_64"),
        ("linux-arm64", "2.28", "manylinux_2_28_aarch64"),
        ("linux-armhf", "2.28", "manylinux_2_28_armv7l"),
        ("linux-riscv64", "2.27", "manylinux_2_27_riscv64"),
        ("linux-arm64-musl", "", "musllinux_1_2_aarch64"),
    ],
)
def test_a_wheel_says_where_it_loads(target: str, glibc: str, tag: str) -> None:
    assert platform_tag(replace(build_job(), target=TARGETS[target], minimum_glibc=glibc)) == tag
