"""A Python wheel of what a package for Linux has: the library, the models, and a module that runs them."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

from ortrim.buildspec.targets import Architecture, CLibrary
from ortrim.compiling.plan import BuildJob
from ortrim.package import manifest as manifests
from ortrim.package import package
from ortrim.package.manifest import PackagedFile, PackageInputs

MODULE: Final = "python"
"""The folder of `resources/package` with the module's source."""
MACHINES: Final = {
    Architecture.X64: "x86_64",
    Architecture.ARM64: "aarch64",
    Architecture.ARM: "armv7l",
    Architecture.RISCV64: "riscv64",
}
OLDEST_MUSL: Final = "1_2"
METADATA: Final = """\
Metadata-Version: 2.4
Name: {name}
Version: {version}
Summary: {spec}, with the part of ONNX Runtime that it needs
Requires-Python: >=3.10
Requires-Dist: numpy
License-Expression: {licences}
License-File: LICENSE
License-File: ThirdPartyNotices.txt
"""
WHEEL: Final = """\
Wheel-Version: 1.0
Generator: ortrim
Root-Is-Purelib: false
Tag: py3-none-{tag}
"""


def module_name(spec_name: str) -> str:
    """Return what a program imports; with hyphens it is the distribution's name."""
    return f"ortrim_{re.sub(r'[-_.]+', '_', spec_name).lower()}"


def platform_tag(job: BuildJob) -> str:
    """Return where a library loads, as wheels say it (PEP 600, PEP 656); of a system's compiler it is not known."""
    machine = MACHINES[job.target.architecture]
    if job.target.c_library is CLibrary.MUSL:
        return f"musllinux_{OLDEST_MUSL}_{machine}"
    libc = f"manylinux_{job.minimum_glibc.replace('.', '_')}" if job.minimum_glibc else "linux"
    return f"{libc}_{machine}"


def make_wheel(inputs: PackageInputs, destination: Path) -> Path:
    """Make the wheel in the folder `destination`; the same inputs give the same bytes."""
    module, version, tag = module_name(inputs.plan.spec_name), inputs.plan.ort_version, platform_tag(inputs.job)
    about = f"{module}-{version}.dist-info"
    licences = " AND ".join(manifests.all_licences(inputs))
    values = {"name": module.replace("_", "-"), "version": version, "spec": inputs.plan.spec_name, "licences": licences}
    files = (
        *(
            PackagedFile(path=f"{module}/{each.path}", content=each.content)
            for each in package.project_files(MODULE, {})
        ),
        PackagedFile(path=f"{module}/{package.LIBRARY}", content=inputs.result.library, mode=package.PROGRAM_MODE),
        *package.model_files(inputs, f"{module}/models"),
        PackagedFile(path=f"{about}/METADATA", content=METADATA.format(**values).encode()),
        PackagedFile(path=f"{about}/WHEEL", content=WHEEL.format(tag=tag).encode()),
        PackagedFile(path=f"{about}/licenses/LICENSE", content=package.plain_text(inputs.licence)),
        PackagedFile(path=f"{about}/licenses/ThirdPartyNotices.txt", content=package.notices_text(inputs)),
    )
    manifest_of = partial(manifests.make_manifest, inputs)
    files, _ = manifests.described(inputs, inputs.name, files, manifest_of, folder=f"{about}/sboms/")
    record = PackagedFile(path=f"{about}/RECORD", content=_record(files, f"{about}/RECORD").encode())
    wheel = destination / f"{module}-{version}-py3-none-{tag}.whl"
    package.write_zip(wheel, (*files, record))
    return wheel


def _record(files: Iterable[PackagedFile], own: str) -> str:
    entries = (each.entry for each in files)
    lines = (f"{each.path},sha256={_digest(each.sha256)},{each.size_bytes}\n" for each in entries)
    return "".join((*lines, f"{own},,\n"))


def _digest(hexadecimal: str) -> str:
    return urlsafe_b64encode(bytes.fromhex(hexadecimal)).decode().rstrip("=")
