"""A benchmark of several sections: command line, turns, and comparison with a reference.

classification.py, retrieval.py and others define the sections; this module measures them. Every
measurement is a new process; contenders take turns, so that a busy moment of the machine affects
all of them; figures are medians.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import subprocess
import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measuring import Contender, machine, medians, take_turns
from reporting import PAGES, write_docs

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OURS = ("evalengine-1", "evalengine-2")


@dataclass(frozen=True)
class Section:
    """Measurement on one set.

    Attributes:
        contenders: contenders in the order of the tables.
        warm_up: share of the size that is scored before the clock starts.
        sampled: contenders that are timed on a part, so have no figures as complete processes.
        width: values per item; a sample consists of items.
        data: section whose set is used, if not its own.
        images: number of images at scale 1, if `--images` may replace it.
    """

    contenders: tuple[str, ...]
    warm_up: float = 0.01
    sampled: tuple[str, ...] = ()
    width: int = 1
    data: str = ""
    images: int = 0


@dataclass(frozen=True)
class Benchmark:
    """Script with sections.

    Attributes:
        name: name of the script, of its folder of data, and of its `_data` and `_contenders`
            scripts.
        sections: sections by name.
        references: contenders; the first that ran on all rows is compared with the others.
        page: function from a section's result to Markdown.
        interpreters: prefix of a contender's name -> option that names its interpreter.
        programs: contender that is a program -> option that names it; skipped without the option.
    """

    name: str
    sections: dict[str, Section]
    references: tuple[str, ...]
    page: Callable[[dict[str, Any]], str]
    interpreters: dict[str, str] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)


def attribute(option: str) -> str:
    """Return the attribute of an option: `--torch-python` gives `torch_python`."""
    return option.removeprefix("--").replace("-", "_")


def interpreter(benchmark: Benchmark, name: str, options: argparse.Namespace) -> str:
    """Return the interpreter of a contender: its own, evalengine's or the peers'."""
    for start, option in {"evalengine": "--python", **benchmark.interpreters}.items():
        given = getattr(options, attribute(option))
        if name.startswith(start) and given:
            return str(given)
    return str(options.peers_python)


def entrants(
    benchmark: Benchmark, section: Section, options: argparse.Namespace
) -> dict[str, dict[str, str]]:
    """Return requested contenders -> environment with the path of their program."""
    entries: dict[str, dict[str, str]] = {}
    for name in section.contenders:
        option = benchmark.programs.get(name)
        program = getattr(options, attribute(option)) if option else None
        if (option and not program) or (options.contenders and name not in options.contenders):
            continue
        entries[name] = {"BENCHMARK_PROGRAM": str(Path(program).absolute())} if program else {}
    return entries


def measure(benchmark: Benchmark, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one section's contenders, in process and as complete processes."""
    section = benchmark.sections[name]
    data = section.data or name
    size = options.images / section.images if options.images else options.scale
    scales = [f"{scale:g}" for scale in (section.warm_up, size)]
    script = HERE / f"{benchmark.name}_data.py"
    command = [options.python, script, data, "--out", options.data, "--scale", *scales]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    warm_up, folder = (
        options.data / benchmark.name / (data if scale == "1" else f"{data}-{scale}")
        for scale in scales
    )
    names = entrants(benchmark, section, options)
    measured = take_turns(
        name,
        [
            Contender(
                contender,
                interpreter(benchmark, contender, options),
                options.runs,
                whole=contender not in section.sampled,
                script=f"{benchmark.name}_contenders.py",
                section=name,
                environment=environment,
            )
            for contender, environment in names.items()
        ],
        folder,
        warm_up,
    )
    known = [n for n in benchmark.references if n in section.contenders]
    candidates = [*sorted(known, key=section.sampled.__contains__), *names]
    reference = next((n for n in candidates if n in measured.numbers), None)
    return {
        "section": name,
        "scale": size,
        "contenders": {
            contender: {
                "version": measured.versions[contender],
                "runs": len(samples),
                "sampled": contender in section.sampled,
                "in_process": medians(samples),
                "whole": medians(measured.whole[contender])
                if contender in measured.whole
                else None,
                "difference": difference(
                    measured.numbers[contender],
                    measured.numbers[reference or contender][0],
                    section.width,
                ),
                "samples": {"in_process": samples, "whole": measured.whole.get(contender, [])},
            }
            for contender, samples in measured.inside.items()
        },
        "numbers": len(measured.numbers[reference][0]) if reference else 0,
        "failures": measured.failures,
        "reference": reference,
    }


def sampled(numbers: Sequence[float], items: int, width: int) -> list[Sequence[float]]:
    """Return a number of evenly spaced items, beginning with the first."""
    all_items = [numbers[i : i + width] for i in range(0, len(numbers), width)]
    return all_items[:: math.ceil(len(all_items) / items)]


def difference(mine: list[array[float]], reference: array[float], width: int = 1) -> float:
    """Return the largest difference of any run from the reference; infinite if one is missing.

    If one of the two has fewer items of `width` values, they are an evenly spaced sample of the
    other's, beginning with the first.
    """
    largest = 0.0
    for run in mine:
        items = min(len(run), len(reference)) // width
        pairs = zip(sampled(run, items, width), sampled(reference, items, width), strict=True)
        for a, b in ((a, b) for item in pairs for a, b in zip(*item, strict=True)):
            if math.isnan(a) != math.isnan(b):
                return math.inf
            if not math.isnan(a):
                largest = max(largest, abs(a - b))
    return largest


def arguments(benchmark: Benchmark) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=f"Benchmark {benchmark.name}.")
    parser.add_argument("sections", nargs="+", choices=list(benchmark.sections))
    parser.add_argument("--python", default=sys.executable, help="interpreter with evalengine")
    parser.add_argument("--peers-python", default=sys.executable, help="interpreter with the peers")
    for name, option in benchmark.interpreters.items():
        parser.add_argument(option, help=f"the one with {name} (default: the peers')")
    for name, option in benchmark.programs.items():
        parser.add_argument(option, help=f"the program {name}, left out without one")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the sets' size")
    counted = [name for name, section in benchmark.sections.items() if section.images]
    if counted:
        parser.add_argument("--images", type=int, help=f"instead, of {', '.join(counted)}")
    every = sorted({name for s in benchmark.sections.values() for name in s.contenders})
    parser.add_argument("--contenders", nargs="+", choices=every)
    parser.add_argument("--data", type=Path, default=HERE / ".data")
    parser.add_argument("--out", type=Path, help="folder of the JSON (default: DATA/results)")
    parser.add_argument("--write-docs", action="store_true", help="update the pages")
    parser.add_argument("--docs", type=Path, default=PAGES, help="their folder")
    parser.set_defaults(images=None)
    options = parser.parse_args()
    if options.images and set(options.sections) - set(counted):
        parser.error(f"--images is for {', '.join(counted)} alone; --scale for other sections")
    return options


def main(benchmark: Benchmark) -> None:
    """Measure the sections on the command line, and print or write their pages."""
    options = arguments(benchmark)
    out = options.out or options.data / "results"
    out.mkdir(parents=True, exist_ok=True)
    for section in options.sections:
        context = {"machine": machine(), "date": datetime.date.today().isoformat()}
        result = measure(benchmark, section, options) | context | {"runs": options.runs}
        path = out / f"{benchmark.name}-{section}.json"
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"written: {path}", file=sys.stderr)
        text = benchmark.page(result)
        if options.write_docs:
            write_docs(f"{benchmark.name}-{section}", text, options.docs)
        else:
            print(text, flush=True)
