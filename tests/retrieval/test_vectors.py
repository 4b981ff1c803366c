"""Known answers of ir-measures, REMem and continuous-eval."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from known import known_answers, real_data
from retrieval.listing import (
    every_measure,
    lists_of,
    lists_of_matches,
    measured,
    read_qrels,
    read_run,
    settings,
)

# measure of ir-measures -> (metric, parameters, k)
PLAIN = {
    "nDCG": ("nDCG", None, None),
    "nDCG@10": ("nDCG", None, 10),
    "AP": ("MAP", None, None),
    "AP@10": ("MAP", None, 10),
    "RR": ("MRR", None, None),
    "P@5": ("P", None, 5),
    "P@10": ("P", None, 10),
    "R@10": ("Recall", None, 10),
    "R@100": ("Recall", None, 100),
    "Rprec": ("RPrecision", None, None),
    "Bpref": ("bpref", None, None),
    "infAP": ("infAP", None, None),
    "Success@1": ("Success", None, 1),
    "Success@10": ("Success", None, 10),
    "IPrec@0.1": ("InterpolatedPrecision", '{"recall": 0.1}', None),
    "IPrec@0.5": ("InterpolatedPrecision", '{"recall": 0.5}', None),
    "SetP": ("SetPrecision", None, None),
    "SetR": ("SetRecall", None, None),
    "SetF": ("SetF", None, None),
    "SetAP": ("SetMAP", None, None),
    "SetP(relative=True)": ("SetRelativePrecision", None, None),
    "RBP(rel=1)": ("RBP", '{"persistence": 0.8}', None),
    "NumRel": ("NumRelevant", None, None),
    "NumRet": ("NumRetrieved", None, None),
}
VARIED = {
    "RBP(rel=1,p=0.5)": ({"persistence": 0.5}, ("RBP", '{"persistence": 0.5}', None)),
    "AP(rel=2)": ({"relevance_levels": (2.0,)}, ("MAP", '{"relevance_level": 2.0}', None)),
    "nDCG(gains={1:3,2:9})@10": (
        {"gains": {1.0: 3.0, 2.0: 9.0}},
        ("nDCG", '{"gains": {"1": 3.0, "2": 9.0}}', 10),
    ),
}
ASCENDING = {"RR@10": ("MRR", None, 10), "Judged@10": ("Judged", None, 10)}
# graded measures; relevance above max_rel=3 counts as 3, which a query of its own brings in
USERS = {
    "INST(max_rel=3)": ("INST", None),
    "INSQ(max_rel=3)": ("INSQ", None),
    "BPM(max_rel=3)@10": ("BPM", 10),
    "SDCG(max_rel=3)@10": ("SDCG", 10),
    "NERR8(max_rel=3)@10": ("NERR8", 10),
    "NERR9(max_rel=3)@10": ("NERR9", 10),
    "NERR10(max_rel=3)": ("NERR10", None),
    "NERR11(max_rel=3)": ("NERR11", None),
}
OTHERS = {
    "Compat": ("Compat", None, None),
    "Accuracy": ("Accuracy", None, None),
    "Accuracy@10": ("Accuracy", None, 10),
}
LEFT = ("NumQ", "Compat(p=0.8)")  # a count of queries; a persistence that is no option here


def of_ir_measures(name: str) -> dict:
    sets: dict = known_answers("retrieval", "ir_measures_expected.json")["sets"]
    return sets[name]


@pytest.mark.parametrize("name", ["cwl", "compat"])
def test_ir_measures(name: str) -> None:
    given = of_ir_measures(name)
    run = read_run(real_data(given["run"]))
    qrels = read_qrels(real_data(given["qrels"]))
    cuts = (1, 5, 10, 100)
    found = every_measure(lists_of(run, qrels), settings("ir-measures", k=cuts))
    other = every_measure(lists_of(run, qrels, ascending=True), settings("ir-measures", k=cuts))
    judged = every_measure(lists_of(run, qrels, judged_only=True), settings(k=cuts))
    capped = {q: {d: min(rel, 3.0) for d, rel in judged.items()} for q, judged in qrels.items()}
    more = {**run, "": {"d": 1.0}}, {**capped, "": {"d": 3.0}}
    graded = every_measure(lists_of(*more), settings("ir-measures", k=cuts))
    compared = 0
    for measure, values in given["measures"].items():
        if measure in PLAIN:
            ours = found[PLAIN[measure]]
        elif measure in ASCENDING:
            ours = other[ASCENDING[measure]]
        elif measure in USERS:
            metric, k = USERS[measure]
            ours = graded[metric, '{"max_relevance": 3.0}', k][:-1]
        elif measure in OTHERS:
            ours = found[OTHERS[measure]]
        elif measure in VARIED:
            options, key = VARIED[measure]
            chosen = settings("ir-measures", k=cuts, **options)
            ours = every_measure(lists_of(run, qrels), chosen)[key]
        elif measure == "nDCG(judged_only=True)@10":
            ours = judged["nDCG", None, 10]
        else:
            assert measure in LEFT, measure
            continue
        queries = [query for query in run if query in qrels]
        for query, value in zip(queries, ours, strict=True):
            if query in values["per_query"]:
                expected = values["per_query"][query]
                assert math.isclose(value, expected, rel_tol=1e-12, abs_tol=1e-15), measure
                compared += 1
    assert compared > 70


def chunk_of(chunk: str, gold: str) -> bool:
    """REMem's rule, as its code has it."""
    text = chunk
    if text.startswith("Date: "):
        text = "\n".join(text.split("\n")[1:])
    if text.startswith(("user: ", "assistant: ")):
        text = text.split(": ")[1]
        return text in gold or json.dumps(text)[1:-1] in gold
    return text in gold or json.dumps(text)[1:-1] in gold


