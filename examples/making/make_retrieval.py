"""Make the bundled retrieval example: 50 questions about the handbook of a bicycle workshop.

    python examples/making/make_retrieval.py [FOLDER]

writes run.parquet, qrels.parquet and contexts.parquet into `examples/retrieval/` (or FOLDER). The
run contains up to 20 pages of the handbook per question with the score of a simulated search
engine; the qrels contain the judged relevance (0 to 2) of some of them, and the department that
asks. The engine is better with names of parts than with complaints; scores have two digits, so that
some are tied. One question got no answer and one was never judged. `contexts.parquet` is one table
of 12 questions with the passages given to a chatbot and the relevant ones: some are truncated, some
are of another page. The seed is fixed: the same versions of NumPy and Polars write the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parents[1]
SEED = 23
QUESTIONS, PAGES, DEPTH, JUDGED = 50, 400, 20, 12
UNANSWERED, UNJUDGED = 17, 41  # questions without a list, without a judgment
RELEVANCE = (0.6, 0.25, 0.15)  # shares of relevance 0, 1, 2 among judged pages
KINDS = {"part": (0.6, 2.2), "complaint": (0.4, 1.2)}  # share, correlation of scores with relevance

PARTS = ("chain", "brake pad", "tyre", "saddle", "bottom bracket", "spoke", "derailleur", "hub")
FACTS = (
    "The {part} is checked at every service.",
    "A worn {part} is replaced, never repaired.",
    "The {part} of a cargo bike wears twice as fast.",
    "Keep the {part} free of oil and salt.",
)
CHATS = 12
PASSAGES = 4


def searched(rng: np.random.Generator) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return run and qrels."""
    share, clarity = np.array(list(KINDS.values())).T
    kind = rng.choice(len(KINDS), size=QUESTIONS, p=share)
    names = np.array(list(KINDS))
    run, qrels = [], []
    for question in range(QUESTIONS):
        judged = rng.choice(PAGES, size=JUDGED, replace=False)
        relevance = rng.choice(3, size=JUDGED, p=np.array(RELEVANCE))
        score = rng.normal(0.0, 1.0, PAGES)
        score[judged] += clarity[kind[question]] * (1 + relevance) / 2
        found = np.argsort(-score, kind="stable")[: rng.integers(8, DEPTH + 1)]
        asked = f"q{question + 1:02d}"
        run += [(asked, f"page_{page:03d}", round(float(score[page]), 2)) for page in found]
        qrels += [
            (asked, f"page_{page:03d}", int(grade), str(names[kind[question]]))
            for page, grade in zip(judged, relevance, strict=True)
        ]
    return (
        pl.DataFrame(run, schema=["query_id", "doc_id", "score"], orient="row").filter(
            pl.col("query_id") != f"q{UNANSWERED + 1:02d}"
        ),
        pl.DataFrame(
            qrels, schema=["query_id", "doc_id", "relevance", "kind"], orient="row"
        ).filter(pl.col("query_id") != f"q{UNJUDGED + 1:02d}"),
    )


def chatted(rng: np.random.Generator) -> pl.DataFrame:
    """Return one row per question, with retrieved and relevant passages."""
    rows = []
    for chat in range(CHATS):
        part = PARTS[rng.integers(len(PARTS))]
        other = PARTS[rng.integers(len(PARTS))]
        facts = [fact.format(part=part) for fact in FACTS]
        wanted = [facts[i] for i in rng.choice(len(facts), size=2, replace=False)]
        pool = [
            *wanted,
            *(fact.format(part=other) for fact in FACTS),
            wanted[0].rsplit(" ", 2)[0],  # truncated
        ]
        order = rng.permutation(len(pool))[:PASSAGES]
        rows.append((f"chat_{chat + 1:02d}", [pool[i] for i in order], wanted))
    return pl.DataFrame(
        rows, schema=["question_id", "retrieved_contexts", "reference_contexts"], orient="row"
    )


def frames() -> dict[str, pl.DataFrame]:
    """Return the three tables, by file name without its extension."""
    rng = np.random.default_rng(SEED)
    run, qrels = searched(rng)
    return {"run": run, "qrels": qrels, "contexts": chatted(rng)}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "retrieval"
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames().items():
        frame.write_parquet(folder / f"{name}.parquet")
        print(f"{folder / name}.parquet: {len(frame)} rows")


if __name__ == "__main__":
    main()
