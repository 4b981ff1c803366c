"""Trajectories of tool calls: other packages' answers, a slow reference, arguments, input, runs."""

from __future__ import annotations

import gzip
import json
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from refusals import noted, refused

import evalengine as ee
from evalengine.schemas.option_values import make_options
from evalengine.schemas.tables import ARGUMENT_FIELDS
from evalengine.tasks.agents.calls import Call, parse

MATCHES = ["ExactMatch", "UnorderedMatch", "SubsetMatch", "AnyOrderMatch", "InOrderMatch"]
EVERY = [f"Trajectory{name}" for name in (*MATCHES, "Precision", "Recall", "F1")]
EVERY.append("ToolCorrectness")


def table_of(pairs: list[tuple[list[Any], list[Any]]]) -> pl.DataFrame:
    """Make one row per datum; a call is a name and arguments."""
    sides = {
        name: [
            [json.dumps({"name": tool, "arguments": own}) for tool, own in pair[i]]
            for pair in pairs
        ]
        for i, name in enumerate(("predicted_trajectory", "reference_trajectory"))
    }
    return pl.DataFrame(sides, schema=dict.fromkeys(sides, pl.List(pl.String)))


def values(table: Any, *truths: Any, **options: Any) -> dict[str, list[float | None]]:
    """Map each metric to its values per datum."""
    card = ee.score(table, *truths, **{"metrics": EVERY, "task": "agents", **options})
    rows = card.per_datum
    return {name: rows.filter(metric=name)["value"].to_list() for name in rows["metric"].unique()}


# Answers of agentevals 0.0.9, google-adk 2.13 and deepeval 4.3.1: the distinct ones of 2,000 random
# trajectories.

PEERS = json.loads(gzip.decompress((Path(__file__).parent / "peers.json.gz").read_bytes()))


@pytest.mark.parametrize("mode", ["exact", "ignore"])
def test_agentevals(mode: str) -> None:
    result = values(table_of([row[:2] for row in PEERS]), tool_arguments=mode)
    for i, name in enumerate(EVERY[:4]):
        assert result[name] == [row[2][mode][i] for row in PEERS], name


def test_google_adk() -> None:
    result = values(table_of([row[:2] for row in PEERS]))
    for i, name in enumerate((EVERY[0], EVERY[4], EVERY[3])):
        assert result[name] == [row[2]["adk"][i] for row in PEERS], name


def test_deepeval() -> None:
    table = table_of([row[:2] for row in PEERS])
    result = values(table, dialect="deepeval-4.3")["ToolCorrectness"]
    assert result == pytest.approx([row[3] for row in PEERS], abs=1e-6)
    standard = values(table)["ToolCorrectness"]
    higher = [ours - row[3] for ours, row in zip(standard, PEERS, strict=True)]
    assert min(higher) > -1e-6
    assert max(higher) > 0.1  # equal calls, which deepeval counts once


# A slow reference: all one-to-one assignments.


def slow(ours: list[Any], theirs: list[Any], same: Any) -> list[float | None]:
    n, m = len(ours), len(theirs)
    short, long = (ours, theirs) if n <= m else (theirs, ours)
    most = max(
        sum(same(*(pair if n <= m else pair[::-1])) for pair in zip(short, some, strict=True))
        for some in permutations(long, len(short))
    )

    @cache
    def within(i: int, j: int) -> bool:
        if j == m:
            return True
        return i < n and (within(i + 1, j) or (same(ours[i], theirs[j]) and within(i + 1, j + 1)))

    exact = n == m and all(map(same, ours, theirs))
    out = [exact, most == n == m, most == n, most == m, within(0, 0)]
    return [
        *map(float, out),
        most / n if n else None,
        most / m if m else None,
        2 * most / (n + m) if n + m else None,
    ]


CALLS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=5)


@settings(deadline=None, max_examples=60)
@given(pairs=st.lists(st.tuples(CALLS, CALLS), min_size=1, max_size=4), tolerant=st.booleans())
def test_every_assignment(pairs: list[tuple[list[Any], list[Any]]], tolerant: bool) -> None:
    """With a tolerance, calls match in chains, so a greedy assignment may fail."""
    tables = [tuple([(tool, {"x": x}) for tool, x in side] for side in pair) for pair in pairs]
    rules = {"argument_rules": {"x": "1"}} if tolerant else {}
    result = values(table_of(tables), **rules)
    reach = 1 if tolerant else 0

    def same(one: Any, other: Any) -> bool:
        return one[0] == other[0] and abs(one[1] - other[1]) <= reach

    want = [slow(*pair, same) for pair in pairs]
    for i, name in enumerate(EVERY[:8]):
        assert result[name] == pytest.approx([row[i] for row in want], nan_ok=True), name


def test_matching_of_calls_is_not_greedy() -> None:
    pairs = [([("a", {"x": 1}), ("a", {"x": 2})], [("a", {"x": 1.5}), ("a", {"x": 0})])]
    result = values(table_of(pairs), argument_rules={"x": "1"})
    assert result["TrajectoryAnyOrderMatch"] == [1.0]  # 1 with 0, so that 2 has 1.5


