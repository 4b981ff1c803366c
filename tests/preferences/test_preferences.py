"""Preferences: a slow reference, known values, refusals."""

from __future__ import annotations

import math
import tracemalloc
from itertools import permutations
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evalengine as ee

MODELS = "xyzw"


def table(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["datum_id", "model_a", "model_b", "winner"], orient="row")


def wins_of(rows: list[tuple[Any, ...]]) -> dict[tuple[str, str], float]:
    wins: dict[tuple[str, str], float] = {}
    for _, a, b, won in rows:
        one, other = (0.5, 0.5) if won in ("tie", "both_bad") else (float(won in ("a", a)), 0.0)
        other = other or 1 - one
        wins[a, b] = wins.get((a, b), 0) + one
        wins[b, a] = wins.get((b, a), 0) + other
    return wins


def slow_strengths(wins: dict[tuple[str, str], float]) -> dict[str, float] | None:
    """Iterate MM to convergence; None unless wins connect every model to every other."""
    models = sorted({one for pair in wins for one in pair})
    for start in models:
        reached = {start}
        while True:
            more = {b for (a, b), n in wins.items() if a in reached and n > 0} - reached
            if not more:
                break
            reached |= more
        if reached != set(models):
            return None
    p = dict.fromkeys(models, 1.0)
    for _ in range(4000):
        made = {}
        for i in models:
            own = sum(wins.get((i, j), 0) for j in models)
            below = sum(
                (wins.get((i, j), 0) + wins.get((j, i), 0)) / (p[i] + p[j])
                for j in models
                if j != i
            )
            made[i] = own / below
        p = made
    logs = {i: math.log(value) for i, value in p.items()}
    mean = sum(logs.values()) / len(logs)
    return {i: value - mean for i, value in logs.items()}


PAIRS = st.sampled_from([*permutations(MODELS, 2)])
ROWS = st.lists(
    st.tuples(st.integers(0, 9), PAIRS, st.sampled_from(["a", "b", "first", "tie", "both_bad"])),
    min_size=1,
    max_size=30,
).map(lambda rows: [(d, a, b, a if won == "first" else won) for d, (a, b), won in rows])


@settings(max_examples=25)
@given(ROWS)
def test_numbers_match_the_definitions(rows):
    card = ee.score(table(rows))
    wins = wins_of(rows)
    expected = slow_strengths(wins)
    for name in {one for _, a, b, _ in rows for one in (a, b)}:
        strength = card.value("BradleyTerry", label_value=name)
        if expected is None:
            assert strength is None
        else:
            assert strength == pytest.approx(expected[name], abs=1e-6)
        shares = [
            wins[name, other] / (wins[name, other] + wins[other, name])
            for other in MODELS
            if (name, other) in wins
        ]
        row = card.metrics.filter(metric="WinRate", label_value=name)
        assert row["value"][0] == pytest.approx(sum(shares) / len(shares))
        assert row["support"][0] == sum(name in pair[1:3] for pair in rows)


def test_two_models_have_the_log_odds():
    rows = [(i, "x", "y", "a" if i < 30 else "b") for i in range(40)]
    card = ee.score(table(rows))
    half = math.log(3) / 2
    assert card.value("BradleyTerry", label_value="x") == pytest.approx(half)
    assert card.value("BradleyTerry", label_value="y") == pytest.approx(-half)
    assert card.value("Rank", label_value="x") == 1
    assert card.value("Rank", label_value="y") == 2


def test_ranks_follow_the_significance_of_differences():
    """26 of 30 wins are significant, 15 are not; repeated prompts count as one."""
    even = [(i, "x", "y", "a" if i % 2 else "b") for i in range(30)]
    sure = [(i + 30, "x", "z", "a" if i < 26 else "b") for i in range(30)]
    sure += [(i + 60, "y", "z", "a" if i < 26 else "b") for i in range(30)]
    rank = dict(
        ee.score(table(even + sure), metrics=["Rank"]).metrics.select("label_value", "value").rows()
    )
    assert rank == {"x": 1, "y": 1, "z": 3}
    once = [("p", *row[1:]) for row in even + sure[:30]]
    rows = [*once, ("q", "x", "z", "b"), ("q", "z", "y", "a"), ("q", "y", "x", "a")]
    assert set(ee.score(table(rows), metrics=["Rank"]).metrics["value"]) == {1.0}


def test_ranks_need_no_matrix_of_prompts_and_models():
    """A matrix of 60,000 prompts and 100 models would be 48 MB, with a peak of three times that."""
    n, models = 60_000, 100
    rng = np.random.default_rng(0)
    first = rng.integers(0, models, n)
    other = (first + rng.integers(1, models, n)) % models
    names = np.array([f"m{i:02}" for i in range(models)])
    rows = {"datum_id": np.arange(n), "model_a": names[first], "model_b": names[other]}
    frame = pl.DataFrame({**rows, "winner": np.where(rng.random(n) < 0.5, "a", "b")})
    ee.score(frame.head(100), metrics=["Rank"])
    tracemalloc.start()
    try:
        _ = ee.score(frame, metrics=["Rank"]).metrics
        assert tracemalloc.get_traced_memory()[1] < 80_000_000
    finally:
        tracemalloc.stop()


