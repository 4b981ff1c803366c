"""Runs do not win by skipping datums, even if means skip them, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from refusals import noted, refused

import evalengine as ee
from evalengine.jobs.gates import parse_gates
from evalengine.jobs.verdicts import compare_with, judge_gates, means_differ_in_datums, numbers_of

LACKING = ("q0", "q1", "q2")
QRELS = {f"q{q}": {"good": 1} for q in range(12)}
WHOLE = {f"q{q}": {"bad": 2.0, "good": 1.0 if q < 5 else 3.0} for q in range(12)}
GAPPED = {query: found for query, found in WHOLE.items() if query not in LACKING}


def compared(*runs: Any, **options: Any) -> ee.Comparison:
    given = {"ground_truths": QRELS, "metrics": ["MRR"], "draws": 50, "names": ["a", "b"]}
    return ee.compare(*runs, **{**given, **options})


@pytest.mark.parametrize("test", ["randomisation", "t"])
def test_queries_missing_in_one_run_are_skipped_in_both(test: str) -> None:
    found = compared(WHOLE, GAPPED, test=test)
    row = found.differences.row(0, named=True)
    both = ee.score(GAPPED, QRELS, metrics=["MRR"]).value("MRR")
    assert (row["a"], row["b"], found.n) == (both, both, 9)
    assert (row["wins"], row["ties"], row["losses"], found.flips.height) == (0, 9, 0, 0)
    (messages,) = [note for note in found.warnings if "are compared" in note]
    assert "the 9 datums" in messages
    assert "a 0, b 3" in messages
    assert "complete=True" in messages
    assert not [note for note in found.notes if "counts as missed" in note]


def test_with_complete_they_count_as_zero() -> None:
    found = compared(WHOLE, GAPPED, complete=True)
    row = found.differences.row(0, named=True)
    for name, run in (("a", WHOLE), ("b", GAPPED)):
        assert row[name] == ee.score(run, QRELS, metrics=["MRR"], complete=True).value("MRR")
    assert (row["wins"], row["losses"], found.n) == (0, 3, 12)
    assert "of 12 datums" in found.warnings[0]
    assert "a of 0, b of 3" in found.warnings[0]


def test_equal_gaps_are_not_reported_as_counted() -> None:
    few = {query: WHOLE[query] for query in ("q9", "q10", "q11")}
    found = compared(few, few)
    assert found.differences["a"].to_list() == [1.0]
    assert not [note for note in found.notes if "counts as" in note and "missed" in note]
    with refused("nothing_in_common", count=6, lacking={"a": 3, "b": 3}):
        compared(few, {query: WHOLE[query] for query in LACKING})


def test_scoring_warns_if_the_mean_skips_many_datums() -> None:
    card = ee.score(GAPPED, QRELS)
    noted(card, "datums_without_predictions", count=3, severity="warning")
    assert all(query in card.warnings[0] for query in ("'q0'", "'q1'", "'q2'", "complete=True"))
    assert not ee.score(GAPPED, QRELS, complete=True).warnings
    one = {query: found for query, found in WHOLE.items() if query != "q0"}
    assert not ee.score(one, QRELS).warnings


def test_texts_missing_in_one_run_are_skipped_in_both() -> None:
    truth = {"datum_id": [1, 2, 3, 4], "text": ["a b", "c d", "e f", "g h"]}
    whole = {"datum_id": [1, 2, 3, 4], "text": ["x", "c d", "e f", "g i"]}
    gapped = {name: values[1:] for name, values in whole.items()}
    found = compared(whole, gapped, ground_truths=truth, metrics=["ROUGE1"])
    assert (found.differences["a"] == found.differences["b"]).all()
    assert (found.n, found.differences.height > 0) == (3, True)
    assert "too high" in found.warnings[0]


@pytest.mark.parametrize("surely", ["", " surely"])
@pytest.mark.parametrize("lacking", [1, 3])
def test_gates_compare_common_datums(surely: str, lacking: int, tmp_path: Path) -> None:
    """Datums that only the baseline answers are skipped on both sides.

    A gate does not judge a run that skips more than a tenth of the datums, unless the gate accepts
    that.
    """
    earlier = ee.score(WHOLE, QRELS, metrics=["MRR"])
    earlier.save(tmp_path / "earlier")
    few = {query: found for query, found in WHOLE.items() if query not in LACKING[:lacking]}
    card = ee.score(few, QRELS, metrics=["MRR"])
    both = card.value("MRR")
    assert both > earlier.value("MRR") + 0.01
    gates = parse_gates([f"MRR > baseline + 0.01{surely}", f"MRR >= baseline{surely}"], ())
    for baseline in (earlier, ee.load(tmp_path / "earlier")):
        found = judge_gates(
            gates,
            numbers_of(card),
            numbers_of(baseline),
            compare=compare_with(baseline, card),
            differ=means_differ_in_datums(baseline, card),
        )
        # No resample moves a difference of 0, which is no certainty if the runs are not identical.
        passed = "passed" if lacking == 1 and not surely else "failed"
        assert [one.status for one in found] == ["failed", passed]
        assert {(one.value, one.baseline) for one in found} == {(both, both)}
        assert all(f"for {lacking} datum" in one.reason for one in found)
    assert means_differ_in_datums(earlier, earlier) is False


def test_nights_of_other_queries_are_compared_unchanged() -> None:
    tonight = {f"n{q}": {"good": 1.0} for q in range(8)}
    earlier = ee.score(WHOLE, QRELS, metrics=["MRR"])
    card = ee.score(tonight, {query: {"good": 1} for query in tonight}, metrics=["MRR"])
    assert means_differ_in_datums(earlier, card) is False