NEEDS = {
    "recall": ("retrieval_recall", "RetrievalRecall", "Recall"),
    "recall_all": ("retrieval_recall_all", "RetrievalRecallAll", "Recall_all"),
    "ndcg_any": ("retrieval_ndcg_any", "RetrievalNDCGAny", "NDCG_any"),
}


def test_remem() -> None:
    cases = known_answers("retrieval", "remem_retrieval.json")["metrics"]
    assert len(cases) == 12
    for case in cases:
        if case["name"] == "no_queries":  # a division by zero there
            continue
        # lists without golds are dropped there
        queries = list(zip(case["retrieved_chunks"], case["gold_docs"], strict=False))
        chosen = settings("remem", k=tuple(case["k_list"]))
        for part, (need, metric, shown) in NEEDS.items():
            match = str.__eq__ if part == "recall" else chunk_of
            found = measured(need, lists_of_matches(queries, match), chosen)
            for k in chosen.k:
                ours = found[metric, None, k]
                theirs = [example[f"{shown}@{k}"] for example in case[part]["examples"]]
                assert ours == pytest.approx(theirs, abs=1e-12), (case["name"], part, k)
                pooled = case[part]["pooled"][f"{shown}@{k}"]
                assert round(float(np.mean(ours)), 4) == pooled, (case["name"], part, k)


def test_continuous_eval() -> None:
    given = known_answers("retrieval", "continuous_eval_retrieval.json")
    chosen = settings("continuous-eval")
    compared = 0
    for row in given["rows"]:
        if isinstance(row["retrieved_context"], str):  # told in words, being long
            continue
        ranked = row["ranked"].get("exact_chunk")
        queries = [(row["retrieved_context"], row["ground_truth_context"])]
        found = every_measure(lists_of_matches(queries, str.__eq__), chosen)
        exact = row["precision_recall_f1"]["exact_chunk"]
        for name in ("Precision", "Recall", "F1"):
            theirs = exact[f"context_{name.lower()}"]
            assert found[name, None, None] == pytest.approx([theirs], abs=1e-12), row["name"]
        if ranked is None or "error" in ranked:
            continue
        for name, like in (
            ("MAP", "average_precision"),
            ("MRR", "reciprocal_rank"),
            ("nDCG", "ndcg"),
        ):
            assert found[name, None, None] == pytest.approx([ranked[like]], abs=1e-12), row["name"]
            compared += 1
    assert compared > 30
