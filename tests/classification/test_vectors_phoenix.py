"""Phoenix's answers to single calls: names, scores, order and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from reference_data import known_answers

import evalengine as ee

CASES = known_answers("text", "phoenix_prf.json")["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_single_call(case: dict[str, Any]) -> None:
    sides = case["expected"], case["output"]
    if case["error"] is not None:
        with pytest.raises(ValueError, match=r"\w"):
            ee.precision_recall_fscore(*sides, **case["kwargs"])
        return
    ours = ee.precision_recall_fscore(*sides, **case["kwargs"])
    assert [{**one, "score": None} for one in ours] == [
        {**one, "score": None} for one in case["scores"]
    ]
    scores = [one["score"] for one in case["scores"]]
    assert [one["score"] for one in ours] == pytest.approx(scores, abs=1e-15)
