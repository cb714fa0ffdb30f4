"""What follows upstream's build: the job's own commands, such as those that strip a library."""

from ortrim.core.plan import BuildJob
from ortrim.errors import BuildError
from ortrim.executors.build_log import first_error, remedy
from ortrim.executors.cross_built import offer_public_api_alone
from ortrim.executors.paths import JobPaths
from ortrim.executors.places import HERE, Place, finished
from ortrim.executors.workspace import job_environment
from ortrim.platforms.apple_cross import is_cross_built


def finish(job: BuildJob, paths: JobPaths, place: Place = HERE) -> None:
    """Run a job's finishing commands in its build folder, and what a cross-built library for Macs needs.

    Raises `BuildError` `build-failed`, and as `offer_public_api_alone` does.
    """
    environment = job_environment(paths, job.toolchain)
    for command in job.finishing:
        code, lines = finished(place, paths.resolve_all(command), paths=paths, cwd=paths.build, environment=environment)
        if code != 0:
            why = first_error(lines)
            what = f"what follows the build failed: {' '.join(command)}"
            raise BuildError("build-failed", what, where=job.target.identifier, why=why, hint=remedy(why))
    if is_cross_built(job):
        offer_public_api_alone(job, paths)
