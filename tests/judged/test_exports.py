"""Exports of judged metrics to other tools: ids, order of rows, unknown metrics."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from judged.tables import listed, table
from refusals import refused

import evalengine as ee


def test_exports_keep_ids_and_the_order_of_rows(tmp_path: Path) -> None:
    """Rows match the order of the data set, also after saving and loading."""
    ids = ["m", "b", "z", "a"]
    rows = [row for i, one in enumerate(ids) for row in listed("Faithfulness", [1, i % 2], datum=i)]
    given = table(rows).with_columns(datum_id=pl.Series(ids).gather([r["datum_id"] for r in rows]))
    card = ee.score(given, task="judged", dialect="ragas", metrics=["Faithfulness"])
    want = [{"faithfulness": value} for value in (0.5, 1.0, 0.5, 1.0)]
    loaded = ee.load(card.save(tmp_path / "run"))
    for one in (card, loaded):
        made = one.to_ragas()
        assert made == want
        assert made.ids == ids


def test_similarity_is_exported_to_ragas_in_the_order_of_rows():
    rows = pl.DataFrame(
        {
            "datum_id": [7, 3, 5],
            "text": ["a", "b", "c"],
            "reference": ["a", "b", "c"],
            "embedding": [[1.0, 0.0]] * 3,
            "reference_embedding": [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]],
        }
    )
    card = ee.score(rows, metrics=["SemanticSimilarity"])
    with refused("no_metric_shown", ee.ResultError):
        card.to_valor()
    exported = card.to_ragas()
    by_id = dict(zip(exported.ids, exported, strict=True))
    assert {key: row["semantic_similarity"] for key, row in by_id.items()} == {7: 1, 3: 0, 5: -1}