# Definitions in single cases.


def test_vertex_counts_calls_that_appear_anywhere() -> None:
    pair = ([("a", {}), ("a", {}), ("b", {})], [("a", {}), ("c", {})])
    standard, vertex = (values(table_of([pair]), dialect=name) for name in ("standard", "vertex"))
    assert standard["TrajectoryPrecision"] == pytest.approx([1 / 3])
    assert vertex["TrajectoryPrecision"] == pytest.approx([2 / 3])
    assert standard["TrajectoryRecall"] == vertex["TrajectoryRecall"] == [0.5]
    assert vertex["TrajectoryF1"] == pytest.approx([4 / 7])


@pytest.mark.parametrize(
    ("ours", "theirs", "want"),
    [
        ([], [], [1, 1, 1, 1, 1, None, None, None, 1]),
        ([], ["a"], [0, 0, 1, 0, 0, None, 0, 0, 0]),
        (["a"], [], [0, 0, 0, 1, 1, 0, None, 0, 0]),
        (["a", "b"], ["b", "a"], [0, 1, 1, 1, 0, 1, 1, 1, 1]),
        (["b", "c", "a"], ["b", "a"], [0, 0, 0, 1, 1, 2 / 3, 1, 0.8, 1]),
    ],
)
def test_empty_sides_and_order(ours: list[str], theirs: list[str], want: list[Any]) -> None:
    schema = dict.fromkeys(("predicted_trajectory", "reference_trajectory"), pl.List(pl.String))
    table = pl.DataFrame([[ours], [theirs]], schema=schema)
    result = values(table)
    assert [result[name][0] for name in EVERY] == pytest.approx(want, nan_ok=True)


def test_the_use_of_tools_has_a_row_each() -> None:
    table = table_of([([("a", {})], []), ([("b", {}), ("b", {})], [])])
    card = ee.score(table, tools=["b", "none"], intervals=95)
    rows = card.metrics.filter(metric="TrajectorySingleToolUse")
    assert rows["value"].to_list() == [0.5, 0.0]
    assert [json.loads(one)["tool"] for one in rows["parameters"]] == ["b", "none"]
    assert rows["trials"].to_list() == [2, 2]
    with refused("option_missing", option="tools"):
        ee.score(table, metrics=["trajectory_single_tool_use"])
    single = ee.score(table.drop("reference_trajectory"), tools=["b"], task="agents",
                     metrics=["TrajectorySingleToolUse"])  # fmt: skip
    assert single.metrics["value"].to_list() == [0.5]


# Arguments.


