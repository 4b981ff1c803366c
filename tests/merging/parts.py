"""Random tables of every task, and a check that tallies of parts merge into that of all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from loading import load_frames
from polars.testing import assert_frame_equal

from evalengine import metrics
from evalengine.evaluation import planner
from evalengine.evaluation.summary import summarise
from evalengine.executors import Threads
from evalengine.ingest.frames import Frames
from evalengine.schemas.contract import ROW
from evalengine.schemas.option_values import make_options

FRAMES = ("metrics", "curves", "examples", "confusion", "outcomes", "errors", "label_errors",
          "per_datum")  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Tables and options of one run.

    Attributes:
        sides: predictions and ground truths, or one table.
        options: options of the run.
        datum: the column that names datums.
        tables: ``datums`` and ``labels``, as ``score`` takes them.
    """

    sides: tuple[pl.DataFrame, ...]
    options: dict[str, Any]
    datum: str = "datum_id"
    tables: dict[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> list[Any]:
        """All datums of the sides."""
        columns = [side[self.datum] for side in self.sides]
        more = self.tables.get("datums")
        if more is not None:
            columns.append(more[self.datum])
        return pl.concat(columns).unique().sort().to_list()

    def on(self, ids: Sequence[Any]) -> Case:
        """Return the case with the rows of some datums, in their order."""
        inside = pl.col(self.datum).is_in(
            pl.Series(ids, dtype=self.sides[0].schema[self.datum]).implode()
        )
        tables = dict(self.tables)
        if "datums" in tables:
            tables["datums"] = tables["datums"].filter(inside)
        return Case(
            tuple(side.filter(inside) for side in self.sides), self.options, self.datum, tables
        )


def plan_of(case: Case, task: str) -> planner.Plan:
    return planner.make_plan(make_options(**case.options), task)


def frames_of(case: Case, task: str) -> Frames:
    return load_frames(*case.sides, options=make_options(**case.options), task=task, **case.tables)


def fitted(case: Case, task: str) -> planner.Plan:
    """Return the plan of a run, without metrics that the tables cannot have."""
    return planner.fitted(plan_of(case, task), frames_of(case, task))


def tallied(case: Case, plan: planner.Plan, rows: tuple[pl.Series, ...] | None = None) -> Any:
    """Return the tally of a case.

    Args:
        case: the tables.
        plan: plan of the run.
        rows: row numbers of each side in the whole input, if known.
    """
    frames = frames_of(case, plan.task)
    if rows is not None:
        for role, numbers in zip(frames.sides, rows, strict=True):
            frames.sides[role] = frames.sides[role].with_columns(numbers.alias(ROW))
    return planner.run(plan, frames, Threads(1))


def shown(plan: planner.Plan, tallies: Any) -> dict[str, pl.DataFrame]:
    """Return all frames of a run."""
    makers, _ = summarise(plan, tallies)
    return {name: make() for name, make in makers.items()}


def same(ours: dict[str, pl.DataFrame], theirs: dict[str, pl.DataFrame]) -> None:
    assert ours.keys() == theirs.keys()
    for name, frame in theirs.items():
        assert_frame_equal(ours[name], frame, check_exact=True)


def cut(case: Case, task: str, seed: int, n: int) -> list[Case]:
    """Distribute the datums to parts at random; omit empty parts."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, n, len(case.ids))
    parts = [[i for i, part in zip(case.ids, of, strict=True) if part == p] for p in range(n)]
    return [case.on(ids) for ids in parts if ids]


def check(
    case: Case, task: str, seed: int, n: int, store: Callable[[Any], Any] | None = None
) -> None:
    """Check that merged tallies of parts have the frames of one tally.

    Rows are numbered within the whole input in the first half, and by part in the second.

    Args:
        case: the tables.
        task: the task.
        seed: seed of the distribution.
        n: number of parts.
        store: function applied to each tally before it is merged.
    """
    keep = store or (lambda tallies: tallies)
    frames = frames_of(case, task)
    plan = planner.fitted(plan_of(case, task), frames)
    whole = shown(plan, planner.run(plan, frames, Threads(1)))
    sides = tuple(side.with_row_index(ROW) for side in case.sides)
    numbered = Case(sides, case.options, case.datum, case.tables)
    parts = cut(numbered, task, seed, n)
    made = [
        keep(
            tallied(
                Case(tuple(s.drop(ROW) for s in part.sides), case.options, case.datum, part.tables),
                plan,
                tuple(side[ROW].cast(pl.Int64) for side in part.sides),
            )
        )
        for part in parts
    ]
    same(shown(plan, planner.merge(plan, made)), whole)
    # The parts as consecutive files, without row numbers.
    parts = cut(case, task, seed, n)
    one = Case(
        tuple(pl.concat(sides) for sides in zip(*(part.sides for part in parts), strict=True)),
        case.options,
        case.datum,
        case.tables,
    )
    expected = shown(plan, tallied(one, plan))
    same(shown(plan, planner.merge(plan, [keep(tallied(part, plan)) for part in parts])), expected)


def ids_of(rng: np.random.Generator, n: int) -> pl.Series:
    if rng.random() < 0.5:
        return pl.Series(rng.permutation(n) * 3)
    return pl.Series([f"é{i}" if i % 3 else f"z{i}" for i in rng.permutation(n)])


def _slices(ids: pl.Series, rng: np.random.Generator) -> pl.DataFrame:
    words = rng.choice(["wet", "dry", "ice"], len(ids))
    return pl.DataFrame({"datum_id": ids, "weather": words})


DETECTION_DIALECTS = (
    "standard", "coco", "valor", "valor-docs", "valor-lite", "lvis", "lvis-fixed",
    "voc2007", "voc2012", "voc-detectron2", "voc-mmdetection", "openimages", "openimages-v2",
)  # fmt: skip


def detection(seed: int) -> Case:
    """Generate boxes on a small grid: ties, crowds, one-sided labels, datums without rows."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 9)
    labels = rng.choice([["a", "b", "c"], ["x", "y", "zz"]])

    def side(n: int) -> pl.DataFrame:
        low = rng.integers(0, 4, (n, 2))
        high = low + rng.integers(1, 5, (n, 2))
        return pl.DataFrame(
            {
                "datum_id": ids.gather(rng.integers(0, 8, n)),
                "label_value": rng.choice(labels, n),
                "xmin": low[:, 0], "ymin": low[:, 1], "xmax": high[:, 0], "ymax": high[:, 1],
            }
        ).cast(dict.fromkeys(("xmin", "ymin", "xmax", "ymax"), pl.Float64))  # fmt: skip

    predictions = side(50).with_columns(score=pl.Series(rng.integers(0, 5, 50) / 4))
    flags = (pl.Series(name, rng.random(30) < 0.2) for name in ("ignore", "iscrowd"))
    truths = side(30).with_columns(flag.cast(pl.Int64) for flag in flags)
    if rng.random() < 0.5:
        truths = truths.with_columns(annotation_id=pl.Series(rng.permutation(30) + 5))
    dialect = str(rng.choice(DETECTION_DIALECTS))
    options = {
        "dialect": dialect,
        "metrics": metrics.names("detection"),
        "score_thresholds": [0.25, 0.5, 0.75],
        "iou_thresholds": [0.3, 0.5, 0.75],
        "pr_curve_max_examples": int(rng.integers(0, 3)),
        "by": ["weather"],
    } | {"box_bins": 2, "least_in_bin": 2}
    if dialect in ("coco", "lvis", "lvis-fixed"):
        options["area_ranges"] = {"all": (0.0, 1e10), "small": (0.0, 5.0)}
    tables = {"datums": _slices(ids, rng).with_columns(height=12, width=9)}
    if dialect == "lvis":
        options["max_detections"] = [4]
    if dialect.startswith(("lvis", "openimages")):
        tables = {
            "datums": tables["datums"].with_columns(
                pl.Series(name, [[one for one in labels if rng.random() < 0.4] for _ in ids],
                          dtype=pl.List(pl.String))
                for name in ("negative_labels", "partial_labels")
            ),
            "labels": pl.DataFrame({"label_value": labels, "frequency": ["r", "c", "f"]}),
        }  # fmt: skip
    return Case((predictions, truths), options, tables=tables)


def of_any_geometry() -> list[str]:
    """Return metrics for tests of other geometries than boxes, without those tested with boxes."""
    return [
        name
        for name in metrics.names("detection")
        if not name.startswith(("TIDE", "APA", "mAPA")) and name not in ("APr", "APc", "APf")
    ]


def keypoints(seed: int) -> Case:
    """Generate instances of five keypoints with two labels, ties, crowds and empty instances."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 9)

    def side(n: int) -> pl.DataFrame:
        centre = rng.integers(10, 40, (n, 1, 2))
        points = centre + rng.integers(-8, 8, (n, 5, 2))
        seen = rng.choice([0, 1, 2], (n, 5, 1)) * (rng.random((n, 1, 1)) < 0.9)
        numbers = np.concatenate([points, seen], axis=2).reshape(n, 15).astype(np.float64)
        return pl.DataFrame(
            {
                "datum_id": ids.gather(rng.integers(0, 8, n)),
                "label_value": rng.choice(["person", "dog"], n),
                "keypoints": pl.Series(numbers.tolist(), dtype=pl.List(pl.Float64)),
                "xmin": centre[:, 0, 0] - 8.0, "ymin": centre[:, 0, 1] - 8.0,
                "xmax": centre[:, 0, 0] + 8.0, "ymax": centre[:, 0, 1] + 8.0,
            }
        )  # fmt: skip

    truths = side(30).with_columns(
        area=pl.Series(rng.integers(1, 400, 30).astype(np.float64)),
        head_size=pl.Series(rng.integers(0, 9, 30).astype(np.float64)),
        iscrowd=pl.Series(rng.integers(0, 8, 30) == 0),
    )
    guesses = side(20).with_columns(score=pl.Series(rng.integers(0, 5, 20) / 4))
    copies = truths.select(guesses.drop("score").columns).with_columns(score=pl.lit(0.5))
    options = {
        "iou_type": "keypoints",
        "keypoint_sigmas": 0.2,
        "dialect": str(rng.choice(["standard", "coco"])),
        "metrics": of_any_geometry(),
        "score_thresholds": [0.25, 0.5],
        "iou_thresholds": [0.3, 0.5],
        "area_ranges": {"all": (0.0, 1e10), "small": (0.0, 100.0)},
        "by": ["weather"],
    }
    images = _slices(ids, rng).with_columns(height=60, width=60)
    return Case((pl.concat([guesses, copies]), truths), options, tables={"datums": images})


def classification(seed: int) -> Case:
    """Generate scored labels with label keys, ties, weights, missing rows, declared labels."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 14)
    keys, labels = ["k", "m"], ["a", "b", "c"]
    cells = pl.DataFrame({"datum_id": ids}).join(pl.DataFrame({"label_key": keys}), how="cross")
    scored = cells.join(pl.DataFrame({"label_value": labels}), how="cross")
    scored = scored.filter(pl.Series(rng.random(scored.height) < 0.8))
    scored = scored.with_columns(score=pl.Series(rng.integers(0, 5, scored.height) / 4))
    truths = cells.with_columns(label_value=pl.Series(rng.choice(labels, cells.height))).filter(
        pl.Series(rng.random(cells.height) < 0.8)
    )
    if rng.random() < 0.6:
        weight = ids.to_frame("datum_id").with_columns(weight=pl.Series(rng.random(len(ids))))
        truths = truths.join(weight, on="datum_id", how="left", maintain_order="left")
    if rng.random() < 0.4:
        scored, truths = (side.filter(pl.col("label_key") == "k").drop("label_key")
                          for side in (scored, truths))  # fmt: skip
    several = bool(rng.random() < 0.3)
    if several:
        more = cells.with_columns(label_value=pl.lit("c"))
        more = more.filter(pl.Series(rng.random(more.height) < 0.3))
        more = more.join(truths, on=["datum_id"], how="semi")
        if "weight" in truths.columns:
            truths = truths.drop("weight")
        truths = pl.concat([truths, more.select(truths.columns)]).unique(maintain_order=True)
    scored = scored.sample(fraction=1, shuffle=True, seed=seed)
    truths = truths.sample(fraction=1, shuffle=True, seed=seed)
    options: dict[str, Any] = {
        "metrics": _classification_metrics(several=several, weighted="weight" in truths.columns),
        "score_thresholds": [0.25, 0.5],
        "multilabel": several or None,
        "pr_curve_max_examples": 2,
        "by": ["weather"],
        "k": [1, 2],
    }
    tables: dict[str, Any] = {"datums": _slices(ids, rng)}
    if rng.random() < 0.5:
        tables["labels"] = ["c", "a", "q", "b"]
    return Case((scored, truths), options, tables=tables)


def _classification_metrics(*, several: bool, weighted: bool) -> list[str]:
    """Return the metrics that fit the tables."""
    one = ("BalancedAccuracy", "BalancedAccuracyAdjusted", "CohenKappa", "CohenKappaLinear",
           "CohenKappaQuadratic", "TopKAccuracy", "mROCAUCOneVsOne", "LogLoss", "Brier", "ECE",
           "MCE", "ECECalibrated", "RMSCE", "Reliability", "ConfusionMatrix",
           "Outcomes")  # fmt: skip
    # Rounding of weighted counts may make the radicand in MCC negative.
    unfit = {*(one if several else ()), *(("MCC",) if several or weighted else ())}
    return [name for name in metrics.names("classification") if name not in unfit]


def binary(seed: int) -> Case:
    """Generate one table: a score of the positive label, a predicted label, or score columns."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 40)
    n = len(ids)
    kind = rng.integers(0, 3)
    columns: dict[str, Any] = {"datum_id": ids, "weather": rng.choice(["wet", "dry"], n)}
    options: dict[str, Any] = {"by": ["weather"]}
    if kind == 0:
        columns |= {"actual": rng.integers(0, 2, n), "score": rng.integers(0, 6, n) / 5}
    elif kind == 1:
        words = ["no", "yes", "who"]
        columns |= {"actual": rng.choice(words, n), "predicted": rng.choice(words, n)}
        columns["score"] = rng.integers(0, 6, n) / 5
    else:
        columns |= {"actual": rng.choice(["a", "b", "c"], n)}
        columns |= {f"p_{label}": rng.integers(0, 6, n) / 5 for label in "abc"}
        options["score_columns"] = "p_*"
    if rng.random() < 0.5:
        columns["weight"] = rng.random(n)
    if kind == 1:
        # Labels are declared, because a part may not contain all of them.
        options["metrics"] = ["Accuracy", "Precision", "Recall", "F1", "ROCAUC", "ConfusionMatrix"]
        return Case((pl.DataFrame(columns),), options, tables={"labels": words})
    tables = {} if kind == 0 else {"labels": ["a", "b", "c"]}
    return Case((pl.DataFrame(columns),), options, tables=tables)


def retrieval(seed: int) -> Case:
    """Generate runs and judgments with ties and one-sided queries."""
    rng = np.random.default_rng(seed)
    ids = pl.Series([f"q{i}" for i in rng.permutation(10)])

    def pairs(n: int) -> pl.DataFrame:
        frame = pl.DataFrame(
            {"query_id": ids.gather(rng.integers(0, 9, n)), "doc_id": rng.integers(0, 12, n)}
        )
        return frame.unique(maintain_order=True)

    run, judged = pairs(70), pairs(40)
    run = run.with_columns(score=pl.Series(rng.integers(0, 4, run.height) / 4))
    judged = judged.with_columns(relevance=pl.Series(rng.integers(0, 3, judged.height)))
    options = {
        "metrics": ["nDCG", "MAP", "MRR", "P", "Recall", "Success", "RPrecision", "bpref", "RBP"],
        "k": [1, 3],
        "complete": bool(rng.random() < 0.5),
    }
    return Case((run, judged), options, "query_id")


def lists(seed: int) -> Case:
    """Generate a table of retrieved and relevant lists, some empty."""
    rng = np.random.default_rng(seed)
    ids = pl.Series([f"q{i}" for i in rng.permutation(10)])
    table = pl.DataFrame(
        {
            "query_id": ids,
            "retrieved": [rng.permutation(8)[: rng.integers(0, 6)].tolist() for _ in ids],
            "relevant": [rng.permutation(8)[: rng.integers(0, 4)].tolist() for _ in ids],
        },
        schema_overrides={"retrieved": pl.List(pl.Int64), "relevant": pl.List(pl.Int64)},
    )
    more = pl.DataFrame({"query_id": [*ids.to_list(), "aa", "zz"]})
    return Case((table,), {"metrics": ["nDCG", "DCG", "P"], "k": [2]}, "query_id", {"datums": more})


def text(seed: int) -> Case:
    """Generate short texts, in two tables or one."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 8)

    def words() -> str:
        return " ".join(rng.choice(["the", "cat", "sat", "on", "a", "mat."], rng.integers(1, 9)))

    options = {"metrics": ["ROUGE1", "ROUGE2", "ROUGEL", "ROUGELsum", "BLEU", "chrF", "TER"]}
    if rng.random() < 0.5:
        table = pl.DataFrame(
            {"datum_id": ids, "text": [words() for _ in ids], "reference": [words() for _ in ids]}
        )
        return Case((table,), options)
    texts = pl.DataFrame({"datum_id": ids, "text": [words() for _ in ids]})
    some = ids.gather(rng.integers(0, 8, 14))
    references = pl.DataFrame({"datum_id": some, "text": [words() for _ in some]})
    return Case((texts.sample(fraction=1, shuffle=True, seed=seed), references), options)


def judged(seed: int) -> Case:
    """Generate verdicts, some with unknown words or with a status that occurs in one part only."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 9)
    rows = [
        {
            "datum_id": datum,
            "metric": metric,
            "verdict": str(rng.choice(["yes", "no", "perhaps"], p=[0.45, 0.45, 0.1])),
            "item_index": item,
            "status": str(rng.choice(["ok", "timeout", "refused"], p=[0.9, 0.05, 0.05])),
        }
        for datum in ids
        for metric in ("Bias", "AnswerRelevance")
        if rng.random() < 0.8
        for item in range(rng.integers(1, 4))
    ]
    schema = {"datum_id": ids.dtype, "metric": pl.String, "verdict": pl.String,
              "item_index": pl.Int64, "status": pl.String}  # fmt: skip
    return Case((pl.DataFrame(rows, schema=schema),), {"metrics": ["Bias", "AnswerRelevance"]})


def values(seed: int) -> Case:
    """Generate values of two metrics, some missing or repeated, with weights."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 9)
    rows = [
        {
            "datum_id": datum,
            "metric": metric,
            "value": None if rng.random() < 0.1 else float(rng.normal() * 10.0 ** rng.integers(9)),
            "epoch": epoch,
            "weight": float(rng.random()),
        }
        for datum in ids
        for metric in ("acc,none", "latency")
        if rng.random() < 0.9
        for epoch in range(rng.integers(1, 3))
    ]
    schema = {"datum_id": ids.dtype, "metric": pl.String, "value": pl.Float64,
              "epoch": pl.Int64, "weight": pl.Float64}  # fmt: skip
    statistics = ["mean", "sum", "median", "std", "min", "max", "p95"]
    return Case((pl.DataFrame(rows, schema=schema),), {"statistics": statistics})


def preferences(seed: int) -> Case:
    """Generate comparisons of models with ties; a part may not contain all models."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 9)
    rows = []
    for datum in ids:
        for _ in range(rng.integers(1, 4)):
            one, other = rng.choice(["x", "y", "z", "w"], 2, replace=False)
            won = str(rng.choice([one, other, "a", "b", "tie", "both_bad"]))
            rows.append((datum, str(one), str(other), won))
    names = {"datum_id": ids.dtype, **dict.fromkeys(("model_a", "model_b", "winner"), pl.String)}
    return Case((pl.DataFrame(rows, schema=names, orient="row"),), {})


def agents(seed: int) -> Case:
    """Generate trajectories of two tools, in two tables of calls or in lists."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 9)
    options = {"argument_rules": {"x": "0.5"}, "tools": ["a"]}
    sides = []
    for _ in range(2):
        rows = [
            (datum, step, str(rng.choice(["a", "b"])), f'{{"x": {rng.integers(0, 4) / 2}}}')
            for datum in ids
            for step in range(rng.integers(0, 4))
        ]
        names = {"datum_id": ids.dtype, "step": pl.Int64, "tool": pl.String, "arguments": pl.String}
        sides.append(pl.DataFrame(rows, schema=names, orient="row"))
    if rng.random() < 0.5:
        return Case(
            tuple(side.sample(fraction=1, shuffle=True, seed=seed) for side in sides), options
        )
    call = pl.struct(name="tool", arguments="arguments").struct.json_encode()
    lists = [
        ids.to_frame("datum_id").join(
            side.group_by("datum_id").agg(call.alias(name)), on="datum_id", how="left"
        ).select("datum_id", pl.col(name).fill_null([]))
        for name, side in zip(("predicted_trajectory", "reference_trajectory"), sides, strict=True)
    ]  # fmt: skip
    return Case((lists[0].join(lists[1], on="datum_id"),), options)


def segmentation(seed: int) -> Case:
    """Generate label maps with a background, with one label key or two."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 7)
    keyed = rng.random() < 0.5
    rows: list[dict[str, Any]] = []
    for datum in ids:
        for key in ("k", "m") if keyed else ("label",):
            shape = (4, 5)
            plain = rng.random() < 0.3
            truth = np.zeros(shape, int) if plain else rng.integers(0, 4, shape)
            predicted = np.where(rng.random(shape) < 0.7, truth, 0 if plain else rng.integers(0, 4))
            rows.append({"datum_id": datum, "label_key": key, "truth": truth, "found": predicted})

    def side(name: str) -> pl.DataFrame:
        made: dict[str, Any] = {
            "datum_id": pl.Series([row["datum_id"] for row in rows], dtype=ids.dtype),
            "raster": [row[name].tolist() for row in rows],
        }
        if keyed:
            made["label_key"] = [row["label_key"] for row in rows]
        return pl.DataFrame(made, schema_overrides={"raster": pl.List(pl.List(pl.Int64))})

    options: dict[str, Any] = {"metrics": metrics.names("segmentation"), "by": ["weather"]}
    if rng.random() < 0.7:
        options["background"] = 0
    if rng.random() < 0.3:
        options["ignore_index"] = 3
    tables: dict[str, Any] = {"datums": _slices(ids, rng)}
    if rng.random() < 0.5:
        tables["labels"] = pl.DataFrame({"label_value": [1, 2, 3, 0, 9]})
    return Case((side("found"), side("truth")), options, tables=tables)


def panoptic(seed: int) -> Case:
    """Generate segments of things and stuff, with void, crowds and one-sided images."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 7)

    def side(truth: bool) -> pl.DataFrame:
        rows: list[dict[str, Any]] = []
        for datum in ids:
            if rng.random() < 0.1:
                continue
            pixels = rng.integers(0, 4, (3, 2)).repeat(2, axis=0).repeat(3, axis=1)
            here = [int(one) for one in np.unique(pixels) if one] or [None]
            rows += [
                {
                    "datum_id": datum,
                    "segment_id": segment,
                    "label_value": None if segment is None else int(rng.integers(1, 4)),
                    "raster": pixels.tolist(),
                    "iscrowd": truth and rng.random() < 0.2,
                }
                for segment in here
            ]
        schema = {
            "datum_id": ids.dtype,
            "segment_id": pl.Int64,
            "label_value": pl.Int64,
            "raster": pl.List(pl.List(pl.Int64)),
            "iscrowd": pl.Boolean,
        }
        made = pl.DataFrame(rows, schema=schema)
        return made if truth else made.drop("iscrowd")

    options: dict[str, Any] = {"metrics": metrics.names("panoptic"), "by": ["weather"]}
    options["dialect"] = str(rng.choice(["standard", "coco", "torchmetrics"]))
    if options["dialect"] != "torchmetrics" and rng.random() < 0.3:
        options |= {"iou_type": "boundary", "boundary_ratio": 0.1}
    tables: dict[str, Any] = {"datums": _slices(ids, rng)}
    if rng.random() < 0.7:
        tables["labels"] = pl.DataFrame({"label_value": [1, 2, 3, 9], "isthing": [1, 0, 1, 0]})
    return Case((side(truth=False), side(truth=True)), options, tables=tables)
