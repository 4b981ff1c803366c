"""Time HOTA, CLEAR and identity against TrackEval, side by side, in new processes.

    python benchmarks/tracking.py [--peers-python PYTHON] [--runs 3] [--masks]

PYTHON is an interpreter with trackeval. The set is as large as MOT17's training half: 7 sequences
of 5,316 frames, about 110,000 boxes of walking people, one in seven in a distractor class; tracks
miss a fifth of them, swap ids and include false ones. With --masks it is as large as MOTS20's: 4
sequences of 2,862 frames, about 27,000 masks; those in front hide others. Everything is imported
and a tiny set scored before the clock starts, on both sides. From files: text of MOTChallenge or
MOTS, read and prepared by the benchmark's rules. From memory: tables, or the arrays of boxes (codes
of masks) by frame of TrackEval's readers; checks, overlaps and preparation are timed on both sides.
Medians of several runs, contenders in turn; peak memory is of the complete process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parent))

from measuring import Process, spawn

NUMBERS = ("HOTA", "AssA", "MOTA", "IDF1", "IDSW")
PICTURE = 1080, 1920
Row = tuple[int, int, tuple[float, float, float, float], int]
"""Video frame, id, box (x, y, width, height) and class."""

TIMED = """
import io, json, sys, time, warnings, contextlib
warnings.simplefilter("ignore")
folder, quiet = sys.argv[1], io.StringIO()
with contextlib.redirect_stdout(quiet):
{code}
    ready(folder + "/tiny/")()
    run = ready(folder + "/whole/")
    start = time.process_time(), time.perf_counter()
    numbers = run()
    stop = time.process_time(), time.perf_counter()
print(json.dumps([stop[0] - start[0], stop[1] - start[1], numbers]))
"""
OURS = """
    import evalengine as ee
    from evalengine import metrics
    from evalengine.ingest.annotations.registry import recognised
    every = [name for name in metrics.names("tracking")
             if name != "Outcomes"]
    def ready(folder):
        sides = folder + "tracker/data", folder + "gt"
        if {memory}:
            sides = [format_.read(look).rows for format_, look in map(recognised, zip(sides))]
        def run():
            card = ee.score(*sides, task="tracking", dialect="{dialect}", metrics=every,
                            threads={threads})
            return [card.value(name, average=None, label_value="pedestrian") for name in {numbers}]
        return run
"""
THEIRS = """
    from pathlib import Path
    import numpy as np
    import trackeval
    metrics = [trackeval.metrics.HOTA(), trackeval.metrics.CLEAR({{"PRINT_CONFIG": False}}),
               trackeval.metrics.Identity({{"PRINT_CONFIG": False}})]
    def ready(folder):
        names = sorted(path.name for path in Path(folder, "gt").iterdir())
        data = trackeval.datasets.{reader}(dict(
            GT_FOLDER=folder + "gt", TRACKERS_FOLDER=folder, TRACKERS_TO_EVAL=["tracker"],
            SKIP_SPLIT_FOL=True, SEQ_INFO=dict.fromkeys(names), PRINT_CONFIG=False))
        if {memory}:
            load = data._load_raw_file
            held = {{(name, is_gt): load("tracker", name, is_gt)
                    for name in names for is_gt in (True, False)}}
            data._load_raw_file = lambda tracker, name, is_gt: held[name, is_gt]
        def run():
            done = [dict() for _ in metrics]
            for name in names:
                raw = data.get_raw_seq_data("tracker", name)
                sequence = data.get_preprocessed_seq_data(raw, "pedestrian")
                for own, metric in zip(done, metrics):
                    own[name] = metric.eval_sequence(sequence)
            together = {{}}
            for own, metric in zip(done, metrics):
                together |= metric.combine_sequences(own)
            return [float(np.mean(together[name])) for name in {numbers}]
        return run
