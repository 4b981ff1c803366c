"""Run one evaluator in one process; classification.py starts it once per measurement.

    python classification_contenders.py SECTION/CONTENDER FOLDER [WARM_UP_FOLDER]

Prints the line of JSON of contender.py: wall and CPU seconds of the import and of the step from
Parquet to values, the peak resident memory, and the values. Needs only the evaluator and NumPy.
Longer contenders of long tables are in classification_long.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

# Last, so that module names of this folder do not shadow the contenders' own dependencies.
sys.path.append(str(Path(__file__).resolve().parent))

from contender import Lap, Run, Version, answer, in_one_step

Numbers = Callable[[Path], Any]  # from a section's folder to its values, in the section's order
SAMPLED = 50  # scikit-learn's loop takes every 50th group


def evalengine(section: str, variant: str) -> Numbers:
    """`evalengine-N`: N threads; `evalengine-N-labels` and `-ids`: with strings instead."""
    import polars as pl

    import evalengine as ee

    _, count, *rest = variant.split("-")
    threads = int(count)
    prefix = "".join(f"{kind}-" for kind in rest)

    def one_table(folder: Path) -> Any:
        card = ee.score(folder / "table.parquet", metrics=["ROCAUC"], threads=threads)
        return card.value("ROCAUC", label_value=1)

    def two_tables(folder: Path) -> Any:
        sides = (folder / f"{side}.parquet" for side in ("predictions", "groundtruths"))
        return ee.score(*sides, metrics=["ROCAUC"], threads=threads).value("ROCAUC", label_value=1)

    def grouped(folder: Path) -> Any:
        table = folder / "table.parquet"
        card = ee.score(table, metrics=["ROCAUC"], by="group", threads=threads)
        rows = card.metrics.filter(pl.col("slice") == "group")
        return rows.sort(pl.col("slice_value").cast(pl.Int64))["value"]

    def long(folder: Path) -> Any:
        metrics = ["Precision", "Recall", "F1", "ROCAUC", "mROCAUC", "PrecisionRecallCurve"]
        sides = (folder / f"{prefix}{side}.parquet" for side in ("predictions", "groundtruths"))
        card = ee.score(*sides, metrics=metrics, threads=threads)
        frame = card.metrics
        per_label = frame.filter(pl.col("label_value").is_not_null()).sort("label_value")
        parts = [per_label.filter(pl.col("metric") == name)["value"] for name in metrics[:4]]
        parts.append(
            frame.filter((pl.col("metric") == "mROCAUC") & (pl.col("average") == "macro"))["value"]
        )
        curve = card.curves.sort("label_value", "score_threshold")
        parts += [curve[column] for column in ("tp", "fp", "fn", "tn", "precision", "recall")]
        return np.concatenate([part.cast(pl.Float64).to_numpy() for part in parts])

    return {
        "binary": one_table,
        "distinct": one_table,
        "two-tables": two_tables,
        "grouped": grouped,
        "long": long,
    }[section]


def polars(section: str, variant: str) -> Numbers:
    """Mann-Whitney in expressions.

    Ranks are average ranks, or positions among sorted negatives; for few distinct scores, counts
    per score are used.
    """
    import polars as pl

    score, positive = pl.col("score"), pl.col("actual") == 1
    ones = positive.sum().cast(pl.Float64)
    zeros = pl.len() - ones
    ranks = score.rank("average").filter(positive).sum()
    by_rank = (ranks - ones * (ones + 1) / 2) / (ones * zeros)
    negatives, positives = score.filter(~positive).sort(), score.filter(positive).sort()
    places = sum(
        negatives.search_sorted(positives, side=side).cast(pl.Float64).sum()
        for side in ("left", "right")
    )
    by_place = places / 2 / (ones * zeros)

    def rows(folder: Path) -> pl.LazyFrame:
        if section != "two-tables":
            return pl.scan_parquet(folder / "table.parquet")
        truths = pl.scan_parquet(folder / "groundtruths.parquet")
        predictions = pl.scan_parquet(folder / "predictions.parquet").select("datum_id", "score")
        return predictions.join(truths, on="datum_id").rename({"label_value": "actual"})

    def rank(folder: Path) -> Any:
        return rows(folder).select(by_rank).collect().item()

    def place(folder: Path) -> Any:
        return rows(folder).select(by_place).collect().item()

    def counts(folder: Path) -> Any:
        per_score = rows(folder).group_by("score").agg(p=positive.sum(), n=(~positive).sum())
        p, n = (pl.col(name).cast(pl.Float64) for name in "pn")
        area = (p * (n.cum_sum() - n / 2)).sum() / (p.sum() * n.sum())
        return per_score.sort("score").select(area).collect().item()

    def window(folder: Path) -> Any:
        ranked = rows(folder).with_columns(rank=score.rank("average").over("group"))
        sums = ranked.group_by("group").agg(
            ranks=(pl.col("rank") * pl.col("actual")).sum(), ones=ones, zeros=zeros
        )
        p, n = pl.col("ones"), pl.col("zeros")
        area = (pl.col("ranks") - p * (p + 1) / 2) / (p * n)
        return sums.sort("group").select(area).collect().to_series()

    def aggregate(folder: Path) -> Any:
        return (
            rows(folder)
            .group_by("group")
            .agg(by_rank.alias("area"))
            .sort("group")
            .collect()["area"]
        )

    return {
        "polars-rank": rank,
        "polars-places": place,
        "polars-counts": counts,
        "polars-window": window,
        "polars-aggregate": aggregate,
    }[variant]


def polars_ds(section: str, _: str) -> Numbers:
    import polars as pl
    import polars_ds as pds

    area = pds.query_roc_auc("actual", "score").alias("area")

    def run(folder: Path) -> Any:
        rows = pl.scan_parquet(folder / "table.parquet")
        if section == "grouped":
            return rows.group_by("group").agg(area).sort("group").collect()["area"]
        return rows.select(area).collect().item()

    return run


DUCKDB_ONE_AREA = """
WITH per_score AS (
    SELECT score, sum(actual) AS p, count(*) - sum(actual) AS n FROM {rows} GROUP BY score
), below AS (
    SELECT p, n, sum(n) OVER (ORDER BY score ROWS UNBOUNDED PRECEDING) AS at_most FROM per_score
)
SELECT sum(p * (at_most - n / 2))::DOUBLE / (sum(p)::DOUBLE * sum(n)::DOUBLE) FROM below
"""
DUCKDB_AREAS = """
WITH ranked AS (
    SELECT "group", actual, rank() OVER least
        + count(*) OVER (PARTITION BY "group" ORDER BY score RANGE UNBOUNDED PRECEDING) AS twice
    FROM '{table}'
    WINDOW least AS (PARTITION BY "group" ORDER BY score)
), sums AS (
    SELECT "group", sum(twice) FILTER (actual = 1) / 2 AS ranks, sum(actual)::DOUBLE AS p,
        count(*)::DOUBLE - sum(actual) AS n FROM ranked GROUP BY "group"
)
SELECT (ranks - p * (p + 1) / 2) / (p * n) AS area FROM sums ORDER BY "group"
"""


def duckdb(section: str, _: str) -> Numbers:
    """Window function over the scores, one per group."""
    import duckdb

    def run(folder: Path) -> Any:
        connection = duckdb.connect()
        if section == "grouped":
            query = DUCKDB_AREAS.format(table=folder / "table.parquet")
            return connection.execute(query).fetchnumpy()["area"]
        rows = f"'{folder / 'table.parquet'}'"
        if section == "two-tables":
            sides = [folder / f"{side}.parquet" for side in ("predictions", "groundtruths")]
            rows = (
                f"(SELECT score, t.label_value AS actual FROM '{sides[0]}' AS p "
                f"JOIN '{sides[1]}' AS t USING (datum_id))"
            )
        row = connection.execute(DUCKDB_ONE_AREA.format(rows=rows)).fetchone()
        return row[0]

    return run


def scikit_learn(section: str, variant: str) -> Numbers:
    """Plain functions, or with `sklearnex` its patched ones. Polars reads and joins the tables."""
    import polars as pl

    if variant == "sklearnex":
        from sklearnex import patch_sklearn

        patch_sklearn(verbose=False)
    from sklearn.metrics import roc_auc_score

    def one_table(folder: Path) -> Any:
        table = pl.read_parquet(folder / "table.parquet")
        return roc_auc_score(table["actual"].to_numpy(), table["score"].to_numpy())

    def two_tables(folder: Path) -> Any:
        truths = pl.scan_parquet(folder / "groundtruths.parquet")
        predictions = pl.scan_parquet(folder / "predictions.parquet").select("datum_id", "score")
        table = predictions.join(truths, on="datum_id").select("label_value", "score").collect()
        return roc_auc_score(table["label_value"].to_numpy(), table["score"].to_numpy())

    if section == "long":
        from classification_long import scikit_learn as long

        return long()
    return two_tables if section == "two-tables" else one_table


def scikit_learn_groups() -> Run:
    """Loop over a sample of the groups; the time to read all of them counts once."""
    import polars as pl
    from sklearn.metrics import roc_auc_score

    def run(folder: Path, lap: Lap) -> list[float]:
        table = pl.read_parquet(folder / "table.parquet")
        lap("load")
        sample = table.filter(pl.col("group") % SAMPLED == 0).sort("group")
        areas = [
            roc_auc_score(group["actual"].to_numpy(), group["score"].to_numpy())
            for group in sample.partition_by("group")
        ]
        lap("evaluate", SAMPLED)
        return areas

    return run


def torchmetrics(_section: str, _variant: str) -> Numbers:
    import polars as pl
    import torch
    from torchmetrics.functional.classification import binary_auroc

    def run(folder: Path) -> Any:
        table = pl.read_parquet(folder / "table.parquet")
        score, actual = (
            torch.from_numpy(table[c].to_numpy(writable=True)) for c in ("score", "actual")
        )
        return binary_auroc(score, actual).item()

    return run


def long_table(_: str, variant: str) -> Numbers:
    import classification_long

    return {
        "polars-long": classification_long.polars_expressions,
        "numpy-matrix": classification_long.numpy_matrix,
    }[variant]()


MAKERS: dict[str, tuple[Callable[[str, str], Numbers], str]] = {  # and the distribution's name
    "evalengine": (evalengine, "evalengine"),
    "sklearnex": (scikit_learn, "scikit-learn-intelex"),
    "scikit-learn": (scikit_learn, "scikit-learn"),
    "polars-long": (long_table, "polars"),
    "numpy-matrix": (long_table, "numpy"),
    "polars-ds": (polars_ds, "polars-ds"),
    "polars": (polars, "polars"),
    "duckdb": (duckdb, "duckdb"),
    "torchmetrics": (torchmetrics, "torchmetrics"),
}


def prepare(name: str) -> tuple[Run, Version]:
    """Import the contender and return its function and version."""
    section, contender = name.split("/")
    maker, distribution = next(
        entry for start, entry in MAKERS.items() if contender.startswith(start)
    )
    if name == "grouped/scikit-learn":
        return scikit_learn_groups(), partial(version, distribution)
    numbers = maker(section, contender)

    def flat(folder: Path) -> Any:
        return np.asarray(numbers(folder), dtype=np.float64).ravel()

    return in_one_step(flat), partial(version, distribution)


if __name__ == "__main__":
    answer(prepare)
