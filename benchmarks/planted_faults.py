"""Ranks of planted faults in the findings of `evalengine diagnose`: first, among three, or missing.

    python benchmarks/planted_faults.py

Every fault is planted into separate tables, made with a fixed seed, whose models are otherwise
equally good everywhere. A finding names a fault if it contains all of its words (the column and
value of the slice, or the labels, or the subject of the warning). Prints one row per fault, and the
counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl

import evalengine as ee
from evalengine.ingest.problems import ChecksFailed

LABELS = ["bus", "car", "cyclist", "pedestrian", "sign"]
CORNERS = ["xmin", "ymin", "xmax", "ymax"]
Words = list[tuple[str, ...]]
Tables = dict[str, Any]
FAULTS: list[tuple[str, str, Callable[[], tuple[Tables, Words]]]] = []


def datums(rng: np.random.Generator, n: int) -> pl.DataFrame:
    """Return datums with independent columns of properties."""
    return pl.DataFrame(
        {
            "datum_id": [f"i{i:04d}" for i in range(n)],
            "city": rng.choice(["Bonn", "Lyon", "Oslo", "Porto", "Turin"], n),
            "camera": rng.choice(["front", "left", "rear"], n),
            "annotator": rng.choice(["ann", "bob", "eve", "kim"], n),
            "light": rng.choice(["day", "night"], n),
        }
    )


def boxes(seed: int, n: int = 240) -> Tables:
    """Return about 5 objects per image, and a detector that misses one in ten."""
    rng = np.random.default_rng(seed)
    images = datums(rng, n)
    of = np.repeat(np.arange(n), rng.poisson(5, n))
    m = of.size
    size = np.exp(rng.normal(4, 0.4, (m, 2)))
    at = rng.uniform(0, 1, (m, 2)) * [1100, 600]
    box = np.c_[at, at + size]
    label = rng.choice(LABELS, m)
    truth = pl.DataFrame({"datum_id": images["datum_id"][of], "label_value": label}).with_columns(
        **dict(zip(CORNERS, box.T, strict=True))
    )
    detected = np.flatnonzero(rng.random(m) < 0.9)
    near = box[detected] + rng.normal(0, 0.04, (detected.size, 4)) * np.c_[size, size][detected]
    predicted = np.where(
        rng.random(detected.size) < 0.03, rng.choice(LABELS, detected.size), label[detected]
    )
    hits = pl.DataFrame(
        {"datum_id": images["datum_id"][of[detected]], "label_value": predicted,
         **dict(zip(CORNERS, near.T, strict=True)), "score": rng.beta(6, 2, detected.size)}
    )  # fmt: skip
    k = n // 2
    at = rng.uniform(0, 1, (k, 2)) * [1100, 600]
    made_up = np.c_[at, at + rng.uniform(20, 90, (k, 2))]
    others = pl.DataFrame(
        {"datum_id": images["datum_id"][rng.integers(0, n, k)],
         "label_value": rng.choice(LABELS, k),
         **dict(zip(CORNERS, made_up.T, strict=True)), "score": rng.beta(2, 6, k)}
    )  # fmt: skip
    return {"predictions": pl.concat([hits, others]), "ground_truths": truth, "datums": images}


def labelled(seed: int, n: int = 600) -> Tables:
    """Return a classifier of five labels that is right nine times in ten."""
    rng = np.random.default_rng(seed)
    items = datums(rng, n)
    true = rng.integers(0, 5, n)
    logits = rng.normal(0, 1, (n, 5))
    logits[np.arange(n), true] += 4
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    return {
        "predictions": pl.DataFrame(
            {"datum_id": np.repeat(items["datum_id"].to_numpy(), 5), "label_value": LABELS * n,
             "score": p.ravel()}
        ),
        "ground_truths": pl.DataFrame(
            {"datum_id": items["datum_id"], "label_value": np.array(LABELS)[true]}
        ),
        "datums": items,
    }  # fmt: skip


def ranked(seed: int, n: int = 150) -> Tables:
    """Return twenty documents per query; the two or three relevant ones are mostly near the top."""
    rng = np.random.default_rng(seed)
    queries = datums(rng, n)
    rows, judged = [], []
    for q in queries["datum_id"]:
        relevant = rng.random(20) < 0.15
        relevant[rng.integers(20)] = True
        score = rng.normal(0, 1, 20) + 3 * relevant
        rows += [(q, f"{q}d{d}", float(score[d])) for d in range(20)]
        judged += [(q, f"{q}d{d}", int(relevant[d])) for d in range(20)]
    return {
        "predictions": pl.DataFrame(rows, schema=["datum_id", "doc_id", "score"], orient="row"),
        "ground_truths": pl.DataFrame(
            judged, schema=["datum_id", "doc_id", "relevance"], orient="row"
        ),
        "datums": queries,
    }


WORDS = [
    "red",
    "blue",
    "old",
    "new",
    "house",
    "river",
    "road",
    "city",
    "runs",
    "near",
    "far",
    "two",
]


def answers(seed: int, n: int = 200) -> Tables:
    """Return answers that share most words with their references."""
    rng = np.random.default_rng(seed)
    items = datums(rng, n)
    reference = [" ".join(rng.choice(WORDS, 14)) + f" {i}" for i in range(n)]
    answer = [
        " ".join(w if rng.random() < 0.9 else str(rng.choice(WORDS)) for w in text.split())
        for text in reference
    ]
    return {
        "predictions": pl.DataFrame({"datum_id": items["datum_id"], "text": answer}),
        "ground_truths": pl.DataFrame({"datum_id": items["datum_id"], "text": reference}),
        "datums": items,
    }


def mapped(seed: int, n: int = 80) -> Tables:
    """Return label maps of three labels in stripes, with a few wrong pixels."""
    rng = np.random.default_rng(seed)
    items = datums(rng, n)
    truth, predicted = {}, {}
    for one in items["datum_id"]:
        cuts = np.sort(rng.integers(4, 28, 2))
        columns = np.searchsorted(cuts, np.arange(32), side="right")
        truth[one] = np.tile(columns, (32, 1)).astype(np.uint8)
        wrong = rng.random((32, 32)) < 0.05
        predicted[one] = np.where(wrong, rng.integers(0, 3, (32, 32)), truth[one]).astype(np.uint8)
    return {"predictions": predicted, "ground_truths": truth, "datums": items}


def ids(tables: Tables, **where: str) -> list[str]:
    """Return the datums with these values."""
    chosen: list[str] = tables["datums"].filter(**where)["datum_id"].to_list()
    return chosen


def within(tables: Tables, **where: str) -> pl.Expr:
    """Return whether a row belongs to one of them."""
    return pl.col("datum_id").is_in(ids(tables, **where))


def change(tables: Tables, side: str, **columns: Any) -> Tables:
    """Return the tables with changed columns of one side."""
    return {**tables, side: tables[side].with_columns(**columns)}


def rows(tables: Tables, side: str, keep: Any) -> Tables:
    """Return the tables with filtered rows of one side."""
    return {**tables, side: tables[side].filter(keep)}


def luck(share: float, seed: int = 1) -> pl.Expr:
    """Return True for a random share of the rows."""
    return pl.int_range(pl.len()).shuffle(seed=seed) < pl.len() * share


def renamed(tables: Tables, side: str, names: dict[str, str], when: Any = True) -> Tables:
    """Return the tables with labels of one side renamed in some rows."""
    new = pl.col("label_value").replace(names)
    return change(tables, side, label_value=pl.when(when).then(new).otherwise("label_value"))


def moved(x: float, y: float, when: Any) -> dict[str, pl.Expr]:
    """Shift boxes in some rows by shares of their size."""
    width, height = pl.col("xmax") - pl.col("xmin"), pl.col("ymax") - pl.col("ymin")
    by = dict(zip(CORNERS, (x * width, y * height) * 2, strict=True))
    return {c: pl.when(when).then(pl.col(c) + by[c]).otherwise(pl.col(c)) for c in CORNERS}


P, G = "predictions", "ground_truths"
SWAP = {"car": "bus", "bus": "car"}
CYCLE = {"car": "bus", "bus": "sign", "sign": "car"}


def harder(task: str, t: Tables) -> Tables:
    """Return the tables with lower quality at night, a property of the model and no fault."""
    night = within(t, light="night")
    if task == "detection":
        return rows(t, P, ~night | luck(0.8, 7))
    if task == "segmentation":
        some = set(ids(t, light="night"))
        predicted = {k: np.roll(v, 2, axis=1) if k in some else v for k, v in t[P].items()}
        return {**t, P: predicted}
    if task == "text":
        cut = pl.col("text").str.split(" ").list.head(9).list.join(" ")
        new = pl.when(night & luck(0.3, 7)).then(cut).otherwise("text")
        return change(t, P, text=new)
    noise = pl.col("score").shuffle(seed=9)
    return change(t, P, score=pl.when(night & luck(0.1, 7)).then(noise).otherwise("score"))


def plant(
    task: str, name: str, seed: int, make: Callable[[int], Tables],
    to: Callable[[Tables], Tables], *words: tuple[str, ...],
) -> None:  # fmt: skip
    """Register a fault: makers of sound and of broken tables, and the words that name it."""
    FAULTS.append((task, name, lambda: (to(make(seed)), list(words))))


def copied(tables: Tables, share: float = 0.1) -> Tables:
    """Repeat some datums under new ids."""
    few = tables["datums"].head(int(share * tables["datums"].height))
    made = dict(tables)
    for side in (P, G, "datums"):
        more = tables[side].join(few.select("datum_id"), on="datum_id", how="semi")
        made[side] = pl.concat(
            [tables[side], more.with_columns(datum_id="again" + pl.col("datum_id"))]
        )
    return made


def turned(tables: Tables, **where: str) -> Tables:
    """Give the predictions of these datums to the next of them."""
    some = ids(tables, **where)
    new = pl.col("datum_id").replace(dict(zip(some, some[1:] + some[:1], strict=True)))
    return change(tables, P, datum_id=new)


def detection() -> None:
    """Register faults of boxes."""
    cam = {"camera": "rear"}
    add = lambda name, to, *words: plant("detection", name, len(FAULTS), boxes, to, *words)  # noqa: E731
    add("two names change places", lambda t: renamed(t, P, SWAP), ("bus", "car", "taken"),
        ("bus", "car", "exchanged"))  # fmt: skip
    add("three names turn round", lambda t: renamed(t, P, CYCLE), ("car", "bus", "taken"),
        ("bus", "car", "sign", "exchanged"),
        ("bus", "sign", "taken"), ("sign", "car", "taken"))  # fmt: skip
    add("a third of the cars labelled bus", lambda t: renamed(t, G, {"car": "bus"}, luck(0.33)),
        ("bus", "car", "taken"))  # fmt: skip
    add("one camera's boxes shifted", lambda t: change(t, P, **moved(0.5, 0.3, within(t, **cam))),
        ("camera", "rear"))  # fmt: skip
    add("one camera blurred", lambda t: rows(t, P, ~within(t, **cam) | luck(0.4)),
        ("camera", "rear"))  # fmt: skip
    add("truth missing in one city", lambda t: rows(t, G, ~within(t, city="Oslo") | luck(0.5)),
        ("city", "Oslo"))  # fmt: skip
    add("one annotator's boxes xywh", lambda t: change(t, G, **{
        high: pl.when(within(t, annotator="eve")).then(pl.col(high) - pl.col(low))
        .otherwise(high) for low, high in (("xmin", "xmax"), ("ymin", "ymax"))}),
        ("annotator", "eve"), ("xywh",))  # fmt: skip
    add("all boxes of predictions xywh", lambda t: change(t, P, **{
        high: pl.col(high) - pl.col(low) for low, high in (("xmin", "xmax"), ("ymin", "ymax"))}),
        ("xywh",))  # fmt: skip
    add("scores of one label turned round", lambda t: change(t, P, score=pl.when(
        pl.col("label_value") == "sign").then(1 - pl.col("score")).otherwise("score")),
        ("label", "sign"))  # fmt: skip
    add("one image in ten twice", copied, ("duplicate",))
    add("truth drawn twice", lambda t: {**t, G: pl.concat([t[G], t[G].filter(luck(0.1))])},
        ("duplicate", "ground truth"))  # fmt: skip
    add("a label never predicted", lambda t: rows(t, P, pl.col("label_value") != "cyclist"),
        ("cyclist",))  # fmt: skip
    add("a label made up", lambda t: {**t, P: pl.concat([t[P], t[P].filter(luck(0.3)).with_columns(
        label_value=pl.lit("sign"), **moved(2.0, 1.0, True))])}, ("label", "sign"))  # fmt: skip
    add("one camera at half the size", lambda t: change(t, P, **{
        c: pl.when(within(t, **cam)).then(pl.col(c) / 2).otherwise(c) for c in CORNERS}),
        ("camera", "rear"))  # fmt: skip
    add("one annotator draws beside", lambda t: change(t, G, **moved(
        0.4, 0.3, within(t, annotator="kim"))), ("annotator", "kim"))  # fmt: skip
    add("the rear camera at night", lambda t: rows(t, P, ~within(t, light="night", **cam)
        | luck(0.3)), ("camera", "rear", "night"))  # fmt: skip
    add("one city's images out by one", lambda t: turned(t, city="Turin"), ("city", "Turin"))
    add("one camera's boxes doubled", lambda t: {**t, P: pl.concat([t[P], t[P].filter(
        within(t, **cam)).with_columns(**moved(0.02, 0.02, True))])},
        ("camera", "rear"))  # fmt: skip
    add("one city labels cars as signs", lambda t: renamed(
        t, G, {"car": "sign"}, within(t, city="Bonn")), ("city", "Bonn"))  # fmt: skip
    add("faint: one camera misses one in five more", lambda t: rows(
        t, P, ~within(t, **cam) | luck(0.8)), ("camera", "rear"))  # fmt: skip
    add("faint: one truth in ten missing in one city", lambda t: rows(
        t, G, ~within(t, city="Oslo") | luck(0.9)), ("city", "Oslo"))  # fmt: skip
    add("faint: one car in twenty labelled bus", lambda t: renamed(
        t, G, {"car": "bus"}, luck(0.05)), ("bus", "car", "taken"), ("other label",))  # fmt: skip
    add("faint: one annotator draws one box in five beside", lambda t: change(t, G, **moved(
        0.4, 0.3, within(t, annotator="kim") & luck(0.2))), ("annotator", "kim"))  # fmt: skip
    add("faint: one image in fifty twice", lambda t: copied(t, 0.02), ("duplicate",))
    add("faint: one truth in fifty drawn twice", lambda t: {**t, G: pl.concat(
        [t[G], t[G].filter(luck(0.02))])}, ("duplicate", "ground truth"))  # fmt: skip


def classification() -> None:
    """Register faults of labels of complete datums."""
    add = lambda name, to, *words: plant("classification", name, len(FAULTS), labelled, to, *words)  # noqa: E731
    noise = lambda t, **where: change(t, P, score=pl.when(within(t, **where)).then(  # noqa: E731
        pl.col("score").shuffle(seed=3)).otherwise("score"))  # fmt: skip
    add("two names change places", lambda t: renamed(t, P, SWAP), ("bus", "car", "taken"),
        ("bus", "car", "exchanged"))  # fmt: skip
    add("three names turn round", lambda t: renamed(t, P, CYCLE), ("car", "bus", "taken"),
        ("bus", "car", "sign", "exchanged"),
        ("bus", "sign", "taken"), ("sign", "car", "taken"))  # fmt: skip
    add("a third of the cars labelled bus", lambda t: renamed(t, G, {"car": "bus"}, luck(0.33)),
        ("bus", "car", "taken"))  # fmt: skip
    add("one camera's probabilities noise", lambda t: noise(t, camera="left"), ("camera", "left"))
    add("one annotator guesses", lambda t: change(t, G, label_value=pl.when(
        within(t, annotator="bob")).then(pl.col("label_value").shuffle(seed=4)).otherwise(
        "label_value")), ("annotator", "bob"))  # fmt: skip
    add("scores of one label turned round", lambda t: change(t, P, score=pl.when(
        pl.col("label_value") == "sign").then(1 - pl.col("score")).otherwise("score")),
        ("sign",))  # fmt: skip
    add("a label never predicted", lambda t: change(t, P, score=pl.when(
        pl.col("label_value") == "cyclist").then(0.0).otherwise("score")),
        ("cyclist",))  # fmt: skip
    add("one row in ten twice", copied, ("duplicate",))
    add("one city out by one", lambda t: turned(t, city="Lyon"), ("city", "Lyon"))
    add("one city labels cars as signs", lambda t: renamed(
        t, G, {"car": "sign"}, within(t, city="Bonn")), ("city", "Bonn"),
        ("car", "sign", "taken"))  # fmt: skip
    add("the left camera at night", lambda t: noise(t, camera="left", light="night"),
        ("camera", "left", "night"))  # fmt: skip
    add("one label in one city wrong", lambda t: change(t, P, score=pl.when(within(
        t, city="Porto") & (pl.col("label_value") == "bus")).then(1.0).otherwise("score")),
        ("city", "Porto"))  # fmt: skip
    add("faint: one label in twenty random", lambda t: change(t, G, label_value=pl.when(
        luck(0.05)).then(pl.col("label_value").shuffle(seed=8)).otherwise("label_value")),
        ("other label",))  # fmt: skip
    add("faint: one annotator guesses one in ten", lambda t: change(t, G, label_value=pl.when(
        within(t, annotator="bob") & luck(0.1)).then(pl.col("label_value").shuffle(seed=4))
        .otherwise("label_value")), ("annotator", "bob"))  # fmt: skip
    add("faint: one camera's probabilities one in ten noise", lambda t: change(t, P, score=pl.when(
        within(t, camera="left") & luck(0.1)).then(pl.col("score").shuffle(seed=3))
        .otherwise("score")), ("camera", "left"))  # fmt: skip


def retrieval() -> None:
    """Register faults of ranked lists."""
    add = lambda name, to, *words: plant("retrieval", name, len(FAULTS), ranked, to, *words)  # noqa: E731
    add("scores turned round in one city", lambda t: change(t, P, score=pl.when(within(
        t, city="Oslo")).then(-pl.col("score")).otherwise("score")), ("city", "Oslo"))  # fmt: skip
    add("all scores turned round", lambda t: change(t, P, score=-pl.col("score")), ("scores",))
    add("half of the documents lost at night", lambda t: rows(t, P, ~within(t, light="night")
        | luck(0.5)), ("light", "night"))  # fmt: skip
    add("lists of one camera at random", lambda t: change(t, P, score=pl.when(within(
        t, camera="left")).then(pl.col("score").shuffle(seed=5)).otherwise("score")),
        ("camera", "left"))  # fmt: skip
    add("one annotator's judgments shuffled", lambda t: change(t, G, relevance=pl.when(within(
        t, annotator="eve")).then(pl.col("relevance").shuffle(seed=6)).otherwise("relevance")),
        ("annotator", "eve"))  # fmt: skip
    add("one city at night", lambda t: change(t, P, score=pl.when(within(
        t, city="Oslo", light="night")).then(-pl.col("score")).otherwise("score")),
        ("city", "Oslo", "night"))  # fmt: skip


def text() -> None:
    """Register faults of answers."""
    add = lambda name, to, *words: plant("text", name, len(FAULTS), answers, to, *words)  # noqa: E731
    cut = pl.col("text").str.split(" ").list.head(4).list.join(" ")
    only = lambda t, new, **where: change(  # noqa: E731
        t, P, text=pl.when(within(t, **where)).then(new).otherwise("text"))  # fmt: skip
    add("one city's answers cut off", lambda t: only(t, cut, city="Oslo"), ("city", "Oslo"))
    add("one camera's answers empty", lambda t: only(t, pl.lit(""), camera="left"),
        ("camera", "left"))  # fmt: skip
    add("one annotator's answers out by one", lambda t: turned(t, annotator="kim"),
        ("annotator", "kim"))  # fmt: skip
    add("one answer in ten twice", copied, ("duplicate",))
    add("another language at night", lambda t: only(t, pl.col("text").str.reverse(),
        light="night"), ("light", "night"))  # fmt: skip


def segmentation() -> None:
    """Register faults of label maps."""
    add = lambda name, to, *words: plant("segmentation", name, len(FAULTS), mapped, to, *words)  # noqa: E731

    def each(t: Tables, to: Callable[[Any], Any], **where: str) -> Tables:
        some = set(ids(t, **where)) if where else set(t[P])
        return {**t, P: {k: to(v) if k in some else v for k, v in t[P].items()}}

    add("one camera mirrored", lambda t: each(t, lambda m: m[:, ::-1].copy(), camera="left"),
        ("camera", "left"))  # fmt: skip
    add("two labels change places", lambda t: each(t, lambda m: np.array([1, 0, 2], np.uint8)[m]),
        ("label 0", "1", "taken"), ("labels 0, 1", "exchanged"))  # fmt: skip
    add("a label never predicted", lambda t: each(t, lambda m: np.where(m == 2, 0, m).astype(
        np.uint8)), ("label 2",))  # fmt: skip
    add("one city's maps shifted", lambda t: each(t, lambda m: np.roll(m, 6, axis=1),
        city="Lyon"), ("city", "Lyon"))  # fmt: skip


for every in (detection, classification, retrieval, text, segmentation):
    every()


XYXY = {"xmin": "x_min_px", "ymin": "y_min_px", "xmax": "x_max_px", "ymax": "y_max_px"}


def readings() -> Iterator[tuple[str, str, Any, Any, dict[str, Any]]]:
    """Return misread input: fault, code, sound tables, broken tables, options of both."""
    one = boxes(7)
    one = {side: one[side].unique("datum_id", maintain_order=True) for side in (P, G)}
    moved_away = change(one, G, **{c: pl.col(c) + 500 for c in CORNERS})
    under = lambda t: (t[P].rename(XYXY), t[G].rename(XYXY))  # noqa: E731
    outlined = lambda t: tuple(  # noqa: E731
        t[side].select("datum_id", "label_value", shape=pl.format(
            "POLYGON (({} {}, {} {}, {} {}))", *(pl.col(c) for c in [*CORNERS, *CORNERS[:2]])))
        for side in (P, G))  # fmt: skip
    same = {**one, P: one[G].with_columns(score=0.5)}
    differ = "unread_columns_differ"
    yield "boxes under names that nothing reads", differ, under(same), under(moved_away), {}
    yield "outlines as text", differ, outlined(same), outlined(moved_away), {}
    t = labelled(8)
    ages = lambda seed: pl.int_range(pl.len()).shuffle(seed=seed)  # noqa: E731
    aged = [t[P].unique("datum_id", maintain_order=True), t[G]]
    sound = tuple(side.with_columns(age=pl.col("datum_id").str.slice(1)) for side in aged)
    wrong = (sound[0].with_columns(age=ages(1)), sound[1].with_columns(age=ages(2)))
    yield "another number that was predicted", differ, sound, wrong, {}
    wide = t[P].pivot("label_value", index="datum_id", values="score").join(t[G], on="datum_id")
    wide = wide.rename({"label_value": "actual"})
    some, code = {"score_columns": LABELS[:-1]}, "labels_without_scores"
    sound, wrong = (wide.filter(actual="bus"), None), (wide, None)
    yield "a class without a column of scores", code, sound, wrong, some
    order = {"descending": [False, True]}
    tied = t[P].join(t[G].with_columns(right=True), on=["datum_id", "label_value"], how="left")
    tied = tied.with_columns(pl.col("right").fill_null(False)).sort("datum_id", "right", **order)
    code = "tied_top_scores"
    yield "a constant model, right labels first", code, (t[P], t[G]), (
        tied.drop("right").with_columns(score=0.2), t[G]), {}  # fmt: skip
    answer = t[P].sort("score").group_by("datum_id", maintain_order=True).last()
    answer = answer.select("datum_id", "label_value")
    named = lambda names: (answer.with_columns(  # noqa: E731
        pl.col("label_value").replace(names)), t[G])  # fmt: skip
    five = dict(zip(LABELS, [*LABELS[1:], LABELS[0]], strict=True))
    yield "five classes in another order", "labels_apart", named({}), named(five), {}
    yield "two classes exchanged", "labels_exchanged", named({}), named(SWAP), {}
    yield "one class under another name", "labels_one_sided", named({}), named({"bus": "coach"}), {}
    few = change(boxes(9, 8), P, label_value=pl.when(luck(0.35)).then(
        pl.col("label_value").shuffle(seed=2)).otherwise("label_value"))  # fmt: skip
    sides = lambda t: (t[P], t[G])  # noqa: E731
    yield "five classes of a poor detector in another order", "labels_apart", sides(few), sides(
        renamed(few, P, five)), {}  # fmt: skip
    cars = wide.sort("datum_id")["car"]
    binary = pl.DataFrame({"actual": (t[G]["label_value"] == "car").cast(pl.Int64), "score": cars})
    signed = binary.select("actual", predicted=pl.when(pl.col("score") > 0.5).then(1).otherwise(0))
    coded = signed.with_columns(pl.col("predicted") * 2 - 1)
    yield "-1 and 1 against 0 and 1", "labels_one_sided", (signed, None), (coded, None), {}
    percent = binary.with_columns(pl.col("score") * 100)
    yield "a threshold in percent", "threshold_beyond_scores", (percent, None), (binary, None), {
        "decision_threshold": 40}  # fmt: skip
    t = boxes(10)
    first = t[P].filter(pl.col("datum_id") == t[P]["datum_id"][0])
    code = "datums_without_predictions"
    yield "predictions of one image only", code, sides(t), (first, t[G]), {}
    yield "a file of predictions with a header only", code, sides(t), (t[P].clear(), t[G]), {}
    t = ranked(11, 9)
    run, qrels = ({q: dict(zip(d, v, strict=True)) for q, d, v in side.group_by("datum_id").agg(
        pl.all()).iter_rows()} for side in (t[P], t[G]))  # fmt: skip
    yield "run and judgments exchanged, as mappings", "mappings_swapped", (run, qrels), (
        qrels, run), {}  # fmt: skip


def print_readings() -> None:
    """Print a row per fault: the severity of its rule, and whether any warns about sound tables."""
    print("| read wrong | rule | found as | sound tables |\n|---|---|---|---|")
    for name, code, sound, wrong, options in readings():
        results = []
        for tables in (wrong, sound):
            try:
                card = ee.check(*tables, **options)
            except ChecksFailed as refused:
                results.append({one.kind: "problem" for one in refused.problems})
            else:
                severities = {one.code: one.severity for one in card.findings}
                results.append({k: v for k, v in severities.items() if k == code or v == "warning"})
        quiet = ", ".join(results[1]) or "quiet"
        print(f"| {name} | {code} | {results[0].get(code, 'not found')} | {quiet} |")


def place(causes: pl.DataFrame, words: Words) -> int | None:
    """Return the rank of the finding that names the fault, from 1; None if there is none."""
    for at, finding in enumerate(causes["finding"], 1):
        if any(all(word in finding for word in one) for one in words):
            return at
    return None


def measured(*, distracted: bool = False) -> Iterator[tuple[str, str, int | None, str, float]]:
    """Return task, fault, rank of the finding that names it, first finding, CPU seconds."""
    for task, name, make in FAULTS:
        tables, words = make()
        if distracted:
            tables = harder(task, tables)
        if task == "retrieval":
            sides = P, G, "datums"
            tables = {side: tables[side].rename({"datum_id": "query_id"}) for side in sides}
        begun = time.process_time()
        try:
            causes = ee.diagnose(tables[P], tables[G], datums=tables["datums"], task=task).frame
        except ee.EvalengineError as refused:  # a refusal of the tables is the first finding
            causes = pl.DataFrame({"finding": [str(refused)]})
        spent = time.process_time() - begun
        yield task, name, place(causes, words), causes["finding"].first() or "nothing", spent


def unbroken(seeds: int = 4) -> Iterator[tuple[str, int, list[str]]]:
    """Return task, sound tables, and findings about them that name a slice, label or copy."""
    tasks = {"detection": boxes, "classification": labelled, "retrieval": ranked, "text": answers,
             "segmentation": mapped}  # fmt: skip
    for task, make in tasks.items():
        findings: list[str] = []
        for seed in range(1000, 1000 + seeds):
            tables = make(seed)
            if task == "retrieval":
                tables = {k: v.rename({"datum_id": "query_id"}) for k, v in tables.items()}
            causes = ee.diagnose(tables[P], tables[G], datums=tables["datums"], task=task).frame
            some = causes.filter(~pl.col("finding").str.contains("^(datum |[a-z ]+ \\()"))
            findings += some["finding"].to_list()
        yield task, seeds, findings


def print_measured(*, distracted: bool) -> None:
    """Print one row per fault, and the counts."""
    print("| task | planted | named | first finding | CPU s |\n|---|---|---:|---|---:|")
    places = []
    for task, name, at, finding, spent in measured(distracted=distracted):
        places.append(at)
        short = finding[:90].splitlines()[0]
        print(f"| {task} | {name} | {at or 'no'} | {short} | {spent:.2f} |", flush=True)
    first = sum(at == 1 for at in places)
    three = sum(at is not None and at <= 3 for at in places)
    late = sum(at is not None and at > 3 for at in places)
    print(f"\n{len(places)} planted{', night harder' * distracted}: {first} named first,"
          f" {three} among the first three, {late} later,"
          f" {places.count(None)} not at all.")  # fmt: skip


def main() -> None:
    """Plant, diagnose, print."""
    print_readings()
    for distracted in (False, True):
        print_measured(distracted=distracted)
    for task, n, findings in unbroken():
        print(f"{task}: {len(findings)} findings in {n} sets without a fault {findings[:3]}")


if __name__ == "__main__":
    main()