"""


class Shapes(NamedTuple):
    """Kind of tracked objects.

    Attributes:
        crowds: sequence -> number of people in the image at once.
        lengths: sequence -> frames.
        masks: whether they are masks.
        dialect: dialect of evalengine.
        reader: reader of TrackEval.
    """

    crowds: dict[str, int]
    lengths: dict[str, int]
    masks: bool
    dialect: str
    reader: str


BOXES = Shapes(
    {"02": 31, "04": 45, "05": 8, "09": 10, "10": 20, "11": 10, "13": 15},
    {"02": 600, "04": 1050, "05": 837, "09": 525, "10": 654, "11": 900, "13": 750},
    masks=False,
    dialect="mot",
    reader="MotChallenge2DBox",
)
MASKS = Shapes(
    {"02": 12, "05": 8, "09": 10, "11": 10},
    {"02": 600, "05": 837, "09": 525, "11": 900},
    masks=True,
    dialect="standard",
    reader="MOTSChallenge",
)
TINY = {"05": 60, "09": 40}


def make(folder: Path, shapes: Shapes, seed: int = 17) -> None:
    """Write ground truths and tracks in the layout of MOTChallenge or MOTS, unless they exist."""
    import numpy as np

    if (folder / "done").exists():
        return
    for size, lengths in (("tiny", TINY), ("whole", shapes.lengths)):
        rng = np.random.default_rng(seed)
        (folder / size / "tracker" / "data").mkdir(parents=True, exist_ok=True)
        for name, length in lengths.items():
            sequence = f"MOT-{name}"
            home = folder / size / "gt" / sequence
            (home / "gt").mkdir(parents=True, exist_ok=True)
            sides = walks(rng, length, shapes.crowds[name])
            truth, predicted = map(masks_of, sides) if shapes.masks else map(text_of, sides)
            (home / "gt" / "gt.txt").write_text(truth)
            (folder / size / "tracker" / "data" / f"{sequence}.txt").write_text(predicted)
            (home / "seqinfo.ini").write_text(f"[Sequence]\nname={sequence}\nseqLength={length}\n")
    (folder / "done").touch()


def text_of(rows: list[Row]) -> str:
    """Format rows of boxes as MOTChallenge does; all predictions are of pedestrians."""
    lines = (
        f"{frame},{own},{','.join(f'{corner:.1f}' for corner in box)},{int(kind == 1)},{kind},1"
        for frame, own, box, kind in rows
    )
    return "\n".join(lines) + "\n"


def masks_of(rows: list[Row]) -> str:
    """Format rows of masks as MOTS does: ellipses in boxes; those in front hide the others."""
    import numpy as np
    from pycocotools import mask

    lines = []
    free = np.ones(PICTURE, bool)
    now = 0
    for frame, own, (x, y, width, height), _ in sorted(rows):
        if frame != now:
            free[:] = True
            now = frame
        left, top = max(0, int(x)), max(0, int(y))
        right, low = min(PICTURE[1], int(x + width)), min(PICTURE[0], int(y + height))
        if right <= left or low <= top:
            continue
        down, along = np.mgrid[top:low, left:right]
        away = ((along - x) / width - 0.5) ** 2 + ((down - y) / height - 0.5) ** 2
        seen = (away < 1 / 4) & free[top:low, left:right]
        if not seen.any():
            continue
        free[top:low, left:right] &= ~seen
        pixels = np.zeros(PICTURE, np.uint8, order="F")
        pixels[top:low, left:right] = seen
        counts = mask.encode(pixels)["counts"].decode()
        lines.append(f"{frame} {own} 2 {PICTURE[0]} {PICTURE[1]} {counts}")
    return "\n".join(lines) + "\n"


def walks(rng: Any, length: int, crowd: int) -> tuple[list[Row], list[Row]]:
    """Yield rows of one sequence: people at every place of a crowd, one after the other."""
    truth: list[Row] = []
    predicted: list[Row] = []
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
                truth.append((now, person, (x, y, height * 0.4, height), kind))
                gone = gone - 1 if gone else int(rng.random() < 0.02) * int(rng.integers(1, 25))
                track += rng.random() < 0.003
                if not gone and rng.random() < 0.95:
                    dx, dy, dw, dh = rng.normal(0, 0.04, 4) * height
                    box = x + dx, y + dy, (height + dw) * 0.4, height + dh
                    predicted.append((now, int(track) + 10_000 * person, box, 1))
            frame = last + int(rng.integers(1, 30))
    for false in range(crowd * length // 40):
        begin = int(rng.integers(1, length + 1))
        x, y, height = rng.uniform(0, 1800), rng.uniform(300, 800), rng.uniform(60, 300)
        own = 10_000_000 + false
        box = x, y, height * 0.4, height
        last = min(length, begin + int(rng.integers(0, 6)))
        predicted += [(now, own, box, 1) for now in range(begin, last + 1)]
    return truth, predicted


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--masks", action="store_true", help="in place of boxes")
    parser.add_argument("--data", default=Path(tempfile.gettempdir()), type=Path)
    given = parser.parse_args()
    shapes = MASKS if given.masks else BOXES
    folder = given.data / f"tracking-{'masks' if given.masks else 'boxes'}"
    make(folder, shapes)
    shared = {"numbers": repr(NUMBERS), "dialect": shapes.dialect, "reader": shapes.reader}
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
            process = spawn([python, "-c", TIMED.format(code=code), folder])
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