@pytest.mark.parametrize(
    ("ours", "theirs", "options", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1.0}, {}, True),
        ({"a": 1}, {"a": True}, {}, False),
        ({"a": "1"}, {"a": 1}, {}, False),
        ({"a": None}, {}, {}, True),
        ({"a": {"x": [1, {"y": 2, "z": 1}]}}, {"a": {"x": [1.0, {"z": 1, "y": 2}]}}, {}, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, {}, False),
        ({"a": {}}, {}, {}, False),
        ({"a": {"x": None}}, {}, {}, False),
        ({"a": {"x": None}}, {"a": {}}, {}, True),
        ({"a": {"x": {"y": None}}}, {"a": {"x": {}}}, {}, True),
        ({"a": {"x": None}}, {"a": {"x": 1}}, {"argument_rules": {"a.x": "ignore"}}, True),
        ({"a": {}}, {"a": {"x": 1}}, {"argument_rules": {"t.a.x": "ignore"}}, True),
        ({"a": {}}, {"a": {"x": 1}}, {"argument_rules": {"a.x": "text"}}, False),
        ({"a": 1, "b": 2}, {"a": 1}, {"tool_arguments": "superset"}, True),
        ({"a": 1, "b": 2}, {"a": 1}, {"tool_arguments": "subset"}, False),
        ({"a": 1}, {"a": 1, "b": 2}, {"tool_arguments": "subset"}, True),
        ({"a": 2}, {"a": 1, "b": 2}, {"tool_arguments": "subset"}, False),
        ({"a": 2}, {"b": 2}, {"tool_arguments": "ignore"}, True),
        ({"a": 1, "b": 2}, {"a": 1}, {"argument_rules": {"b": "ignore"}}, True),
        ({"a": {"x": 1}}, {"a": {"y": 1}}, {"argument_rules": {"a": "ignore"}}, True),
        ({"a": {"x": 1}}, {"a": {"x": 2}}, {"argument_rules": {"a.x": "ignore"}}, True),
        ({"a": 1}, {"a": 2}, {"argument_rules": {"t.a": "ignore", "a": "exact"}}, True),
        ({"a": 1}, {"a": 2}, {"argument_rules": {"other.a": "ignore"}}, False),
        ({"a": " New  York"}, {"a": "new york"}, {"argument_rules": {"a": "text"}}, True),
        ({"a": 1}, {"a": "1"}, {"argument_rules": {"a": "text"}}, False),
        ({"a": 1.01}, {"a": 1}, {"argument_rules": {"a": 0.02}}, True),
        ({"a": 1.03}, {"a": 1}, {"argument_rules": {"a": "0.02"}}, False),
        ({"a": 101}, {"a": 100}, {"argument_rules": {"a": "1%"}}, True),
        ({"a": 20.01}, {"a": 20.0}, {"argument_rules": {"a": "0.01"}}, True),
        ({"a": 19.99}, {"a": 20}, {"argument_rules": {"a": "0.01"}}, True),
        ({"a": 1000000.01}, {"a": 1000000}, {"argument_rules": {"a": "0.01"}}, True),
        ({"a": 1000000.0101}, {"a": 1000000}, {"argument_rules": {"a": "0.01"}}, False),
        ({"a": 1.01}, {"a": 1.0}, {"argument_rules": {"a": "1%"}}, True),
        ({"a": 0.1 + 0.2}, {"a": 0.2}, {"argument_rules": {"a": "0.1"}}, True),
        ({"a": 20.010001}, {"a": 20.0}, {"argument_rules": {"a": "0.01"}}, False),
        ({"a": [10**400]}, {"a": [1.5]}, {"argument_rules": {"a": "1"}}, False),
        ({"a": 99.5}, {"a": 98}, {"argument_rules": {"a": "1%"}}, False),
        ({"a": "1.01"}, {"a": 1}, {"argument_rules": {"a": "1"}}, False),
        ({"a": 1, "b": 1}, {"a": 1.01}, {"argument_rules": {"a": "1"}}, False),
        ({"a": 1, "b": 1}, {"a": 2}, {"argument_rules": {"a": "1", "b": "ignore"}}, True),
        ({"a.b": 1}, {"a": {"b": 1}}, {}, False),
        ({"a.b": 1}, {"a.b": 2}, {"argument_rules": {r"a\.b": "ignore"}}, True),
        ({"": 1}, 1, {}, False),
        ({"a": ["X", ["y "]]}, {"a": ["x", ["Y"]]}, {"argument_rules": {"a": "text"}}, True),
        ({"a": [{"b": "X"}]}, {"a": [{"b": "x"}]}, {"argument_rules": {"a": "text"}}, True),
        ({"a": [{"b": "X"}]}, {"a": [{"B": "x"}]}, {"argument_rules": {"a": "text"}}, False),
        ({"a": [1, [2.05]]}, {"a": [1.1, [2]]}, {"argument_rules": {"a": "0.2"}}, True),
        ({"a": [1, 3]}, {"a": [1.1, 2]}, {"argument_rules": {"a": "0.2"}}, False),
        ({"a": [1, 2]}, {"a": [1]}, {"argument_rules": {"a": "0.2"}}, False),
        ({"a": [True]}, {"a": [1]}, {"argument_rules": {"a": "0.2"}}, False),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1.1}]}, {"argument_rules": {"a": "0.2"}}, True),
        ({"a": [{"b": 1}]}, {"a": [{"c": 1}]}, {"argument_rules": {"a": "0.2"}}, False),
    ],
)  # fmt: skip
def test_rules(ours: Any, theirs: Any, options: dict[str, Any], same: bool) -> None:
    result = values(table_of([([("t", ours)], [("t", theirs)])]), **options)
    assert result["TrajectoryExactMatch"] == result["TrajectoryF1"] == [float(same)]


@pytest.mark.parametrize("rule", ["exakt", "-1", "nan", "1e400"])
def test_unknown_rules_are_refused(rule: str) -> None:
    with refused("option_value", option="argument_rules"):
        ee.score(table_of([([], [])]), argument_rules={"a": rule})


@pytest.mark.parametrize("rules", ["exact", ["a"], [{"tool": "a"}], {("a", "b"): "exact"}])
def test_rules_of_another_form(rules: Any) -> None:
    with refused("option_value", option="argument_rules", match="mapping such as .*'lat': '0.01'"):
        make_options(argument_rules=rules)


# Input.

FORMS = {
    "vertex": {"tool_name": "t", "tool_input": '{"q": "x"}'},
    "deepeval": {"name": "t", "input_parameters": {"q": "x"}},
    "langchain": {"name": "t", "args": {"q": "x"}, "id": "1"},
    "openai": {"id": "1", "function": {"name": "t", "arguments": '{"q": "x"}'}},
}
FORMS["messages"] = {"role": "assistant", "tool_calls": [FORMS["openai"]]}
FORMS["anthropic"] = {"type": "tool_use", "id": "1", "name": "t", "input": {"q": "x"}}
FORMS["blocks"] = {
    "role": "assistant",
    "content": [{"type": "text", "text": "Look."}, FORMS["anthropic"]],
}
FORMS["function_call"] = {"role": "assistant", "function_call": FORMS["openai"]["function"]}
for _name in ("params", "parameters", "kwargs", "tool_args"):
    FORMS[_name] = {"tool": "t", _name: {"q": "x"}}


