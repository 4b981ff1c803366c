"""Tables of tasks other than boxes and scored labels for ``scale.py`` and ``slopes.py``."""

from __future__ import annotations

from typing import Any

VERDICTS = 12  # per datum, four of each of three metrics
WORDS = 20  # per text
SIDE = 256  # pixels
CLASSES = 19


def verdicts(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Make verdicts of three metrics on some datums, some of them failed or without a word."""
    import numpy as np
    import polars as pl

    row = np.arange(many * VERDICTS)
    metrics = pl.Series(["Bias", "Faithfulness", "AnswerRelevance"])
    words = pl.Series(["yes", "no", "perhaps"])
    status = pl.Series([None, "timeout"], dtype=pl.String)
    table = pl.DataFrame(
        {
            "datum_id": first + row // VERDICTS,
            "metric": metrics.gather(row % VERDICTS // 4),
            "item_index": row % 4,
            "verdict": words.gather(rng.choice(3, row.size, p=[0.6, 0.395, 0.005])),
            "status": status.gather(rng.choice(2, row.size, p=[0.999, 0.001])),
            "statement": "Statement " + pl.Series(row).cast(pl.String) + " of the answer.",
        }
    )
    return {"table": table.to_arrow()}


def texts(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Make pairs of texts whose words have frequencies like those of a language."""
    import numpy as np
    import pyarrow as pa

    vocabulary = np.array([f"w{i}" for i in range(5000)])

    def drawn() -> list[str]:
        return [" ".join(row) for row in vocabulary[rng.zipf(1.3, (many, WORDS)) % 5000]]

    datum = np.arange(first, first + many)
    return {"table": pa.table({"datum_id": datum, "text": drawn(), "reference": drawn()})}


def label_maps(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Make label maps of squares, four fifths of which are found."""
    import numpy as np
    import pyarrow as pa

    cells = (many, SIDE // 16, SIDE // 16)
    truth = rng.integers(0, CLASSES, cells, dtype=np.uint8)
    predicted = np.where(rng.random(cells) < 0.8, truth, rng.integers(0, CLASSES, (many, 1, 1)))
    sides = {}
    for name, map_ in (("predictions", predicted.astype(np.uint8)), ("truths", truth)):
        pixels = np.repeat(np.repeat(map_, 16, 1), 16, 2).reshape(-1)
        ends = np.arange(0, pixels.size + 1, SIDE, dtype=np.int32)
        rows = pa.ListArray.from_arrays(pa.array(ends), pa.array(pixels))
        ends = np.arange(0, len(rows) + 1, SIDE, dtype=np.int32)
        maps = pa.ListArray.from_arrays(pa.array(ends), rows)
        sides[name] = pa.table({"datum_id": np.arange(first, first + many), "raster": maps})
    return sides


DOCUMENTS = 50  # per query; a tenth of them is judged
MODELS = 12
FRAMES = 100  # per video


def documents(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Make ranked documents of some queries, and their judgments."""
    import numpy as np
    import pyarrow as pa

    query = np.repeat(np.arange(first, first + many), DOCUMENTS)
    doc = np.tile(np.arange(DOCUMENTS), many) + 1000 * rng.integers(0, 1000, query.size)
    judged, score = rng.random(query.size) < 0.1, rng.random(query.size)
    relevance = rng.integers(0, 3, int(judged.sum()))
    return {
        "predictions": pa.table({"query_id": query, "doc_id": doc, "score": score}),
        "truths": pa.table(
            {"query_id": query[judged], "doc_id": doc[judged], "relevance": relevance}
        ),
    }


def numbers(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Make predicted numbers and their targets."""
    import numpy as np
    import pyarrow as pa

    target = rng.normal(10, 3, many)
    datum = np.arange(first, first + many)
    prediction = target + rng.normal(0, 1, many)
    return {"table": pa.table({"datum_id": datum, "prediction": prediction, "target": target})}


def values(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Make values of three metrics on some datums."""
    import numpy as np
    import polars as pl

    metrics = pl.Series(["latency", "cost", "length"])
    row = np.arange(3 * many)
    columns = {"datum_id": first + row // 3, "metric": metrics.gather(row % 3)}
    return {"table": pl.DataFrame({**columns, "value": rng.gamma(2, size=row.size)}).to_arrow()}


def bouts(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Make preferences between two of some models."""
    import numpy as np
    import polars as pl

    one = rng.integers(0, MODELS, many)
    other = (one + rng.integers(1, MODELS, many)) % MODELS
    names = pl.Series([f"model-{n}" for n in range(MODELS)])
    columns = {"model_a": names.gather(one), "model_b": names.gather(other)}
    winner = pl.Series(["a", "b", "tie"]).gather(rng.integers(0, 3, many))
    datum = np.arange(first, first + many)
    return {"table": pl.DataFrame({"datum_id": datum, **columns, "winner": winner}).to_arrow()}


def entities(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Make scored spans of some texts, and true ones."""
    import numpy as np
    import pyarrow as pa

    datum = np.repeat(np.arange(first, first + many), 5)
    start = np.tile(20 * np.arange(5), many) + rng.integers(0, 8, datum.size)
    columns = {
        "datum_id": datum,
        "label_value": rng.integers(0, 8, datum.size).astype(np.int16),
        "start": start,
        "end": start + rng.integers(3, 10, datum.size),
    }
    predicted = {**columns, "start": start - (rng.random(datum.size) < 0.2)}
    return {
        "predictions": pa.table({**predicted, "score": rng.random(datum.size)}),
        "truths": pa.table(columns),
    }


def tracks(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Make boxes of five objects in a hundred frames of some videos, and of their tracks."""
    import numpy as np
    import pyarrow as pa

    rows = np.arange(many * FRAMES * 5)
    low = 100.0 * (rows % 5)[:, None] + rng.normal(0, 2, (rows.size, 2))

    def table(name: str, low: Any, kept: Any) -> Any:
        columns = {
            "sequence": first + rows // (FRAMES * 5),
            "frame": rows // 5 % FRAMES,
            name: rows % 5 + 5 * (rows // 5 % FRAMES // 50),
            **{corner: low[:, axis] for axis, corner in enumerate(("xmin", "ymin"))},
            **{corner: low[:, axis] + 50 for axis, corner in enumerate(("xmax", "ymax"))},
        }
        return pa.table({key: column[kept] for key, column in columns.items()})

    every = np.ones(rows.size, bool)
    return {
        "predictions": table(
            "track_id", low + rng.normal(0, 5, low.shape), rng.random(rows.size) < 0.9
        ),
        "truths": table("object_id", low, every),
    }


DRAWN = {
    "judged": verdicts,
    "text": texts,
    "segmentation": label_maps,
    "retrieval": documents,
    "regression": numbers,
    "values": values,
    "preferences": bouts,
    "spans": entities,
    "tracking": tracks,
}
SIDES = dict.fromkeys(("judged", "text", "regression", "values", "preferences"), ("table",))
STEPS = {"segmentation": 500, "retrieval": 20_000, "tracking": 1000}
GIVEN = {"text": {"metrics": ["ROUGE1", "ROUGEL", "BLEU"]}}
HEADINGS = {
    "judged": (
        "## Beyond memory: judged",
        f"{VERDICTS} verdicts a datum, four of each of three metrics, in one Parquet file; images"
        " are datums here.",
    ),
    "text": (
        "## Beyond memory: text",
        f"Pairs of texts of {WORDS} words in one Parquet file; ROUGE-1, ROUGE-L and sentence BLEU;"
        " images are pairs here. The frame of single datums has seven rows a pair.",
    ),
    "segmentation": (
        "## Beyond memory: segmentation",
        f"Label maps of {SIDE} x {SIDE} pixels and {CLASSES} classes as lists, one Parquet file a"
        " side; the default metrics.",
    ),
}
