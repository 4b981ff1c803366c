"""Retrieval as models of users see it, and other measures of ir-measures."""

from __future__ import annotations

from .parts import CUT, metric

_CWL = "ir-measures 0.4.3 (cwl_eval); "
_GAIN = "; gain is relevance / highest relevance of all judgments"
_NERR = _CWL + "Azzopardi, Mackenzie & Moffat 2021"

METRICS = (
    metric(
        "INST",
        "user_inst",
        definition="expected gain at a rank that a user sees who looks on behind rank i with chance"
        " ((i + 1 - G) / (i + 2 - G))^2, G the gain so far, to rank 1000" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="
        r" \left(\frac{j + 1 - U_j}{j + 2 - U_j}\right)^2",
        source=_CWL + "Moffat et al. 2015",
    ),
    metric(
        "INSQ",
        "user_insq",
        definition="mean gain where rank i weighs 1 / (i + 1)^2, to rank 1000" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \frac{1}{(i + 1)^2}",
        source=_CWL + "Moffat, Scholer & Thomas 2012",
    ),
    metric(
        "BPM",
        "user_bpm",
        definition="mean gain up to the rank where gains add up to 1, or to k" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="
        r" [U_j < 1]",
        source=_CWL + "Zhang et al. 2017",
        params=("k",),
    ),
    metric(
        "SDCG",
        "scaled_dcg",
        definition="sum of gain / log2(rank + 1) over that of k documents of gain 1" + _GAIN,
        formula=r"\frac{\sum_{i \le k} u_i / \log_2(i + 1)}{\sum_{i \le k} 1 / \log_2(i + 1)}",
        source=_CWL + "Järvelin & Kekäläinen 2002",
        params=("k",),
    ),
    metric(
        "NERR8",
        "user_nerr8",
        definition="expected gain at a rank that a user sees who looks on with chance 1 - gain, up"
        " to k" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="
        r" 1 - u_j",
        source=_NERR,
        params=("k",),
    ),
    metric(
        "NERR9",
        "user_nerr9",
        definition="expected gain at a rank that a user sees who looks on behind rank i with chance"
        " (1 - gain) i / (i + 1), up to k" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="
        r" (1 - u_j)\, \frac{j}{j + 1}",
        source=_NERR,
        params=("k",),
    ),
    metric(
        "NERR10",
        "user_nerr10",
        definition="expected gain at a rank that a user sees who looks on with chance"
        " 0.9 (1 - gain), to rank 1000" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="
        r" 0.9\, (1 - u_j)",
        source=_NERR,
    ),
    metric(
        "NERR11",
        "user_nerr11",
        definition="expected gain at a rank that a user sees who looks on behind rank i with chance"
        " (1 - gain) ((i + 1) / (i + 2))^2, to rank 1000" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="
        r" (1 - u_j) \left(\frac{j + 1}{j + 2}\right)^2",
        source=_NERR,
    ),
    metric(
        "Accuracy",
        "accuracy",
        definition="share of pairs of a relevant and another document retrieved, up to k, in which"
        " the relevant one comes first; undefined without a relevant one",
        formula=r"\frac{\sum_{i < j \le k} \text{rel}_i\, (1 - \text{rel}_j)}{R_k\, (k - R_k)}",
        source="ir-measures 0.4.3",
        params=CUT,
        bare="whole",
    ),
    metric(
        "Compat",
        "compatibility",
        definition="rank-biased overlap (persistence 0.95) with the ideal order, over the most that"
        " is possible",
        formula=r"\frac{\sum_i 0.95^{i - 1}\, |D_i \cap I_i| / i}{\sum_i 0.95^{i - 1} \min(i, R)"
        r" / i}",
        source="ir-measures 0.4.3; Clarke, Vtyurina & Smucker 2021",
        aliases=("Compatibility",),
    ),
)
