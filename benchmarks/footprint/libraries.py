"""What the libraries of a spec are: their sizes, and whether ours give the full runtime's outputs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from footprint.contenders import WHEEL
from footprint.record import Library
from footprint.subject import Model, Subject
from ortrim.base.files import sha256_of
from ortrim.binaries.elf import with_elf
from ortrim.compiling.size.library import library_size
from ortrim.devices.device import ProgramDevice
from ortrim.parity.compare import compare
from ortrim.parity.measurements import Verdict
from ortrim.parity.reference import CaseOutputs, SavedOutputs, reference_outputs
from ortrim.parity.runner import RunRequest
from ortrim.verify.measure import ONCE

PACKED: Final = ".relr.dyn"


def libraries_of(subject: Subject, device: ProgramDevice) -> tuple[Library, ...]:
    """Return the wheel's library and ours. Raises `BinaryError`, and as `reference_outputs` and `Device.run` do."""
    wheel = library_of(subject, WHEEL, subject.runtime.library, ())
    return (wheel, *(_ours(subject, profile, device) for profile in subject.libraries))


def has_packed_relocations(path: Path) -> bool:
    """Whether a library has relative relocations in packed form. Raises `BinaryError`."""
    return with_elf(path, lambda elf: elf.get_section_by_name(PACKED) is not None)


def _ours(subject: Subject, profile: str, device: ProgramDevice) -> Library:
    built = subject.libraries[profile]
    agree = tuple(verdict for model in built.models for verdict in agreements(subject, profile, model, device))
    return library_of(subject, profile, built.path, agree)


def library_of(subject: Subject, contender: str, path: Path, agree: tuple[bool, ...]) -> Library:
    """Return what a library is; `agree` says of each output whether it is the full runtime's. Raises `BinaryError`."""
    size = library_size(path, None)
    return Library(
        spec=subject.name,
        contender=contender,
        sha256=sha256_of(path),
        file_bytes=size.file_bytes,
        compressed_bytes=size.compressed_bytes,
        outputs=len(agree),
        outputs_agree=sum(agree),
        packed=has_packed_relocations(path),
    )


def agreements(subject: Subject, profile: str, model: Model, device: ProgramDevice) -> Iterator[bool]:
    """Yield for each output of each case whether it agrees with the full runtime's, optimizations off."""
    name = model.prepared.name
    reference = reference_outputs(model.prepared, model.cases, subject.runtime, subject.folder / "reference")
    folder = subject.folder / profile / name
    folder.mkdir(parents=True, exist_ok=True)
    request = RunRequest(
        runner=subject.runner,
        library=subject.libraries[profile].path,
        model=model.converted.path,
        cases=model.cases,
        name=name,
        outputs=folder,
        session=model.session,
        repetition=ONCE,
    )
    cases = tuple(CaseOutputs(name=case.name, outputs=case.outputs) for case in device.run(request).cases)
    ours = SavedOutputs(folder=folder, cases=cases)
    for output in compare(name, reference, ours, model.spec.tolerances):
        yield output.verdict is not Verdict.FAIL
