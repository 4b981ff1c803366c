"""Verdicts in buckets: frames, notes and errors equal those of a run in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judged.tables import SCHEMA, listed, table
from merging.parts import Case
from merging.test_parts import CASES
from msgspec import structs
from partitions.cases import FEW, in_buckets, in_row_ranges, same_as_in_memory, write_sides
from polars.testing import assert_frame_equal
from refusals import noted

import evalengine as ee
from evalengine.metrics import measures

many = settings(
    max_examples=int(os.environ.get("EVALENGINE_EXAMPLES", "3")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
DIALECTS = ("standard", "valor", "ragas", "deepeval-4.1", "deepeval-4.3")
NAMES = {
    "AnswerCorrectness": "answer_correctness",
    "answer_relevance": "answer_relevance",
    "Bias": "bias",
    "bias": "bias",
    "Coherence": "coherence",
    "ContextPrecision": "context_precision",
    "ContextRecall": "context_recall",
    "Faithfulness": "faithfulness",
    "FactualCorrectness": "factual_correctness",
    "Hallucination": "hallucination",
}
WORDS = ["yes", "no", "TP", "FN", "idk", "3", "Perhaps", "quite", " ", None]


def verdicts(rng: np.random.Generator, *, broken: bool) -> pl.DataFrame:
    """Return random rows: spellings, repeated judgments, failures, missing and surplus items."""
    names = [*rng.choice([*NAMES], rng.integers(1, 5), replace=False)]
    if rng.random() < 0.2:
        names.append("Nonsense")
    judgments = int(rng.choice([1, 1, 3]))
    rows: list[dict[str, Any]] = []
    for datum in rng.permutation(int(rng.integers(3, 25))).tolist():
        for name in names:
            if rng.random() < 0.2:
                continue
            # Few datums have several judgments; buckets without them must vote too.
            for judgment in range(judgments if rng.random() < 0.2 else 1):
                rows += _of_one(rng, datum, str(name), judgment, broken=broken)
    frame = pl.DataFrame(rows, schema=SCHEMA)
    if rng.random() < 0.3:
        frame = frame.with_columns(item_index=pl.lit(None, pl.Int64))
    if rng.random() < 0.4:
        frame = frame.sample(fraction=1, shuffle=True, seed=int(rng.integers(1 << 20)))
    if rng.random() < 0.5:
        frame = frame.with_columns(topic=pl.Series(["x", "y", None])[frame["datum_id"] % 3])
    if rng.random() < 0.3:
        frame = frame.drop("judgment_index")
    if rng.random() < 0.4:
        frame = frame.with_columns(pl.format("d{}", "datum_id").alias("datum_id"))
    return frame


def _of_one(
    rng: np.random.Generator, datum: int, name: str, judgment: int, *, broken: bool
) -> list[dict[str, Any]]:
    """Return the rows of one datum, metric and judgment."""
    measure = measures("judged").get(NAMES.get(name, ""))
    parts = [None] if measure is None or len(measure.parts) == 1 else [*measure.parts]
    rows: list[dict[str, Any]] = []
    for reference in range(int(rng.choice([1, 1, 2]))):
        for step in parts:
            none = measure is not None and rng.random() < 0.1
            size = 0 if none else int(rng.integers(1, 4))
            words = [rng.choice(WORDS[:3] if rng.random() < 0.85 else WORDS) for _ in range(size)]
            some = listed(
                name,
                words,
                none=None if measure is None else str(rng.choice(measure.empties)),
                datum=datum,
                step=step,
                reference=reference,
                judgment=judgment,
            )
            for row in some:
                row["verdict"] = None if row.get("verdict") == "None" else row.get("verdict")
                if rng.random() < 0.05:
                    row["status"] = str(rng.choice(["timeout", "ok", "not_judged", "mine"]))
                if rng.random() < 0.1:
                    row["items"] = int(rng.integers(0, 4))
                if rng.random() < 0.1 and reference == 0:
                    row["reference_index"] = None
                if broken and rng.random() < 0.05:
                    row["step"] = str(rng.choice(["claims", "nowhere", "Response"]))
                if broken and rng.random() < 0.02:
                    row["item_index"] = None
            if broken and rng.random() < 0.03 and some:
                twin = {"Bias": "bias", "bias": "Bias"}.get(name, name)
                some.append({**some[0], "metric": twin})
            rows += some
    return rows


def outcome(*sides: Any, **options: Any) -> ee.Scorecard | ee.InputError:
    try:
        return ee.score(*sides, task="judged", **options)
    except ee.InputError as error:
        return error


def same_outcome(case: Case, folder: Path, **how: Any) -> ee.Scorecard | ee.InputError:
    """Check that runs in memory and in buckets give equal scorecards or errors; return one."""
    sides = write_sides(case, folder)
    whole = outcome(*sides, **case.options, **case.tables)
    given = {"memory_limit": "1GB", "scratch": str(folder / "s"), **how}
    bounded = outcome(*sides, **case.options, **case.tables, **given)
    assert type(bounded) is type(whole), (bounded, whole)
    if isinstance(whole, ee.InputError) or isinstance(bounded, ee.InputError):
        assert str(bounded) == str(whole)
        return whole
    assert bounded.run["buckets"] == FEW.n
    assert bounded.notes == whole.notes
    assert bounded.run["fingerprint"] == whole.run["fingerprint"]
    assert bounded.frames == whole.frames
    for name in whole.frames:
        assert_frame_equal(bounded.frame(name), whole.frame(name), check_exact=True)
    return whole


def random_options(rng: np.random.Generator, frame: pl.DataFrame) -> dict[str, Any]:
    """Return random options."""
    options: dict[str, Any] = {"dialect": str(rng.choice(DIALECTS))}
    if rng.random() < 0.3:
        options["metrics"] = [*map(str, rng.choice(["Bias", "Faithfulness", "Toxicity"], 2, False))]
    if "topic" in frame.columns and rng.random() < 0.7:
        options["by"] = ["topic"]
    if rng.random() < 0.2:
        options["where"] = "datum_id != 3" if frame.schema["datum_id"] == pl.Int64 else None
    return {name: value for name, value in options.items() if value is not None}


@pytest.mark.parametrize("broken", [False, True])
@many
@given(seed=st.integers(0, 2**32 - 1))
def test_any_table_of_verdicts(
    broken: bool,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_buckets(monkeypatch)
    rng = np.random.default_rng(seed)
    frame = verdicts(rng, broken=broken)
    tables: dict[str, Any] = {}
    options = random_options(rng, frame)
    if rng.random() < 0.3:  # with datums that have no verdicts
        ids = frame["datum_id"].unique().sort()
        more = [f"e{i}" for i in range(4)] if ids.dtype == pl.String else [90, 91, 92, 93]
        ids = pl.concat([ids, pl.Series("datum_id", more, dtype=ids.dtype)])
        tables["datums"] = ids.to_frame().with_columns(place=pl.Series(["n", "s"])[
            pl.int_range(len(ids), eager=True) % 2
        ])  # fmt: skip
        options["by"] = [*options.get("by", []), "place"]
        options.pop("where", None)  # with judgments such a run stays in memory
        if "judgment_index" not in frame.columns:
            options["where"] = "place = 's'"
    same_outcome(Case((frame,), options, tables=tables), tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("rows", [1, 10**9])
def test_ranges_of_any_size(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch, structs.replace(FEW, run_rows=rows))
    same_as_in_memory(CASES["judged"][1](5), "judged", tmp_path)


def test_workers_shuffle_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summaries of all row ranges determine the metrics and the votes."""
    rows = [row for datum in range(40) for row in listed("Bias", ["no", "yes"], datum=datum)]
    rows += listed("Bias", ["yes", "yes"], datum=7, judgment=1)
    rows += listed("Toxicity", ["no"], datum=39) + listed("Rudeness", ["no"], datum=3)
    in_row_ranges(monkeypatch, 14)
    in_buckets(monkeypatch)
    card = same_outcome(Case((table(rows),), {}), tmp_path)
    assert isinstance(card, ee.Scorecard)
    assert set(card.per_datum["metric"]) == {"Bias", "Toxicity"}
    noted(card, "unknown_metrics", count=1, metrics=["Rudeness"])