@pytest.mark.parametrize("name", ["args", "kwargs", "inputParameters"])
@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_names_of_arguments_in_rows_of_calls(name: str, ending: str, tmp_path: Path) -> None:
    paths = []
    for side, value in (("a", "x"), ("b", "y")):
        paths.append(tmp_path / f"{side}.{ending}")
        if ending == "jsonl":
            paths[-1].write_text(json.dumps({"id": 1, "tool": "t", name: {"q": value}}))
        elif ending == "csv":
            text = json.dumps({"q": value})
            pl.DataFrame({"id": 1, "tool": "t", name: text}).write_csv(paths[-1])
        else:
            pl.DataFrame([{"id": 1, "tool": "t", name: {"q": value}}]).write_parquet(paths[-1])
    card = ee.score(*paths)
    assert (card.task, card.value("TrajectoryExactMatch")) == ("agents", 0)


def test_columns_that_may_be_arguments_or_something_else() -> None:
    calls = pl.DataFrame({"id": [1], "tool": ["t"], "tool_input": ['{"q": 1}']})
    text = pl.lit('{"q": 1}')
    for more in ({"args": pl.lit(2)}, {"args": text}, {"parameters": pl.lit(7)}):
        assert ee.score(calls, calls.with_columns(**more)).value("TrajectoryExactMatch") == 1
    bare = calls.drop("tool_input")
    for more in ({"args": pl.lit(2)}, {"parameters": pl.lit(7)}, {"kwargs": pl.lit([1])}):
        table = bare.with_columns(**more)
        assert ee.score(table, bare).value("TrajectoryExactMatch") == 1
    both = bare.with_columns(args=pl.lit("[]"), kwargs=text)
    card = ee.score(both, both)
    findings = [one.facts["columns"] for one in card.findings if one.code == "arguments_unread"]
    assert findings == [["kwargs"]] * 2


def test_arguments_on_one_side() -> None:
    bare = pl.DataFrame({"id": [1, 1], "step": [0, 1], "tool": ["t", "u"]})
    full = bare.with_columns(args=pl.lit('{"q": 1}'))
    code = "arguments_on_one_side"
    noted(ee.score(full, bare), code, side="predictions", count=2, severity="warning")
    noted(ee.score(bare, full), code, side="ground_truths", count=2, severity="warning")
    empty = bare.with_columns(args=pl.Series(["{}", None]))
    only = ee.score(full, bare, metrics=["tool_correctness"])
    assert code not in {one.code for one in only.findings}
    for sides, how in (
        ((full, bare), "ignore"),
        ((full, bare), "superset"),
        ((bare, full), "subset"),
        ((empty, bare), "exact"),
        ((full, full), "exact"),
    ):
        card = ee.score(*sides, tool_arguments=how)
        assert card.value("TrajectoryExactMatch") == 1
        assert code not in {one.code for one in card.findings}


@pytest.mark.parametrize("turned", [False, True])
def test_arguments_in_lists_of_one_side(turned: bool) -> None:
    names, calls = [("t", {}), ("u", {})], [("t", {"q": 1}), ("u", {})]
    sides = [(names, calls), (names, names)]
    table = table_of([pair[::-1] if turned else pair for pair in sides])
    code = "arguments_on_one_side"
    side = "predictions" if turned else "ground_truths"
    noted(ee.score(table), code, side=side, count=1, severity="warning")
    more = "subset" if not turned else "superset"
    for options in (
        {"tool_arguments": "ignore"},
        {"tool_arguments": more},
        {"argument_rules": {"q": "ignore"}},
        {"metrics": ["ToolCorrectness"]},
    ):
        assert code not in {one.code for one in ee.score(table, **options).findings}
    for pairs in ([(names, names)], [(calls, calls)], [([], calls)], [(calls, names), sides[0]]):
        assert code not in {one.code for one in ee.score(table_of(pairs)).findings}


@pytest.mark.parametrize(
    ("value", "warns"), [({"q": "x"}, True), ('{"q": "x"}', True), ("Find x", False)]
)
def test_inputs_of_calls_that_are_not_read(value: Any, warns: bool) -> None:
    def unread(*sides: pl.DataFrame) -> list[Any]:
        findings = ee.score(*sides).findings
        return [one.facts["side"] for one in findings if one.code == "arguments_unread"]

    both, bare = ["predictions", "ground_truths"], ["id", "tool"]
    calls = pl.DataFrame([{"id": 1, "tool": "t", "input": value}])
    assert unread(calls, calls) == both * warns
    read = calls.select(*bare, arguments=pl.lit('{"q": "x"}'))
    assert unread(calls, read) == both[:1] * warns
    assert not unread(*[calls.with_columns(arguments=pl.lit("{}"))] * 2)
    assert not unread(calls, calls.select(bare))
    prompt = pl.concat([calls, calls])
    assert not unread(prompt, prompt)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("names", [("predicted", "actual"), ("tools_called", "expected_tools")])
