"""Make the retrieval benchmark's data as Parquet.

    python benchmarks/retrieval_data.py ids texts --scale 0.02

writes `benchmarks/.data/retrieval/<section>/`, with the suffix `-<scale>` unless that is 1:

- ids: run.parquet (query_id, doc_id, score), 1,000 documents per query, and qrels.parquet
  (query_id, doc_id, relevance), 50 judgments of 0, 1 and 2 per query, about 30 of them on
  retrieved documents, more of them at high ranks; ids are strings, rows in random order; run.txt
  and qrels.txt are the same rows in trec_eval's format. Scores within a query are distinct and
  exact in single precision, so that ties cannot favour any contender.
- texts: table.parquet (query_id, retrieved, relevant), lists of 20 and 5 texts per query of 300
  words in sentences, with Zipf frequencies of words. 4 retrieved texts are a relevant one
  with 5 to 50 percent of the words replaced; none to all of the relevant ones are included as in
  a conversation, after a date and a speaker; the rest are unrelated.

A seed fixes everything.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from making import Frames, Maker, main
from numpy.typing import NDArray

QUERIES = 10_000
DEPTH = 1_000
CORPUS = 10_000_000
JUDGED = 50
TEXT_QUERIES = 1_000
RETRIEVED, GOLDS, WORDS = 20, 5, 300
NEAR = 4
VOCABULARY = 30_000
SYLLABLES = [a + b for a in "bcdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er")]

I64 = NDArray[np.int64]


def doc_ids(rng: np.random.Generator, queries: int) -> I64:
    """Return distinct documents [queries, DEPTH + JUDGED] of a corpus."""
    start = rng.integers(0, CORPUS, (queries, 1))
    step = rng.integers(1, CORPUS // 10, (queries, 1)) * 10 + 1  # coprime to the corpus's size
    return np.asarray((start + step * np.arange(DEPTH + JUDGED)) % CORPUS)


def ids(rng: np.random.Generator, scale: float) -> Frames:
    queries = round(QUERIES * scale)
    docs = doc_ids(rng, queries)
    steps = rng.integers(1, 64, (queries, DEPTH))
    score = steps[:, ::-1].cumsum(axis=1)[:, ::-1] / 1024  # descending, 16 bits at most
    assert (score.astype(np.float32) == score).all()
    assert (np.diff(score) < 0).all()
    # Sampling without replacement; document r has a probability in proportion to 1 / (r + 10).
    waits = rng.exponential(size=(queries, DEPTH)) * (np.arange(DEPTH) + 10)
    near = np.argsort(waits, axis=1)[:, :JUDGED]
    retrieved = np.arange(JUDGED) < rng.binomial(JUDGED, 0.6, (queries, 1))
    place = np.where(retrieved, near, DEPTH + np.arange(JUDGED))
    relevance = rng.choice(3, (queries, JUDGED), p=[0.4, 0.4, 0.2])

    def rows(docs: I64, column: str, values: NDArray[np.generic]) -> pl.DataFrame:
        order = rng.permutation(docs.size)
        query = np.repeat(np.arange(len(docs)), docs.shape[1])
        return pl.DataFrame(
            {"query": query[order], "doc": docs.ravel()[order], column: values.ravel()[order]}
        ).select(
            query_id="q" + pl.col("query").cast(pl.String),
            doc_id="doc" + pl.col("doc").cast(pl.String).str.zfill(7),
            **{column: pl.col(column)},
        )

    run = rows(docs[:, :DEPTH], "score", score)
    qrels = rows(np.take_along_axis(docs, place, axis=1), "relevance", relevance)
    return {
        "run": run,
        "qrels": qrels,
        "run.txt": run.select(
            "query_id", pl.lit("Q0"), "doc_id", pl.lit(0).alias("rank"), "score", tag=pl.lit("run")
        ),
        "qrels.txt": qrels.select("query_id", pl.lit(0), "doc_id", "relevance"),
    }


def vocabulary(rng: np.random.Generator) -> list[str]:
    """Return made-up words; the frequent ones are short."""
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        count = 1 + int(np.log10(len(words) + 1) / 1.5 + rng.random())
        words["".join(SYLLABLES[i] for i in rng.integers(len(SYLLABLES), size=count))] = None
    return list(words)


def texts(rng: np.random.Generator, scale: float) -> Frames:
    queries = round(TEXT_QUERIES * scale)
    words = np.array(vocabulary(rng), dtype=object)
    weights = 1 / (np.arange(VOCABULARY) + 2.7)
    reach = (weights / weights.sum()).cumsum()

    def drawn(*shape: int) -> I64:
        return np.asarray(np.searchsorted(reach, rng.random(shape)).clip(max=VOCABULARY - 1))

    def written(text: I64) -> str:
        """Return sentences of 5 to 25 words."""
        ends = rng.integers(5, 26, WORDS // 5).cumsum()
        parts = np.split(words[text], ends[ends < WORDS])
        return " ".join(" ".join(part).capitalize() + "." for part in parts)

    def one_query() -> dict[str, list[str]]:
        golds = drawn(GOLDS, WORDS)
        relevant = [written(gold) for gold in golds]
        retrieved = [
            f"Date: 2024-05-{rng.integers(10, 30)}\nuser: {gold}"
            for gold in relevant[: rng.integers(GOLDS + 1)]
        ]
        for share in rng.uniform(0.05, 0.5, NEAR):
            others = np.where(rng.random(WORDS) < share, drawn(WORDS), golds[rng.integers(GOLDS)])
            retrieved.append(written(others))
        retrieved += [written(text) for text in drawn(RETRIEVED - len(retrieved), WORDS)]
        return {
            "retrieved": [retrieved[i] for i in rng.permutation(RETRIEVED)],
            "relevant": relevant,
        }

    table = pl.DataFrame([one_query() for _ in range(queries)])
    query = "q" + pl.row_index().cast(pl.String)
    return {"table": table.select(query.alias("query_id"), pl.all())}


SECTIONS: dict[str, Maker] = {"ids": ids, "texts": texts}


if __name__ == "__main__":
    main("retrieval", SECTIONS)
