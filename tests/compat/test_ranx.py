"""compat.ranx against ranx 0.3.21.

``ranx_calls.json.gz`` contains 12 random sets of queries and ranx's results for them: values by
query, the report's table and its dict. The sets have graded judgments, ties in lists of up to 15
documents, distinct scores in longer ones, and queries on only one side. ranx's errors are not
copied: RBP of graded relevance, bpref without a relevant or without another judged document, and
negative relevance.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from reference_data import known_answers
from refusals import refused

from evalengine.compat.ranx import Qrels, Run, compare, evaluate, fuse

CASES = known_answers("retrieval", "ranx_calls.json")
FUSION = known_answers("retrieval", "ranx_significance_fusion.json")
QRELS = {"q2": {"c": 2, "x": 1}, "q1": {"a": 1, "b": 0}}
RUN = {"q1": {"a": 0.5, "b": 0.7}, "q2": {"c": 1.0, "d": 0.3}}


def followed(metric: str, judged: dict[str, dict[str, int]]) -> bool:
    """Check that ranx's number agrees with its documentation."""
    if metric.startswith("rbp"):
        return max(max(own.values()) for own in judged.values()) <= 1
    if metric.startswith("bpref"):
        level = int(metric.partition("-l")[2] or 1)
        sides = [{relevance >= level for relevance in own.values()} for own in judged.values()]
        return min(map(len, sides)) == 2 and min(min(own.values()) for own in judged.values()) >= 0
    return True


@pytest.mark.parametrize("case", CASES[:8])
def test_random_sets(case: dict[str, Any]) -> None:
    judged, metrics = case["qrels"], case["metrics"]
    right = [metric for metric in metrics if followed(metric, judged)]
    runs = [Run(run, name=f"model_{i}") for i, run in enumerate(case["runs"])]
    for run, wanted in zip(runs, case["values"], strict=True):
        result = evaluate(Qrels(judged), run, metrics, return_mean=False, make_comparable=True)
        for metric in right:
            assert result[metric].tolist() == pytest.approx(wanted[metric], rel=0, abs=1e-12), (
                metric
            )
    if "table" not in case:
        return
    display = {"rounding_digits": case["digits"], "show_percentages": case["percent"]}
    report = compare(judged, runs, metrics, max_p=case["max_p"], make_comparable=True, **display)
    if right == metrics:
        assert str(report) == case["table"]
    mine, theirs = report.to_dict(), case["dict"]
    assert list(mine) == list(theirs)
    for model in theirs["model_names"]:
        for other, by_metric in theirs[model]["comparisons"].items():
            votes = (one[model]["win_tie_loss"][other] for one in (mine, theirs))
            assert len({str({key: vote[key] for key in right}) for vote in votes}) == 1
            for metric in right:
                p, expected = mine[model]["comparisons"][other][metric], by_metric[metric]
                if math.isnan(expected):  # with one query, or if all values are equal
                    assert p == 1.0 or math.isnan(p)
                else:
                    assert p == pytest.approx(expected, abs=1e-9)


def test_fisher() -> None:
    runs = [Run(run, name=name) for name, run in FUSION["runs"].items()]
    content = compare(
        FUSION["qrels"], runs, ["ndcg@10", "map", "mrr"], stat_test="fisher"
    ).to_dict()
    theirs = FUSION["compare"]["fisher"]
    for a, b in (("A", "B"), ("A", "C"), ("B", "C")):
        for metric, p in theirs[a]["comparisons"][b].items():
            assert content[b]["comparisons"][a][metric] == pytest.approx(p, abs=0.06)


@pytest.mark.parametrize("key", ["sum|min-max", "wsum|zmuv", "rrf|min-max", "rbc|None", "mnz|rank"])
def test_fuse(key: str) -> None:
    method, norm = key.split("|")
    params = {"wsum": {"weights": [0.5, 0.3, 0.2]}, "rbc": {"phi": 0.8}}.get(method)
    runs = [Run(FUSION["runs"][name]) for name in "ABC"]
    result = fuse(runs, norm=None if norm == "None" else norm, method=method, params=params)
    for query, wanted in FUSION["fuse"][key].items():
        assert result[query] == pytest.approx(wanted, abs=1e-9)
    assert result.name == method


