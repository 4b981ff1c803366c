"""valor-lite's confusion matrices: equal, except where it matches regardless of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from detection.strategies import Tables
from detection.valor_vectors import lite_tables, load, row_tables

AGNOSTIC = (
    "lite pairs boxes by score and IoU whatever their labels, before any threshold (valor.md 3.10);"
    " we match within labels first, so that the diagonal is the true positives"
)
FREE = (
    "lite's matrix gives a prediction a free ground truth where its counts lock it to a taken one"
    " (valor.md 3.10); our diagonal is the true positives of the counts"
)
STOLEN = (
    "lite gives the ground truth to a better-scored box that then fails the IoU test, so neither"
    " counts (valor.md 3.10)"
)

DIFFERS: dict[str, tuple[str, int, int]] = {
    "confusion_matrix_with_examples_ranked_pair_ordering": (AGNOSTIC, 6, 0),
    "filtering_labels_confusion_matrix": (AGNOSTIC, 6, 2),
    "filtering_labels": (FREE, 17, 18),
    "od_locked_argmax/k": (FREE, 2, 4),
    "od_equal_iou_two_gts/k": (FREE, 4, 8),
    "od_low_iou_first_below/k": (STOLEN, 4, 0),
}
"""Case -> reason, and the sums of our diagonals and of theirs over all thresholds."""

Cells = Counter[tuple[Any, Any]]


def _expected(matrix: Mapping[str, Any]) -> Cells:
    """Map (actual or None, predicted or None) to the count."""

    def count(cell: Any) -> int:
        return int(cell["count"] if isinstance(cell, Mapping) else cell)

    cells: Cells = Counter()
    for actual, row in matrix["confusion_matrix"].items():
        for predicted, cell in row.items():
            cells[actual, predicted] += count(cell)
    for predicted, cell in matrix["unmatched_predictions"].items():
        cells[None, predicted] += count(cell)
    for actual, cell in matrix["unmatched_ground_truths"].items():
        cells[actual, None] += count(cell)
    return +cells


def _cases() -> Iterator[tuple[str, Tables, Sequence[Mapping[str, Any]]]]:
    """Yield name, tables and matrices of every case without a filter."""
    for case in load("lite_object_detection.json")["cases"]:
        if not case["method"].startswith("compute_confusion_matrix") or case["filter"]:
            continue
        tables = lite_tables(case["data"])
        if case["parameters"]["datums"] is None:
            yield case["id"].split("[")[0], tables, case["expected"]
    for case in load("edge_cases.json")["cases"]:
        if case["task"] == "object_detection":
            for key, answer in case["expected"]["valor_lite_0.39.0"].items():
                tables, matrices = row_tables(case, key), answer["confusion_matrix"]
                if isinstance(matrices, list):
                    yield f"{case['id']}/{key}", tables, matrices


def _run(tables: Tables, matrices: Sequence[Mapping[str, Any]]) -> dict[tuple[float, float], Cells]:
    """Compute our cells at every IoU and score threshold of the matrices."""
    at = [(m["parameters"]["iou_threshold"], m["parameters"]["score_threshold"]) for m in matrices]
    frame = tables.score(
        dialect="valor-lite",
        metrics=["ConfusionMatrix"],
        iou_thresholds=sorted({iou for iou, _ in at}),
        score_thresholds=sorted({score for _, score in at}),
        datums=pl.DataFrame({"datum_id": tables.datums}),
    ).confusion
    out: dict[tuple[float, float], Cells] = {where: Counter() for where in at}
    for row in frame.iter_rows(named=True):
        where = (row["iou_threshold"], row["score_threshold"])
        out[where][row["actual"], row["predicted"]] += row["count"]
    return out


def _diagonal(cells: Cells) -> int:
    return sum(n for (actual, predicted), n in cells.items() if actual == predicted)


def test_confusion_matrices() -> None:
    """Cell by cell, at every threshold."""
    ran: Counter[str] = Counter()
    differed: dict[str, tuple[int, int]] = {}
    for name, tables, matrices in _cases():
        ours = _run(tables, matrices)
        for matrix in matrices:
            parameters = matrix["parameters"]
            cells = ours[parameters["iou_threshold"], parameters["score_threshold"]]
            expected = _expected(matrix["value"])
            if name in DIFFERS:
                mine, theirs = differed.get(name, (0, 0))
                differed[name] = (mine + _diagonal(cells), theirs + _diagonal(expected))
                continue
            assert cells == expected, (name, parameters)
        ran[name] += 1
    assert differed == {name: (mine, theirs) for name, (_, mine, theirs) in DIFFERS.items()}
    assert sum(ran.values()) >= 29
