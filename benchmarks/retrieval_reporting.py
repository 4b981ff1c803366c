"""Results of the retrieval benchmark as Markdown."""

from __future__ import annotations

from functools import partial
from typing import Any

import section_reporting
from section_reporting import Line, Words, ratio

TITLES = {
    "ids": "Retrieval, {queries:,} queries x 1,000 documents, {m:g} M rows",
    "texts": "Texts matched by ROUGE-L, {texts:,} queries x 20 retrieved x 5 golds",
    "chunks": "Texts matched by the chunk rule, {texts:,} queries x 20 retrieved x 5 golds",
}
WAYS = {
    "polars-window": "Polars {}, ranks over a window",
    "polars-sort": "Polars {}, ranks from one sort",
    "pytrec_eval": "pytrec_eval-terrier {}",
    "continuous-eval": "continuous-eval {}",
    "plain-python": "Python {}, pair after pair",
}
TEXTS = "Texts have 300 words in sentences, the words' frequencies falling as natural ones do. "
NOTES = {
    "ids": (
        "nDCG@10, MAP, MRR and recall@100 together, their means compared. Ids are strings, rows "
        "are in random order, 50 documents a query are judged. pytrec_eval, ir-measures and ranx "
        "get dictionaries, from a grouping by Polars. trec_eval reads lines of text that were "
        "written beforehand, from inside a small Python process; it prints four digits, and agrees "
        "if those do."
    ),
    "texts": (
        f"{TEXTS}Precision, recall and F1 of every query in continuous-eval's dialect; 4 of the "
        "retrieved are a gold of which 5 to 50 percent of the words are others. continuous-eval "
        "scores every 100th query; its figures are 100 times that sample, plus reading once."
    ),
    "chunks": (
        f"{TEXTS}RetrievalRecall, RetrievalRecallAll and RetrievalNDCGAny at 1, 5, 10 and 20; "
        "none to all of the golds were retrieved, behind a date and a speaker. REMem's rule in "
        "plain Python compares every pair once."
    ),
}
CONTINUOUS = " --continuous-python CONTINUOUS/bin/python"


def title(result: dict[str, Any]) -> str:
    scale = result["scale"]
    return TITLES[result["section"]].format(
        queries=round(10_000 * scale), m=10 * scale, texts=round(1_000 * scale)
    )


def goals(result: dict[str, Any], peers: list[str]) -> list[Line]:
    """Ratios to the best peers; no target was set in advance."""
    contenders = result["contenders"]
    return [
        (what, ratio(contenders, kind, figure, peers), None)
        for what, kind, figure in (
            ("in process, wall, against the fastest peer", "in_process", "total_wall"),
            ("in process, CPU, against the thriftiest peer", "in_process", "total_cpu"),
            ("peak memory, against the leanest peer", "whole", "peak_mb"),
        )
    ]


page = partial(
    section_reporting.page,
    Words(
        "retrieval",
        title,
        goals,
        ways=WAYS,
        more=", and groups",
        notes=NOTES,
        within={"trec_eval": 0.50001e-4},  # four digits are printed
        options={"ids": " --trec-eval TREC_EVAL", "texts": CONTINUOUS},
    ),
)
