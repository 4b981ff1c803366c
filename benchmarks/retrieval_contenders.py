"""Run one evaluator in one process; retrieval.py starts it once per measurement.

    python retrieval_contenders.py SECTION/CONTENDER FOLDER [WARM_UP_FOLDER]

Prints the line of JSON of contender.py: wall and CPU seconds of the import and of the step from
files to values, the peak resident memory, and the values. Needs only the evaluator; contenders on
texts are in retrieval_texts.py. The values of ids are the means of nDCG@10, average precision,
reciprocal rank and recall@100, in this order.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Last, so that module names of this folder do not shadow the contenders' own dependencies.
sys.path.append(str(Path(__file__).resolve().parent))

from contender import Run, Version, answer, in_one_step

Numbers = Callable[[Path], Any]  # from a section's folder to its values, in the section's order
METRICS = ("nDCG@10", "MAP", "MRR", "Recall@100")


def evalengine(contender: str) -> Numbers:
    """`evalengine-N`: N threads."""
    import evalengine as ee

    threads = int(contender.split("-")[1])

    def run(folder: Path) -> list[float | None]:
        sides = (folder / f"{side}.parquet" for side in ("run", "qrels"))
        card = ee.score(*sides, metrics=METRICS, threads=threads)
        return [card.value(metric) for metric in METRICS]

    return run


def polars(contender: str) -> Numbers:
    """Ranks over a window, or from one sort of all rows; then only the judged rows."""
    import polars as pl

    query = pl.col("query_id")
    rank, gain = pl.col("rank"), pl.col("relevance").cast(pl.Float64)
    over_queries = pl.col("score").rank("ordinal", descending=True).over("query_id")

    def ranked(rows: pl.LazyFrame) -> pl.LazyFrame:
        if contender == "polars-window":
            return rows.with_columns(rank=over_queries)
        placed = rows.sort("query_id", "score", descending=[False, True]).with_row_index("place")
        first = pl.col("place").first().over("query_id")
        return placed.with_columns(rank=pl.col("place").cast(pl.Int64) - first + 1)

    discounted = (gain / (rank + 1).log(2)).filter(rank <= 10).sum()
    best = gain.sort(descending=True).head(10)
    ideal = (best / (pl.int_range(best.len()) + 2).log(2)).sum()
    place = rank.sort()
    precision = pl.int_range(1, place.len() + 1) / place

    def run(folder: Path) -> Any:
        judged = pl.scan_parquet(folder / "qrels.parquet").filter(pl.col("relevance") > 0)
        rows = ranked(pl.scan_parquet(folder / "run.parquet"))
        matched = rows.join(judged, on=["query_id", "doc_id"]).group_by(query)
        values = matched.agg(
            dcg=discounted, ap=precision.sum(), rr=1 / rank.min(), hits=(rank <= 100).sum()
        )
        per_query = judged.group_by(query).agg(ideal=ideal, relevant=pl.len())
        scored = per_query.join(values, on="query_id", how="left").with_columns(
            pl.col("dcg", "ap", "rr", "hits").fill_null(0)
        )
        measures = scored.select(
            (pl.col("dcg") / pl.col("ideal")).mean(),
            (pl.col("ap") / pl.col("relevant")).mean(),
            pl.col("rr").mean(),
            (pl.col("hits") / pl.col("relevant")).mean().alias("recall"),
        )
        return measures.collect().row(0)

    return run


def nested(path: Path, column: str) -> dict[str, dict[str, Any]]:
    """Return `{query: {document: value}}`, queries in order; grouped by Polars."""
    import polars as pl

    grouped = pl.scan_parquet(path).group_by("query_id").agg("doc_id", column).sort("query_id")
    return {
        query: dict(zip(docs, values, strict=True))
        for query, docs, values in grouped.collect().iter_rows()
    }


def dictionaries(folder: Path) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Return judgments and run in the form of Python evaluators."""
    return nested(folder / "qrels.parquet", "relevance"), nested(folder / "run.parquet", "score")


def pytrec_eval(_: str) -> Numbers:
    import polars  # noqa: F401
    import pytrec_eval

    names = {"ndcg_cut_10": "ndcg_cut.10", "map": "map", "recip_rank": "recip_rank"}
    names["recall_100"] = "recall.100"

    def run(folder: Path) -> list[float]:
        qrels, runs = dictionaries(folder)
        values = pytrec_eval.RelevanceEvaluator(qrels, set(names.values())).evaluate(runs)
        return [sum(row[name] for row in values.values()) / len(values) for name in names]

    return run


def ir_measures(_: str) -> Numbers:
    import ir_measures
    import polars  # noqa: F401
    from ir_measures import AP, RR, R, nDCG

    measures = [nDCG @ 10, AP, RR, R @ 100]

    def run(folder: Path) -> list[float]:
        values = ir_measures.calc_aggregate(measures, *dictionaries(folder))
        return [values[measure] for measure in measures]

    return run


def ranx(_: str) -> Numbers:
    import polars  # noqa: F401
    import ranx

    names = ["ndcg@10", "map", "mrr", "recall@100"]

    def run(folder: Path) -> list[float]:
        values = ranx.evaluate(*dictionaries(folder), names)
        return [float(values[name]) for name in names]

    return run


def trec_eval(_: str) -> Numbers:
    """The program, on text files that were written before; it prints four digits."""
    measures = {
        "ndcg_cut_10": "ndcg_cut.10",
        "map": "map",
        "recip_rank": "recip_rank",
        "recall_100": "recall.100",
    }
    command = [os.environ["BENCHMARK_PROGRAM"]]
    for measure in measures.values():
        command += ["-m", measure]

    def run(folder: Path) -> list[float]:
        files = [folder / f"{side}.txt" for side in ("qrels", "run")]
        done = subprocess.run([*command, *files], check=True, capture_output=True, text=True)
        printed = {line.split()[0]: line.split()[2] for line in done.stdout.splitlines()}
        return [float(printed[name]) for name in measures]

    return run


def trec_eval_version() -> str:
    command = [os.environ["BENCHMARK_PROGRAM"], "--version"]
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).split()[-1]


MAKERS: dict[str, Callable[[str], Numbers]] = {
    "evalengine": evalengine,
    "polars": polars,
    "pytrec_eval": pytrec_eval,
    "ir-measures": ir_measures,
    "ranx": ranx,
    "trec_eval": trec_eval,
}
VERSIONS: dict[str, Version] = {  # if it differs from the name of the distribution
    "evalengine": partial(version, "evalengine"),
    "polars": partial(version, "polars"),
    "pytrec_eval": partial(version, "pytrec_eval-terrier"),
    "trec_eval": trec_eval_version,
    "plain-python": platform.python_version,
}


def of_start(entries: dict[str, Any], contender: str) -> Any:
    """Return the entry whose key a contender's name starts with, or None."""
    return next((entry for start, entry in entries.items() if contender.startswith(start)), None)


def prepare(name: str) -> tuple[Run, Version]:
    """Import the contender and return its function and version."""
    section, contender = name.split("/")
    version_of = of_start(VERSIONS, contender) or partial(version, contender)
    if section == "ids":
        return in_one_step(of_start(MAKERS, contender)(contender)), version_of
    import retrieval_texts

    return of_start(retrieval_texts.MAKERS, contender)(section, contender), version_of


if __name__ == "__main__":
    answer(prepare)
