"""Search for sizes and values with which a model runs in the full runtime, and whose outputs show something.

Runs inside the full runtime's own Python, so it imports only the standard library, NumPy and onnxruntime; what an
output has to show is in a file of NumPy alone that parity reads, too. Called with the path of a request in JSON; writes
its answer beside it. What is tried is printed to stderr first, one line each, so
that a crash can be told from what was not tried.
"""

import heapq
import itertools
import json
import re
import runpy
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

limit_memory = runpy.run_path(str(Path(__file__).with_name("memory.py")))["limit_memory"]
EVIDENCE = runpy.run_path(str(Path(__file__).parents[2] / "parity" / "evidence.py"))
SILENT = 4
MOST_ELEMENTS = 2**22
LARGEST_SIZE = 200_000
MOST_TRIES = 600
LONGEST_WORDS = 600
NUMBER = re.compile(r"(?<![\w.])-?\d{1,6}(?![\w.])")
NODE = re.compile(r"Name:'[^']*'|node \([^)]*\)|[\w/\\.]+\.(?:cc|h):\d+|\[ONNXRuntimeError\] : \d+")
MARKER = re.compile(r"ortrim_marker_(\d+)_kernel_time")
TYPES = {"bool": np.bool_, "bfloat16": np.uint16}
CRASHED = "the full runtime crashed"
WORDS = ("a", "the", "model", "42")
MOST_HINTS = 6
MOST_NUMBERS = 8
MOST_OTHERS = 5
TYPICAL_SECONDS = 1.0
PROMPTS = (1, 7)
STEPS = ("sequence", "frames", "samples", "size")
"""What may grow from run to run."""
CHEAP_SECONDS = 0.25
MOST_RUNS = 16
"""How many there are of a model whose inputs have no room for all values that it tells apart."""

MOST_ALIKE = 6
"""How many runs of other values there are before those of an output that stay the same say that it shows nothing."""

LOOKUP_SECONDS = 1.0
LARGEST_TABLE = 2048
"""For so long, values are sought that lead to further entries of tables, and of tables with so many at most."""
FEW_DRAWS = 8
MOST_DRAWS = 512
MOST_WANTED = 4096
"""How many elements an input gets at most so that all entries of tables are looked up."""
RANGES = (15, 120, 900)
WIDE = ("float", "int16", "int32", "int64")
"""What such ranges fit into."""
BETTER = 1.25
"""How many times as many entries other values have to lead to."""

Sizes = dict[str, int]
Way = tuple[Sizes, list[int]]
"""The sizes of a run, and the number of the filling for each input."""


def main(request_path: Path) -> None:
    """Answer `{"load": words, "refusal": {"sizes", "words"}, "tries", "shown", "sums", "unfed": words, "runs"}`.

    Each of the runs is `{"sizes", "fillings", "typical", "after"}`; the last is the number of the run that feeds it.
    """
    request = json.loads(request_path.read_text(encoding="utf-8"))
    limit_memory(request["memory_bytes"])
    answer: dict[str, Any] = {"load": "", "refusal": {}, "tries": 0, "runs": [], "shown": [], "sums": {}, "unfed": ""}
    try:
        session = load(request["model"])
    except Exception as error:  # noqa: BLE001 - whatever loading raises is the answer
        answer["load"] = words_of(error)
    else:
        search = Search(session, request)
        answer["runs"] = search.cases()
        answer |= {"refusal": search.refusal, "tries": search.tries, "shown": search.shown}
        answer |= {"sums": search.sums, "unfed": search.unfed}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def load(model: str, profile: str = "") -> onnxruntime.InferenceSession:
    """Make a session as for reference outputs; with `profile`, its runs are written to a file that begins so."""
    onnxruntime.set_default_logger_severity(SILENT)
    options = onnxruntime.SessionOptions()
    options.enable_profiling = bool(profile)
    options.profile_file_prefix = profile
    options.log_severity_level = SILENT
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def words_of(error: Exception) -> str:
    """Return what the runtime says, on one line, or else the error's class: a `MemoryError` has no words."""
    return " ".join(str(error).split())[:LONGEST_WORDS] or type(error).__name__


