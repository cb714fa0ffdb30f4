"""The program `ortrim`: the same tasks, from any folder."""

from importlib.metadata import version

from invoke.program import Program

from ortrim.tasks import namespace

program = Program(namespace=namespace, version=version("ortrim"), name="ortrim", binary="ortrim")


def main() -> None:
    """Run the program on the command line's words and exit."""
    program.run()
