"""Test files of trec_eval: all of ``-m all_trec``, per query and on average, to 4 digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from reference_data import real_data
from retrieval.listing import every_measure, lists_of, read_qrels, read_run, settings

import evalengine as ee

CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
WHOLE = {
    "num_ret": "NumRetrieved", "num_rel": "NumRelevant", "num_rel_ret": "NumRelevantRetrieved",
    "map": "MAP", "Rprec": "RPrecision", "bpref": "bpref", "recip_rank": "MRR", "infAP": "infAP",
    "utility": "Utility", "11pt_avg": "ElevenPointPrecision", "binG": "binG", "G": "G",
    "ndcg": "nDCG", "ndcg_rel": "nDCGRel", "Rndcg": "RnDCG", "set_P": "SetPrecision",
    "set_relative_P": "SetRelativePrecision", "set_recall": "SetRecall", "set_map": "SetMAP",
    "set_F": "SetF", "num_nonrel_judged_ret": "NumNonrelevantJudgedRetrieved", "rbp": "RBP",
    "rbp_resid": "RBPResidual",
}  # fmt: skip
AT_CUTS = {
    "P": "P", "recall": "Recall", "ndcg_cut": "nDCG", "map_cut": "MAP", "unj": "Unjudged",
    "relative_P": "RelativePrecision", "success": "Success",
}  # fmt: skip
AT_LEVELS = {
    "iprec_at_recall": ("InterpolatedPrecision", "recall"),
    "Rprec_mult": ("RPrecisionMult", "multiple"),
}
GEOMETRIC = {"gm_map": "MAP", "gm_bpref": "bpref"}
SUMS = ("num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret")
ELSEWHERE = ("runid", "num_q", "relstring")


def key_of(name: str) -> tuple:
    """Map a name of trec_eval to (metric, parameters, k)."""
    if name in WHOLE:
        return WHOLE[name], None, None
    base, _, number = name.rpartition("_")
    if base in AT_CUTS:
        return AT_CUTS[base], None, int(number)
    metric, parameter = AT_LEVELS[base]
    return metric, f'{{"{parameter}": {float(number)}}}', None


@pytest.fixture(scope="module")
def values() -> dict[tuple, list]:
    lists = lists_of(
        read_run(real_data("trec_eval", "results.test")),
        read_qrels(real_data("trec_eval", "qrels.test")),
    )
    chosen = settings("trec_eval", k=(1, *CUTS))
    return every_measure(lists, chosen)


def expected(name: str) -> list[tuple[str, str, str]]:
    lines = [line.split() for line in real_data("trec_eval", name).read_text().splitlines()]
    return [(a, b, c) for a, b, c in lines if not a.startswith(ELSEWHERE)]


@pytest.mark.parametrize(
    ("name", "lines"), [("out.test", 28), ("out.test.a", 97), ("out.test.aq", 382)]
)
def test_every_line(values: dict[tuple, list], name: str, lines: int) -> None:
    queries = list(read_run(real_data("trec_eval", "results.test")))
    wanted = expected(name)
    assert len(wanted) == lines
    for measure, query, value in wanted:
        if measure in GEOMETRIC:
            found = values[GEOMETRIC[measure], None, None]
            ours = math.exp(np.mean(np.log(np.maximum(found, 1e-5))))
        else:
            found = values[key_of(measure)]
            if query != "all":
                ours = found[queries.index(query)]
            else:
                ours = sum(found) if measure in SUMS else sum(found) / len(found)
        assert f"{ours:.4f}" == f"{float(value):.4f}", (measure, query)


CUT = ("P", "Recall", "nDCG", "MAP", "RelativePrecision")
NAMED = (
    *sorted({*WHOLE.values(), "GMAP", "GMBpref", *(name for name, _ in AT_LEVELS.values())}),
    *(f"{name}@{k}" for name in CUT for k in CUTS),
    *(f"Success@{k}" for k in (1, 5, 10)),
    *(f"Unjudged@{k}" for k in CUTS),
)


@pytest.mark.parametrize(
    ("name", "metrics", "single"), [("out.test", None, False), ("out.test.aq", NAMED, True)]
)
def test_scored_files_equal_the_output_of_trec_eval(name: str, metrics: Any, single: bool) -> None:
    files = real_data("trec_eval", "results.test"), real_data("trec_eval", "qrels.test")
    card = ee.score(*files, dialect="trec_eval", metrics=metrics and list(metrics))
    ours = [line.split() for line in card.to_trec().splitlines()]
    ours = [line for line in ours if single or line[1] == "all"]
    wanted = [line.split() for line in real_data("trec_eval", name).read_text().splitlines()]
    wanted = [line for line in wanted if line[0] != "relstring"]
    named = {(measure, query) for measure, query, _ in wanted}
    assert len(named) == len(wanted) > 25
    common = [line for line in ours if (line[0], line[1]) in named]
    assert common == wanted
