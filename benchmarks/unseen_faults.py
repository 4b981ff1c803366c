"""Fifteen more faults, of kinds that were fixed before the command was tried on them.

    python benchmarks/unseen_faults.py

Tables and helpers are those of ``planted_faults.py``; the findings were not developed for these
kinds of faults. Prints one row per fault, and the counts.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import planted_faults as planted
import polars as pl
from planted_faults import (
    CORNERS,
    LABELS,
    Tables,
    answers,
    boxes,
    change,
    ids,
    labelled,
    luck,
    mapped,
    ranked,
    rows,
    within,
)

P, G = "predictions", "ground_truths"
WIDTH = 1280


def about_centre(factor: float, when: pl.Expr) -> dict[str, pl.Expr]:
    """Scale boxes of some rows about their centres."""
    out = {}
    for low, high in (("xmin", "xmax"), ("ymin", "ymax")):
        middle, half = (pl.col(low) + pl.col(high)) / 2, (pl.col(high) - pl.col(low)) / 2 * factor
        out[low] = pl.when(when).then(middle - half).otherwise(low)
        out[high] = pl.when(when).then(middle + half).otherwise(high)
    return out


def columned(tables: Tables, **columns: list[str]) -> Tables:
    """Add columns of the datums whose values alternate."""
    images = tables["datums"]
    n = images.height
    more = {name: [each[i * len(each) // n] for i in range(n)] for name, each in columns.items()}
    return {**tables, "datums": images.with_columns(**{k: pl.Series(v) for k, v in more.items()})}


def mirrored(t: Tables) -> Tables:
    """Mirror the predictions of one camera."""
    left = within(t, camera="left")
    return change(
        t, P,
        xmin=pl.when(left).then(WIDTH - pl.col("xmax")).otherwise("xmin"),
        xmax=pl.when(left).then(WIDTH - pl.col("xmin")).otherwise("xmax"),
    )  # fmt: skip


def other_model(t: Tables) -> Tables:
    """Replace the second half of the images by a model that finds less and invents more."""
    t = columned(t, shard=["one", "two"])
    two = within(t, shard="two")
    noise = {c: pl.when(two).then(pl.col(c) + (pl.col(c) * 7919) % 9 - 4).otherwise(c)
             for c in CORNERS}  # fmt: skip
    return change(rows(t, P, ~two | luck(0.75, 5)), P, **noise)


def late_frames(t: Tables) -> Tables:
    """Delay the predictions of one video in six by one frame."""
    t = columned(t, video=[f"v{i}" for i in range(1, 7)])
    some = ids(t, video="v3")
    new = pl.col("datum_id").replace(dict(pairwise(some)))
    return change(t, P, datum_id=new)


def judged_elsewhere(t: Tables) -> Tables:
    """Replace judgments of half of the queries by documents of another collection."""
    half = t["datums"]["datum_id"].gather_every(2).to_list()
    other = pl.when(pl.col("datum_id").is_in(half)).then("w" + pl.col("doc_id")).otherwise("doc_id")
    return change(t, G, doc_id=other)


def pages_off_by_one(t: Tables) -> Tables:
    """Count documents of one city's queries from 1 in the judgments and from 0 in the run."""
    number = pl.col("doc_id").str.extract(r"d(\d+)$").cast(pl.Int64) + 1
    new = pl.col("datum_id") + "d" + number.cast(pl.String)
    return change(t, G, doc_id=pl.when(within(t, city="Oslo")).then(new).otherwise("doc_id"))


def listed_twice(t: Tables) -> Tables:
    """Repeat a third of the documents of a run at slightly lower ranks."""
    again = t[P].filter(luck(0.33)).with_columns(score=pl.col("score") - 0.2)
    return {**t, P: pl.concat([t[P], again])}


