"""The native executor's surroundings: sources whose build.py is a few lines of a test's own, tools, and a cache."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from textwrap import indent

from ortrim.base.cache import cache_folder
from ortrim.base.files import shipped_folder
from ortrim.compiling.executor import Executor
from ortrim.compiling.plan import digest
from ortrim.compiling.workspace import BuildInputs, Parallelism, finished_build
from ortrim.platforms import platform_of
from program_files import write_program
from sample_plans import sample_plan

LIBRARY = "MinSizeRel/libonnxruntime.so.1.21.0"
LINKED = Path(__file__).parents[1] / "unit" / "binaries" / "data" / "framed.so"
PREAMBLE = f"""
import json, os, pathlib, re, shutil, signal, sys, time
build = pathlib.Path(sys.argv[sys.argv.index("--build_dir") + 1])
configured = build / "MinSizeRel"
configured.mkdir(exist_ok=True)
phase = sys.argv[1].removeprefix("--")
(build / "calls").open("a").write(phase[0])
seen = {{"argv": sys.argv[1:], "environment": dict(os.environ), "cwd": os.getcwd()}}
(build / f"{{phase}}.json").write_text(json.dumps(seen))
def leave(*names):
    for name in names:
        (build / name).write_text(name)
        if name == "{LIBRARY}":
            shutil.copy("{LINKED}", build / name)
OUTPUTS = ("{LIBRARY}", "link.map")
"""
GOOD = """
print("compiling")
for n in (1, 2):
    print(f"[{n}/2] Building CXX object dir/file{n}.cc.o")
leave(*OUTPUTS)
"""


class Workshop:
    """Sources, tools and a cache for one test; `progress` and `notes` are what the executor reported."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.progress: list[tuple[int, int, str]] = []
        self.notes: list[str] = []
        self.log = folder / "artifacts" / "linux-x64" / "build.log"
        self.job = sample_plan().targets[0].job
        self.write("")
        headers = self.sources / "onnxruntime" / "include" / "onnxruntime" / "core" / "session"
        for name in ("onnxruntime_c_api.h", "onnxruntime_experimental_c_api.inc", "other.h", "snippets.dox"):
            (headers / name).parent.mkdir(parents=True, exist_ok=True)
            (headers / name).write_text(name)
        (folder / "tools" / "bin").mkdir(parents=True)
        self.tool("ccache", "")
        (folder / "runner").mkdir()

    @property
    def sources(self) -> Path:
        return self.folder / "sources"

    def write(self, script: str, update: str = "print('configuring')") -> None:
        path = self.sources / "onnxruntime" / "tools" / "ci_build" / "build.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        phases = (("update", update), ("build", script))
        blocks = (f"if phase == {name!r}:\n    pass\n{indent(text, '    ')}\n" for name, text in phases)
        path.write_text(PREAMBLE + "".join(blocks), encoding="utf-8")

    def tool(self, name: str, script: str) -> None:
        write_program(self.folder / "tools" / "bin" / name, script)

    def executor(
        self, on_progress: Callable[[int, int, str], None] | None = None, *, pruned: bool = True, cached: bool = True
    ) -> Executor:
        folder, platform = self.folder, platform_of(self.job.target)
        return Executor(
            inputs=BuildInputs(
                sources=self.sources,
                tools=folder / "tools",
                runner=folder / "runner",
                hooks=shipped_folder("cmake"),
                installed=platform.installed,
                finish=platform.finish,
            ),
            log=self.log,
            parallelism=Parallelism(jobs=3, reason="as asked"),
            on_progress=on_progress or (lambda *step: self.progress.append(step)),
            on_note=self.notes.append,
            pruned=pruned,
            cached=cached,
        )

    @property
    def tree(self) -> Path:
        return cache_folder("trees") / digest(replace(self.job, operator_config=""))[:20]

    def calls(self) -> str:
        """Return in which phases build.py ran in the tree, a letter for each: update, build."""
        path = self.tree / "out" / "calls"
        return path.read_text() if path.is_file() else ""

    def seen(self, phase: str) -> dict[str, object]:
        """Return what build.py saw of the world in a phase."""
        found: dict[str, object] = json.loads((self.tree / "out" / f"{phase}.json").read_text())
        return found

    def nothing_finished(self) -> bool:
        """Whether no finished build and no half of one is there."""
        return not [path.name for path in finished_build(self.job).parent.iterdir() if path.is_dir()]
