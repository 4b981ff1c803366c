"""Known answers of valor-lite and the Valor service, for label maps in which 0 is not a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from reference_data import known_answers
from segmentation.making import rows_of

import evalengine as ee

CASES = known_answers("valor", "semantic_segmentation.json")["cases"]
PER_LABEL = ("IOU", "Precision", "Recall", "F1")


def scored(case: dict[str, Any], dialect: str) -> ee.Scorecard:
    """Score a case; all images and declared labels count, also those without a pixel."""
    sides = []
    for side in ("prediction", "groundtruth"):
        rows = [
            rows_of([np.array(image[side])], image["labels"], 1).with_columns(
                datum_id=pl.lit(image["datum"])
            )
            for image in case["data"]
        ]
        sides.append(pl.concat(rows))
    labels = pl.DataFrame({"label_value": sorted({x for i in case["data"] for x in i["labels"]})})
    datums = pl.DataFrame({"datum_id": [image["datum"] for image in case["data"]]})
    asked = [*PER_LABEL, "mIOU", "PixelAccuracy"]
    return ee.score(
        *sides, task="segmentation", dialect=dialect, metrics=asked, labels=labels, datums=datums
    )


def by_label(card: ee.Scorecard, metric: str) -> dict[str, float | None]:
    rows = card.metrics.filter(pl.col("label_value").is_not_null(), metric=metric)
    return dict(rows.select("label_value", "value").iter_rows())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_valor_lite(case: dict[str, Any]) -> None:
    card = scored(case, "valor-lite")
    for metric in PER_LABEL:
        theirs = {one["parameters"]["label"]: one["value"] for one in case["expected"][metric]}
        assert by_label(card, metric) == pytest.approx(theirs, abs=1e-12, nan_ok=True), metric
    assert card.value("mIOU") == pytest.approx(case["expected"]["mIOU"][0]["value"], abs=1e-12)
    accuracy = case["expected"]["Accuracy"][0]["value"]
    assert card.value("PixelAccuracy") == pytest.approx(accuracy, abs=1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_services_rule(case: dict[str, Any]) -> None:
    card = scored(case, "valor")
    rule = case["expected_service_rule"]
    for metric in ("IOU", "Precision", "Recall"):
        ours = by_label(card, metric)
        theirs = {label: value for label, value in rule[metric].items() if value is not None}
        assert {label: ours[label] for label in theirs} == pytest.approx(theirs, abs=1e-12), metric
    assert card.value("mIOU") == pytest.approx(rule["mIOU"], abs=1e-12)
