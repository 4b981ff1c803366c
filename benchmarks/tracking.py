"""Time HOTA, CLEAR and identity against TrackEval, side by side, in fresh processes.

    python benchmarks/tracking.py [--peers-python PYTHON] [--runs 3]

PYTHON is one with trackeval. The set is made as large as MOT17's training half: 7 sequences of
5,316 frames, about 110,000 boxes of people that walk through the picture, one of seven on a class
that distracts; tracks miss a fifth of them, lose their ids and follow nothing here and there.
Everything is imported, and of evalengine a tiny set scored, before the clock starts. From files:
MOTChallenge's text, read and prepared as the benchmark's rules say. From memory: tables, or the
arrays of boxes by frame that TrackEval's readers make of the files; checks, overlaps and
preparation are timed on both sides. Medians of several runs, contenders in turn; peak memory is of
the whole process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

from measuring import Process, spawn

LENGTHS = {"02": 600, "04": 1050, "05": 837, "09": 525, "10": 654, "11": 900, "13": 750}
CROWDS = {"02": 31, "04": 45, "05": 8, "09": 10, "10": 20, "11": 10, "13": 15}
NUMBERS = ("HOTA", "AssA", "MOTA", "IDF1", "IDSW")

TIMED = """
import io, json, sys, time, warnings, contextlib
warnings.simplefilter("ignore")
folder, quiet = sys.argv[1], io.StringIO()
with contextlib.redirect_stdout(quiet):
{code}
print(json.dumps([stop[0] - start[0], stop[1] - start[1], numbers]))
"""
CLOCK = "(time.process_time(), time.perf_counter())"
OURS = """
    import evalengine as ee
    from evalengine.tasks.tracking.samples import samples
    for found, truth, options in samples():
        ee.score(found, truth, task="tracking", **options)
    from evalengine import metrics
    every = [name for name in metrics.names("tracking")
             if name != "Outcomes"]
    sides = folder + "/tracker/data", folder + "/gt"
    if {memory}:
        from evalengine.ingest.annotations.registry import recognised
        sides = [format_.read(look).rows for format_, look in (recognised([one]) for one in sides)]
    start = {clock}
    card = ee.score(*sides, dialect="mot", metrics=every, threads={threads})
    numbers = [card.value(name, average=None, label_value="pedestrian") for name in {numbers}]
    stop = {clock}
"""
THEIRS = """
    from pathlib import Path
    import numpy as np
    import trackeval
    metrics = [trackeval.metrics.HOTA(), trackeval.metrics.CLEAR({{"PRINT_CONFIG": False}}),
               trackeval.metrics.Identity({{"PRINT_CONFIG": False}})]
    names = sorted(path.name for path in Path(folder, "gt").iterdir())
    data = trackeval.datasets.MotChallenge2DBox(dict(
        GT_FOLDER=folder + "/gt", TRACKERS_FOLDER=folder, TRACKERS_TO_EVAL=["tracker"],
        SKIP_SPLIT_FOL=True, SEQ_INFO=dict.fromkeys(names), PRINT_CONFIG=False))
    def read(name):
        return data.get_preprocessed_seq_data(data.get_raw_seq_data("tracker", name), "pedestrian")
    if {memory}:
        load = data._load_raw_file
        held = {{(name, is_gt): load("tracker", name, is_gt)
                for name in names for is_gt in (True, False)}}
        data._load_raw_file = lambda tracker, name, is_gt: held[name, is_gt]
    start = {clock}
    done = [dict() for _ in metrics]
    for name in names:
        sequence = read(name)
        for own, metric in zip(done, metrics):
            own[name] = metric.eval_sequence(sequence)
    together = {{}}
    for own, metric in zip(done, metrics):
        together |= metric.combine_sequences(own)
    numbers = [float(np.mean(together[name])) for name in {numbers}]
    stop = {clock}
