"""Time evalengine's retrieval against other ways to the same values, side by side.

    python benchmarks/retrieval.py ids texts chunks --peers-python PEERS/bin/python \
        --continuous-python CONTINUOUS/bin/python --trec-eval TREC_EVAL --write-docs

`ids` ranks documents by their ids; `texts` and `chunks` match the same texts by ROUGE-L and by the
chunk rule. The sets are those of retrieval_data.py; `--scale 0.02` tries everything on small ones.
sections.py describes the measurement. PEERS is an environment with pytrec_eval-terrier,
ir-measures, ranx, polars and pyarrow, CONTINUOUS one with continuous-eval and polars, TREC_EVAL the
program trec_eval.
"""

from __future__ import annotations

from retrieval_reporting import page
from sections import OURS, Benchmark, Section, main

SECTIONS = {
    "ids": Section(
        (*OURS, "polars-window", "polars-sort", "pytrec_eval", "ir-measures", "ranx", "trec_eval")
    ),
    "texts": Section(
        (*OURS, "continuous-eval"),
        sampled=("continuous-eval",),
        width=3,  # precision, recall and F1 of a query
    ),
    "chunks": Section((*OURS, "plain-python"), data="texts"),
}
BENCHMARK = Benchmark(
    "retrieval",
    SECTIONS,
    references=("pytrec_eval", "continuous-eval", "plain-python"),
    page=page,
    interpreters={"continuous-eval": "--continuous-python"},
    programs={"trec_eval": "--trec-eval"},
)


if __name__ == "__main__":
    main(BENCHMARK)