@pytest.mark.parametrize(
    ("method", "norm", "wanted"),
    [
        ("isr", "min-max", {"a": 2 * (1 + 1 / 4), "b": 2 * (1 / 4 + 1), "c": 1 / 9}),
        ("sum", "rank", {"a": 1 + 1 / 2, "b": 2 / 3 + 1, "c": 1 / 3}),
        ("bordafuse", None, {"a": 3 + 2, "b": 2 + 3, "c": 1 + 1}),
    ],
)
def test_equal_scores_are_fused_as_given(method: str, norm: str, wanted: dict[str, float]) -> None:
    """ranx ranks equal scores of short lists in the order of the input."""
    runs = [Run({"q": {"a": 1.0, "b": 1.0, "c": 1.0}}), Run({"q": {"b": 2.0, "a": 2.0}})]
    assert fuse(runs, norm=norm, method=method)["q"] == pytest.approx(wanted)


def test_values_returned_and_stored_by_evaluate() -> None:
    run = Run(RUN, name="bm25")
    assert evaluate(QRELS, RUN, "mrr") == 0.75
    assert evaluate(QRELS, run, ["mrr", "hits@1"], return_std=True) == {
        "mrr": {"mean": 0.75, "std": 0.25},
        "hits@1": {"mean": 0.5, "std": 0.5},
    }
    assert run.mean_scores == {"mrr": 0.75, "hits@1": 0.5}
    assert run.std_scores == {"mrr": 0.25, "hits@1": 0.5}
    assert run.scores["mrr"] == {"q1": 0.5, "q2": 1.0}
    evaluate(QRELS, run, "map", save_results_in_run=False)
    assert "map" not in run.scores


def test_known_errors_of_ranx() -> None:
    assert evaluate(QRELS, RUN, "rbp.5") == (0.25 + 0.5) / 2  # not 1.0 for relevance 2
    assert evaluate({"q1": {"a": 1}}, {"q1": {"a": 1.0}}, "bpref") == 1.0  # not NaN
    judged = {"q1": {"a": 1, "b": 0, "c": -1}}
    assert evaluate(judged, {"q1": {"c": 3.0, "a": 2.0, "b": 1.0}}, "bpref") == 1.0
    thirds = {"q1": {"a": 0.5, "b": 1.5}}
    assert evaluate(thirds, {"q1": {"a": 3.0, "b": 2.0}}, "dcg@1") == 0.5  # not 0


def test_changed_by_hand() -> None:
    qrels, run = Qrels(), Run(name="mine")
    qrels.add_multi(["q2", "q1"], [["c", "x"], ["a"]], [[2, 1], [1]])
    qrels.add_score("q1", "b", 0)
    run.add("q1", ["a", "b"], [0.5, 0.7])
    run.add_score("q2", "d", 0.3)
    run.add_score("q2", "c", 1.0)
    assert qrels.to_dict() == Qrels.from_dict(QRELS).to_dict() == QRELS
    assert list(run.to_dict()["q1"]) == ["b", "a"]
    assert (len(run), run.size, list(run.keys())) == (2, 2, ["q1", "q2"])
    qrels.set_relevance_level(2)
    assert qrels["q2"] == {"c": 1, "x": 0}
    run = Run({"q3": {"a": 1.0}, "q1": {"a": 1.0}}).make_comparable(Qrels(QRELS))
    assert run.to_dict() == {"q1": {"a": 1.0}, "q2": {}}