def other_language(t: Tables) -> Tables:
    """Replace one city's references by other words."""
    german = ["rot", "blau", "alt", "neu", "haus", "fluss", "weg", "stadt", "rennt", "nah", "fern",
              "zwei"]  # fmt: skip
    words = dict(zip(planted.WORDS, german, strict=True))
    new = pl.col("text").str.split(" ").list.eval(pl.element().replace(words)).list.join(" ")
    return change(t, G, text=pl.when(within(t, city="Oslo")).then(new).otherwise("text"))


def shifted_columns(t: Tables) -> Tables:
    """Move one camera's probabilities to the name of the next label."""
    after = dict(zip(LABELS, LABELS[1:] + LABELS[:1], strict=True))
    rear = within(t, camera="rear")
    new = pl.when(rear).then(pl.col("label_value").replace(after)).otherwise("label_value")
    return change(t, P, label_value=new)


def weaker_half(t: Tables) -> Tables:
    """Score the second half of the items by a classifier that is less often right."""
    t = columned(t, shard=["one", "two"])
    flat = pl.col("score").shuffle(seed=11)
    weak = within(t, shard="two") & luck(0.2, 3)
    return change(t, P, score=pl.when(weak).then(flat).otherwise("score"))


def merged_labels(t: Tables) -> Tables:
    """Merge two of three labels for one annotator."""
    some = set(ids(t, annotator="kim"))
    truth = {k: np.where(v == 2, 1, v).astype(np.uint8) if k in some else v
             for k, v in t[G].items()}  # fmt: skip
    return {**t, G: truth}


Unseen = tuple[str, str, Callable[[int], Tables], Callable[[Tables], Tables], list[tuple[str, ...]]]


def score_of(t: Tables, new: pl.Expr, **where: str) -> Tables:
    """Change the scores of some datums."""
    return change(t, P, score=pl.when(within(t, **where)).then(new).otherwise("score"))


CAR = pl.col("label_value") == "car"
KIM = [("annotator", "kim")]
UNSEEN: list[Unseen] = [
    ("detection", "one camera's images mirrored", boxes, mirrored, [("camera", "left")]),
    ("detection", "boxes of one label at 0.8 of their size", boxes,
     lambda t: change(t, P, **about_centre(0.8, CAR)), [("label", "car")]),
    ("detection", "a label merged into another", boxes,
     lambda t: planted.renamed(t, P, {"cyclist": "pedestrian"}), [("cyclist", "pedestrian")]),
    ("detection", "half of the images by another model", boxes, other_model, [("shard", "two")]),
    ("detection", "one video a frame late", boxes, late_frames, [("video", "v3")]),
    ("detection", "one annotator draws a quarter too large", boxes,
     lambda t: change(t, G, **about_centre(1.25, within(t, annotator="kim"))), KIM),
    ("detection", "scores turned round in one city", boxes,
     lambda t: score_of(t, 1 - pl.col("score"), city="Oslo"), [("city", "Oslo")]),
    ("detection", "scores halved in one city", boxes,
     lambda t: score_of(t, pl.col("score") / 2, city="Lyon"), [("city", "Lyon")]),
    ("classification", "one camera's columns shifted by one", labelled, shifted_columns,
     [("camera", "rear")]),
    ("classification", "half of the items by another model", labelled, weaker_half,
     [("shard", "two")]),
    ("retrieval", "a third of the documents listed twice", ranked, listed_twice,
     [("duplicate",), ("twice",), ("more than once",), ("repeated",)]),
    ("retrieval", "judgments of another collection in half", ranked, judged_elsewhere,
     [("judg",)]),
    ("retrieval", "pages off by one in one city", ranked, pages_off_by_one, [("city", "Oslo")]),
    ("text", "references of one city in another language", answers, other_language,
     [("city", "Oslo")]),
    ("segmentation", "one annotator merges two labels", mapped, merged_labels, KIM),
]  # fmt: skip


def main() -> None:
    """Plant, diagnose, print."""
    planted.FAULTS.clear()
    for at, (task, name, make, to, words) in enumerate(UNSEEN):
        planted.plant(task, name, 500 + at, make, to, *words)
    for distracted in (False, True):
        planted.print_measured(distracted=distracted)


if __name__ == "__main__":
    main()
