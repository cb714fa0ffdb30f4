"""Reports to show and to judge: the demo's, as recorded, and one of four devices made of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ortrim.parity.measurements import HostFacts, LeastMemory, RunnerResult, Verdict
from ortrim.report.write import read_report
from ortrim.verify.reports import DeviceFailure, DeviceReport, VerifyReport

RECORDED: Final = Path(__file__).parents[1] / "unit" / "report" / "data" / "report.json"
DEADLINE_MS: Final = 0.4
MACHINE: Final = HostFacts(
    system="Linux",
    machine="aarch64",
    cpu="Cortex-A53",
    cores=1,
    memory_bytes=232_079_360,
    kind="vm",
    model="qemu 7.2.22 virt, cortex-a53, 256 MiB",
    abi="aarch64",
    os_version="Linux 6.12.107",
    fingerprint="libc6 2.41-12",
    page_bytes=4096,
    cpu_features=("asimd", "fp"),
    time_meaningful=False,
)
PHONE: Final = replace(
    MACHINE,
    cpu="Kryo 585",
    cores=8,
    memory_bytes=7_800_000_000,
    kind="physical",
    model="SM-G981B",
    soc="Qualcomm SM8250",
    abi="arm64-v8a",
    os_version="Android 13",
    api_level=33,
    thermal_before=0,
    thermal_after=1,
    battery_celsius=31.25,
    time_meaningful=True,
)


def recorded_report() -> VerifyReport:
    """Return a report with the figures of the demo model on the host."""
    return read_report(RECORDED)


def on_device(report: VerifyReport, **changes: Any) -> VerifyReport:
    first, *rest = report.devices
    return replace(report, devices=(replace(first, **changes), *rest))


def four_devices() -> VerifyReport:
    """Return a report of an emulator, an emulated machine, a phone, and a board that went away."""
    report = recorded_report()
    (host,) = report.devices
    devices = (user_emulation(host), machine(host), phone(host), lost_board())
    return replace(report, target="linux-arm64", devices=devices, verdict=Verdict.FAIL)


def user_emulation(host: DeviceReport) -> DeviceReport:
    name = "qemu-user:cortex-a53"
    device = unjudged(host, name, "memory", "bytes")
    device = unjudged(device, name, "time", "ms")
    emulated = replace(MACHINE, kind="user-emulation", model="", memory_meaningful=False)
    return replace(device, device=name, host=emulated, runs=host.runs[:1])


def machine(host: DeviceReport) -> DeviceReport:
    name = "qemu-system:cortex-a53"
    least = LeastMemory(
        model="silero_vad",
        enough_mib=58,
        too_little_mib=56,
        usable_bytes=24_576_000,
        tried=((256, "enough"), (56, "out-of-memory"), (58, "enough")),
    )
    return replace(
        unjudged(host, name, "time", "ms"),
        device=name,
        host=MACHINE,
        least_memory=(least,),
        traces=("outputs/qemu-system_cortex-a53/silero_vad/trace.json",),
        verdict=Verdict.PASS,
    )


def phone(host: DeviceReport) -> DeviceReport:
    name = "adb:R58M12ABCDE"
    line = replace(
        host.comparisons[-1], measure="missed deadlines", case="four-frames", unit="runs", ours=1.0, baseline=0.0,
        ratio=None, spread=None, budget=0.0, budget_is_ratio=False, verdict=Verdict.FAIL,
    )  # fmt: skip
    runs = tuple(map(_with_deadline, host.runs))
    lines = (*host.comparisons, line)
    return replace(host, device=name, host=PHONE, runs=runs, comparisons=lines, verdict=Verdict.FAIL)


def lost_board() -> DeviceReport:
    failure = DeviceFailure(
        code="device-lost",
        what="the connection broke",
        where="ssh:pi@board",
        why="client_loop: send disconnect: Broken pipe",
        hint="see that it is switched on, then run the same command again",
        exit_code=19,
    )
    return DeviceReport(
        device="ssh:pi@board",
        run_id="5a0e3c5e-6f5d-4a3b-9d7a-0d6b3c1f2e4d",
        started="2026-11-21T16:00:00+00:00",
        duration_s=12.5,
        host=None,
        baseline="onnxruntime 1.21.0 (official wheel)",
        comparisons=(),
        parity=(),
        runs=(),
        failure=failure,
        verdict=Verdict.FAIL,
    )


def hostile_board() -> DeviceReport:
    board = lost_board()
    assert board.failure is not None
    text = "\x1b[2J<script>alert(1)</script>\n| a | `b` @you https://example.org"
    failure = replace(board.failure, what=text, where=text, why=text, hint=text, code="device-lost")
    return replace(board, device=f"ssh:{text}", failure=failure)


def unjudged(device: DeviceReport, name: str, subject: str, unit: str) -> DeviceReport:
    why = f"{subject}: what it takes on {name} says nothing about a real device"
    lines = tuple(
        replace(line, verdict=Verdict.NOT_JUDGED, reason=why) if line.unit == unit else line
        for line in device.comparisons
    )
    return replace(device, comparisons=lines)


def _with_deadline(run: RunnerResult) -> RunnerResult:
    cases = (
        replace(case, deadline_ms=DEADLINE_MS, missed=sum(sample > DEADLINE_MS for sample in case.samples_ms))
        for case in run.cases
    )
    return replace(run, cases=tuple(cases))