@pytest.mark.parametrize("name", ["x.json", "x.trec", "x.txt", "x.parquet"])
def test_files(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    for one in (Qrels(QRELS), Run(RUN, name="bm25")):
        one.save(path)
        read = type(one).from_parquet if name.endswith("parquet") else type(one).from_file
        result = read(path)
        assert result.to_dict() == one.to_dict()
        if isinstance(one, Run) and name.endswith(("trec", "txt")):
            assert result.name == "bm25"


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = Run(RUN).to_dataframe()
    assert frame.equals(
        pandas.DataFrame(
            {"q_id": ["q1", "q1", "q2", "q2"], "doc_id": [*"bacd"], "score": [0.7, 0.5, 1.0, 0.3]}
        )
    )
    assert Run.from_df(frame, name="x").to_dict() == Run(RUN).to_dict()
    report = compare(QRELS, [Run(RUN, "a"), Run(RUN, "b")], ["mrr"])
    assert report.to_dataframe().to_dict("list") == {"model_names": ["a", "b"], "mrr": [0.75] * 2}
    assert r"a & a & \textbf{0.750} \\" in report.to_latex()


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda: evaluate(QRELS, RUN, "ndgc"), {"code": "unknown_name", "value": "ndgc"}),
        (
            lambda: evaluate(QRELS, RUN, "ndcg@ten"),
            {"code": "option_value", "option": "metric", "value": "ndcg@ten"},
        ),
        (
            lambda: evaluate(QRELS, RUN, "rbp"),
            {"code": "option_value", "option": "metric", "value": "rbp"},
        ),
        (lambda: evaluate(QRELS, {"q1": {"a": 1.0}}, "mrr"), {"code": "queries_differ"}),
        (
            lambda: evaluate(QRELS, {"q1": {"a": math.nan}, "q2": {}}, "mrr"),
            {
                "code": "not_finite",
                "side": "predictions",
                "column": "score",
                "count": 1,
                "rows": [0],
            },
        ),
        (lambda: evaluate({}, RUN, "mrr"), {"code": "empty"}),
        (lambda: evaluate([[1]], RUN, "mrr"), {"code": "wrong_type", "side": "qrels"}),
        (
            lambda: compare(QRELS, [Run(RUN), Run(RUN)], "mrr", stat_test="tukey"),
            {"code": "unknown_name", "value": "tukey"},
        ),
        (
            lambda: compare(QRELS, [Run(RUN, "a"), Run(RUN, "a")], "mrr"),
            {"code": "repeated_names", "value": "a"},
        ),
        (
            lambda: fuse([Run(RUN), Run(RUN)], method="bayesfuse"),
            {"code": "unknown_name", "value": "bayesfuse"},
        ),
        (
            lambda: fuse([Run(RUN), Run(RUN)], norm="min-max-inverted", method="rrf"),
            {"code": "unknown_name", "value": "min-max-inverted"},
        ),
        (lambda: fuse([Run(RUN), Run(RUN)]), {"code": "option_missing", "option": "weights"}),
        (
            lambda: fuse([Run(RUN), Run(RUN)], method="rrf", params={"n": 1}),
            {"code": "unknown_name", "value": "n"},
        ),
        (lambda: Run.from_file("run.lz4"), {"code": "unknown_name", "value": "lz4"}),
        (
            lambda: Run.from_df({"q_id": ["a"], "doc_id": ["b"]}),
            {"code": "column_missing", "column": "score"},
        ),
        (
            lambda: Run.from_parquet("x", pd_kwargs={"a": 1}),
            {"code": "option_unfit", "option": "pd_kwargs"},
        ),
    ],
)
def test_refused(call: Any, refusal: dict[str, Any]) -> None:
    with refused(**refusal):
        call()


def test_names_of_runs_are_escaped_in_latex() -> None:
    runs = [Run({"q": {"1": 1.0}}, name=name) for name in ("a", "b_&%#$")]
    report = compare(Qrels({"q": {"1": 1}}), runs, ["ndcg@10"]).to_latex()
    assert r"b & b\_\&\%\#\$ & " in report
