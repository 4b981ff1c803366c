"""HOTA, CLEAR and identity, compared with the package trackeval 1.3.0 (with scipy 1.17.1).

Its metrics were run on 30 random sequences of three labels, with gaps, switches, ties, empty video
frames and sequences of one side only. ``known_answers/tracking`` has the rows, corners in
sixteenths of a pixel, and its values per sequence, per label, and for all of them. During
development 4,000 more sequences differed by at most 6e-16.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from reference_data import known_answers

import evalengine as ee

VECTORS: dict[str, Any] = known_answers("tracking", "trackeval")
CORNERS = ("xmin", "ymin", "xmax", "ymax")


def table(side: str, name: str) -> pl.DataFrame:
    columns = ("sequence", "frame", name, *CORNERS, "label_value")
    rows = pl.DataFrame(VECTORS[side], columns, orient="row")
    return rows.with_columns(pl.col(CORNERS) / 16)


@pytest.fixture(scope="module")
def card() -> ee.Scorecard:
    options: dict[str, Any] = {"metrics": VECTORS["names"], "iou_thresholds_to_return": [0.5]}
    return ee.score(table("found", "track_id"), table("truth", "object_id"), **options)


@pytest.mark.parametrize("label", ["0", "1", "2"])
def test_labels(card: ee.Scorecard, label: str) -> None:
    said = [
        card.value(name, label_value=int(label), iou_threshold=None) for name in VECTORS["names"]
    ]
    assert said == pytest.approx(VECTORS["labels"][label], rel=1e-12, abs=1e-12)


def test_labels_combined(card: ee.Scorecard) -> None:
    assert card.task == "tracking"
    said = [card.value(name) for name in VECTORS["names"]]
    assert said == pytest.approx(VECTORS["together"], rel=1e-12, abs=1e-12)
    alphas = VECTORS["hota_of_alphas"]
    assert card.value("HOTA", iou_threshold=0.5) == pytest.approx(alphas[9], rel=1e-12)
    assert card.value("HOTA0") == pytest.approx(alphas[0], rel=1e-12)


def test_means_of_labels(card: ee.Scorecard) -> None:
    theirs = dict(zip(VECTORS["names"], VECTORS["macro"], strict=True))
    rows = card.metrics.filter(pl.col("average") == "macro", pl.col("iou_threshold").is_null())
    assert rows.height == 27
    for name, value in rows.select("metric", "value").iter_rows():
        assert value == pytest.approx(theirs[name], rel=1e-12, abs=1e-12), name


def test_sequences(card: ee.Scorecard) -> None:
    """Labels of a sequence are added up, as TrackEval adds up classes."""
    found = card.frame("per_datum").rows_by_key(["datum_id", "metric"], unique=True, named=True)
    compared = 0
    for sequence, values in VECTORS["sequences"].items():
        for name, value in zip(VECTORS["names"], values, strict=True):
            own = found.get((int(sequence), name))
            if own is None or own["value"] is None:  # undefined here, divided by 1 there
                assert value in (0, 1) or value < 0 or name == "FPPerFrame"
            else:
                assert own["value"] == pytest.approx(value, rel=1e-12, abs=1e-12), name
                compared += 1
    assert compared == 1126
