"""Guard fixed works against growth: exact figures against budgets, seconds against older commits.

    python benchmarks/guard.py exact                     # compare with guard.json; CI runs this
    python benchmarks/guard.py exact --write             # lower and set budgets
    python benchmarks/guard.py pins --write-docs         # seconds and memory next to the pins

`exact` counts the work of one warm call under `threads=1`: Python calls, files and code objects of
the package, and the peak of resident memory above the input, in a new process. A table of another
seed and size is scored first, so that no cached plan hides work. Calls, files, code objects and
compiled kernels may exceed their budgets by 5 %, memory by 20 %. A commit that raises or drops a
budget needs a trailer `Guard-Raise: REASON`. `pins` times the same works in the checkout and in
older commits, each in a virtual environment below benchmarks/.data, all in turn; the figures are
medians.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

from guard_works import (
    WORKS,
    Work,
    exact_set,
    full_set,
    input_mb,
    make,
    place,
    prepare,
    warm_up_set,
)
from measuring import HERE, Failed, machine, spawn

BUDGETS = HERE / "guard.json"
DATA = HERE / ".data" / "guard"
PINS = ("8b4b643", "c6d5482c")
SIDE_BY_SIDE = 2  # processes that are counted at once
EXACT = {"calls": 0.05, "files": 0.05, "code": 0.05, "kernels": 0.05, "peak_mb": 0.2}
"""Figure -> share by which it may exceed its budget."""
TRAILER = "Guard-Raise"
DROPPED = ("PYTHON", "POLARS_", "NUMBA_", "EVALENGINE_", "COVERAGE", "COV_")
FIXED = {
    "PYTHONHASHSEED": "0",
    "POLARS_MAX_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
COMPILER = "numba.np.arraymath"  # imported only for compilation

Figures = dict[str, int]
Works = Mapping[str, Figures]


def settle_environment() -> None:
    """Remove settings that change the work of a call: CI, terminal, Python and libraries."""
    kept = os.environ.get("EVALENGINE_CACHE_DIR")
    for name in list(os.environ):
        if name.startswith(DROPPED) or name in ("CI", "TERM", "COLUMNS", "LINES", "FORCE_COLOR"):
            del os.environ[name]
    os.environ.update(FIXED | ({"EVALENGINE_CACHE_DIR": kept} if kept else {}))


# In one process per work


class Counter:
    """Counter of Python calls and entered code objects, on all threads."""

    def __init__(self) -> None:
        self.on = False
        self._calls = count()
        self._seen: set[Any] = set()
        threading.setprofile(self._look)

    def _look(self, frame: Any, event: str, _: Any) -> None:
        if self.on and event == "call":
            code = frame.f_code
            if not code.co_filename.startswith("<frozen importlib"):
                next(self._calls)  # atomic, unlike +=
                self._seen.add(code)

    def measure(self, call: Callable[[], Any]) -> Figures:
        """Return the figures of one call."""
        gc.collect()
        gc.disable()
        self.on = True
        sys.setprofile(self._look)
        try:
            call()
        finally:
            sys.setprofile(None)
            self.on = False
            gc.enable()
        package = {
            getattr(module, "__file__", None)
            for name, module in list(sys.modules.items())
            if name.partition(".")[0] == "evalengine"
        }
        own = [code for code in self._seen if code.co_filename in package]
        function = 1  # inspect.CO_OPTIMIZED: neither a module nor the body of a class
        named = {
            (code.co_filename, code.co_firstlineno, code.co_name)
            for code in own
            if code.co_flags & function
        }
        return {
            "calls": next(self._calls),
            "files": len({code.co_filename for code in own}),
            "code": len(named),
        }


def peak_mb() -> float:
    """Return the peak of resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def count_work(work: Work, root: Path) -> dict[str, Any]:
    """Return the exact figures of a work, in a process that has called nothing else."""
    folder = root / place(*exact_set(work))
    figures: Figures = {}
    if work.kind == "empty":
        prepare(work, folder)()
        kernels = Path(os.environ["EVALENGINE_CACHE_DIR"]).rglob("*.nbc")
        figures["kernels"] = len(list(kernels))
    else:
        counter = Counter()
        if work.kind != "first":
            prepare(work, root / place(*warm_up_set(work)))()
        figures = counter.measure(prepare(work, folder))
    figures["peak_mb"] = round(peak_mb() - input_mb(work, folder))
    return {"figures": figures, "compiled": COMPILER in sys.modules}