class Search:
    """Tries in the full runtime, until the time is up."""

    def __init__(self, session: onnxruntime.InferenceSession, request: dict[str, Any]) -> None:
        self.session = session
        self.inputs: list[dict[str, Any]] = request["inputs"]
        self.dimensions: dict[str, dict[str, Any]] = {each["name"]: each for each in request["dimensions"]}
        self.sums: dict[str, list[int | str]] = request["sums"]
        self.tokens: list[str] = request["tokens"]
        self.marked: str | None = request["marked"]
        self.probabilities: list[str] = request["probabilities"]
        self.skipped: list[str] = request["skip"]
        self.beyond = re.compile(request["beyond"], re.IGNORECASE)
        self.ends = time.monotonic() + request["seconds"]
        self.seconds_each: float = request["seconds_each"]
        self.better_seconds: float = request["better_seconds"]
        self.refusal: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}
        self.tables: list[dict[str, Any]] = request["tables"]["read"]
        self.indices = load(request["tables"]["path"]) if self.tables else None
        self.leading: list[str] = request["tables"]["inputs"]
        self.wanted: dict[int, int] = {}
        self.ran: dict[tuple[str, int], dict[str, Any]] = {}
        self.shown: list[str] = []
        self.unfed = ""
        self.tries = 0
        self.states = [each for each in self.inputs if each["fed_by"]]
        plain = {size for each in self.inputs if not each["fed_by"] for size in each["shape"]}
        self.past = {
            size for each in self.states for size in each["shape"] if size in self.growing() and size not in plain
        }

    def cases(self) -> list[dict[str, Any]]:
        """Return the runs: small sizes, larger ones, steps, another way through branches, typical sizes.

        The larger sizes have room for all values that the model tells apart, as far as that takes no time; runs at the
        small ones follow if not.
        """
        base = self.base([0] * len(self.inputs))
        if base is None:
            return []
        sizes, fillings = base
        self.ends = min(self.ends, time.monotonic() + self.better_seconds)
        sizes = self.unrelated(sizes, fillings)
        first = self.without_past(sizes, fillings)
        fillings = self.telling(self.holding(first, fillings), fillings)
        larger = self.holding(self.larger(sizes, fillings), fillings)
        if self.tables and self.unread([(first, fillings), (larger, fillings)]):
            fillings = self.reaching(first, fillings)
            larger = self.holding(larger, fillings)
        runs = [self.described(first, fillings)]
        fed = self.fed(sizes, fillings)
        second = (larger, fed if self.attempt(larger, fed) is None else fillings)
        runs.append(self.described(*second))
        for number, step in enumerate(self.steps(first, fillings), 1):
            runs.append(self.described(step, fillings, after=number if number > 1 else 0))
        runs += [self.described(prompt, fillings) for prompt in self.prompts(first, fillings)]
        if way := self.other_way((first, fillings), second):
            runs.append(self.described(*way))
        if typical := self.typical(first, second[0], fillings):
            runs.append(self.described(typical, fillings, typical=True))
        if self.attempt(first, fillings, seed=len(runs), seconds=CHEAP_SECONDS) is None:
            runs += [self.described(first, fillings)] * (self.rounds(second[0], fillings) - len(runs))
        return runs

    # --- sizes that run

    def base(self, fillings: list[int]) -> tuple[Sizes, list[int]] | None:
        """Return the first sizes and fillings that run: likely ones first, then what refusals suggest."""
        lengths: dict[str, int] = {}
        for each in self.dimensions.values():
            lengths[each["kind"]] = max(lengths.get(each["kind"], 0), len(each["sizes"]))
        order = itertools.count()
        waiting: list[tuple[float, int, dict[str, int] | None, Sizes, list[int]]] = []

        def put(cost: float, steps: dict[str, int] | None, sizes: Sizes, given: list[int]) -> None:
            heapq.heappush(waiting, (cost, next(order), steps, sizes, given))

        first = dict.fromkeys(lengths, 0)
        for number, given in enumerate([fillings, *self.other_fillings(fillings)]):
            put(3.0 * number, first, self.sizes_at(first), given)
        seen: set[str] = set()
        while waiting and self.time_left():
            cost, _, steps, sizes, given = heapq.heappop(waiting)
            for kind, step in (steps or {}).items():
                if step + 1 < lengths[kind]:
                    further = {**(steps or {}), kind: step + 1}
                    put(cost + 1.0, further, self.sizes_at(further), given)
            key = json.dumps([sizes, given])
            if key in seen:
                continue
            seen.add(key)
            refusal = self.attempt(sizes, given)
            if refusal is None:
                return sizes, given
            for rank, hinted in enumerate(self.hinted(sizes, given, refusal)):
                put(cost + 0.4 + 0.05 * rank, None, *hinted)
        return None

    def sizes_at(self, steps: dict[str, int]) -> Sizes:
        """Return the sizes at some step of each kind's candidates."""
        return {
            name: each["sizes"][min(steps.get(each["kind"], 0), len(each["sizes"]) - 1)]
            for name, each in self.dimensions.items()
        }

    def hinted(self, sizes: Sizes, fillings: list[int], words: str) -> list[tuple[Sizes, list[int]]]:
        """Return what a refusal suggests: the numbers that it names, and sizes that would scale to them."""
        if words == CRASHED or self.beyond.search(words):
            lower = [
                min(given + 1, len(each["fillings"]) - 1) if each["element_type"].startswith(("int", "uint")) else given
                for given, each in zip(fillings, self.inputs, strict=True)
            ]
            return [(sizes, lower)] if lower != fillings else []
        numbers = [int(number) for number in NUMBER.findall(NODE.sub(" ", words))]
        # A size of 1 would go with any other by broadcasting, and show little.
        numbers = list(dict.fromkeys(number for number in numbers if 1 < number <= LARGEST_SIZE))[:MOST_NUMBERS]
        found = []
        for names in self.groups(list(sizes)):
            size = sizes[names[0]]
            wanted: list[int] = []
            for one, other in itertools.permutations(numbers, 2):
                scaled = (size * other / one, size * (other / one) ** 0.5)
                wanted += [round(each) for each in scaled if abs(each - round(each)) < 1e-6]
            step = self.dimensions[names[0]]["stride"]
            likely = [each for each in dict.fromkeys((*wanted, *numbers)) if 1 < each <= LARGEST_SIZE and each != size]
            likely = [each for each in likely if each % step == 0]
            most = 2 if self.dimensions[names[0]]["kind"] == "batch" else MOST_HINTS
            found += [({**sizes, **dict.fromkeys(names, each)}, fillings) for each in likely[:most]]
        return found

    def groups(self, names: list[str]) -> list[list[str]]:
        """Return dimensions that may be changed, those of one kind together and each alone; batches come last."""
        free = [name for name in names if len(self.dimensions[name]["sizes"]) > 1]
        kinds: dict[str, list[str]] = {}
        for name in free:
            kinds.setdefault(self.dimensions[name]["kind"], []).append(name)
        groups = [*(alike for alike in kinds.values() if len(alike) > 1), *([name] for name in free)]
        return sorted(groups, key=lambda group: self.dimensions[group[0]]["kind"] == "batch")

    # --- one try

    def time_left(self) -> bool:
        """Whether something more may be tried."""
        return time.monotonic() < self.ends and self.tries < MOST_TRIES

    def attempt(
        self, sizes: Sizes, fillings: list[int], seed: int = 0, seconds: float = 0.0, fed: dict[str, Any] | None = None
    ) -> str | None:
        """Run, unless that was the first run or the last; return why not, None when `outputs` hold what came.

        What is `fed` takes the place of what would be made.
        """
        sizes = self.whole(sizes)
        line = json.dumps([sizes, fillings, seed] if fed else [sizes, fillings])
        if line in self.skipped:
            return CRASHED
        if (line, seed) in self.ran:
            self.outputs = self.ran[line, seed]
            return None
        if self.dimensions and any(np.prod(shape, dtype=float) > MOST_ELEMENTS for shape in self.shapes(sizes)):
            return f"an input would have more than {MOST_ELEMENTS} elements"
        self.tries += 1
        print(f"trying {line}", file=sys.stderr, flush=True)  # noqa: T201
        options = onnxruntime.RunOptions()
        options.log_severity_level = SILENT
        timer = threading.Timer(seconds or self.seconds_each, setattr, (options, "terminate", True))
        timer.daemon = True
        feeds = {**self.feeds(sizes, fillings, seed), **(fed or {})}
        timer.start()
        try:
            values = self.session.run(None, feeds, options)
        except Exception as error:  # noqa: BLE001 - whatever running raises is the answer
            words = words_of(error)
            self.refusal = {"sizes": sizes, "words": words}
            return words
        finally:
            timer.cancel()
        names = [output.name for output in self.session.get_outputs()]
        self.outputs = dict(zip(names, values, strict=True))
        self.ran = {**dict(list(self.ran.items())[:1]), (line, seed): self.outputs}
        return None

    def shapes(self, sizes: Sizes) -> list[tuple[int, ...]]:
        """Return the shapes of the inputs."""
        return [tuple(sizes.get(size, size) for size in each["shape"]) for each in self.inputs]

    def feeds(self, sizes: Sizes, fillings: list[int], seed: int) -> dict[str, Any]:
        """Make the inputs."""
        random = np.random.default_rng(seed)
        return {
            each["name"]: made(each, each["fillings"][given], shape, sizes, random)
            for each, given, shape in zip(self.inputs, fillings, self.shapes(sizes), strict=True)
        }

    def whole(self, sizes: Sizes) -> Sizes:
        """Return the sizes with those that are sums of others."""
        sums = {
            name: sum(term if isinstance(term, int) else sizes[term] for term in terms)
            for name, terms in self.sums.items()
        }
        return {**sizes, **sums}

    def described(
        self, sizes: Sizes, fillings: list[int], *, typical: bool = False, after: int | None = None
    ) -> dict[str, Any]:
        """Return a run as the answer has it."""
        return {
            "typical": typical,
            "after": after,
            "sizes": self.whole(sizes),
            "fillings": [each["fillings"][at] for each, at in zip(self.inputs, fillings, strict=True)],
        }

    # --- values that show something

    def telling(self, sizes: Sizes, fillings: list[int]) -> list[int]:
        """Return the fillings with which most outputs show something; those that branches compare with stay."""
        best, self.shown = fillings, self.showing(sizes, fillings)
        for at, each in enumerate(self.inputs):
            for other in range(1, 0 if each["selects"] else len(each["fillings"])):
                if len(self.shown) == len(self.session.get_outputs()) or not self.time_left():
                    return best
                given = [*best[:at], other, *best[at + 1 :]]
                shown = self.showing(sizes, given)
                if len(shown) > len(self.shown):
                    best, self.shown = given, shown
        return best

    def showing(self, sizes: Sizes, fillings: list[int]) -> list[str]:
        """Return the outputs that show something, differing between two runs of other values or more."""
        seen: list[dict[str, Any]] = []
        shown: list[str] = []
        least = max(2, self.rounds(sizes, fillings))
        # Of two values that are told apart, two runs may well draw the same.
        for seed in range(max(MOST_ALIKE, least)):
            if seed >= least and (len(shown) == len(self.outputs) or not self.time_left()):
                break
            if self.attempt(sizes, fillings, seed) is not None:
                return []
            seen.append(self.outputs)
            if len(seen) >= least:
                shown = [name for name in seen[0] if tells([each[name] for each in seen], name in self.probabilities)]
        return shown

    # --- entries of tables

    def unread(self, ways: list[Way]) -> int:
        """Return how many entries of tables that are not large no such run looks up."""
        found = set[tuple[int, int]]().union(*(self.entries(*way, seed) or () for seed, way in enumerate(ways)))
        return sum(int(table["entries"]) for table in self.tables if table["entries"] <= LARGEST_TABLE) - len(found)

    def entries(self, sizes: Sizes, fillings: list[int], seed: int) -> set[tuple[int, int]] | None:
        """Return which entries of which tables a run looks up; None if the model refuses it."""
        assert self.indices is not None
        try:
            found = self.indices.run(None, self.feeds(self.whole(sizes), fillings, seed))
        except Exception:  # noqa: BLE001 - as above
            return None
        pairs = zip(self.tables, found, strict=True)
        named = [EVIDENCE["entries"](index, table["dimensions"], table["axis"]) for table, index in pairs]
        if any(table["bounded"] and -1 in own for table, own in zip(self.tables, named, strict=True)):
            return None
        small = [number for number, table in enumerate(self.tables) if table["entries"] <= LARGEST_TABLE]
        return {(number, entry) for number in small for entry in named[number] if entry >= 0}

    def reaching(self, sizes: Sizes, fillings: list[int]) -> list[int]:
        """Return the fillings with which most entries are looked up; note how many elements that takes."""
        ends = time.monotonic() + LOOKUP_SECONDS
        self.ends += LOOKUP_SECONDS
        ways = [fillings]
        for at, each in enumerate(self.inputs):
            if each["name"] in self.leading and not (
                each["selects"] or each["fed_by"] or each["fillings"][0]["count_from"]
            ):
                blank, is_float = dict.fromkeys(each["fillings"][0]), each["element_type"].startswith("float")
                for high in RANGES if each["element_type"].startswith(WIDE) else ():
                    bounds = {"low": -high if is_float else None, "high": high}
                    each["fillings"].append({**blank, "needed": 0, "why": "entries of tables", **bounds})
                others = (other for other in range(len(each["fillings"])) if other != fillings[at])
                ways += [[*fillings[:at], other, *fillings[at + 1 :]] for other in others]
        likely = [(len(self.drawn(sizes, way, FEW_DRAWS, ends - LOOKUP_SECONDS / 2)[0]), way) for way in ways]
        least, draws = BETTER * likely[0][0], 0
        for _, way in sorted((pair for pair in likely if pair[0] > least), key=lambda pair: -pair[0]):
            _, draws = self.drawn(sizes, way, MOST_DRAWS, ends)
            if draws and len(self.showing(sizes, way)) >= len(self.shown):
                fillings = way
                break
        else:
            _, draws = self.drawn(sizes, fillings, MOST_DRAWS, ends)
        for at, (each, shape) in enumerate(zip(self.inputs, self.shapes(self.whole(sizes)), strict=True)):
            if each["name"] in self.leading:
                self.wanted[at] = min(MOST_WANTED, 2 * draws * int(np.prod(shape)))
        return fillings

    def drawn(self, sizes: Sizes, fillings: list[int], most: int, ends: float) -> tuple[set[tuple[int, int]], int]:
        """Return what runs of other values look up, and after how many there was nothing new; 0 if one is refused."""
        found: set[tuple[int, int]] = set()
        last = 0
        for seed in range(most):
            entries = self.entries(sizes, fillings, seed)
            if entries is None:
                return set(), 0
            last = last if entries <= found else seed + 1
            found |= entries
            if time.monotonic() > ends or seed > MOST_RUNS + 2 * last:
                break
        return found, last

    def fed(self, sizes: Sizes, fillings: list[int]) -> list[int]:
        """Return the fillings with states as large as those that the model itself gives; any where these are zero."""
        if not any(each["fed_by"] for each in self.inputs) or self.attempt(sizes, fillings) is not None:
            return fillings
        fillings = list(fillings)
        for at, each in enumerate(self.inputs):
            value = self.outputs.get(each["fed_by"])
            if isinstance(value, np.ndarray) and value.size and np.isfinite(value).all():
                low, high = (float(f"{edge:.2g}") for edge in (value.min(), value.max()))
                if low < high or (value.dtype.kind == "f" and not value.any()):
                    bounds = {"low": low, "high": high} if low < high else {}
                    each["fillings"].append({**dict.fromkeys(each["fillings"][0]), "needed": 0, **bounds})
                    fillings[at] = len(each["fillings"]) - 1
        return fillings

    # --- states, which are fed from run to run

    def growing(self) -> list[str]:
        """Return the dimensions that may grow from run to run."""
        return [name for name, each in self.dimensions.items() if each["kind"] in STEPS and len(each["sizes"]) > 1]

    def unrelated(self, sizes: Sizes, fillings: list[int]) -> Sizes:
        """Return the sizes without those that have to be the sum of two others, as trying shows; note these sums.

        Such is the mask of a decoder, which is as long as the cache and the new tokens.
        """
        growing = self.growing() if self.past else []
        for total, one, other in itertools.permutations(growing, 3):
            if one > other or sizes[total] != sizes[one] + sizes[other] or not self.time_left():
                continue
            others = {**sizes, one: 2 * sizes[one], other: 3 * sizes[other]}
            others[total] = others[one] + others[other]
            alone = {**sizes, one: others[one]}
            if self.attempt(others, fillings) is None and self.attempt(alone, fillings) is not None:
                self.sums[total] = [one, other]
                del self.dimensions[total]
                return self.unrelated({name: size for name, size in sizes.items() if name != total}, fillings)
        return sizes

    def given_states(self) -> dict[str, Any]:
        """Return what the last run gave for the next one's states; nothing if any output is empty, or no tensor."""
        if not all(isinstance(value, np.ndarray) and value.size for value in self.outputs.values()):
            return {}
        return {each["name"]: self.outputs[each["fed_by"]] for each in self.states}

    def without_past(self, sizes: Sizes, fillings: list[int]) -> Sizes:
        """Return the sizes of a first run, of which states that grow are empty, if the model takes that."""
        empty = {**sizes, **dict.fromkeys(self.past, 0)}
        return empty if self.past and self.attempt(empty, fillings) is None and self.given_states() else sizes

    def steps(self, sizes: Sizes, fillings: list[int]) -> Iterator[Sizes]:
        """Yield the sizes of two runs more, of three where states grow, each fed what the one before gave."""
        self.attempt(sizes, fillings)
        for number in (1, 2, 3) if self.past else (1, 2):
            fed = self.given_states()
            for each in self.following(sizes, fed) if fed else ():
                self.unfed = self.attempt(each, fillings, number, fed=fed) or ""
                if not self.unfed and self.given_states():
                    sizes = each
                    yield each
                    break
            else:
                return

    def prompts(self, first: Sizes, fillings: list[int]) -> Iterator[Sizes]:
        """Yield the sizes of first runs with other numbers of tokens: kernels multiply some rows at a time, or one."""
        for count in PROMPTS if self.past and any(first[name] == 0 for name in self.past) else ():
            sizes = {**first, **{name: count for name in self.tokens if name in first}}
            if sizes != first and self.attempt(sizes, fillings) is None:
                yield sizes

    def following(self, sizes: Sizes, fed: dict[str, Any]) -> Iterator[Sizes]:
        """Yield sizes for a run that is fed these states, of a single new token if it reads such or its states grow."""
        of_states = {
            name: size
            for each in self.states
            for name, size in zip(each["shape"], fed[each["name"]].shape, strict=False)
            if name in self.dimensions
        }
        bound = {**sizes, **of_states}
        new = [name for name in self.growing() if name not in of_states]
        likely = [[name for name in new if name in self.tokens]]
        if any(bound[name] != sizes[name] for name in self.past):
            added = {term for terms in self.sums.values() for term in terms}
            likely += [[name for name in new if name in added], new, *([name] for name in new)]
        for names in likely:
            if names:
                yield {**bound, **dict.fromkeys(names, 1)}
        yield bound

    # --- other sizes, other ways

    def larger(self, sizes: Sizes, fillings: list[int]) -> Sizes:
        """Return sizes of which as many as the model allows are others than those of the first case."""
        options = {name: found for name, size in sizes.items() if (found := self.others(name, size))}
        sides = [
            name for name in options if self.dimensions[name]["kind"] == "side" and not self.dimensions[name]["usual"]
        ]
        best = dict(sizes)
        # An image that is no square shows what takes its height for its width.
        trials = (
            [(list(options), 0, sides[1::2]), (list(options), 0, [])] if len(sides) > 1 else [(list(options), 0, [])]
        )
        trials += [
            (names, step, []) for names in sorted(self.groups(list(options)), key=len) for step in range(MOST_OTHERS)
        ]
        for names, step, uneven in trials:
            if not (names and self.time_left()) or any(best[name] != sizes[name] for name in names):
                continue
            steps = {name: min(step + (name in uneven), len(options[name]) - 1) for name in names}
            other = {**best, **{name: options[name][at] for name, at in steps.items()}}
            if self.attempt(other, fillings) is None:
                best = other
        return best

    def room(self, sizes: Sizes, fillings: list[int], wanted: dict[int, int]) -> dict[int, float]:
        """Return, by the numbers of the inputs, for which share of what the model tells apart they have room."""
        told = (each["fillings"][given]["needed"] for each, given in zip(self.inputs, fillings, strict=True))
        pairs = enumerate(zip(self.shapes(self.whole(sizes)), told, strict=True))
        needed = {at: (shape, max(count, wanted.get(at, 0))) for at, (shape, count) in pairs}
        return {at: np.prod(shape) / count for at, (shape, count) in needed.items() if count and 0 not in shape}

    def rounds(self, sizes: Sizes, fillings: list[int]) -> int:
        """Return how many runs at these sizes show all that the model tells apart, within reason."""
        return min(int(-(-1 // min(self.room(sizes, fillings, {}).values(), default=1.0))), MOST_RUNS)

    def holding(self, sizes: Sizes, fillings: list[int]) -> Sizes:
        """Return sizes with room for all that the model tells apart; these ones if none are found that run quickly."""
        free = {name for group in self.groups(list(sizes)) for name in group}
        for part, place in ((1, 0), (1, -1), (8, 0)):
            wanted = dict(sizes)
            for at, share in self.room(sizes, fillings, self.wanted).items():
                names = sorted(free & {*self.inputs[at]["shape"]}, key=self.inputs[at]["shape"].index)
                names.sort(key=lambda name: self.dimensions[name]["kind"] != "batch")
                if names and share < 1:
                    wanted[names[place]] = max(wanted[names[place]], int(-(-sizes[names[place]] // share)) // part)
            batches = [name for name in wanted if name in free and self.dimensions[name]["kind"] == "batch"]
            wanted |= dict.fromkeys(batches, max((wanted[name] for name in batches), default=0))
            if wanted != sizes and self.attempt(wanted, fillings, seconds=CHEAP_SECONDS) is None:
                return wanted
        return sizes

    def others(self, name: str, size: int) -> list[int]:
        """Return sizes to try beside one that runs: larger ones first."""
        each = self.dimensions[name]
        if len(each["sizes"]) == 1:
            return []
        if each["kind"] == "batch":
            return [2 * size, size + 1]
        larger = sorted(other for other in each["sizes"] if size < other <= 8 * size and other != 2 * size)
        smaller = [size // 2] if size > 1 else []
        step = [size + 32] if each["kind"] == "side" and size % 32 == 0 else []
        usual = [other for other in each["usual"] if other > size]
        return list(dict.fromkeys((*usual, 2 * size, *step, *larger[:2], *smaller)))

    def typical(self, small: Sizes, larger: Sizes, fillings: list[int]) -> Sizes | None:
        """Return the sizes at which latency means something, if none of two runs has them and one takes no second."""
        wanted = {name: each["typical"] for name, each in self.dimensions.items() if each["typical"]}
        if any(wanted.items() <= sizes.items() for sizes in (small, larger)):
            return None
        sizes = {**small, **wanted}
        return sizes if self.attempt(sizes, fillings, seconds=TYPICAL_SECONDS) is None else None

    def other_way(self, first: Way, second: Way) -> Way | None:
        """Return the run that enters most bodies which these two do not; one of other values if there are no bodies."""
        if self.marked is None:
            return next(
                (way for given in self.other_fillings(first[1]) if (way := self.running(first[0], given))), None
            )
        entered = self.entered(first) | self.entered(second)
        best, most = None, 0
        for way in self.ways(*first):
            new = len(self.entered(way) - entered)
            best, most = (way, new) if new > most else (best, most)
        return best

    def ways(self, sizes: Sizes, fillings: list[int]) -> Iterator[Way]:
        """Yield runs that may take other branches: by values that are compared, by other values, by sizes."""
        for given in self.other_fillings(fillings):
            if way := self.running(sizes, given):
                yield way
        for at, each in enumerate(self.inputs):
            for other in range(0 if each["selects"] else len(each["fillings"])):
                given = [*fillings[:at], other, *fillings[at + 1 :]]
                if self.time_left() and other != fillings[at] and self.attempt(sizes, given) is None:
                    yield sizes, given
        for names in self.groups(list(sizes)):
            for size in (1, 4 * sizes[names[0]]):
                other_sizes = {**sizes, **dict.fromkeys(names, size)}
                if self.time_left() and other_sizes != sizes and self.attempt(other_sizes, fillings) is None:
                    yield other_sizes, fillings

    def running(self, sizes: Sizes, fillings: list[int]) -> Way | None:
        """Return a run with these fillings, at these sizes or others, if that is found in time."""
        if not self.time_left():
            return None
        way = (sizes, fillings) if self.attempt(sizes, fillings) is None else self.base(fillings)
        return way if way and way[1] == fillings else None

    def entered(self, way: Way) -> set[str]:
        """Return the markers that run: one is in each body of the marked copy."""
        with tempfile.TemporaryDirectory() as folder:
            session = load(self.marked or "", str(Path(folder) / "profile"))
            session.run(None, self.feeds(self.whole(way[0]), way[1], 0))
            text = Path(session.end_profiling()).read_text(encoding="utf-8", errors="replace")
        return set(MARKER.findall(text))

    def other_fillings(self, fillings: list[int]) -> list[list[int]]:
        """Return the fillings with one of the values changed that branches compare with."""
        return [
            [*fillings[:at], other, *fillings[at + 1 :]]
            for at, each in enumerate(self.inputs)
            for other in range(len(each["fillings"]) if each["selects"] else 0)
            if other != fillings[at]
        ]


def made(each: dict[str, Any], filling: dict[str, Any], shape: tuple[int, ...], sizes: Sizes, random: Any) -> Any:
    """Return an input as a case would make it, by other random numbers."""
    kind = each["element_type"]
    value = sizes[filling["size_of"]] if filling["size_of"] else filling["value"]
    if filling["count_from"]:
        numbers = sizes[filling["count_from"]] + np.arange((shape or (1,))[-1])
        return np.broadcast_to(numbers, shape or (1,)).reshape(shape).astype(kind)
    if filling["choices"]:
        return chosen(kind, filling["choices"], shape, random)
    if kind == "string":
        return np.asarray(random.choice(WORDS, shape), dtype=object)
    if value is not None:
        return np.full(shape, value, dtype=TYPES.get(kind, kind))
    if kind.startswith("float"):
        low, high = (
            edge if given is None else given for edge, given in ((-1.0, filling["low"]), (1.0, filling["high"]))
        )
        return np.asarray(random.uniform(low, high, shape), dtype=kind)
    low, high = (edge if given is None else given for edge, given in ((0, filling["low"]), (9, filling["high"])))
    top = 1 if kind == "bool" else int(high)
    return np.asarray(random.integers(int(low), top, shape, endpoint=True)).astype(TYPES.get(kind, kind))


def chosen(kind: str, choices: list[Any], shape: tuple[int, ...], random: Any) -> Any:
    """Return an input of choices, which may be those of each position of the last axis."""
    array = np.empty(shape, dtype=object if kind == "string" else TYPES.get(kind, kind))
    nested = isinstance(choices[0], list)
    for at, own in enumerate(choices if nested else [choices]):
        part = array[..., at] if nested else array[...]
        values = np.array(own, dtype=object).astype(array.dtype)
        order = np.resize(random.permutation(len(values)), part.size)
        part[...] = values[random.permutation(order)].reshape(part.shape)
    return array


def tells(found: list[Any], probabilities: bool) -> bool:  # noqa: FBT001 - as parity judges it
    """Whether an output is worth comparing in some runs: parity would judge it."""
    arrays = [array for each in found for array in parts(each)]
    telling = any(not EVIDENCE["shows_nothing"](array) for array in arrays)
    seen = [EVIDENCE["seen"](array) for array in arrays if array.size]
    return telling and not EVIDENCE["unproved"](seen, cases=len(found), probabilities=probabilities)


def parts(value: Any) -> Iterator[Any]:
    """Yield the arrays in an output: those of a sequence's elements, and of the values of a map."""
    if isinstance(value, list):
        for each in value:
            yield from parts(each)
    elif value is not None:
        yield np.asarray(list(value.values()) if isinstance(value, dict) else value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
