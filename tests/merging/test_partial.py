"""Partial tallies of a plan: merging, bytes, refusals, custom metrics."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from merging.parts import Case, cut
from merging.test_parts import CASES, every_case
from own_metrics.metric_functions import agreement, error_rate, rows_per_datum
from polars.testing import assert_frame_equal
from refusals import noted, refused

import evalengine as ee


def tally(plan: ee.TallyPlan, part: Case) -> ee.Tally:
    given = {name: table for name, table in part.tables.items() if name == "datums"}
    return plan.tally(*part.sides, **given)


def one_after_the_other(parts: list[Case]) -> Case:
    first = parts[0]
    tables = dict(first.tables)
    if "datums" in tables:
        tables["datums"] = pl.concat(part.tables["datums"] for part in parts)
    sides = tuple(pl.concat(some) for some in zip(*(p.sides for p in parts), strict=True))
    return Case(sides, first.options, first.datum, tables)


def planned(case: Case, task: str, rows: int) -> ee.TallyPlan:
    few: dict[str, Any] = {
        name: table.head(rows) if name == "datums" else table for name, table in case.tables.items()
    }
    return ee.plan(*(side.head(rows) for side in case.sides), task=task, **few, **case.options)


@every_case
@pytest.mark.parametrize("seed", [3, 8])
def test_merged_partial_tallies_equal_one_run(name: str, seed: int) -> None:
    task, draw = CASES[name]
    case = draw(seed)
    parts = cut(case, task, seed, 4)
    plan = pickle.loads(pickle.dumps(planned(case, task, 50)))
    tallies = [tally(plan, part).to_bytes() for part in parts]
    card = ee.merge([ee.merge(tallies[:2]), *tallies[2:]]).summarise()
    whole = one_after_the_other(parts)
    expected = ee.score(*whole.sides, task=task, **whole.options, **whole.tables)
    assert card.frames == expected.frames
    for frame in expected.frames:
        assert_frame_equal(card.frame(frame), expected.frame(frame), check_exact=True)
    assert sorted(card.notes) == sorted(expected.notes)
    assert card.labels.equals(expected.labels)


@every_case
def test_custom_metrics_of_parts_equal_one_run(name: str) -> None:
    task, draw = CASES[name]
    case = draw(5)
    options = {k: v for k, v in case.options.items() if k not in ("metrics", "limits")}
    case = Case(case.sides, {**options, "metrics": [rows_per_datum]}, case.datum, case.tables)
    parts = cut(case, task, 5, 4)
    plan = pickle.loads(pickle.dumps(planned(case, task, 50)))
    card = ee.merge([tally(plan, part).to_bytes() for part in parts]).summarise()
    whole = one_after_the_other(parts)
    expected = ee.score(*whole.sides, task=task, **whole.options, **whole.tables)
    assert {*expected.frames} - {*card.frames} <= {
        "examples"
    }  # kept only by runs in memory, for the report
    for frame in card.frames:
        assert_frame_equal(card.frame(frame), expected.frame(frame), check_exact=True)
    assert {*expected.options.metrics} <= {*card.options.metrics}


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("metrics", [["Accuracy", agreement, error_rate], [agreement]])
def test_custom_metrics_have_slices_and_intervals(metrics: list[Any], numbered: bool) -> None:
    """Ratios and means, with and without built-in metrics; rows with and without ids."""
    rng = np.random.default_rng(7)
    rows = ROWS.with_columns(datum_id=rng.permutation(60), weight=rng.random(60))
    rows = rows.drop("datum_id") if numbered else rows
    options: dict[str, Any] = {"by": "site"} | ({} if numbered else {"intervals": 0.9, "draws": 50})
    plan = ee.plan(rows.schema, task="classification", metrics=metrics, **options)
    tallies = [plan.tally(rows[:7]), plan.tally(rows[7:40]), plan.tally(rows[40:])]
    card = ee.merge([ee.merge(tallies[:2]).to_bytes(), tallies[2]]).summarise()
    whole = ee.score(rows, task="classification", metrics=metrics, **options)
    assert card.frames == whole.frames
    for frame in whole.frames:
        assert_frame_equal(card.frame(frame), whole.frame(frame), check_exact=True)
    assert card.run["own_metrics"] == whole.run["own_metrics"]
    assert sorted(card.notes) == sorted(whole.notes)


def test_a_lambda_cannot_be_sent_to_another_process() -> None:
    metric = ee.metric(better="higher")(lambda rows: rows.select("datum_id", value=1))
    plan = ee.plan(CLASSES, metrics=[metric])
    part = plan.tally(ROWS.drop("site"))
    assert part.summarise().value("<lambda>") == 1
    for way in (lambda: pickle.dumps(plan), part.to_bytes, lambda: pickle.dumps(part)):
        with refused("option_unfit", ee.OptionError, value="<lambda>"):
            way()


def test_a_changed_file_of_a_custom_metric_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "own_of_parts.py"
    code = (
        "import evalengine as ee\n@ee.metric\n"
        "def one(rows):\n    return rows.select('datum_id', value=1)\n"
    )
    module.write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    rows = ROWS.drop("site")
    plan = ee.plan(CLASSES, metrics=["own_of_parts:one"])
    first = plan.tally(rows[:30])
    module.write_text(code + "\n")
    with refused("other_plan", ee.ResultError, value="own_of_parts:one"):
        plan.tally(rows[30:])
    second = ee.plan(CLASSES, metrics=["own_of_parts:one"]).tally(rows[30:])
    with refused("other_plan", ee.ResultError, match="own metrics"):
        ee.merge([first, second])


CLASSES = {"datum_id": pl.Int64, "actual": pl.String, "predicted": pl.String}
ROWS = pl.DataFrame(
    {
        "datum_id": range(60),
        "actual": ["a", "b", "c"] * 20,
        "predicted": ["a", "b", "a", "c"] * 15,
        "site": ["x", "y"] * 30,
    }
)


def test_intervals_and_slices_equal_one_run() -> None:
    options: dict[str, Any] = {"by": "site", "intervals": 0.9, "draws": 100, "cluster": "site"}
    plan = ee.plan(ROWS.schema, metrics=["Accuracy", "F1"], **options)
    card = ee.merge([plan.tally(ROWS[40:]), plan.tally(ROWS[:7]), plan.tally(ROWS[7:40])])
    whole = ee.score(ROWS, metrics=["Accuracy", "F1"], **options)
    assert_frame_equal(card.summarise().metrics, whole.metrics, check_exact=True)


def test_label_maps_and_conditions_apply_in_every_part() -> None:
    options: dict[str, Any] = {"label_map": {"c": "b"}, "where": "site = 'x'"}
    plan = ee.plan(ROWS.head(3), metrics=["Accuracy"], **options)
    card = ee.merge(plan.tally(ROWS[at : at + 20]).to_bytes() for at in (0, 20, 40)).summarise()
    whole = ee.score(ROWS, metrics=["Accuracy"], **options)
    assert card.value("Accuracy") == whole.value("Accuracy")
    assert sorted(card.notes) == sorted(whole.notes)


def test_labels_of_datums_that_a_condition_removes_are_not_noted() -> None:
    ids = pl.int_range(60, eager=True)
    datums = pl.DataFrame({"datum_id": ids, "site": ids % 3})
    label = pl.when(pl.col("datum_id") % 3 > 0)
    true = datums.select("datum_id", label_value=label.then(pl.lit("a")).otherwise(pl.lit("b")))
    found = true.with_columns(label_value=label.then(pl.lit("c")).otherwise(pl.lit("b")), score=0.5)
    options: dict[str, Any] = {"where": "site = 0", "metrics": ["F1"], "task": "classification"}
    tables = found, true, datums
    plan = ee.plan(*tables[:2], datums=datums, **options)
    parts = []
    for at in (0, 30):
        predictions, truths, listed = (one[at : at + 30] for one in tables)
        parts.append(plan.tally(predictions, truths, datums=listed))
    whole = ee.score(found, true, datums=datums, **options)
    assert sorted(ee.merge(parts).summarise().notes) == sorted(whole.notes)


def test_one_sided_labels_are_noted_only_after_merging() -> None:
    plan = ee.plan(CLASSES, metrics=["Accuracy"])
    columns = ROWS.drop("site")
    one = plan.tally(columns.head(1))
    assert [f.code for f in one.summarise().findings] == []
    assert [f.code for f in ee.merge([one, plan.tally(columns[1:])]).summarise().findings] == []
    lone = columns.with_columns(predicted=pl.lit("a"))
    parts = [plan.tally(lone[:30]), plan.tally(lone[30:])]
    whole = ee.score(lone, metrics=["Accuracy"])
    assert ee.merge(parts).summarise().notes == whole.notes != ()


def test_one_sided_parts_count_and_sides_without_common_ids_are_refused() -> None:
    boxes = pl.DataFrame(
        {"datum_id": [1, 2], "label_value": "a", "xmin": 0.0, "ymin": 0.0, "xmax": 9.0, "ymax": 9.0}
    )
    scored = boxes.with_columns(score=0.5)
    plan = ee.plan(scored.schema, boxes.schema, metrics=["AP"])
    first = plan.tally(scored[:1], boxes.clear())
    second = plan.tally(pl.DataFrame(), boxes[1:])
    with pytest.raises(ee.InputError) as error:
        ee.merge([first, second]).summarise()
    assert error.value.code == "no_common_id"
    third = plan.tally(
        scored[1:].with_columns(datum_id=pl.lit(3)), boxes[1:].with_columns(datum_id=pl.lit(3))
    )
    card = ee.merge([first, second, third]).summarise()
    both = pl.concat([scored[:1], scored[1:].with_columns(datum_id=pl.lit(3, pl.Int64))])
    truths = pl.concat([boxes[1:], boxes[1:].with_columns(datum_id=pl.lit(3, pl.Int64))])
    assert card.metrics.equals(ee.score(both, truths, metrics=["AP"]).metrics)


@pytest.mark.parametrize(
    ("change", "column"),
    [
        (pl.DataFrame.drop, "predicted"),
        (lambda rows, name: rows.with_columns(pl.lit(1).alias(name)), "predicted"),
        (lambda rows, name: rows.with_columns(pl.lit(1).alias(name)), "extra"),
        (lambda rows, name: rows.cast({name: pl.Float64}), "datum_id"),
    ],
)
def test_rows_that_contradict_the_plan_are_refused(change: Any, column: str) -> None:
    plan = ee.plan(CLASSES, metrics=["Accuracy"])
    with pytest.raises(ee.InputError) as error:
        plan.tally(change(ROWS.drop("site"), column))
    assert (error.value.code, error.value.facts["column"]) == ("plan_contradicted", column)


def test_labels_of_csv_files_are_strings_if_some_are(tmp_path: Path) -> None:
    nights = {"p": ("1,2,none", "1,1,2"), "g": ("1,2,1", "1,1,2")}
    for side, labels in nights.items():
        for night, (ids, texts) in enumerate(zip(("abc", "def"), labels, strict=True)):
            rows = {"datum_id": [*ids], "label_value": texts.split(",")}
            pl.DataFrame(rows).write_csv(tmp_path / f"{side}{night}.csv")
    first, second = ([str(tmp_path / f"{side}{night}.csv") for side in "pg"] for night in (0, 1))
    both = [list(files) for files in zip(first, second, strict=True)]
    names = ["Accuracy", "Recall"]
    whole = ee.score(*both, metrics=names)
    for sample in (first, both):
        plan = ee.plan(*sample, metrics=names)
        card = ee.merge([plan.tally(*first), plan.tally(*second)]).summarise()
        assert card.metrics.equals(whole.metrics)
        noted(card, "ids_from_text")
    with refused("plan_contradicted", column="label_value", match=r"make the plan with pl\.String"):
        ee.plan(*second, metrics=names).tally(*first)
    frames = [pl.read_csv(file) for file in first]
    with refused("types_differ"):
        ee.plan(*frames, metrics=names)


def test_a_tally_without_ids_counts_once(tmp_path: Path) -> None:
    rows = pl.DataFrame({"actual": ["a", "b"], "predicted": ["a", "a"]})
    plan = ee.plan(rows, metrics=["Accuracy"])
    one, other = plan.tally(rows), plan.tally(rows)
    file = tmp_path / "one.tally"
    file.write_bytes(one.to_bytes())
    assert len(ee.merge([one, other, file])) == 6
    data = one.to_bytes()
    for twice in ([one, other, one], [file, one, str(file)], [data, other.to_bytes(), data]):
        with refused("given_twice", value=2):
            ee.merge(twice)


@pytest.mark.parametrize(("tallies", "position"), [([None], 0), (None, 0), ([0, {}], 1)])
def test_merged_objects_are_tallies(tallies: Any, position: int) -> None:
    if position:
        tallies[0] = ee.tally(ROWS, metrics=["Accuracy"])
    with refused("not_a_tally", value=position):
        ee.merge(tallies)


def test_forgotten_ground_truths_are_named() -> None:
    scored = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "score": [0.5]})
    truths = scored.drop("score")
    plan = ee.plan(scored, truths, metrics=["ROCAUC"])
    with refused("plan_contradicted", side="ground_truths"):
        plan.tally(scored)


def test_lossless_types_are_converted() -> None:
    plan = ee.plan(CLASSES, metrics=["Accuracy"])
    narrow = ROWS.drop("site").cast({"datum_id": pl.UInt16, "actual": pl.Categorical})
    assert plan.tally(narrow).summarise().value("Accuracy") == pytest.approx(20 / 60)


def test_metrics_missing_in_the_sample_are_refused_unless_named() -> None:
    rows = pl.DataFrame({"datum_id": [1, 2], "metric": ["COMET", "BLEURT"], "value": [0.5, 0.7]})
    plan = ee.plan(rows.head(1), task="values")
    with pytest.raises(ee.InputError) as error:
        plan.tally(rows)
    assert (error.value.code, error.value.facts["value"]) == ("plan_contradicted", "BLEURT")
    named = ee.plan(rows.schema, task="values", metrics=["COMET", "BLEURT"])
    card = ee.merge([named.tally(rows[:1]), named.tally(rows[1:])]).summarise()
    assert (card.value("COMET"), card.value("BLEURT")) == (0.5, 0.7)


def test_metrics_missing_in_the_sample_are_refused_next_to_a_custom_one() -> None:
    @ee.metric(better="higher")
    def own(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select("datum_id", value=1)

    rows = pl.DataFrame({"datum_id": [1, 2], "metric": ["COMET", "BLEURT"], "value": [0.5, 0.7]})
    plan = ee.plan(rows.head(1), task="values", metrics=[own])
    plan.tally(rows[:1])
    with refused("plan_contradicted", value="BLEURT"):
        plan.tally(rows)
    named = ee.plan(rows.head(1), task="values", metrics=[own, "COMET"]).tally(rows).summarise()
    assert set(named.metrics["metric"]) == {"COMET", "own"}
    judged = pl.DataFrame({"datum_id": [1, 2], "metric": ["Bias", "Toxicity"], "verdict": "no"})
    given: dict[str, Any] = {"task": "judged", "metrics": [own]}
    parts = ee.plan(judged.head(1), **given)
    card = ee.merge([parts.tally(judged[:1]), parts.tally(judged[1:])]).summarise()
    assert card.metrics.equals(ee.score(judged, **given).metrics)


def test_merging_refuses_tallies_of_different_plans(tmp_path: Any) -> None:
    columns = ROWS.drop("site")
    plan = ee.plan(CLASSES, metrics=["Accuracy"])
    tally_ = plan.tally(columns)
    with pytest.raises(ee.InputError):
        ee.merge([tally_, tally_])
    for other in (
        ee.plan(CLASSES, metrics=["Accuracy", "F1"]),
        ee.plan(CLASSES, metrics=["Accuracy"], labels=["a", "b", "c"]),
        ee.plan({**CLASSES, "datum_id": pl.Int32}, metrics=["Accuracy"]),
    ):
        with pytest.raises(ee.ResultError) as error:
            ee.merge([tally_, other.tally(columns.clear())])
        assert error.value.code == "other_plan"
    with pytest.raises(ee.ResultError) as error:
        ee.merge([])
    assert error.value.code == "empty"
    data = tally_.to_bytes()
    with pytest.raises(ee.ReadError):
        ee.Tally.from_bytes(data[: len(data) // 2])
    file = tmp_path / "one.tally"
    file.write_bytes(data)
    assert ee.merge([file]).summarise().metrics.equals(tally_.summarise().metrics)
    ee.score(columns, metrics=["Accuracy"]).save(tmp_path / "run")
    with pytest.raises(ee.ResultError) as error:
        ee.merge([tmp_path / "run" / "tally.zip"])
    assert error.value.code == "no_plan"


@pytest.mark.parametrize(
    "named", [{"limits": True}, {"memory_limit": "1GB"}, {"scratch": "x"}, {"label_next": 5}]
)
def test_options_that_need_all_rows_are_refused(named: dict[str, Any]) -> None:
    with pytest.raises(ee.OptionError) as error:
        ee.plan(CLASSES, **named)
    assert error.value.code == "option_unfit"


def test_differences_between_plans_are_named() -> None:
    columns = ROWS.drop("site")
    first = ee.plan(CLASSES, metrics=["Accuracy"]).tally(columns[:9])
    for other, name in (
        (ee.plan(CLASSES, metrics=["Accuracy", "F1"]), "metrics"),
        (ee.plan(CLASSES, metrics=["Accuracy"], labels=["a", "b", "c"]), "labels"),
        (ee.plan({**CLASSES, "datum_id": pl.Int32}, metrics=["Accuracy"]), "columns"),
    ):
        with pytest.raises(ee.ResultError) as error:
            ee.merge([first, other.tally(columns[9:])])
        assert f"other {name}." in str(error.value)


def test_problems_of_a_part_count_its_rows() -> None:
    plan = ee.plan(CLASSES, metrics=["Accuracy"])
    with pytest.raises(ee.InputError) as error:
        plan.tally(ROWS.drop("site").head(6).with_columns(datum_id=pl.lit(1)))
    assert "6 rows" in str(error.value)
    assert "0 rows" not in str(error.value)


def test_schemas_of_strings_and_sentences_without_ids_are_refused() -> None:
    with pytest.raises(ee.InputError) as error:
        ee.plan({"datum_id": "int64", "actual": "string", "predicted": "string"})
    assert error.value.code == "not_a_table"
    tags = pl.DataFrame({"actual": [["O"]], "predicted": [["O"]]})
    with pytest.raises(ee.InputError) as error:
        ee.plan(tags, task="spans", metrics=["F1"])
    assert (error.value.code, error.value.facts["column"]) == ("column_missing", "datum_id")
    plan = ee.plan({"calls": pl.Struct({"q": pl.Int64}), **CLASSES}, metrics=["Accuracy"])
    rows = ROWS.drop("site").with_columns(calls=pl.struct(z=pl.lit(1)))
    with pytest.raises(ee.InputError) as error:
        plan.tally(rows)
    assert "cast" not in str(error.value).lower()


@pytest.mark.parametrize("cluster", [None, "site"])
def test_intervals_of_rows_without_ids_equal_one_run(cluster: str | None) -> None:
    """Row numbers start at 0 in each part, but equal numbers must not be resampled as one datum."""
    rng = np.random.default_rng(7)
    rows = pl.DataFrame(
        {
            "actual": rng.choice(["a", "b"], 90),
            "predicted": rng.choice(["a", "b"], 90),
            "site": rng.choice(list("uvwxyz"), 90),
        }
    )
    options: dict[str, Any] = {"metrics": ["MCC"], "intervals": 0.95, "cluster": cluster}
    plan = ee.plan(rows.head(1), **options)
    first, second, third = (plan.tally(part) for part in (rows[:30], rows[30:50], rows[50:]))
    whole = ee.score(rows, **options).metrics
    for parts in ([first, second, third], [ee.merge([first, second]), third.to_bytes()]):
        assert ee.merge(parts).summarise().metrics.equals(whole)


def test_the_short_form_makes_its_own_plan() -> None:
    columns = ROWS.drop("site")
    parts = [ee.tally(rows, metrics=["Accuracy"]) for rows in (columns[:20], columns[20:])]
    assert ee.merge(parts).summarise().value("Accuracy") == pytest.approx(20 / 60)
    assert len(parts[0]) == 20


@pytest.mark.parametrize("dialect", ["standard", "seqeval"])
def test_tags_of_tokens_become_spans_in_every_part(dialect: str) -> None:
    rows = pl.DataFrame(
        {
            "datum_id": [1, 2],
            "actual": [["B-PER", "O"], ["O", "B-LOC"]],
            "predicted": [["B-PER", "O"], ["O", "O"]],
        }
    )
    plan = ee.plan(rows.head(1), task="spans", dialect=dialect)  # the sample has ids
    card = ee.merge([plan.tally(rows[1:]), plan.tally(rows[:1])]).summarise()
    assert card.metrics.equals(ee.score(rows, task="spans", dialect=dialect).metrics)


def test_equal_runs_are_equal_bytes() -> None:
    labels = [f"label {i % 40}" for i in range(200)]
    rows = pl.DataFrame({"datum_id": range(200), "actual": labels, "predicted": labels[::-1]})
    plan = ee.plan(rows)
    first, second = (plan.tally(rows).to_bytes() for _ in range(2))
    assert first == second
    a, b = plan.tally(rows.head(100)), plan.tally(rows.tail(100))
    assert ee.merge([a, b]).to_bytes() == ee.merge([a, b]).to_bytes()


def test_options_survive_bytes_and_pickles() -> None:
    rows = pl.DataFrame({"datum_id": [1], "actual": ["a"], "predicted": ["b"]})
    options: dict[str, Any] = {"dialect": "sklearn", "zero_division": float("nan")}
    plan = ee.plan(rows, metrics=["Precision"], label_map={"a": "c"}, **options)
    tally_ = plan.tally(rows)
    loaded = ee.Tally.from_bytes(tally_.to_bytes())
    assert (
        loaded.plan.fingerprint == pickle.loads(pickle.dumps(plan)).fingerprint == plan.fingerprint
    )
    assert loaded.summarise().metrics.equals(tally_.summarise().metrics)
    assert tally_.summarise().value("Precision", label_value="c") is None


def test_plans_do_not_depend_on_the_order_of_columns() -> None:
    plan = ee.plan(CLASSES, metrics=["Accuracy"])
    other = ee.plan(dict(reversed(CLASSES.items())), metrics=["Accuracy"])
    columns = ROWS.drop("site")
    both = ee.merge([plan.tally(columns[:9]), other.tally(columns[9:])])
    assert both.summarise().value("Accuracy") == pytest.approx(20 / 60)
    seeded = ee.plan(CLASSES, metrics=["Accuracy"], intervals=0.95, seed=1)
    plain = ee.plan(CLASSES, metrics=["Accuracy"], intervals=0.95)
    with pytest.raises(ee.ResultError) as error:
        ee.merge([seeded.tally(columns[:9]), plain.tally(columns[9:])])
    assert error.value.code == "other_plan"


def test_tallies_of_another_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from evalengine.evaluation import planner

    plan = ee.plan(CLASSES, metrics=["Accuracy"])
    data = plan.tally(ROWS.drop("site")).to_bytes()
    monkeypatch.setattr(planner, "__version__", "9.9.9")
    other = ee.plan({**CLASSES, "datum_id": pl.Int64}, metrics=["Accuracy", "F1"])
    assert other.fingerprint != plan.fingerprint
    TallyPlan = type(plan)
    TallyPlan._from_plain.cache_clear()
    with pytest.raises(ee.ResultError) as error:
        ee.Tally.from_bytes(data)
    assert error.value.code == "other_plan"


def test_regions_apply_in_every_part() -> None:
    """Only one part has ground truths with ``ignore`` and without a label."""
    corners = {"xmin": 0.0, "ymin": 0.0, "xmax": 9.0, "ymax": 9.0}
    sides = []
    for more in ({"score": 0.5}, {"ignore": False}):
        some = [{"datum_id": id, "label_value": "car", **corners, **more} for id in (1, 2, 3, 4)]
        sides.append(pl.DataFrame(some))
    far = {name: value + 40 for name, value in corners.items()}
    false = {"datum_id": 3, "label_value": "car", **far, "score": 0.9}
    region = {"datum_id": 3, "label_value": None, **far, "ignore": True}
    predictions = pl.concat([sides[0], pl.DataFrame([false], sides[0].schema)])
    truths = pl.concat([sides[1], pl.DataFrame([region], sides[1].schema)])
    plan = ee.plan(predictions.head(2), truths.head(2), dialect="visdrone")
    parts = [
        plan.tally(*(side.filter(pl.col("datum_id").is_in(some)) for side in (predictions, truths)))
        for some in ([1, 2], [3, 4])
    ]
    card, whole = ee.merge(parts).summarise(), ee.score(predictions, truths, dialect="visdrone")
    assert_frame_equal(card.metrics, whole.metrics, check_exact=True)
    assert card.value("mAP@0.5") == 1.0
    assert ee.score(predictions, sides[1], dialect="visdrone").value("mAP@0.5") < 1.0


def test_the_plan_refuses_text_labels_without_a_positive_label() -> None:
    rows = pl.DataFrame({"datum_id": [1, 2], "actual": ["yes", "no"], "score": [0.5, 0.6]})
    messages = []
    for call in (ee.plan, ee.score):
        with refused("option_missing", ee.InputError, option="positive_label") as caught:
            call(rows)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    plan = ee.plan(rows, positive_label="yes")
    assert plan.tally(rows).summarise().value("ROCAUC", label_value="yes") == 0.0
    ee.plan(rows.with_columns(predicted=pl.col("actual")))  # scores of this label
