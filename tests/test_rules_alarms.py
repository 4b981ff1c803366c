"""Rules of the input do not fire on sound data: bundled examples and real sets."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from reference_data import real_data

import evalengine as ee
from evalengine.cli import main
from evalengine.ingest import rules
from evalengine.tasks import NAMES, get

EXAMPLES = Path(__file__).parent.parent / "examples"
DEMOS = tomllib.loads((EXAMPLES / "demos.toml").read_text("utf-8"))


def fired(card: Any) -> list[str]:
    """Return the codes of the rules that fired, and of all warnings."""
    for task in NAMES:  # import the rules of every task
        get(task)
    known = rules.codes() | {"tied_top_scores"}
    assert {"unread_columns_differ", "threshold_beyond_scores", "labels_exchanged"} <= known
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
    """Probabilities come from a classifier fitted to data bundled with scikit-learn."""
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


@pytest.mark.parametrize("seed", range(4))
def test_few_rows_of_many_classes(seed: int) -> None:
    """Half of the rows are right, the others confused with a sibling or with any class."""
    rng = np.random.default_rng(seed)
    true = np.repeat(np.arange(60), 5)
    sort, any_ = rng.random(true.size), rng.integers(0, 60, true.size)
    made = np.where(sort < 0.5, true, np.where(sort < 0.8, true ^ 1, any_))
    assert fired(ee.score(y_true=true, y_pred=made)) == []


def test_texts() -> None:
    words = [f"w{i}" for i in range(15)]
    rng = np.random.default_rng(0)
    truth = [rng.choice(words, 8).tolist() for _ in range(60)]
    made = [[w if rng.random() < 0.8 else str(rng.choice(words)) for w in one] for one in truth]
    sides = [
        pl.DataFrame({"datum_id": range(60), "text": [" ".join(one) for one in some]})
        for some in (made, truth)
    ]
    assert fired(ee.score(*sides, task="text")) == []


def test_tracks() -> None:
    rng = np.random.default_rng(0)
    frame, track = (grid.ravel() for grid in np.meshgrid(np.arange(1, 41), np.arange(1, 7)))
    left, top = 60.0 * track + frame, 30.0 * track + 2 * frame
    truth = pl.DataFrame(
        {"sequence": "a", "frame": frame, "track_id": track, "xmin": left, "ymin": top,
         "xmax": left + 40, "ymax": top + 50}
    )  # fmt: skip
    remaining = truth.filter(pl.Series(rng.random(truth.height) < 0.9))
    made = remaining.with_columns(pl.col("xmin", "xmax") + 3, score=pl.lit(0.9))
    assert fired(ee.score(made, truth, task="tracking")) == []
