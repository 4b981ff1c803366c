"""Make the sets of compat_text_retrieval.py as Parquet.

    python benchmarks/compat_text_retrieval_data.py pairs queries --scale 0.01 1

20,000 pairs of texts of 60 words, as in text_data.py; and 10,000 queries, a run with 100 documents
per query, and judgments from 0 to 2 of 20 among 150 documents.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
import text_data
from making import Frames, Maker, main

QUERIES, DOCUMENTS, POOL, JUDGED = 10_000, 100, 150, 20


def queries(rng: np.random.Generator, scale: float) -> Frames:
    n = round(QUERIES * scale)

    def rows(many: int, column: str, values: np.ndarray) -> pl.DataFrame:
        documents = rng.permuted(np.tile(np.arange(POOL), (n, 1)), axis=1)[:, :many]
        ids = {"query_id": np.repeat(np.arange(n), many), "doc_id": documents.ravel()}
        named = [pl.format(f"{name[0]}{{}}", name).alias(name) for name in ids]
        return pl.DataFrame(ids).select(*named, pl.Series(column, values))

    return {
        "run": rows(DOCUMENTS, "score", rng.random(n * DOCUMENTS)),
        "qrels": rows(JUDGED, "relevance", rng.integers(0, 3, n * JUDGED)),
    }


SECTIONS: dict[str, Maker] = {"pairs": partial(text_data.made, "pairs"), "queries": queries}


if __name__ == "__main__":
    main("compat_text_retrieval", SECTIONS)