def test_undefined_strengths_name_the_groups():
    rows = [(1, "x", "y", "tie"), (2, "z", "w", "tie"), (3, "x", "z", "a")]
    card = ee.score(table(rows))
    reason = card.metrics.filter(metric="BradleyTerry")["reason"][0]
    assert "x, y" in reason
    assert "w, z" in reason
    assert card.metrics.filter(metric="Rank")["value"].null_count() == 4
    assert card.metrics.filter(metric="WinRate")["value"].null_count() == 0


def test_intervals_resample_prompts():
    rng = np.random.default_rng(4)
    rows = []
    for prompt in range(60):
        a, b = rng.choice(["x", "y", "z"], 2, replace=False)
        rows += [(prompt, str(a), str(b), "a" if rng.random() < 0.6 else "b")] * 4
    one = ee.score(table(rows), intervals=0.9, draws=200).metrics
    separate = table(rows).with_columns(datum_id=pl.int_range(pl.len()))
    other = ee.score(separate, intervals=0.9, draws=200).metrics
    chosen = {"metric": "BradleyTerry", "label_value": "x"}
    wide, narrow = (frame.filter(**chosen)["se"][0] for frame in (one, other))
    assert wide > 1.5 * narrow
    few = table([(1, "x", "y", "a"), (2, "x", "y", "b"), (3, "x", "y", "b")])
    drawn = ee.score(few, intervals=0.9, draws=200).metrics.filter(**chosen)["draws"][0]
    assert 100 < drawn < 180  # 8/27 of resamples omit the first prompt, 1/27 have no other


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ((1, "a", "y", "a"), "model_named_like_a_word"),
        ((1, "x", "Both_Bad", "a"), "model_named_like_a_word"),
        ((1, "x", "x", "a"), "same_model"),
        ((1, "x", "y", "z"), "unknown_winner"),
        ((1, "x", "y", None), "null_values"),
    ],
)
def test_invalid_rows_are_refused(row, code):
    with pytest.raises(ee.InputError) as caught:
        ee.score(table([(0, "x", "y", "tie"), row]))
    assert caught.value.code == code


@pytest.mark.parametrize("bad", [("x", "y", "z"), ("x", "x", "a"), ("tie", "y", "a")])
def test_invalid_rows_are_named_by_number(tmp_path, bad):
    rows = [(i % 50, "x", "y", "a" if i % 3 else "b") for i in range(200)]
    rows[150] = (3, *bad)
    table(rows).write_parquet(tmp_path / "rows.parquet")
    errors = []
    for more in ({}, {"memory_limit": "448MiB", "executor": "threads"}):
        with pytest.raises(ee.InputError) as caught:
            ee.score(str(tmp_path / "rows.parquet"), **more)
        errors.append((caught.value.code, caught.value.facts["rows"], caught.value.facts["count"]))
    assert errors[0][1:] == ([150], 1)
    assert errors[0] == errors[1]


def test_blanks_around_winners_and_models_are_ignored():
    rows = [(1, "x", "y", " x"), (2, "x ", "y", "x"), (3, "x", "y ", "y")]
    card = ee.score(table(rows))
    won = [card.value("WinRate", label_value=name) for name in ("x", "x ", "y", "y ")]
    assert won == [0.5, 1, 0, 1]
    with pytest.raises(ee.InputError) as caught:
        ee.score(table([*rows, (4, "x", "x ", "a")]))
    assert caught.value.code == "same_model"


def test_words_of_chatbot_arena_are_accepted():
    words = ["model_a", "model_b", "tie", "tie (bothbad)", "Model_A"]
    arena = pl.DataFrame(
        {
            "question_id": [f"q{i}" for i in range(5)],
            "model_a": ["x"] * 5,
            "model_b": ["y"] * 5,
            "winner": words,
        }
    )
    assert ee.score(arena).value("WinRate", label_value="x") == pytest.approx(3 / 5)


def test_unread_weights_are_noted():
    rows = table([("p", "x", "y", "a"), ("q", "x", "y", "b")])
    assert "unread_column" not in {one.code for one in ee.score(rows).findings}
    card = ee.score(rows.with_columns(weight=pl.Series([1.0, 5.0])))
    (note,) = [one for one in card.findings if one.code == "unread_column"]
    assert "weight" in note.message


@pytest.mark.parametrize("column", ["model_a", "model_b", "winner"])
@pytest.mark.parametrize("value", [0.5, True, [1], {"a": 1}])
def test_columns_of_other_dtypes_are_refused(column, value):
    rows = {"prompt_id": [1], "model_a": ["x"], "model_b": ["y"], "winner": ["a"]}
    with pytest.raises(ee.InputError) as caught:
        ee.score(pl.DataFrame({**rows, column: [value]}), task="preferences")
    assert (caught.value.code, caught.value.facts["column"]) == ("wrong_dtype", column)
