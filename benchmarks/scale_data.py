"""Tables of one row a datum in the end: verdicts, texts and label maps for ``scale.py``."""

from __future__ import annotations

from typing import Any

VERDICTS = 12  # of a datum, four of each of three metrics
WORDS = 20  # of a text
SIDE = 256  # pixels
CLASSES = 19


def verdicts(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Verdicts of three metrics on some datums, some of them failed or of no word."""
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
    """Pairs of texts whose words are drawn alike, as rare as those of a language."""
    import numpy as np
    import pyarrow as pa

    vocabulary = np.array([f"w{i}" for i in range(5000)])

    def drawn() -> list[str]:
        return [" ".join(row) for row in vocabulary[rng.zipf(1.3, (many, WORDS)) % 5000]]

    datum = np.arange(first, first + many)
    return {"table": pa.table({"datum_id": datum, "text": drawn(), "reference": drawn()})}


def label_maps(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Label maps of squares, four fifths of which are found."""
    import numpy as np
    import pyarrow as pa

    cells = (many, SIDE // 16, SIDE // 16)
    truth = rng.integers(0, CLASSES, cells, dtype=np.uint8)
    found = np.where(rng.random(cells) < 0.8, truth, rng.integers(0, CLASSES, (many, 1, 1)))
    sides = {}
    for name, map_ in (("predictions", found.astype(np.uint8)), ("truths", truth)):
        pixels = np.repeat(np.repeat(map_, 16, 1), 16, 2).reshape(-1)
        ends = np.arange(0, pixels.size + 1, SIDE, dtype=np.int32)
        rows = pa.ListArray.from_arrays(pa.array(ends), pa.array(pixels))
        ends = np.arange(0, len(rows) + 1, SIDE, dtype=np.int32)
        maps = pa.ListArray.from_arrays(pa.array(ends), rows)
        sides[name] = pa.table({"datum_id": np.arange(first, first + many), "raster": maps})
    return sides


DRAWN = {"judged": verdicts, "text": texts, "segmentation": label_maps}
SIDES = {"judged": ("table",), "text": ("table",)}
STEPS = {"segmentation": 500}
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
