"""Averages over ties, compared with the mean over all orders of the documents."""

from __future__ import annotations

import math
from itertools import permutations, product

from hypothesis import assume, given
from hypothesis import settings as limits
from hypothesis import strategies as st
from oracles.retrieval import every_value
from retrieval.listing import OF_CONTEXTS, lists_of, measured, settings, without_options

from evalengine.metrics import all_metrics, measures

DOCUMENTS = [f"d{i}" for i in range(7)]
RUN = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 2).map(float), max_size=7)
QRELS = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([-1.0, 0.0, 1.0, 1.0, 3.0]))
AVERAGED = tuple(
    need
    for need, measure in measures("retrieval").items()
    if measure.averaged and need not in OF_CONTEXTS
)


def orders(scores: dict[str, float]) -> list[list[str]]:
    """Return all rankings that the scores allow."""
    levels = sorted(set(scores.values()), reverse=True)
    groups = [[doc for doc in scores if scores[doc] == level] for level in levels]
    return [
        [doc for group in choice for doc in group]
        for choice in product(*(permutations(group) for group in groups))
    ]


@limits(max_examples=20)
@given(
    run=RUN,
    judged=QRELS,
    k=st.sets(st.integers(0, 8), min_size=1, max_size=3),
    dialect=st.sampled_from(["standard", "trec_eval", "continuous-eval", "remem"]),
    levels=st.sampled_from([None, (1.0, 3.0)]),
    discount=st.sampled_from(["log2(rank)", "log2(rank+1)"]),
)
def test_mean_over_orders(
    run: dict, judged: dict, k: set, dialect: str, levels: tuple | None, discount: str
) -> None:
    rankings = orders(run)
    assume(len(rankings) <= 150)
    chosen = settings(dialect, k=tuple(k), relevance_levels=levels, discount=discount)
    lists = lists_of({"q": run}, {"q": judged}, averaged=True)
    highest = max([0.0, *judged.values()])
    golds = list(judged.values())
    every = [
        every_value([judged.get(d) for d in docs], golds, chosen, highest) for docs in rankings
    ]
    for need in AVERAGED:
        if need == "precision_recall_f1":
            continue
        for key, values in measured(need, lists, chosen).items():
            mean = math.fsum(one[without_options(key)] for one in every) / len(every)
            assert math.isclose(values[0], mean, rel_tol=1e-9, abs_tol=1e-9), key


def test_long_ties_are_accurate() -> None:
    """10,000 equal scores with 5,000 relevant: every expectation has a simple value."""
    run = {f"d{i}": 0.0 for i in range(10_000)}
    judged = {f"d{i}": float(i % 2) for i in range(10_000)}
    lists = lists_of({"q": run}, {"q": {d: r for d, r in judged.items() if r}}, averaged=True)
    chosen = settings("continuous-eval", k=(1, 100))
    assert measured("precision", lists, chosen)["P", None, 100] == [0.5]
    assert measured("success", lists, chosen)["Success", None, 1] == [0.5]
    assert measured("success", lists, chosen)["Success", None, 100] == [1.0]
    # at k = 1 average precision is 1 with probability 1/2
    assert math.isclose(measured("average_precision", lists, chosen)["MAP", None, 1][0], 0.5)
    # half of the documents before a relevant one are expected to be relevant
    expected = sum((1 + r * 4999 / 9999) / (r + 1) for r in range(10_000)) / 10_000
    value = measured("average_precision", lists, settings(k=(1,)))["MAP", None, None][0]
    assert math.isclose(value, expected, rel_tol=1e-12)
    # the first relevant rank is j with probability close to 2 ** -j
    value = measured("reciprocal_rank", lists, chosen)["MRR", None, None][0]
    assert math.isclose(value, math.log(2), rel_tol=1e-4)


def test_averages_without_ties_equal_plain_values() -> None:
    run = {"q": {f"d{i}": -float(i) for i in range(12)}}
    qrels = {"q": {f"d{i}": float(i % 3) for i in range(0, 15, 2)}}
    chosen = settings(k=(3, 10))
    plain, averaged = lists_of(run, qrels), lists_of(run, qrels, averaged=True)
    for need in AVERAGED:
        assert measured(need, averaged, chosen) == measured(need, plain, chosen), need


def test_metrics_without_averages_over_ties() -> None:
    names = {
        metric.name
        for metric in all_metrics("retrieval").values()
        if not all(measures("retrieval")[need].averaged for need in metric.needs)
    }
    assert names == {
        "bpref", "GMBpref", "infAP", "InterpolatedPrecision", "ElevenPointPrecision", "binG", "G",
        "nDCGRel", "RnDCG", "ERR", "INST", "BPM", "NERR8", "NERR9", "NERR10", "NERR11", "Accuracy",
        "Compat", "NonLLMContextPrecision", "TokenCount",
    }  # fmt: skip