"""


def make(folder: Path) -> None:
    """Write ground truths and tracks in MOTChallenge's layout, unless they are there."""
    import numpy as np

    if (folder / "done").exists():
        return
    rng = np.random.default_rng(17)
    (folder / "tracker" / "data").mkdir(parents=True, exist_ok=True)
    for name, length in LENGTHS.items():
        sequence = f"MOT17-{name}"
        (folder / "gt" / sequence / "gt").mkdir(parents=True, exist_ok=True)
        truth, found = walks(rng, length, CROWDS[name])
        (folder / "gt" / sequence / "gt" / "gt.txt").write_text("\n".join(truth) + "\n")
        (folder / "tracker" / "data" / f"{sequence}.txt").write_text("\n".join(found) + "\n")
        (folder / "gt" / sequence / "seqinfo.ini").write_text(
            f"[Sequence]\nname={sequence}\nseqLength={length}\n"
        )
    (folder / "done").touch()


def walks(rng: Any, length: int, crowd: int) -> tuple[list[str], list[str]]:
    """Lines of one sequence: people at every place of a crowd, one after the other."""
    truth: list[str] = []
    found: list[str] = []
    person = track = 0
    for _ in range(crowd):
        frame = 1
        while frame <= length:
            person, track = person + 1, track + 1
            last = min(length, frame + int(rng.integers(40, 400)))
            x, y = rng.uniform(0, 1800), rng.uniform(300, 800)
            height = rng.uniform(60, 300)
            step = rng.normal(0, 2, 2)
            kind = 7 if person % 7 == 0 else 1
            gone = 0
            for now in range(frame, last + 1):
                x, y = x + step[0] + rng.normal(0, 0.5), y + step[1] * 0.2
                box = f"{x:.1f},{y:.1f},{height * 0.4:.1f},{height:.1f}"
                truth.append(f"{now},{person},{box},{int(kind == 1)},{kind},{rng.random():.3f}")
                gone = gone - 1 if gone else int(rng.random() < 0.02) * int(rng.integers(1, 25))
                track += rng.random() < 0.003
                if not gone and rng.random() < 0.95:
                    dx, dy, dw, dh = rng.normal(0, 0.04, 4) * height
                    found.append(
                        f"{now},{track + 10_000 * person},{x + dx:.1f},{y + dy:.1f},"
                        f"{(height + dw) * 0.4:.1f},{height + dh:.1f},0.9,-1,-1,-1"
                    )
            frame = last + int(rng.integers(1, 30))
    for false in range(crowd * length // 40):
        begin = int(rng.integers(1, length + 1))
        x, y, height = rng.uniform(0, 1800), rng.uniform(300, 800), rng.uniform(60, 300)
        own = 10_000_000 + false
        box = f"{x:.1f},{y:.1f},{height * 0.4:.1f},{height:.1f}"
        last = min(length, begin + int(rng.integers(0, 6)))
        found += [f"{now},{own},{box},0.4,-1,-1,-1" for now in range(begin, last + 1)]
    return truth, [line.replace(",-1,-1,-1", ",1,-1,-1") for line in found]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", default=Path(tempfile.gettempdir()) / "tracking-set", type=Path)
    given = parser.parse_args()
    make(given.data)
    shared = {"clock": CLOCK, "numbers": repr(NUMBERS)}
    contenders = {
        f"{name}, {where}": (python, code.format(memory=where == "from memory", **own, **shared))
        for where in ("from files", "from memory")
        for name, python, code, own in (
            ("**evalengine**, 1 thread", sys.executable, OURS, {"threads": 1}),
            ("**evalengine**, 2 threads", sys.executable, OURS, {"threads": 2}),
            ("TrackEval", given.peers_python, THEIRS, {}),
        )
    }
    done: dict[str, list[tuple[Process, Any]]] = {name: [] for name in contenders}
    for _ in range(given.runs):
        for name, (python, code) in contenders.items():
            process = spawn([python, "-c", TIMED.format(code=code), given.data])
            done[name].append((process, json.loads(process.output)))
    print(f"| | CPU s | wall s | peak MB | {' | '.join(NUMBERS)} |")
    print(f"| --- | {' | '.join(['---:'] * (3 + len(NUMBERS)))} |")
    for name, runs in done.items():
        cpu, wall = (statistics.median(inside[place] for _, inside in runs) for place in (0, 1))
        peak = statistics.median(process.peak_mb for process, _ in runs)
        numbers = " | ".join(f"{value:.10g}" for value in runs[0][1][2])
        print(f"| {name} | {cpu:.3f} | {wall:.3f} | {peak:.0f} | {numbers} |")


if __name__ == "__main__":
    main()
