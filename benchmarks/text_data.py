"""Make the text benchmark's data as Parquet.

    python benchmarks/text_data.py pairs short long --scale 0.02

writes `benchmarks/.data/text/<section>/table.parquet` (datum_id, text, reference), with the suffix
`-<scale>` of the section unless that is 1: 20,000 pairs of 60 words (pairs), 1,000,000 of 20
(short) and 2,000 of 3,000 (long), in sentences, with Zipf frequencies of words. A text is its
reference with 5 to 60 percent of the words replaced and 5 percent deleted.

A seed fixes everything.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
from making import Frames, Maker, main
from retrieval_data import VOCABULARY, vocabulary

SIZES = {"pairs": (20_000, 60), "short": (1_000_000, 20), "long": (2_000, 3_000)}
"""Set -> pairs, words of a reference."""


def made(section: str, rng: np.random.Generator, scale: float) -> Frames:
    pairs, length = SIZES[section]
    pairs = round(pairs * scale)
    words = np.array(vocabulary(rng), dtype=object)
    weights = 1 / (np.arange(VOCABULARY) + 2.7)
    reach = (weights / weights.sum()).cumsum()

    def drawn(*shape: int) -> np.ndarray:
        return np.asarray(np.searchsorted(reach, rng.random(shape)).clip(max=VOCABULARY - 1))

    def written(text: np.ndarray) -> str:
        """Return sentences of 12 words."""
        parts = [words[text[i : i + 12]] for i in range(0, len(text), 12)]
        return " ".join(" ".join(part).capitalize() + "." for part in parts)

    rows = []
    for start in range(0, pairs, 10_000):
        many = min(10_000, pairs - start)
        references = drawn(many, length)
        share = rng.uniform(0.05, 0.6, (many, 1))
        texts = np.where(rng.random(references.shape) < share, drawn(many, length), references)
        kept = rng.random(references.shape) >= 0.05
        rows += [
            (f"d{start + i:07d}", written(texts[i][kept[i]]), written(references[i]))
            for i in range(many)
        ]
    return {"table": pl.DataFrame(rows, schema=["datum_id", "text", "reference"], orient="row")}


SECTIONS: dict[str, Maker] = {name: partial(made, name) for name in SIZES}


if __name__ == "__main__":
    main("text", SECTIONS)
