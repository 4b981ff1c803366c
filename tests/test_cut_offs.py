"""Metrics with a cut-off in their name: parsing and computation."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import evalengine as ee
from evalengine.schemas.errors import OptionError, ResultError
from evalengine.schemas.option_values import ParsedMetric, parse_metric

LABELS = ["a", "b", "c", "d"]
TRUTHS = pl.DataFrame({"datum_id": [1, 2, 3, 4], "label_value": LABELS})
PREDICTIONS = pl.DataFrame(
    {
        "datum_id": [i for i in range(1, 5) for _ in LABELS],
        "label_value": LABELS * 4,
        "score": [0.4, 0.3, 0.2, 0.1] * 4,
    }
)
AT = {1: 0.25, 2: 0.5, 3: 0.75, 4: 1.0}
"""k -> top-k accuracy: the label of datum i is at rank i."""


def cut_offs(metrics, **options):
    card = ee.score(PREDICTIONS, TRUTHS, metrics=metrics, **options)
    rows = card.metrics.filter(pl.col("metric") == "TopKAccuracy")
    return dict(rows.select("k", "value").iter_rows())


@given(st.text(st.characters(exclude_characters="@"), min_size=1), st.integers(0, 10**9 - 1))
def test_name_and_cut_off_are_separated(name, k):
    assert parse_metric(name) == ParsedMetric(name, None)
    assert parse_metric(f"{name}@{k}") == ParsedMetric(name, k)


@pytest.mark.parametrize("behind", ["", "-1", "1.5", "x", " 3", "3@4", "1e3", "²", "9" * 10])
def test_invalid_cut_offs_are_refused(behind):
    with refused("option_value", OptionError, option="metrics"):
        parse_metric(f"nDCG@{behind}")


@pytest.mark.parametrize(
    ("metrics", "options", "ks"),
    [
        (["TopKAccuracy@3"], {}, [3]),
        (["TopKAccuracy@3", "TopKAccuracy@1", "TopKAccuracy@3"], {}, [1, 3]),
        (["TopKAccuracy@3"], {"k": [4]}, [3]),
        (["TopKAccuracy"], {"k": [4, 2]}, [2, 4]),
        (["TopKAccuracy@3", "TopKAccuracy"], {"k": [4, 2]}, [2, 3, 4]),
        (["TopKAccuracy", "TopKAccuracy@2"], {}, [1, 2, 5]),
        ("TopKAccuracy@2", {"by": ["slice"]}, [2]),
    ],
)
def test_cut_offs_in_names_and_in_the_option(metrics, options, ks):
    truths = TRUTHS.with_columns(slice=pl.lit("s"))
    card = ee.score(PREDICTIONS, truths, metrics=metrics, **options)
    rows = card.metrics.filter(pl.col("slice").is_null())
    assert rows.select("k", "value").rows() == [(k, AT.get(k, 1.0)) for k in ks]
    assert card.options.metrics == ((metrics,) if isinstance(metrics, str) else tuple(metrics))


def test_other_metrics_are_unaffected():
    assert cut_offs(["Accuracy", "TopKAccuracy@3", "F2"]) == {3: 0.75}


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("Accuracy@3", {"code": "option_unfit", "option": "metrics", "value": "Accuracy@3"}),
        ("F2@3", {"code": "option_unfit", "option": "metrics", "value": "F2@3"}),
        ("TopKAcuracy@3", {"code": "unknown_name", "value": "TopKAcuracy"}),
        ("TopKAccuracy@0", {"code": "option_value", "option": "k", "value": [0]}),
        (
            "TopKAccuracy@-1",
            {"code": "option_value", "option": "metrics", "value": "TopKAccuracy@-1"},
        ),
    ],
)
def test_refusals_quote_the_name(metric, message):
    with refused(**message):
        ee.score(PREDICTIONS, TRUTHS, metrics=[metric])


def test_a_task_without_cut_offs_says_so():
    with refused("option_unfit", OptionError, option="metrics", value="mAP@5"):
        ee.explain(task="detection", metrics=["mAP@5"])


def test_several_labels_per_datum_have_no_top_k_under_any_name():
    with refused("option_unfit", OptionError, option="metrics", value=["TopKAccuracy"]):
        ee.score(PREDICTIONS, TRUTHS, metrics=["TopKAccuracy@3"], multilabel=True)


def test_the_plan_lists_cut_offs_and_infers_the_task():
    plan = ee.explain(metrics=["F0.5", "TopKAccuracy@3", "TopKAccuracy"], k=[2])
    assert "task      classification" in plan
    assert "metrics   F0.5, TopKAccuracy (k 2, 3)\n" in plan


def test_one_value_by_the_requested_name():
    card = ee.score(PREDICTIONS, TRUTHS, metrics=["TopKAccuracy@3", "TopKAccuracy@2"])
    assert card.value("TopKAccuracy@3") == card.value("TopKAccuracy", k=3) == 0.75
    with pytest.raises(ResultError, match="two cut-offs"):
        card.value("TopKAccuracy@3", k=2)
    with pytest.raises(ResultError, match="no row with k=4"):
        card.value("TopKAccuracy@4")
