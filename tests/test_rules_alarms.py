"""No rule of the input fires on sound data: bundled examples and real sets."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from known import real_data

import evalengine as ee
from evalengine.cli import main
from evalengine.ingest import rules
from evalengine.tasks import NAMES, get

EXAMPLES = Path(__file__).parent.parent / "examples"
DEMOS = tomllib.loads((EXAMPLES / "demos.toml").read_text("utf-8"))


def fired(card: Any) -> list[str]:
    """Codes of the rules that fired, and of all warnings."""
    for task in NAMES:  # so that the rules of every task are known
        get(task)
    known = rules.codes()
    assert {"unread_columns_differ", "tied_top_scores", "labels_exchanged"} <= known
    return [one.code for one in card.findings if one.code in known or one.severity == "warning"]


@pytest.mark.parametrize("name", DEMOS)
def test_demos(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    assert main(["score", *shlex.split(DEMOS[name]), "--strict", "--out", str(tmp_path / "r")]) == 0
    assert fired(ee.load(tmp_path / "r")) == []


@pytest.mark.parametrize("run", ["new", "old", "small"])
def test_examples_of_comparing(run: str) -> None:
    folder = EXAMPLES / "comparing"
    card = ee.score(folder / f"{run}.parquet", folder / "groundtruths.parquet")
    assert fired(card) == []


@pytest.mark.parametrize("file", ["retrieval/contexts.parquet", "regression/forecasts.parquet"])
def test_other_examples(file: str) -> None:
    assert fired(ee.score(EXAMPLES / file)) == []


@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_real_boxes_and_masks(kind: str) -> None:
    folder = real_data("coco_val2014_100")
    card = ee.score(folder / f"dt_{kind}.json", folder / "gt.json", dialect="coco")
    assert fired(card) == []


def test_real_runs() -> None:
    folder = real_data("trec_eval")
    card = ee.score(folder / "results.test", folder / "qrels.test", dialect="trec_eval")
    assert fired(card) == []


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_scores_of_classifiers(name: str) -> None:
    """Probabilities of a classifier that scikit-learn fits to data that come with it."""
    from sklearn import datasets
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB

    rows, classes = getattr(datasets, f"load_{name}")(return_X_y=True)
    noise = np.random.default_rng(0).normal(0, 1e-3, rows.shape)
    scores = cross_val_predict(GaussianNB(), rows + noise, classes, method="predict_proba")
    n, width = scores.shape
    long = pl.DataFrame(
        {
            "datum_id": np.repeat(np.arange(n), width),
            "label_value": np.tile(np.arange(width), n),
            "score": scores.ravel(),
        }
    )
    truth = pl.DataFrame({"datum_id": np.arange(n), "label_value": classes})
    assert fired(ee.score(long, truth)) == []
    assert fired(ee.score(y_true=classes, y_pred=scores.argmax(axis=1))) == []