def failed(case: Case, folder: Path) -> str:
    error = same_outcome(case, folder)
    assert isinstance(error, ee.InputError)
    return str(error)


def test_the_first_unknown_step_of_all_buckets_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    rows = [row for datum in range(40) for row in listed("Bias", ["no"], datum=datum)]
    for place in range(5, 40, 3):
        rows[place]["step"] = f"s{place}"
    assert "'s5' is given for" in failed(Case((table(rows),), {}), tmp_path)


@pytest.mark.parametrize("twice", [2, 30])
def test_verdicts_with_two_spellings_are_counted_over_all_buckets(
    twice: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Index 0 equals a missing index, so such rows repeat others; both spellings count."""
    in_buckets(monkeypatch)
    rows = [row for datum in range(60) for row in listed("Bias", ["no"], datum=datum)]
    spelled = [{**row, "reference_index": None} for row in rows[:twice]]
    case = Case((table([*rows, *spelled]),), {})
    assert isinstance(same_outcome(case, tmp_path), ee.Scorecard)
    spelled.append({**rows[50], "metric": "bias"})
    message = failed(Case((table([*rows, *spelled]),), {}), tmp_path)
    assert f"{2 * twice + 2} rows of which" in message


def test_unknown_metrics_are_refused_after_rows_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    rows = [row for datum in range(20) for row in listed("Rude", ["no"], datum=datum)]
    assert "judged metric: 'Rude'" in failed(Case((table(rows),), {}), tmp_path)
    rows[7]["item_index"] = -1
    assert "below 0" in failed(Case((table(rows),), {}), tmp_path)
    empty = table(rows[:7])
    assert isinstance(
        same_outcome(Case((empty,), {"where": "datum_id > 5"}), tmp_path), ee.InputError
    )


def test_several_judgments_in_one_bucket_make_all_buckets_vote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed row next to a verdict of the same item counts only without votes."""
    in_buckets(monkeypatch)
    rows: list[dict[str, Any]] = []
    for datum in range(20):
        failed_row = {"datum_id": datum, "metric": "Bias", "status": "timeout"}
        rows += [failed_row, *listed("Bias", ["yes"], datum=datum)]
    plain = [{**row, "items": None} for row in rows]
    once = same_outcome(Case((table(plain),), {}), tmp_path)
    rows = [*plain, *listed("Bias", ["yes"], datum=4, judgment=1)]
    card = same_outcome(Case((table(rows),), {}), tmp_path)
    assert isinstance(card, ee.Scorecard)
    assert isinstance(once, ee.Scorecard)
    assert set(once.per_datum["status"]) == {"timeout"}
    assert set(card.per_datum["status"]) == {"scored"}
