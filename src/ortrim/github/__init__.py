"""GitHub: its API, remote builds, workflow files, releases, and the jobs that workflows call."""