def test_forms_of_calls(form: str, names: tuple[str, str], tmp_path: Path) -> None:
    one = FORMS[form]
    other = json.loads(json.dumps(one).replace('"x', '"y'))
    pairs = [([one], [one]), ([other, one], [one]), ([], [one])]
    rows = [{"id": i, **dict(zip(names, pair, strict=True))} for i, pair in enumerate(pairs)]
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    card = ee.score(path)
    assert card.task == "agents"
    assert card.value("trajectory_exact_match") == pytest.approx(1 / 3)
    assert card.value("trajectory_recall") == pytest.approx(2 / 3)
    assert not card.warnings


def test_other_tables_are_no_trajectories() -> None:
    labels = pl.DataFrame({"actual": [["a"], ["b"]], "predicted": [["a"], ["a"]]})
    assert ee.score(labels).task == "classification"


def test_rows_of_calls_are_lists_of_them() -> None:
    pairs = [row[:2] for row in PEERS]
    sides = [
        pl.DataFrame(
            [
                (f"d{i}", step, tool, json.dumps(own) if own else None)
                for i, pair in enumerate(pairs)
                for step, (tool, own) in enumerate(pair[side])
            ],
            schema=["datum_id", "step", "tool", "arguments"],
            orient="row",
        ).sample(fraction=1, shuffle=True, seed=side)
        for side in (0, 1)
    ]
    whole = pl.DataFrame({"datum_id": [f"d{i}" for i in range(len(pairs))]})
    result = ee.score(*sides, datums=whole, metrics=EVERY)
    lists = table_of(pairs).with_columns(whole["datum_id"])
    want = ee.score(lists, metrics=EVERY)
    by = ["datum_id", "metric"]
    assert_frame_equal(result.per_datum.sort(by), want.per_datum.sort(by))
    none = [sum(not pair[side] for pair in pairs) for side in (0, 1)]
    counts = {x.facts["side"]: x.count for x in result.findings if x.code == "no_calls"}
    assert counts == {"predictions": none[0], "ground_truths": none[1]}
    structs = [
        side.with_columns(
            arguments=pl.col("arguments").str.json_decode(pl.Struct({"q": pl.String}))
        )
        for side in sides
    ]
    few = [side.with_columns(pl.col("arguments").struct.json_encode()) for side in structs]
    assert_frame_equal(ee.score(*structs).metrics, ee.score(*few).metrics)


def test_arguments_of_several_types_in_pandas() -> None:
    lists = [[{"name": "t", "arguments": {"q": value}}] for value in (1, "1", [1])]
    rows = {"datum_id": ["a", "b", "c"], "predicted_trajectory": lists}
    rows |= {"reference_trajectory": lists[:1] * 3}
    result = ee.score(pd.DataFrame(rows))
    assert result.metrics.equals(ee.score(rows).metrics)
    rows["predicted_trajectory"] = [lists[0], None, lists[2]]
    with refused("null_values", column="predicted_trajectory", count=1):
        ee.score(pd.DataFrame(rows))


def test_elements_that_are_no_calls_are_named() -> None:
    schema = dict.fromkeys(("predicted_trajectory", "reference_trajectory"), pl.List(pl.String))
    for text in ('{"arguments": {}}', '{"name": "a"', "[1]"):
        with refused("not_a_call", column="predicted_trajectory", count=1, match="list 2"):
            ee.score(pl.DataFrame([[["a"], ["a", text]], [["a"], []]], schema=schema))
    with refused("null_in_list"):
        ee.score(pl.DataFrame([[["a", None]], [["a"]]], schema=schema))


def test_arguments_other_than_objects_are_one_value() -> None:
    table = table_of([([("a", "Paris")], [("a", "Paris")]), ([("a", '{"q": ')], [("a", {"q": 1})])])
    card = ee.score(table)
    assert card.value("TrajectoryExactMatch") == 0.5
    assert [one.count for one in card.findings if one.code == "arguments_not_json"] == [2, 1]


def test_arguments_of_another_type_are_a_note() -> None:
    right, text = ("a", {"q": 3, "all": True}), ("a", {"q": "3", "all": "true"})
    table = table_of([([text], [right]), ([right, text], [right]), ([("a", {"q": 4})], [right])])
    (findings,) = [one for one in ee.score(table).findings if one.code == "argument_types"]
    assert findings.count == 2
    assert "'q' of 'a' is \"3\" for 3" in findings.message or '"true" for true' in findings.message
    same = ee.score(table, tool_arguments="ignore")
    assert not [one for one in same.findings if one.code == "argument_types"]


@pytest.mark.parametrize(
    ("value", "text", "noted"),
    [(2.5, "2.50", 1), (3, "3.0", 1), (100, "1e2", 1), (None, "null", 1), (7, "007", 0)],
)
def test_other_spellings_of_a_value_are_a_note(value: Any, text: str, noted: int) -> None:
    table = table_of([([("a", {"q": text, "z": 1})], [("a", {"q": value, "z": 1})])])
    findings = [one for one in ee.score(table).findings if one.code == "argument_types"]
    assert [one.count for one in findings] == [1] * noted
    assert not noted or json.dumps(text) in findings[0].message


