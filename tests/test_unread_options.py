"""An option that no requested metric reads is noted, in every task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evalengine as ee

TABLES = {
    "classification": ("classification/predictions.parquet", "classification/groundtruths.parquet"),
    "detection": ("detection/predictions.parquet", "detection/groundtruths.parquet"),
    "retrieval": ("retrieval/run.parquet", "retrieval/qrels.parquet"),
    "text": ("text/predictions.parquet", "text/references.parquet"),
}


@pytest.mark.parametrize(
    ("task", "metric", "given", "noted"),
    [
        ("classification", "F1", {"score_thresholds": [0.1]}, True),
        ("classification", "PrecisionRecallCurve", {"score_thresholds": [0.1]}, False),
        ("classification", "F1", {"average": "micro"}, False),
        ("classification", "Accuracy", {"n_bins": 5}, True),
        ("classification", "ECE", {"n_bins": 5}, False),
        ("detection", "mAP", {"score_thresholds": [0.5]}, True),
        ("detection", "Counts", {"score_thresholds": [0.5]}, False),
        ("detection", "mAP", {"recall_score_threshold": 0.5}, True),
        ("detection", "mAR", {"recall_score_threshold": 0.5}, False),
        ("retrieval", "MRR", {"persistence": 0.5}, True),
        ("retrieval", "RBP", {"persistence": 0.5}, False),
        ("text", "BLEU", {"use_stemmer": True}, True),
        ("text", "ROUGE1", {"use_stemmer": True}, False),
    ],
)
def test_options_without_effect(task: str, metric: str, given: dict[str, Any], noted: bool) -> None:

    root = Path(__file__).parent.parent / "examples"
    card = ee.score(*(str(root / name) for name in TABLES[task]), metrics=[metric], **given)
    (name,) = given
    notes = [note for note in card.notes if f"{name}=" in note and "is not read" in note]
    assert len(notes) == noted


@pytest.mark.parametrize("mode", ["f1", "precision", "recall"])
def test_beta_has_no_effect_if_factual_correctness_is_not_an_f_score(mode: str) -> None:
    verdicts = {
        "datum_id": [1, 1],
        "metric": ["FactualCorrectness"] * 2,
        "step": ["response", "reference"],
        "verdict": ["1", "1"],
        "item_index": [0, 0],
    }
    card = ee.score(verdicts, task="judged", metrics=["FactualCorrectness"], mode=mode, beta=2.0)
    notes = [note for note in card.notes if "beta=2.0" in note and "no effect" in note]
    assert len(notes) == (mode != "f1")