def time_work(work: Work, root: Path) -> dict[str, Any]:
    """Return seconds and peak memory of the calls of a work, after a call on a small set."""
    if work.kind not in ("first", "empty"):
        prepare(work, root / place(*warm_up_set(work)))()
    call = prepare(work, root / place(*full_set(work)))
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(work.calls):
        call()
    took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return {**took, "peak_mb": peak_mb(), "compiled": COMPILER in sys.modules}


# Exact figures


def child(python: str | Path, mode: str, *arguments: object) -> list[str | Path]:
    """Return the command of one measurement.

    -P: modules of this folder do not shadow those of a package.
    """
    return [python, "-P", Path(__file__).resolve(), mode, *map(str, arguments)]


def make_sets(sets: Iterable[tuple[str, float, int]], root: Path, workers: int) -> None:
    """Make data sets in separate processes, because this process must stay small."""
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda one: spawn(child(sys.executable, "_make", root, *one)), sets))


def measure_exact(works: Sequence[Work], root: Path) -> dict[str, Figures]:
    """Return the exact figures of works, measured in two processes at a time."""

    def measure(work: Work) -> Figures:
        command = child(sys.executable, "_count", work.name, root)
        for _ in range(3):
            with tempfile.TemporaryDirectory() as empty:
                variables = {"EVALENGINE_CACHE_DIR": empty} if work.kind == "empty" else None
                try:
                    report = json.loads(spawn(command, variables).output.splitlines()[-1])
                except Failed as failure:
                    raise SystemExit(f"{work.name}: {failure}") from None
            if work.kind == "empty" or not report["compiled"]:
                break  # otherwise the compiler would be part of the peak
        figures: Figures = report["figures"]
        return figures

    sets = {made(work) for work in works for made in (exact_set, warm_up_set)}
    slow_first = sorted(sets, key=lambda one: (-one[1] * (one[0] in ("panoptic", "auc")), one))
    make_sets(slow_first, root, SIDE_BY_SIDE)
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return dict(zip([work.name for work in works], pool.map(measure, works), strict=True))


def exceeded(measured: Works, budgets: Works) -> list[str]:
    """Describe figures without a budget, and figures above their budget and tolerance."""
    lines = []
    for name, figures in measured.items():
        for figure, value in figures.items():
            budget = budgets.get(name, {}).get(figure)
            if budget is None:
                lines.append(f"{name}: {figure} {value:,} has no budget")
            elif value > budget * (1 + EXACT[figure]):
                more = f"+{value / budget - 1:.1%}" if budget else "above 0"
                lines.append(f"{name}: {figure} {value:,}, budget {budget:,} ({more})")
    return lines


def new_budgets(measured: Works, budgets: Works) -> dict[str, Figures]:
    """Return budgets after `--write`: lower figures lower them, only exceeded ones are raised.

    The budget of memory changes only if it is off by more than the tolerance, because memory
    varies.
    """
    renewed = {}
    for name, figures in measured.items():
        before = budgets.get(name, {})
        renewed[name] = {
            figure: before[figure]
            if figure in before
            and value <= before[figure] * (1 + EXACT[figure])
            and (
                value >= before[figure]
                or (figure == "peak_mb" and value * (1 + EXACT[figure]) >= before[figure])
            )
            else value
            for figure, value in figures.items()
        }
    return renewed


def raised(before: Works, after: Works) -> list[tuple[str, str]]:
    """Return works and figures whose budget was raised."""
    return [
        (name, figure)
        for name, figures in after.items()
        for figure, value in figures.items()
        if value > before.get(name, {}).get(figure, value)
    ]