def test_python_lists_in_cells_are_named() -> None:
    for text in ("['a', 'b']", "[{'name': 'a'}]", "{'name': 'a'}"):
        table = pl.DataFrame({"predicted_trajectory": [text], "reference_trajectory": [text]})
        with refused("not_a_call", column="predicted_trajectory", match="json.dumps"):
            ee.score(table, task="agents")


def test_types_of_arguments_are_compared_within_a_datum_by_the_rules() -> None:
    def noted_calls(pairs: list[tuple[list[Any], list[Any]]], **options: Any) -> list[int | None]:
        findings = ee.score(table_of(pairs), task="agents", **options).findings
        return [one.count for one in findings if one.code == "argument_types"]

    number, text, other = ("a", {"q": 3}), ("a", {"q": "3"}), ("b", {})
    assert noted_calls([([text], [number])], argument_rules={"a.q": "ignore"}) == []
    assert noted_calls([([text], [other]), ([number], [number])]) == []
    assert noted_calls([([text], [number]), ([text], [text])]) == [1]
    assert noted_calls([([text, text], [number, text])]) == []
    tolerant = [[("a", {"q": q, "x": x})] for q, x in (("3", 1), (3, 1), ("3", 1.5))]
    rules = {"x": "1"}
    assert noted_calls([(tolerant[0], tolerant[1])], argument_rules=rules) == [1]
    assert noted_calls([(tolerant[0], tolerant[1] + tolerant[2])], argument_rules=rules) == []
    assert noted_calls([([text], [number])], metrics=["ToolCorrectness"]) == []


def test_a_step_twice_is_refused() -> None:
    rows = pl.DataFrame({"datum_id": ["x", "y", "y"], "step": [1, 2, 2], "tool": ["a", "b", "b"]})
    with refused("repeated_values", column="step", count=1, match="y"):
        ee.score(rows, rows)
    bare = rows.drop("step")
    assert ee.score(bare, bare[[0, 2, 1]]).value("TrajectoryF1") == 1.0


def test_messages_without_calls_are_skipped() -> None:
    message = json.dumps({"role": "user", "content": "hello"})
    assert parse(message) == ([], set())
    assert parse('["a", {"tool": "b"}]') == ([Call("a", ()), Call("b", ())], set())


def lists_of(*sides: list[Any]) -> pl.DataFrame:
    """Make one datum whose calls are JSON."""
    names = ("predicted_trajectory", "reference_trajectory")
    texts = [[[one if isinstance(one, str) else json.dumps(one) for one in side]] for side in sides]
    return pl.DataFrame(texts, schema=dict.fromkeys(names, pl.List(pl.String)))


@pytest.mark.parametrize("field", ARGUMENT_FIELDS)
def test_every_field_of_arguments_is_read(field: str) -> None:
    ours, theirs = ({"name": "t", field: {"a": i}} for i in (1, 2))
    assert ee.score(lists_of([ours], [theirs])).value("TrajectoryExactMatch") == 0
    assert ee.score(lists_of([ours], [ours])).value("TrajectoryExactMatch") == 1
    structs = pl.DataFrame({"predicted": [[ours]], "actual": [[theirs]]})
    assert ee.score(structs).value("TrajectoryExactMatch") == 0


def test_fields_that_are_not_read_are_noted() -> None:
    one = {"name": "t", "args": {"a": 1}, "input": {"b": 1}, "city": "Rome", "id": "1"}
    card = ee.score(lists_of([one, one], ["t"]))
    findings = [x for x in card.findings if x.code == "call_field_not_read"]
    assert [(x.facts["field"], x.count) for x in findings] == [("city", 2), ("input", 2)]
    empty = {"name": "t", "args": {}, "input": {"a": 1}, "output": None}
    assert parse(json.dumps(empty))[0] == [Call("t", ((("a",), "1"),))]
    assert parse('{"role": "tool", "name": "t", "args": {"a": 1}}') == ([], {"args"})
    assert parse('{"function": {"name": "t"}, "args": {"a": 1}}') == ([Call("t", ())], {"args"})


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "name": "search", "content": "3 hits"},
        {"role": "user", "name": "bob"},
        {"type": "tool", "name": "search", "content": "3 hits", "tool_call_id": "1"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]},
        {"type": "text", "text": "Look."},
        {"type": "ai", "content": "", "tool_calls": []},
    ],
)
def test_messages_with_a_name_are_no_calls(message: dict[str, Any]) -> None:
    assert parse(json.dumps(message)) == ([], set())
    card = ee.score(lists_of([message], ["search"]), metrics=["TrajectoryRecall"])
    assert card.value("TrajectoryRecall") == 0
    noted(card, "no_calls", side="predicted_trajectory", count=1)
    assert card.warnings  # no trajectory has a call


