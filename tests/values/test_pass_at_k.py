"""pass@k and pass^k, compared with evalplus' formula and with enumeration."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evalengine as ee


def table(tasks: list[list[bool | None]]) -> pl.DataFrame:
    rows = [(f"t{i}", passed) for i, own in enumerate(tasks) for passed in own]
    schema = {"datum_id": pl.String, "passed": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row")


def by_evalplus(own: list[bool], k: int) -> float:
    n, c = len(own), sum(own)
    if n - c < k:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))


TASKS = st.lists(st.lists(st.booleans(), min_size=1, max_size=7), min_size=1, max_size=6)


@settings(max_examples=40)
@given(TASKS, st.integers(1, 5), st.randoms())
def test_chances_are_those_of_all_subsets(tasks, k, random):
    rows = table(tasks)
    rows = rows.sample(fraction=1, shuffle=True, seed=random.randint(0, 99))
    card = ee.score(rows, task="values", metrics=[f"pass@{k}", f"pass^{k}"])
    enough = [own for own in tasks if len(own) >= k]
    every = [[any(some) for some in combinations(own, k)] for own in enough]
    both = [[all(some) for some in combinations(own, k)] for own in enough]
    for name, chances in ((f"pass@{k}", every), (f"pass^{k}", both)):
        row = card.metrics.row(by_predicate=pl.col("metric") == name, named=True)
        assert (row["support"], row["scored"]) == (len(tasks), len(enough))
        if not enough:
            assert row["value"] is None
            continue
        expected = np.mean([np.mean(one) for one in chances])
        assert row["value"] == pytest.approx(expected)
    if enough:
        own = np.mean([by_evalplus(one, k) for one in enough])
        assert card.value(f"pass@{k}") == pytest.approx(own)
    strict = ee.score(rows, task="values", metrics=[f"pass@{k}"], dialect="humaneval")
    assert (strict.value(f"pass@{k}") is None) == (len(enough) < len(tasks))


def test_many_samples_do_not_overflow():
    rows = table([[i < 3 for i in range(5000)]])
    card = ee.score(rows, task="values", metrics=["pass@1000", "pass^2"])
    assert card.value("pass@1000") == pytest.approx(1 - 0.8**3, rel=1e-3)
    assert card.value("pass^2") == pytest.approx(3 * 2 / (5000 * 4999))


def test_samples_that_were_not_run_do_not_count():
    card = ee.score(table([[True, None, False]]), task="values", metrics=["pass@2", "pass@3"])
    assert card.value("pass@2") == 1
    assert card.value("pass@3") is None


def test_one_row_slices_intervals_and_buckets(tmp_path: Any):
    rng = np.random.default_rng(0)
    rows = table([[bool(one) for one in rng.random(6) < 0.3] for _ in range(60)])
    rows = rows.with_columns(language=pl.when(pl.col("datum_id") < "t3").then(pl.lit("c")))
    asked: dict[str, Any] = {"task": "values", "metrics": ["pass@5"]}
    assert ee.score(rows, **asked).metrics.height == 1
    card = ee.score(rows, **asked, by="language", intervals=0.9, draws=100)
    whole = card.metrics.row(0, named=True)
    assert whole["lower"] < whole["value"] < whole["upper"]
    assert "c" in card.metrics["slice_value"]
    rows.write_parquet(tmp_path / "samples.parquet")
    path = str(tmp_path / "samples.parquet")
    parts = ee.score(path, **asked, memory_limit="448MiB", executor="threads")
    assert parts.metrics.equals(ee.score(rows, **asked).metrics)


@pytest.mark.parametrize("metrics", [["pass@1"], ["pass^2"], ["passed", "pass@1"]])
@pytest.mark.parametrize("passed", [[0.5, 1, 0, 0], [2, 1, 0, 0], [-1, 1, 0, 0]])
def test_other_values_than_0_and_1_are_refused(metrics, passed):
    rows = {"datum_id": [1, 1, 2, 2], "sample": [1, 2, 1, 2]}
    long = {**rows, "metric": ["passed"] * 4, "value": passed}
    for table in ({**rows, "passed": passed}, *([long] if len(metrics) > 1 else [])):
        with pytest.raises(ee.InputError) as caught:
            ee.score(table, task="values", metrics=metrics)
        assert (caught.value.code, caught.value.facts["column"]) == ("not_a_flag", "passed")


@pytest.mark.parametrize(
    ("texts", "strange"),
    [(["yes", "no", "yes", None], 3), (["true", "1", "0", "yes"], 1), (["1", "0", "1", "0"], 0)],
)
def test_other_texts_are_refused_and_counted(texts, strange):
    rows = pl.DataFrame({"datum_id": [1, 1, 2, 2], "passed": texts})
    with pytest.raises(ee.InputError) as caught:
        ee.score(rows, task="values", metrics=["pass@1"])
    assert (caught.value.code, caught.value.facts["column"]) == ("wrong_dtype", "passed")
    filled = sum(text is not None for text in texts)
    assert (f"{strange} of {filled} " in str(caught.value)) == (strange > 0)
    assert "Cast" not in str(caught.value)  # Polars casts no text to Boolean


def test_words_and_gaps_are_read(tmp_path):
    (tmp_path / "rows.csv").write_text("datum_id,passed\n1,True\n1,False\n2,NA\n2,True\n")
    for rows in (
        str(tmp_path / "rows.csv"),
        {"datum_id": [1, 1, 2, 2], "passed": [1.0, 0.0, float("nan"), 1.0]},
    ):
        assert ee.score(rows, task="values", metrics=["pass@1"]).value("pass@1") == 0.75


def test_weights_that_are_not_read_are_noted():
    rows = {"datum_id": [1, 1, 2], "passed": [1, 0, 1], "weight": [1, 1, 5.0]}
    asked = {"task": "values", "metrics": ["pass@1"]}
    assert [one.code for one in ee.score(rows, **asked).findings] == ["unread_column"]
    del rows["weight"]
    assert not ee.score(rows, **asked).findings
