"""Retrieval by incomplete judgments, and how many there are."""

from __future__ import annotations

from ....metrics.averages import geometric_of
from .parts import LEVELS, metric

METRICS = (
    metric(
        "bpref",
        "bpref",
        definition="mean over relevant documents of 1 - judged non-relevant ones ahead / min(R, N),"
        " with R relevant and N judged non-relevant",
        formula=r"\frac{1}{R} \sum_{i \le m} \text{rel}_i \left(1 - \frac{\min(a_i,"
        r" w)}{w}\right), \quad w = \min(R, N)",
        source="trec_eval 10; Buckley & Voorhees 2004",
        params=LEVELS,
        aliases=("Bpref",),
    ),
    metric(
        "GMBpref",
        "bpref",
        definition="geometric mean over queries of bpref, at least 0.00001 each",
        formula=r"\exp\left(\frac{1}{n} \sum_q \ln \max(\text{bpref}_q, 10^{-5})\right)",
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
        formula=r"\frac{1}{R} \sum_{i \le m} \text{rel}_i\, \frac{1}{i} \left(1 + z_i\,"
        r" \frac{h_i + \varepsilon}{h_i + a_i + 2 \varepsilon}\right)",
        source="trec_eval 10; Yilmaz & Aslam 2006",
        params=LEVELS,
    ),
    metric(
        "Judged",
        "judged",
        definition="documents up to k that are in the judgments, whatever their relevance / those"
        " retrieved up to k",
        formula=r"\frac{1}{\min(k, m)} \sum_{i \le k} [i \text{ judged}]",
        source="ir-measures 0.4.3",
        params=("k",),
        better="neither",
        aliases=("judged",),
    ),
    metric(
        "Unjudged",
        "unjudged",
        definition="documents retrieved up to k without a judgment, or with a negative one / k",
        formula=r"\frac{1}{k} \sum_{i \le k} [i \text{ unjudged}]",
        source="trec_eval 10 (unj)",
        params=("k",),
        better="neither",
        aliases=("unj",),
    ),
)
