"""Recognition of a table's columns as columns of the contract."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from small_tables import CORNERS, ground_truths, load, predictions, refusal

import evalengine as ee
from evalengine.ingest.infer import recognise
from evalengine.schemas.contract import DATUM_TABLE, LABEL_TABLE
from evalengine.schemas.errors import InputError, OptionError, did_you_mean
from evalengine.schemas.tables import DETECTION_PREDICTIONS, table_for

ALIASES = {
    "datum_id": ["image_id", "img_id", "image", "datum", "file_name"],
    "label_value": ["category_id", "label", "class", "category", "class_name", "name"],
    "score": ["confidence", "conf", "prob", "probability"],
}


def test_canonical_names_are_taken_as_they_are() -> None:
    frames = load()
    assert frames.recognised == {"predictions": {}, "ground_truths": {}}
    assert frames.predictions.columns == ["datum_id", "label_value", "score", *CORNERS]
    assert frames.predictions.equals(predictions())


@pytest.mark.parametrize(
    ("canonical", "alias"), [(c, a) for c, all_ in ALIASES.items() for a in all_]
)
def test_each_alias_is_recognised_and_reported(canonical: str, alias: str) -> None:
    frames = load(predictions().rename({canonical: alias}))
    assert frames.predictions.equals(predictions())
    assert frames.recognised["predictions"] == {alias: canonical}
    assert frames.recognised["ground_truths"] == {}


@given(st.data())
def test_aliases_are_recognised_in_any_letter_case_with_blanks_and_hyphens(
    data: st.DataObject,
) -> None:
    renames = {}
    for canonical, aliases in ALIASES.items():
        alias = data.draw(st.sampled_from([canonical, *aliases]))
        alias = alias.replace("_", data.draw(st.sampled_from(["_", " ", "-", " - "])))
        renames[canonical] = "".join(
            data.draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in alias
        )
    naming = recognise(predictions().rename(renames).schema, DETECTION_PREDICTIONS)
    assert not naming.problems
    assert naming.recognised == {
        mine: canonical for canonical, mine in renames.items() if mine != canonical
    }


def test_the_exact_name_wins_over_an_alias() -> None:
    frames = load(predictions(confidence=[0.1, 0.1, 0.1], category_id=[1, 2, 3]))
    assert frames.predictions["score"].to_list() == [0.9, 0.8, 0.7]
    assert frames.recognised["predictions"] == {}


def test_two_aliases_of_one_column_are_refused_with_a_remedy() -> None:
    table = predictions().rename({"label_value": "class"}).with_columns(name=pl.lit("x"))
    message = refusal(table)
    assert message.has(
        "ambiguous_column", side="predictions", column="label_value", columns=["class", "name"]
    )
    frames = load(table, columns={"class": "label_value"})
    assert frames.predictions["label_value"].to_list() == ["cat", "dog", "cat"]
    frames = load(table, columns={"name": "label_value"})
    assert frames.predictions["label_value"].to_list() == ["x", "x", "x"]


def test_the_users_choice_has_priority_over_the_exact_name() -> None:
    frames = load(predictions(mine=[0.1, 0.2, 0.3]), columns={"mine": "score"})
    assert frames.predictions["score"].to_list() == [0.1, 0.2, 0.3]
    assert frames.recognised["predictions"] == {"mine": "score"}


def test_columns_applies_to_whichever_table_has_the_column() -> None:
    frames = load(
        predictions().rename({"datum_id": "left_id"}),
        ground_truths().rename({"datum_id": "right_id"}),
        columns={"left_id": "datum_id", "right_id": "datum_id"},
    )
    assert frames.recognised["predictions"] == {"left_id": "datum_id"}
    assert frames.recognised["ground_truths"] == {"right_id": "datum_id"}


def test_columns_naming_two_for_one_in_one_table_is_refused() -> None:
    table = predictions(a=[1, 1, 2], b=[1, 1, 2])
    message = refusal(table, columns={"a": "datum_id", "b": "datum_id"})
    assert message.has("column_twice", side="predictions", column="datum_id", columns=["a", "b"])


def test_columns_that_reassign_a_column_are_reported() -> None:
    with refused("column_missing", InputError, side="predictions", column="score"):
        load(predictions().drop("label_value"), columns={"score": "label_value"})


def test_missing_columns_suggest_the_nearest() -> None:
    with refused("column_missing", InputError, column="scoer"):
        load(columns={"scoer": "score"})


def test_targets_outside_the_contract_suggest_the_nearest() -> None:
    with refused("unknown_name", OptionError, value="scor"):
        load(columns={"xmin": "scor"})


def test_a_mapping_the_wrong_way_round_is_pointed_out() -> None:
    message = r'own name comes first. Write columns=\{"mine": "score"\}'
    with pytest.raises(OptionError, match=message):
        load(predictions(mine=[1.0, 1.0, 1.0]), columns={"score": "mine"})
    strange = {"conf": "how_sure", "label": "what", "datum_id": "which"}  # an alias, too
    found = pl.DataFrame({"which": [1], "what": ["a"], "how_sure": [0.5]})
    with refused("columns_turned", OptionError):
        ee.score(found, found.drop("how_sure"), columns=strange)


def test_completions_of_an_unknown_word_come_before_similar_words() -> None:
    known = ("coco", "voc2012", "voc-detectron2", "voc2007", "score", "score_columns", "ROCAUC")
    assert did_you_mean("voc", known) == " Did you mean 'voc2012' or 'voc2007' or 'voc-detectron2'?"
    assert did_you_mean("roc", known) == " Did you mean 'ROCAUC'?"
    assert (
        did_you_mean("scor", known) == " Did you mean 'score'?"
    )  # one letter differs, and it is not a prefix
    assert did_you_mean("cocoo", known) == " Did you mean 'coco'?"
    assert did_you_mean("xyz", known) == did_you_mean("", known) == ""


def test_a_missing_column_names_the_nearest_and_a_remedy() -> None:
    message = refusal(predictions().rename({"score": "scores"}))
    assert message.has("column_missing", side="predictions", column="score")


def test_swapped_tables_are_pointed_out() -> None:
    message = refusal(ground_truths(), predictions().rename({"score": "conf"}))
    assert message.has("column_missing", side="predictions", column="score", swapped_with="conf")
    assert "swapped" not in refusal(ground_truths())


def test_the_users_table_is_not_modified() -> None:
    table = predictions()
    frames = load(table)
    frames.predictions.drop_in_place("score")
    assert table.equals(predictions())


def test_all_missing_columns_of_both_sides_are_reported_at_once() -> None:
    message = refusal(predictions().drop("score", "label_value"), ground_truths().drop("datum_id"))
    assert message.count("is missing") == 3
    assert message.has("column_missing", side="predictions", column="label_value")


def test_ids_and_names_of_a_datum_table_do_not_compete() -> None:
    schema = {name: pl.String() for name in ("id", "file_name", "weather")}
    naming = recognise(schema, DATUM_TABLE)
    assert not naming.problems
    assert naming.recognised == {"id": "datum_id"}
    assert set(naming.exprs) == {"datum_id", "file_name"}


def test_ids_and_names_of_a_label_table_do_not_compete() -> None:
    schema = {name: pl.String() for name in ("category_id", "name", "supercategory")}
    naming = recognise(schema, LABEL_TABLE)
    assert not naming.problems
    assert naming.recognised == {"category_id": "label_value", "name": "label_name"}


def test_an_unknown_task_is_refused_by_name() -> None:
    with refused("unknown_name", OptionError, value="detektion"):
        table_for("detektion", "predictions")