def unexplained(history: Iterable[tuple[str, str, Works]]) -> list[str]:
    """Return budgets of the newest commit that were raised without a reason.

    Args:
        history: commits that changed the budgets, oldest first: id, text of the trailer, budgets.
            A commit with a trailer accounts for all budgets it contains.
    """
    accepted: dict[str, Figures] = {}
    commits: dict[tuple[str, str], str] = {}
    dropped: dict[str, str] = {}
    newest: Works = {}
    for commit, reason, works in history:
        dropped = {name: one for name, one in dropped.items() if name not in works}
        if not reason.strip():
            dropped |= {name: commit for name in newest if name not in works}
        else:
            dropped = {}
        higher = set() if reason.strip() else set(raised(accepted, works))
        for name, figures in works.items():
            for figure, value in figures.items():
                if (name, figure) in higher:
                    commits.setdefault((name, figure), commit)
                else:
                    accepted.setdefault(name, {})[figure] = value
                    commits.pop((name, figure), None)
        newest = works
    return [
        f"{name}: {figure} was raised from {accepted[name][figure]:,} to {newest[name][figure]:,}"
        f" in {commits[name, figure][:10]}, which has no trailer {TRAILER}"
        for name, figure in raised(accepted, newest)
    ] + [
        f"{name}: was dropped in {commit[:10]}, which has no trailer {TRAILER}"
        for name, commit in dropped.items()
    ]


def git(*arguments: str, folder: Path = HERE) -> str:
    """Return the output of a git command; raise CalledProcessError if it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def budget_history(path: Path) -> list[tuple[str, str, Works]] | None:
    """Return the commits that changed the budgets, oldest first; None if the history is shallow."""
    try:
        if git("rev-parse", "--is-shallow-repository", folder=path.parent).strip() != "false":
            return None
        form = f"--format=%H%x09%(trailers:key={TRAILER},valueonly=true,separator=%x20)"
        log = git("log", "--reverse", form, "--", path.name, folder=path.parent)
        budgets = []
        for line in log.splitlines():
            commit, _, reason = line.partition("\t")
            try:
                text = git("show", f"{commit}:./{path.name}", folder=path.parent)
            except subprocess.CalledProcessError:
                continue  # deleted there
            budgets.append((commit, reason, json.loads(text)["works"]))
    except (OSError, subprocess.CalledProcessError):
        return None
    return budgets


def write_budgets(path: Path, works: Works) -> None:
    """Write budgets, one work per line."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in works.items())
    path.write_text(f'{{\n "python": "{python()}",\n "works": {{\n{lines}\n }}\n}}\n', "utf-8")


def python() -> str:
    """Return the version of the interpreter; newer ones inline comprehensions and count less."""
    return ".".join(platform.python_version_tuple()[:2])


def run_exact(names: Sequence[str], write: bool, require: bool = False) -> int:
    """Measure, print and compare; return 1 if a budget is exceeded or was raised without a reason.

    With `require` it also returns 1 if the interpreter or a shallow history prevents the
    comparison.
    """
    stored = json.loads(BUDGETS.read_text("utf-8")) if BUDGETS.exists() else {}
    budgets: Works = stored.get("works", {})
    if not write and stored.get("python") != python():
        print(f"NOT RUN: budgets are those of Python {stored.get('python')}, this is {python()}")
        return int(require)
    works = [WORKS[name] for name in names or WORKS]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="guard-") as root:
        measured = measure_exact(works, Path(root))
    heads = "calls | files | code objects | kernels | peak MB above input |"
    print(f"| work | size | share of it | {heads}\n|---|---|{'---:|' * 6}")
    for name, figures in measured.items():
        work = WORKS[name]
        cells = " | ".join(f"{figures[one]:,}" if one in figures else "" for one in EXACT)
        print(f"| {name} | {work.size} | {work.exact / work.full:.3g} | {cells} |")
    print(f"{time.perf_counter() - start:.0f} s")
    if write:
        others = {name: one for name, one in budgets.items() if name in WORKS}
        after = {**others, **new_budgets(measured, budgets)}
        write_budgets(BUDGETS, {name: after[name] for name in WORKS if name in after})
        for name, figure in raised(budgets, after):
            print(f"raised: {name}: {figure}. The commit needs a trailer {TRAILER}: REASON")
        return 0
    problems = exceeded(measured, budgets)
    problems += [f"{name}: is no work any more" for name in budgets if name not in WORKS]
    history = budget_history(BUDGETS)
    if history is None:
        print(f"NOT RUN: raised budgets need the whole history, looking for {TRAILER}")
        problems += ["the history is not whole"] if require else []
    problems += unexplained(history or [])
    print("\n".join(problems) or "within the budgets")
    return 1 if problems else 0


