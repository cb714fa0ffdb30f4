"""The build kernel: from a job of a plan to a library, by upstream's build, on this machine or in a container."""
