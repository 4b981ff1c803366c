"""Time evalengine's classification against other ways to the same values, side by side.

    python benchmarks/classification.py binary distinct two-tables grouped long \
        --peers-python PEERS/bin/python --torch-python TORCH/bin/python --write-docs

The sections are the sets of classification_data.py; `--scale 0.02` tries everything on small ones.
sections.py describes the measurement. PEERS is an environment with scikit-learn,
scikit-learn-intelex, polars, polars-ds, duckdb and pyarrow, TORCH one with torchmetrics, torch and
polars.
"""

from __future__ import annotations

from classification_reporting import page
from sections import OURS, Benchmark, Section, main

SECTIONS = {
    "binary": Section(
        (
            *OURS,
            "sklearnex",
            "scikit-learn",
            "polars-rank",
            "polars-places",
            "polars-ds",
            "duckdb",
            "torchmetrics",
        )
    ),
    "distinct": Section(
        (
            *OURS,
            "sklearnex",
            "scikit-learn",
            "polars-rank",
            "polars-counts",
            "polars-ds",
            "duckdb",
            "torchmetrics",
        )
    ),
    "two-tables": Section((*OURS, "polars-rank", "polars-places", "duckdb", "sklearnex")),
    "grouped": Section(
        (*OURS, "polars-window", "polars-aggregate", "polars-ds", "duckdb", "scikit-learn"),
        warm_up=0.1,  # so that kernels for many groups are loaded
        sampled=("scikit-learn",),
    ),
    "long": Section(
        (
            *OURS,
            "evalengine-2-labels",
            "evalengine-2-ids",
            "polars-long",
            "numpy-matrix",
            "sklearnex",
            "scikit-learn",
        )
    ),
}
BENCHMARK = Benchmark(
    "classification",
    SECTIONS,
    references=("scikit-learn", "polars-rank", "polars-window", "polars-long"),
    page=page,
    interpreters={"torchmetrics": "--torch-python"},
)


if __name__ == "__main__":
    main(BENCHMARK)
