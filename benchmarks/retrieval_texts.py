"""Contenders on texts: retrieved and relevant ones, two lists of texts per query.

The values of `texts` are precision, recall and F1 of every query, query after query; those of
`chunks` the means of RetrievalRecall, RetrievalRecallAll and RetrievalNDCGAny, each at every k.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

from contender import Lap, Run, in_one_step

SAMPLED = 100  # continuous-eval takes every 100th query
CUTS = (1, 5, 10, 20)
CONTEXTS = ("RetrievalRecall", "RetrievalRecallAll", "RetrievalNDCGAny")


def evalengine(section: str, contender: str) -> Run:
    """`evalengine-N`: N threads."""
    import evalengine as ee

    threads = int(contender.split("-")[1])

    def by_rouge(folder: Path) -> list[float]:
        card = ee.score(
            folder / "table.parquet",
            dialect="continuous-eval",
            metrics=["PrecisionRecallF1"],
            match="rouge_chunk",
            threads=threads,
        )
        names = ("context_precision", "context_recall", "context_f1")
        return [row[name] for row in card.to_continuous_eval() for name in names]

    def by_chunk(folder: Path) -> list[float | None]:
        card = ee.score(
            folder / "table.parquet",
            metrics=CONTEXTS,
            match="chunk_from_original",
            k=CUTS,
            threads=threads,
        )
        return [card.value(metric, k=k) for metric in CONTEXTS for k in CUTS]

    return in_one_step({"texts": by_rouge, "chunks": by_chunk}[section])


def continuous_eval(_section: str, _contender: str) -> Run:
    """The package on a sample of the queries; the time to read all of them counts once."""
    os.environ["CONTINUOUS_EVAL_DO_NOT_TRACK"] = "true"  # disables its telemetry
    import polars as pl
    from continuous_eval.metrics.retrieval import PrecisionRecallF1, RougeChunkMatch

    metric = PrecisionRecallF1(RougeChunkMatch())

    def run(folder: Path, lap: Lap) -> list[float]:
        rows = pl.read_parquet(folder / "table.parquet").rows(named=True)
        sample = rows[::SAMPLED]
        lap("load")
        numbers: list[float] = []
        for row in sample:
            scores = metric.compute(row["retrieved"], row["relevant"])
            numbers += [scores[f"context_{name}"] for name in ("precision", "recall", "f1")]
        lap("evaluate", round(len(rows) / len(sample)))
        return numbers

    return run


def forms_of(chunk: str) -> list[str]:
    """Return forms of a text that a chunk's original may contain: plain or escaped as in JSON."""
    if chunk.startswith("Date: "):
        chunk = chunk.partition("\n")[2]
    forms = [chunk, json.dumps(chunk)]
    if chunk.startswith(("user: ", "assistant: ")):
        forms = [form.split(": ", 1)[1] for form in forms]
    return forms if forms[0] else []


def gain(relevant: list[bool]) -> float:
    return sum(hit / max(1.0, math.log2(rank)) for rank, hit in enumerate(relevant, 1))


def plain_python(_section: str, _contender: str) -> Run:
    """REMem's chunk rule on lists of strings; each pair is compared once."""
    import polars as pl

    def of_query(retrieved: list[str], relevant: list[str]) -> list[float]:
        golds = list(dict.fromkeys(relevant))
        pairs = [
            [any(form in gold for form in forms) for gold in golds]
            for forms in map(forms_of, retrieved)
        ]
        hits = [any(row) for row in pairs]
        recalls = [sum(map(any, zip(*pairs[:k], strict=True))) / len(golds) for k in CUTS]
        gains = []
        for k in CUTS:
            best = gain(sorted(hits, reverse=True)[:k])
            gains.append(gain(hits[:k]) / best if best else 0.0)
        return [*recalls, *(float(recall == 1) for recall in recalls), *gains]

    def run(folder: Path) -> list[float]:
        table = pl.read_parquet(folder / "table.parquet")
        values = [of_query(*row) for row in table.select("retrieved", "relevant").iter_rows()]
        return [sum(column) / len(column) for column in zip(*values, strict=True)]

    return in_one_step(run)


MAKERS: dict[str, Callable[[str, str], Run]] = {
    "evalengine": evalengine,
    "continuous-eval": continuous_eval,
    "plain-python": plain_python,
}
