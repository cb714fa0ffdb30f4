"""Machines that run the runner, whatever the platform: this one, emulated ones, boards behind SSH."""