# Pinned commits


def pinned(commit: str) -> Path:
    """Return the Python of an environment with the package at a commit; build it if missing."""
    folder = DATA / "pins" / commit
    interpreter = folder / "venv" / "bin" / "python"
    if not (folder / "done").exists():
        print(f"building {commit}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        source = folder / "source"
        source.mkdir(parents=True)
        top = Path(git("rev-parse", "--show-toplevel").strip())
        git("archive", "-o", str(folder / "source.tar"), commit, folder=top)
        with tarfile.open(folder / "source.tar") as archive:
            archive.extractall(source, filter="data")
        spawn([sys.executable, "-m", "venv", folder / "venv"])
        # Constraints of the checkout: newer versions of libraries must not look like changes of the
        # package.
        spawn([interpreter, "-m", "pip", "install", "-q", "--disable-pip-version-check",
               "-c", top / "constraints.txt", source])  # fmt: skip
        (folder / "done").touch()
    return interpreter


def is_missing(commit: str, work: Work) -> bool:
    """Return whether a commit is older than the feature of a work."""
    if not work.since:
        return False
    try:
        git("merge-base", "--is-ancestor", work.since, commit)
    except subprocess.CalledProcessError:
        return True
    return False


def time_once(work: Work, interpreter: Path | str, kernels: Path | None) -> dict[str, float]:
    """Measure once in a new process; repeat the measurement if it had to compile."""
    command = child(interpreter, "_time", work.name, DATA)
    for _ in range(3):
        with tempfile.TemporaryDirectory() as empty:
            folder = empty if work.kind == "empty" else kernels
            process = spawn(command, {"EVALENGINE_CACHE_DIR": str(folder)} if folder else None)
        report = json.loads(process.output.splitlines()[-1])
        if work.kind in ("first", "empty"):  # these include the interpreter and imports
            report |= {"cpu": process.cpu, "wall": process.wall}
        if work.kind == "empty" or not report["compiled"]:
            break
    return {name: report[name] for name in ("cpu", "wall", "peak_mb")}


def run_pins(names: Sequence[str], runs: int, pins: Sequence[str], write_docs: bool) -> int:
    """Time works in all pins and in the checkout, in turn; print or write a page."""
    begin = time.perf_counter()
    load = machine()
    kernels = {commit: DATA / "pins" / commit / "kernels" for commit in pins}
    interpreters: dict[str, Path | str] = {commit: pinned(commit) for commit in pins}
    interpreters["checkout"] = sys.executable
    works = [WORKS[name] for name in names or WORKS]
    make_sets(sorted({f(w) for w in works for f in (full_set, warm_up_set)}), DATA, 1)
    values: dict[tuple[str, str], list[dict[str, float]]] = {}
    failed: set[tuple[str, str]] = set()
    for run in range(runs):
        for work in works:
            print(f"run {run + 1}: {work.name}", file=sys.stderr)
            for name, interpreter in interpreters.items():
                key = work.name, name
                if key in failed or (name != "checkout" and is_missing(name, work)):
                    continue
                try:
                    one = time_once(work, interpreter, kernels.get(name))
                    values.setdefault(key, []).append(one)
                except Failed as failure:
                    failed.add(key)
                    print(f"  {name}: {failure}", file=sys.stderr)
    medians = {
        key: {name: statistics.median(one[name] for one in samples) for name in samples[0]}
        for key, samples in values.items()
    }
    chosen = "" if not names else f"{len(works)} of {len(WORKS)} works, "
    where = (
        f"{load['cpu']}, {load['cores']} cores (shared; load average {load['load_average']} at the"
        f" start), {load['system']}, Python {load['python']}, {time.strftime('%Y-%m-%d')}; checkout"
        f" {git('rev-parse', '--short=8', 'HEAD').strip()}; {chosen}medians of {runs} runs."
    )
    text = page(works, list(interpreters), medians, where)
    print(text)
    print(f"{time.perf_counter() - begin:.0f} s", file=sys.stderr)
    if write_docs:
        from reporting import write_docs as write

        write("guard", text)
    return 1 if any(name == "checkout" for _, name in failed) else 0


def page(
    works: Sequence[Work],
    columns: Sequence[str],
    medians: Mapping[tuple[str, str], Mapping[str, float]],
    where: str,
) -> str:
    """Format CPU seconds, wall seconds and memory, with a hyphen for missing works."""

    def row(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def cell(work: Work, column: str, figure: str) -> str:
        value = medians.get((work.name, column), {}).get(figure)
        if value is None:
            return "-"
        return f"{value:,.0f}" if figure == "peak_mb" else f"{value:.3f}"

    def ratio(work: Work, pin: str) -> str:
        ours, theirs = (medians.get((work.name, one), {}).get("cpu") for one in ("checkout", pin))
        return f"{ours / theirs:.2f}" if ours and theirs else "-"

    pins = [column for column in columns if column != "checkout"]
    seconds = [
        row(["work", "size", *(f"{name}, CPU s" for name in columns), *(f"/ {p}" for p in pins)]),
        row(["---", "---", *["---:"] * (len(columns) + len(pins))]),
        *(
            row(
                [
                    work.name,
                    work.size,
                    *(cell(work, column, "cpu") for column in columns),
                    *(ratio(work, pin) for pin in pins),
                ]
            )
            for work in works
        ),
    ]
    figures = [(figure, name) for figure in ("wall", "peak_mb") for name in columns]
    units = {"wall": "wall s", "peak_mb": "peak MB"}
    others = [
        row(["work", *(f"{name}, {units[figure]}" for figure, name in figures)]),
        row(["---", *["---:"] * len(figures)]),
        *(row([work.name, *(cell(work, name, fig) for fig, name in figures)]) for work in works),
    ]
    blocks = ["## Seconds", "\n".join(seconds), "## Wall seconds and memory", "\n".join(others)]
    repeat = "Repeat with `python benchmarks/guard.py pins --write-docs`."
    return "\n\n".join([*blocks, f"{where} {repeat}"])


def main() -> int:
    if len(sys.argv) > 1 and sys.argv[1].startswith("_"):
        mode, *given = sys.argv[1:]
        if mode == "_make":
            make(Path(given[0]), given[1], float(given[2]), int(given[3]))
        else:
            measure = {"_count": count_work, "_time": time_work}[mode]
            print(json.dumps(measure(WORKS[given[0]], Path(given[1]))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    exact = commands.add_parser("exact", help="compare exact figures with their budgets")
    exact.add_argument("--write", action="store_true", help="lower and set budgets")
    exact.add_argument("--require", action="store_true", help="fail if it cannot compare")
    pins = commands.add_parser("pins", help="time works in older commits and in the checkout")
    pins.add_argument("--runs", type=int, default=5)
    pins.add_argument("--pins", nargs="*", default=PINS, metavar="COMMIT")
    pins.add_argument("--write-docs", action="store_true")
    for command in (exact, pins):
        command.add_argument("works", nargs="*", metavar="WORK", help="default: all")
    given = parser.parse_args()
    unknown = [name for name in given.works if name not in WORKS]
    if unknown:
        parser.error(f"no such work: {', '.join(unknown)}. Works: {'; '.join(WORKS)}")
    settle_environment()
    if given.command == "exact":
        return run_exact(given.works, given.write, given.require)
    return run_pins(given.works, given.runs, given.pins, given.write_docs)


if __name__ == "__main__":
    raise SystemExit(main())
