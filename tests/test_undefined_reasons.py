"""Every undefined value has a reason, which is true for its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import evalengine as ee
from evalengine import metrics

Row = dict[str, Any]
SIDE = {"datum_id": pl.Int64, "label_value": pl.String}
BOX = dict.fromkeys(("xmin", "ymin", "xmax", "ymax"), pl.Float64)


class Facts:
    """Facts about the tables of a case, counted by plain loops.

    Attributes:
        truth: datum to true label.
        scores: datum to label to score.
    """

    def __init__(self, predictions: list[tuple[int, str, float]], truths: list[tuple[int, str]]):
        self.truth = dict(truths)
        self.scores: dict[int, dict[str, float]] = {}
        for datum, label, score in predictions:
            self.scores.setdefault(datum, {})[label] = score
        hard = {datum: max(s, key=lambda label: s[label]) for datum, s in self.scores.items()}
        self.answers = [hard.get(datum) for datum in self.truth]
        self.true = set(self.truth.values())
        self.predicted = set(hard.values())
        self.labels = self.true | {label for s in self.scores.values() for label in s}
        self.datums = set(self.truth)

    def positives(self, label: str) -> int:
        return sum(true == label for true in self.truth.values())

    def both_classes(self, label: str) -> bool:
        return 0 < self.positives(label) < len(self.datums | set(self.scores))


def chosen(row: Row, rows: pl.DataFrame) -> bool:
    """Return whether a threshold was found for the label of a row."""
    same = rows.filter(metric=row["metric"], label_value=row["label_value"], statistic="threshold")
    return same["value"].null_count() == 0


Truth = Callable[[Facts, Row, pl.DataFrame], bool]
CLASSIFICATION: dict[str, Truth] = {
    "no ground truth": lambda f, r, _: (
        not (f.positives(r["label_value"]) if r["label_value"] else f.true)
    ),
    "no ground truth of the label": lambda f, r, _: not f.positives(r["label_value"]),
    "never predicted": lambda f, r, _: (
        not (r["label_value"] in f.predicted if r["label_value"] else f.predicted)
    ),
    "neither ground truth nor prediction": lambda f, r, _: (
        r["label_value"] not in f.true | f.predicted
    ),
    "no label with ground truth has a value": lambda f, r, rows: (
        bool(f.true)
        and all(
            rows.filter(metric=r["metric"], label_value=label)["value"].null_count() == 1
            for label in f.true
        )
    ),
    "fewer than two labels with ground truth": lambda f, r, _: len(f.true) < 2,
    "truths or predictions are all of one class, or there are none": lambda f, r, _: (
        len(f.true) < 2 or len(set(f.answers)) < 2
    ),
    "only one class: no positive or no negative datum": lambda f, r, _: (
        not f.both_classes(r["label_value"])
    ),
    "no label with both classes": lambda f, r, _: not any(map(f.both_classes, f.labels)),
    "no label with ground truth": lambda f, r, _: not f.true,
    "no score of the label on a datum with ground truth": lambda f, r, _: (
        not any(r["label_value"] in f.scores.get(datum, {}) for datum in f.truth)
    ),
    "no negative datum of the label": lambda f, r, _: (
        f.positives(r["label_value"]) == len(f.datums | set(f.scores))
    ),
    "no datum without the label": lambda f, r, _: (
        f.positives(r["label_value"]) == len(f.truth) > 0 if r["label_value"] else len(f.true) == 1
    ),
    "the label is predicted for every datum": lambda f, r, _: (
        set(f.answers) == {r["label_value"]} if r["label_value"] else len(set(f.answers)) == 1
    ),
    "no bin with two datums": lambda f, r, _: (
        bool(f.truth)
        and max(Counter(int(15 * max(f.scores[one].values())) for one in f.truth).values()) == 1
    ),
    "no predictions at the threshold": lambda f, r, rows: chosen(r, rows),
    "no threshold reaches it": lambda f, r, rows: not chosen(r, rows),
}
A, B = "a", "b"
CASES: dict[str, tuple[list[tuple[int, str, float]], list[tuple[int, str]]]] = {
    "no predictions": ([], [(1, A), (2, B)]),
    "no ground truths": ([(1, A, 0.9), (1, B, 0.1), (2, B, 0.8)], []),
    "neither": ([], []),
    "one right row": ([(1, A, 0.9)], [(1, A)]),
    "one wrong row": ([(1, B, 0.9)], [(1, A)]),
    "one class": ([(1, A, 0.9), (2, A, 0.3)], [(1, A), (2, A)]),
    "one datum": ([(1, A, 0.9), (1, B, 0.1)], [(1, A)]),
    "one answer": ([(1, A, 0.9), (1, B, 0.1), (2, A, 0.8), (2, B, 0.2)], [(1, A), (2, B)]),
    "a label without scores": ([(1, A, 0.9), (2, A, 0.3)], [(1, A), (2, B)]),
    "all fine": ([(1, A, 0.9), (1, B, 0.1), (2, A, 0.2), (2, B, 0.8)], [(1, A), (2, B)]),
}
NEVER_UNDEFINED = {"Counts", "Reliability"}


def undefined(card: ee.Scorecard) -> list[Row]:
    return card.metrics.filter(pl.col("value").is_null()).to_dicts()


def classified(case: str, **options: Any) -> ee.Scorecard:
    """Score every metric of a case."""
    predictions, truths = CASES[case]
    return ee.score(
        pl.DataFrame(predictions, schema={**SIDE, "score": pl.Float64}, orient="row"),
        pl.DataFrame(truths, schema=SIDE, orient="row"),
        task="classification",
        metrics=metrics.names("classification"),
        **options,
    )


@pytest.mark.parametrize("case", CASES)
def test_classification(case: str) -> None:
    facts, card = Facts(*CASES[case]), classified(case)
    for row in undefined(card):
        message = (case, row["metric"], row["statistic"], row["label_value"], row["average"])
        assert row["reason"] in CLASSIFICATION, (*message, row["reason"])
        assert CLASSIFICATION[row["reason"]](facts, row, card.metrics), (*message, row["reason"])
    defined = card.metrics.filter(pl.col("value").is_not_null())
    assert defined["reason"].null_count() == defined.height


def test_cases_contain_every_undefined_metric() -> None:
    seen = {row["metric"] for case in CASES for row in undefined(classified(case))}
    of_task = metrics.all_metrics("classification").items()
    assert {name for name, one in of_task if one.frame == "metrics"} - seen == NEVER_UNDEFINED


@pytest.mark.parametrize("dialect", ["sklearn", "phoenix", "valor", "valor-lite", "torchmetrics"])
def test_no_dialect_leaves_a_null_without_reason(dialect: str) -> None:
    for case in CASES:
        card = classified(case, dialect=dialect)
        assert [row for row in undefined(card) if not row["reason"]] == []


def boxes(rows: list[tuple[int, str]], **more: Any) -> pl.DataFrame:
    schema = {**SIDE, **BOX}
    frame = pl.DataFrame([(*row, 0.0, 0.0, 5.0, 5.0) for row in rows], schema=schema, orient="row")
    return frame.with_columns(**{name: pl.lit(value) for name, value in more.items()})


DETECTION_CASES: dict[str, tuple[list[tuple[int, str]], float, list[tuple[int, str]], bool]] = {
    "no predictions": ([], 0.9, [(1, A), (2, B)], False),
    "no ground truths": ([(1, A), (2, B)], 0.9, [], False),
    "neither": ([], 0.9, [], False),
    "one row": ([(1, A)], 0.9, [(1, A)], False),
    "another label": ([(1, A)], 0.9, [(1, B)], False),
    "a low score": ([(1, A)], 0.1, [(1, A)], False),
    "a crowd": ([(1, A)], 0.9, [(1, A)], True),
}
"""Predictions, their score, ground truths, whether these are crowds."""


@pytest.mark.parametrize("area", ["all", "small"])
@pytest.mark.parametrize("case", DETECTION_CASES)
def test_detection(case: str, area: str) -> None:
    """All boxes have an area of 25; in the range 'small' nothing counts."""
    predictions, score, truths, crowd = DETECTION_CASES[case]
    card = ee.score(
        boxes(predictions, score=score),
        boxes(truths, iscrowd=crowd),
        task="detection",
        metrics=metrics.names("detection"),
        iou_thresholds=[0.5],
        score_thresholds=[0.5],
        area_ranges={"all": (0, 100), "small": (0, 10)},
    )
    counted = [] if crowd or area == "small" else [label for _, label in truths]
    answered = (
        [] if crowd or area == "small" or score < 0.5 else [label for _, label in predictions]
    )

    def there(label: str | None, labels: list[str]) -> bool:
        return label in labels if label is not None else bool(labels)

    for row in undefined(card):
        if row["area"] != area:
            continue
        truth = there(row["label_value"], counted)
        answer = there(row["label_value"], answered)
        scored = not crowd and there(row["label_value"], [label for _, label in predictions])
        holds = {
            "no ground truth that counts": not truth,
            "no label with ground truth that counts": not counted,
            **{  # no label has a frequency
                f"no label of frequency '{one}' with ground truth that counts": True
                for one in "rcf"
            },
            "no prediction that counts at this threshold": not answer,
            "no prediction that counts": not scored,
            "no threshold reaches it": scored,
            "no predictions at the threshold": scored,
            "neither ground truth nor prediction that counts at this threshold": (
                not truth and not answer
            ),
        }
        assert holds[row["reason"]], (row["metric"], row["label_value"], row["reason"])