def test_few_trajectories_without_a_call_are_no_warning() -> None:
    card = ee.score(table_of([([], [("a", {})]), ([("a", {})], [("a", {})])]))
    noted(card, "no_calls", side="predicted_trajectory", count=1)
    assert not card.warnings


def test_calls_of_a_message_are_read_once() -> None:
    """LangChain stores Anthropic's blocks next to ``tool_calls``."""
    block = {"type": "tool_use", "id": "1", "name": "t", "input": {"q": 1}}
    call = {"name": "t", "args": {"q": 1}, "id": "1", "type": "tool_call"}
    message = {"type": "ai", "content": [block], "tool_calls": [call]}
    assert parse(json.dumps(message)) == ([Call("t", ((("q",), "1"),))], set())


@pytest.mark.parametrize("name", ["", " "])
def test_empty_names_are_refused(name: str) -> None:
    for one in (name, {"name": name}, {"function": {"name": name}}):
        with refused("not_a_call", column="predicted_trajectory", count=1):
            ee.score(lists_of([one], ["a"]))
    rows = pl.DataFrame({"datum_id": [1, 2, 3], "tool": ["a", name, name]})
    with refused("not_a_call", column="tool", count=2, match="row 2"):
        ee.score(rows, rows)


def test_names_of_options_that_no_call_has_are_noted() -> None:
    table = table_of([([("search", {"city": "x", "a.b": 1})], [("search", {"city": "X"})])])
    rules = {"city": "text", "ciyt": "text", "search.a": "ignore", r"a\.b": "ignore"}
    card = ee.score(table, argument_rules=rules, tools=["search", "Search"])
    findings = [one.facts["value"] for one in card.findings if one.code == "option_value_unmet"]
    assert findings == ["ciyt", "search.a", "Search"]
    assert card.value("TrajectoryExactMatch") == 1
    unread = ee.score(table, argument_rules={"ciyt": "text"}, metrics=["ToolCorrectness"])
    assert not [one for one in unread.findings if one.code == "option_value_unmet"]


def test_two_tables_of_lists_are_to_be_joined() -> None:
    sides = [
        pl.DataFrame({"id": [1], name: [["a"]]}) for name in ("tools_called", "expected_tools")
    ]
    with refused("column_missing", match="join both tables by id"):
        ee.score(*sides, task="agents")
    assert ee.score(sides[0].join(sides[1], on="id")).value("TrajectoryExactMatch") == 1


# Runs.


def test_comparison_gates_slices_and_worst() -> None:
    rng = np.random.default_rng(3)

    def run(share: float) -> pl.DataFrame:
        right = rng.random(200) < share
        pairs = [([("a" if one else "b", {})], [("a", {})]) for one in right]
        slices = pl.Series("lang", ["de", "en"] * 100)
        return table_of(pairs).with_columns(slices, datum_id=pl.int_range(200))

    worse, better = run(0.5), run(0.9)
    result = ee.compare(worse, better, metrics=["TrajectoryExactMatch"], draws=100)
    assert not result.notes
    other = better["reference_trajectory"].to_list()
    for calls in ([*other[:3], [*other[3], "c"]], [*other[:3], []]):
        changed = pl.Series("reference_trajectory", [*calls, *other[4:]])
        with pytest.raises(ee.InputError, match="other ground truths: 1 datum"):
            ee.compare(worse, better.with_columns(changed), draws=100)
    row = result.differences.row(0, named=True)
    assert row["b"] - row["a"] > 0.2
    assert row["p"] < 0.05
    card = ee.score(better, by="lang", cluster="lang", intervals=95)
    assert set(card.metrics["slice_value"].drop_nulls()) == {"de", "en"}
    worst = ee.find_errors(worse, task="agents")
    assert worst is not None


# JSON Lines, JSON and Python's lists of dicts keep the types of arguments.


PREDICTED = "predicted_trajectory"


def one_call(*arguments: Any) -> list[dict[str, Any]]:
    return [{"name": "s", "args": {"q": value}} for value in arguments]


TYPED: list[tuple[list[Any], list[Any], float]] = [
    (["a"], ["a"], 1.0),
    ([5], ["5"], 0.0),
    ([5], [5.0], 1.0),
    ([True, "x"], ["true", "x"], 0.0),
    ([True], [1], 0.0),
    ([[1]], ["[1]"], 0.0),
    ([[1, "x"]], [[1, "x"]], 1.0),
    ([[1, {"e": 2}]], [[1, {"e": 3}]], 0.0),
    ([{"b": 1}], [{"b": 1}], 1.0),
    ([2**53 + 1], [2**53], 0.0),
    (['C:\\new "\x01"'], ['C:\\new "\x01"'], 1.0),
]
TYPED_ROWS = [
    {"id": f"t{i}", "predicted_trajectory": one_call(*ours), "reference_trajectory": one_call(*own)}
    for i, (ours, own, _) in enumerate(TYPED)
]


