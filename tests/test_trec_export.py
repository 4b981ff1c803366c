"""``to_trec()`` on hand-made frames: names, order, digits and omitted values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
from fabricated import frame
from reference_data import real_data
from refusals import refused

import evalengine as ee
from evalengine.exports import makers
from evalengine.exports.trec import LINES
from evalengine.schemas.option_values import make_options
from evalengine.scorecard.card import Scorecard


def card(
    single: list[dict[str, Any]],
    total: list[dict[str, Any]],
    run: dict[str, Any] | None = None,
    **options: Any,
) -> Scorecard:
    found = frame("per_datum", single)
    parameters = pl.Series("parameters", [row.get("parameters") for row in single], pl.String)
    return Scorecard(
        task="retrieval",
        dialect="trec_eval",
        options=make_options(**options),
        frames={
            "per_datum": lambda: found.with_columns(parameters),
            "metrics": lambda: frame("metrics", total),
        },
        labels=pl.DataFrame(schema={"label_value": pl.String}),
        run=run or {},
        exports=makers("retrieval", "trec_eval"),
    )


def row_of(name: str) -> dict[str, Any]:
    """Return our row for a name of trec_eval's output, the reverse of the exporter's mapping."""
    for line in sorted(LINES, key=lambda one: -len(one.name)):
        rest = name.removeprefix(line.name).removeprefix("_")
        row: dict[str, Any] = {"metric": line.metric, "statistic": line.statistic}
        if not name.startswith(line.name):
            continue
        if line.cut and rest.isdigit():
            return {**row, "k": int(rest)}
        if not line.cut and not rest:
            return row
        if line.parameter and rest:
            return {**row, "parameters": json.dumps({line.parameter: float(rest)})}
    raise AssertionError(name)


def test_trec_evals_own_output_is_reproduced() -> None:
    text = real_data("trec_eval", "out.test.aq").read_text()
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("relstring")]
    single, total = [], []
    for line in lines:
        name, query, value = (field.strip() for field in line.split("\t"))
        if name in ("runid", "num_q"):
            continue
        row = {**row_of(name), "value": float(value), "support": 3}
        if query == "all":
            total.append(row)
        else:
            single.append({**row, "datum_id": query, "status": "scored"})
    made = card(single[::-1], total[::-1], {"run_id": "STANDARD"}).to_trec()
    assert made.splitlines() == [line.rstrip("\n") for line in lines]
    assert made.endswith("\n")


def test_our_names_come_last_and_undefined_is_0() -> None:
    single = [
        {"datum_id": "q2", "metric": "MRR", "k": 10, "value": 0.5, "status": "scored"},
        {"datum_id": "q2", "metric": "MAP", "value": None, "status": "scored"},
        {"datum_id": "q10", "metric": "MAP", "value": 2 / 3, "status": "scored"},
    ]
    total = [
        {"metric": "RetrievalRecall", "k": 5, "value": 0.25, "support": 2},
        {"metric": "PrecisionRecallF1", "statistic": "F1", "value": 0.5, "support": 2},
        {"metric": "RBP", "value": 0.125, "parameters": '{"persistence": 0.8}', "support": 2},
        {"metric": "RBP", "value": 0.5, "parameters": '{"persistence": 0.9}', "support": 2},
        {"metric": "ERR", "value": 0.5, "parameters": '{"top": 4}', "support": 2},
        {"metric": "NumRetrieved", "value": 1500.0, "support": 2},
        {"metric": "MAP", "value": 9.0, "slice": "year", "slice_value": "1", "support": 7},
    ]
    assert card(single, total).to_trec().splitlines() == [
        "map                   \tq10\t0.6667",
        "map                   \tq2\t0.0000",
        "MRR@10                \tq2\t0.5000",
        "num_q                 \tall\t2",
        "num_ret               \tall\t1500",
        "rbp_0.80              \tall\t0.1250",
        "rbp                   \tall\t0.5000",
        'ERR{"top":4}          \tall\t0.5000',
        "PrecisionRecallF1.F1  \tall\t0.5000",
        "RetrievalRecall@5     \tall\t0.2500",
    ]


def test_queries_missing_in_the_run_are_printed_if_they_count() -> None:
    found = {"datum_id": "q1", "metric": "MAP", "value": 1.0, "status": "scored"}
    lacking = {"datum_id": "q2", "metric": "MAP", "status": "not_retrieved"}
    assert "q2" not in card([found, {**lacking, "value": None}], []).to_trec()
    complete = card([found, {**lacking, "value": 0.0}], []).to_trec()
    assert "map                   \tq2\t0.0000\n" in complete


def test_integer_ids_are_ordered_by_their_digits() -> None:
    rows = [{"datum_id": str(i), "metric": "MAP", "value": 1.0} for i in (2, 10, 1)]
    lines = card(rows, []).to_trec().splitlines()
    assert [line.split("\t")[1] for line in lines] == ["1", "10", "2", "all"]


def test_other_tasks_have_no_such_format() -> None:
    other = Scorecard(
        task="detection", dialect="coco", options=make_options(), frames={}, run={},
        labels=pl.DataFrame(schema={"label_value": pl.String}),
    )  # fmt: skip
    with refused("export_unfit", ee.ResultError, name="trec"):
        other.to_trec()


def test_the_tag_of_a_run_is_kept(tmp_path: Path) -> None:
    run, qrels = tmp_path / "a.run", tmp_path / "a.qrels"
    run.write_text("q1 Q0 d1 1 2.5 mine\nq2 Q0 d2 1 2.5 mine\n")
    qrels.write_text("q1 0 d1 1\nq2 0 d1 1\n")
    card = ee.score(run, qrels, metrics=["MRR"])
    assert card.run["run_id"] == "mine"
    assert "runid                 \tall\tmine\n" in card.to_trec()


def test_one_relevance_level_is_not_in_the_names() -> None:
    run, qrels = {"q": {"d1": 2.0, "d2": 1.0}}, {"q": {"d1": 1, "d2": 2}}
    metrics = ["MAP", "P@1", "RnDCG", "SetF", "InterpolatedPrecision", "nDCG", "F1@1"]
    rows = {"dialect": "trec_eval", "metrics": metrics}
    plain = ee.score(run, qrels, **rows).to_trec()
    names = [line.split("\t")[0] for line in plain.splitlines()]
    assert "map                   " in names
    one = ee.score(run, qrels, relevance_levels=[2], **rows).to_trec()
    assert [line.split("\t")[0] for line in one.splitlines()] == names
    assert "map                   \tall\t0.5000\n" in one
    several = ee.score(run, qrels, relevance_levels=[1, 2], **rows).to_trec()
    assert 'MAP{"relevance_level":2.0}\tall\t0.5000\n' in several
    assert "ndcg                  \tall\t" in several
