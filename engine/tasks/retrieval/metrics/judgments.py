"""Retrieval by incomplete judgments, and how many there are."""

from __future__ import annotations

from ....metrics.datum_averages import geometric_of
from .parts import LEVELS, metric

METRICS = (
    metric(
        "bpref",
        "bpref",
        definition="mean over relevant documents of 1 - judged non-relevant ones ahead / min(R, N),"
        " with R relevant and N judged non-relevant",
        source="trec_eval 10; Buckley & Voorhees 2004",
        params=LEVELS,
        aliases=("Bpref",),
    ),
    metric(
        "GMBpref",
        "bpref",
        definition="geometric mean over queries of bpref, at least 0.00001 each",
        source="trec_eval 10 (gm_bpref)",
        params=LEVELS,
        aliases=("gm_bpref",),
        compute=geometric_of("bpref", "GMBpref"),
    ),
    metric(
        "infAP",
        "inferred_average_precision",
        definition="average precision estimated from a pool of which a part was judged; negative"
        " relevance marks the rest of the pool",
        source="trec_eval 10; Yilmaz & Aslam 2006",
        params=LEVELS,
    ),
    metric(
        "Judged",
        "judged",
        definition="documents up to k that stand in the judgments, whatever their relevance / those"
        " retrieved up to k",
        source="ir-measures 0.4.3",
        params=("k",),
        better="neither",
        aliases=("judged",),
    ),
    metric(
        "Unjudged",
        "unjudged",
        definition="documents retrieved up to k without a judgment, or with a negative one / k",
        source="trec_eval 10 (unj)",
        params=("k",),
        better="neither",
        aliases=("unj",),
    ),
)
