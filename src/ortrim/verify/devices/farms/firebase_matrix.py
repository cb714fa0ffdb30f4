"""One test in Test Lab, a matrix of one device in its words: started, listened to, stopped when it takes too long."""

from dataclasses import dataclass
from pathlib import Path

from ortrim.tools.command import Completed
from ortrim.tools.gcloud import Gcloud
from ortrim.verify.devices.farms.firebase_device import FirebaseDevice
from ortrim.verify.devices.farms.firebase_progress import MatrixProgress, time_limit


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """What is asked of Test Lab. `folder` is a new one in the bucket, which is Google's own when `bucket` is empty."""

    app: Path
    test: Path
    device: FirebaseDevice
    folder: str
    bucket: str
    results: str
    seconds: float

    @property
    def arguments(self) -> tuple[str, ...]:
        """gcloud's, for a test without a video, without a second attempt, with nobody logged in.

        A second attempt that passes would hide a first one that failed. `no-isolated-storage` lets an instrumentation
        write where Test Lab reads, as Android's guide to macrobenchmarks has it.
        """
        return (
            "firebase",
            "test",
            "android",
            "run",
            "--type=instrumentation",
            f"--app={self.app}",
            f"--test={self.test}",
            f"--device={self.device.argument}",
            f"--results-dir={self.folder}",
            *((f"--results-bucket={self.bucket}",) if self.bucket else ()),
            f"--directories-to-pull={self.results}",
            f"--environment-variables=additionalTestOutputDir={self.results},no-isolated-storage=true",
            f"--timeout={time_limit(self.seconds)}s",
            "--num-flaky-test-attempts=0",
            "--no-record-video",
            "--no-performance-metrics",
            "--no-auto-google-login",
            "--format=json",
        )


def run_matrix(gcloud: Gcloud, matrix: Matrix, progress: MatrixProgress) -> Completed:
    """Run a test to its end and return what gcloud printed, whatever its exit code.

    Stopped in any way, gcloud cancels the test; when it did not say so, `tell` gets where the user can. Raises
    `VerifyError` (`farm-timeout`) and `ToolError`.
    """
    try:
        return gcloud.watch(*matrix.arguments, hear=progress.hear, check=progress.check)
    except BaseException:
        progress.tell_what_is_left()
        raise