@pytest.mark.parametrize("form", ["jsonl", "json", "rows", "columns"])
@pytest.mark.parametrize("names", [None, ("outputs", "reference_outputs")])
def test_arguments_keep_their_types(tmp_path: Path, form: str, names: Any) -> None:
    rows: list[dict[str, Any]] = TYPED_ROWS
    if names:
        rows = [dict(zip(("id", *names), row.values(), strict=True)) for row in rows]
    table: Any = rows
    if form == "columns":
        table = {name: [row[name] for row in rows] for name in rows[0]}
    elif form != "rows":
        table = tmp_path / f"t.{form}"
        lines = [json.dumps(row) for row in rows]
        table.write_text("\n".join(lines) if form == "jsonl" else f"[{','.join(lines)}]")
    result = values(table, metrics=["TrajectoryExactMatch"])
    assert result["TrajectoryExactMatch"] == [want for _, _, want in TYPED]


def test_a_row_does_not_change_the_score_of_another(tmp_path: Path) -> None:
    """If types were common to a column, only one side would become text."""
    pairs = [([1], [1], 1.0), (["x"], [2], 0.0)]
    lines = [
        json.dumps(
            {"predicted_trajectory": one_call(*ours), "reference_trajectory": one_call(*own)}
        )
        for ours, own, _ in pairs
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines))
    assert values(path)["TrajectoryExactMatch"] == [want for _, _, want in pairs]


@pytest.mark.parametrize("form", ["jsonl", "rows"])
def test_arguments_of_two_tables_keep_their_types(tmp_path: Path, form: str) -> None:
    sides: list[Any] = []
    for name, last in (("p", "1"), ("g", 1)):
        rows = [
            {"datum_id": "a", "tool": "s", "arguments": {"q": 1, "deep": [1, "x"]}},
            {"datum_id": "a", "tool": "t", "arguments": {"w": "1"}},
            {"datum_id": "b", "tool": "s", "arguments": {"q": last}},
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        sides.append(path if form == "jsonl" else rows)
    assert values(*sides)["TrajectoryExactMatch"] == [1.0, 0.0]


@pytest.mark.parametrize("form", ["jsonl", "rows"])
@pytest.mark.parametrize("name", ["", "messages", "outputs"])
def test_messages_whose_content_is_text_or_blocks(tmp_path: Path, form: str, name: str) -> None:
    block = {"type": "tool_use", "id": "a", "name": "search", "input": {"q": "a"}}
    talk = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [block]},
        {"role": "assistant", "content": "done"},
    ]
    expected = [{"name": "search", "args": {"q": "a"}}]
    rows = [
        {"id": 1, "predicted_trajectory": talk, "reference_trajectory": expected},
        {"id": 2, "predicted_trajectory": talk[:1], "reference_trajectory": ["search"]},
    ]
    path = tmp_path / "t.jsonl"
    if name:
        rows = [{name if key == PREDICTED else key: row[key] for key in row} for row in rows]
    path.write_text("\n".join(map(json.dumps, rows)))
    columns = {"columns": {name: PREDICTED}} if name == "messages" else {}
    result = values(path if form == "jsonl" else rows, **columns)
    assert result["TrajectoryExactMatch"] == [1.0, 0.0]
    assert result["ToolCorrectness"] == [1.0, 0.0]


def test_structs_keep_the_types_of_their_table() -> None:
    rows = pl.DataFrame({name: [one_call("5")] for name in list(TYPED_ROWS[0])[1:]})
    assert values(rows)["TrajectoryExactMatch"] == [1.0]


def test_other_columns_without_a_common_type_are_named(tmp_path: Path) -> None:
    rows = [{**TYPED_ROWS[0], "note": note} for note in ({"a": [1]}, {"a": {"b": 1}})]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with refused("types_mixed", column="note", row=2):
        ee.score(path, task="agents")


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_other_columns_of_python_are_named(form: str) -> None:
    """A value of several types fails, and so do two values without a common one."""
    for notes, row in (([[1], ["u"]], 1), ([["a"], [1, "b"]], 1), ([[1, "b"], [1]], 0)):
        rows = [{**TYPED_ROWS[0], "id": i, "note": note} for i, note in enumerate(notes)]
        columns = {name: [one[name] for one in rows] for name in rows[0]}
        with refused("types_mixed", column="note", row=row):
            ee.score(rows if form == "rows" else columns, task="agents")


def test_texts_of_several_words_are_one_name_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    expected = '"[""search""]"'
    path.write_text(
        "id,predicted_trajectory,reference_trajectory\n"
        f'1,"search, book",{expected}\n2,search,{expected}\n3,not json,{expected}\n'
    )
    card = ee.score(path, task="agents")
    noted(card, "text_is_one_name", count=2, column="predicted_trajectory")
    lists = {"predicted_trajectory": [["web search"], ["a", "b"]]}
    lists["reference_trajectory"] = lists["predicted_trajectory"]
    codes = {one.code for one in ee.score(lists, task="agents").findings}
    assert "text_is_one_name" not in codes
