"""Scores of verdict tables: valid words, refusals, failed rows, dialects, slices."""

from __future__ import annotations

import io
import json
import math
import re
import time
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged.tables import listed, table
from refusals import noted, refused

import evalengine as ee
from evalengine.report.show import show


def score(rows: list[dict[str, Any]] | pl.DataFrame, **options: Any) -> ee.Scorecard:
    frame = rows if isinstance(rows, pl.DataFrame) else table(rows)
    return ee.score(frame, task="judged", **options)


def statuses(card: ee.Scorecard) -> list[str]:
    return card.per_datum["status"].to_list()


def test_three_columns_identify_the_task():
    frame = pl.DataFrame({"id": [7, 7], "metric": ["Bias"] * 2, "verdict": ["yes", "no"]})
    card = ee.score(frame)
    assert (card.task, card.value("Bias")) == ("judged", 0.5)


@pytest.mark.parametrize(
    "verdict",
    [[True, False], [1, 0], [1.0, 0.0], [" YES", "No "], ["true", "false"]],
    ids=["booleans", "integers", "floats", "spaces", "words"],
)
def test_words_of_the_standard_dialect(verdict):
    frame = pl.DataFrame({"datum_id": [7, 7], "metric": ["Bias"] * 2, "verdict": verdict})
    assert ee.score(frame).value("Bias") == 0.5


def test_metric_names_of_other_tools():
    frame = pl.DataFrame({"id": [1], "metric": ["contextual_precision"], "verdict": ["yes"]})
    assert ee.score(frame).value("ContextPrecision") == 1.0


BAD = {
    "wrong_vocabulary": [*listed("Bias", ["yes", "perhaps"])],
    "no_verdict": [{"datum_id": 0, "metric": "Bias", "item_index": 0, "status": "ok"}],
    "missing_verdicts": listed("Bias", ["yes", "no"])[:1],
    "extra_verdicts": [{**row, "items": 1} for row in listed("Bias", ["yes", "no"])],
    "timeout": [{"datum_id": 0, "metric": "Bias", "status": "timeout"}],
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_row_is_an_error_of_its_datum(kind):
    good = listed("Bias", ["no"], datum=1)
    card = score([*BAD[kind], *good])
    assert statuses(card) == [kind, "scored"]
    row = card.metrics.row(0, named=True)
    assert (row["value"], row["support"], row["scored"]) == (0.0, 2, 1)
    assert json.loads(row["parameters"]) == {"better": "lower"}
    assert row["reason"].endswith(f": {kind} 1")
    assert f"{kind} 1" in noted(card, "coverage", metric="Bias", count=1, rows=2).message
    lone = score(BAD[kind]).metrics.row(0, named=True)
    assert lone["value"] is None
    assert lone["reason"].endswith(f": {kind} 1")


def test_a_gap_in_the_index_is_a_missing_verdict():
    rows = [{**row, "items": None} for row in listed("Faithfulness", ["yes", "no", "yes"])]
    assert statuses(score([rows[0], rows[2]])) == ["missing_verdicts"]


def test_all_ground_truths_have_the_same_contexts():
    rows = listed("ContextPrecision", ["no", "yes"], reference=0)
    rows += listed("ContextPrecision", ["yes"], reference=1)
    assert statuses(score([{**row, "items": None} for row in rows])) == ["missing_verdicts"]


def test_an_item_that_every_judgment_failed_on_is_an_error():
    rows = [row for n in range(3) for row in listed("Bias", ["no", "perhaps"], judgment=n)]
    rows = [{**row, "items": None} for row in rows]
    assert statuses(score(rows)) == ["wrong_vocabulary"]
    rows[1]["verdict"] = "yes"
    assert score(rows).value("Bias") == 0.5  # one valid judgment is enough
    rows[1]["verdict"] = None
    rows[1]["status"] = "timeout"
    assert statuses(score(rows)) == ["timeout"]


def test_a_failed_judgment_does_not_vote():
    rows = listed("Bias", ["no", "yes"], judgment=1)
    rows.append({"datum_id": 0, "metric": "Bias", "judgment_index": 0, "status": "timeout"})
    assert score(rows).value("Bias") == 0.5


def both_sides(judgment: int, tp: int, fp: int, fn: int) -> list[dict[str, Any]]:
    """Make rows of AnswerCorrectness; the reference lists only its false negatives."""
    name, response = "AnswerCorrectness", ["TP"] * tp + ["FP"] * fp
    rows = listed(name, response, step="response", judgment=judgment)
    missing = listed(name, ["FN"] * fn, step="reference", judgment=judgment) if fn else []
    return [*rows, *({**row, "items": 3} for row in missing)]


@pytest.mark.parametrize(
    ("judgments", "counted"),
    [
        ([(2, 0, 0), (2, 0, 2), (2, 0, 0)], (2, 0, 0)),  # one of three lists false negatives
        ([(2, 0, 2), (2, 0, 2), (2, 0, 0)], (2, 0, 2)),
        ([(2, 0, 1), (2, 0, 3), (2, 0, 2)], (2, 0, 2)),
        ([(1, 1, 1), (2, 0, 0)], (1, 1, 1)),  # the first wins a tie
        ([(2, 0, 0), (1, 1, 1)], (2, 0, 0)),
    ],
)
def test_missing_items_of_a_judgment_are_votes(judgments, counted):
    rows = [row for n, counts in enumerate(judgments) for row in both_sides(n, *counts)]
    tp, fp, fn = counted
    value = score(rows).value("AnswerCorrectness")
    assert value == pytest.approx(tp / (tp + 0.5 * (fp + fn)))


def test_empty_strings_are_nulls():
    frame = pl.DataFrame(
        {"datum_id": [1], "metric": ["Bias"], "verdict": ["yes"], "status": [""], "error": [""],
         "step": [""]}
    )  # fmt: skip
    assert ee.score(frame).value("Bias") == 1.0


def test_texts_without_verdicts_are_refused():
    with refused("column_missing", column="verdict"):
        ee.score(pl.DataFrame({"text": ["t"]}), task="judged")


def test_one_failed_ground_truth_of_several_is_an_error():
    """The failed ground truth could have the highest value."""
    rows = listed("ContextRecall", ["yes", "no"], reference=0)
    rows.append(
        {"datum_id": 0, "metric": "ContextRecall", "reference_index": 1, "status": "timeout"}
    )
    assert statuses(score(rows)) == ["timeout"]


def test_factual_correctness_needs_both_sides_except_for_precision():
    rows = listed("FactualCorrectness", ["yes", "no"], step="response")
    assert statuses(score(rows)) == ["missing_verdicts"]
    assert statuses(score(rows, mode="recall")) == ["missing_verdicts"]
    assert score(rows, mode="precision").value("FactualCorrectness") == 0.5


def test_one_verdict_in_two_rows_is_refused():
    rows = listed("Bias", ["yes"]) * 2
    with refused("repeated_values", side="table", column="item_index", count=2, rows=[0, 1]):
        score(rows)
    several = [*listed("Bias", ["yes"]), *listed("Bias", ["yes"], judgment=1)]
    assert score(several).value("Bias") == 1.0


def test_a_step_that_the_metric_does_not_have_is_refused():
    with refused("wrong_step", column="step", row=0):
        score(listed("FactualCorrectness", ["yes"], step="answer"))
    with refused("wrong_step", column="step", row=0):
        score([{"datum_id": 0, "metric": "Bias", "step": "contexts", "status": "empty"}])


def test_not_judged_is_a_kind_of_error():
    frame = pl.DataFrame(
        {"datum_id": [1, 2], "metric": ["Bias"] * 2, "verdict": ["yes", None],
         "status": ["ok", "not_judged"]}
    )  # fmt: skip
    card = score(frame, dialect="valor")
    row = card.metrics.row(0, named=True)
    assert (row["value"], row["support"], row["scored"]) == (1.0, 2, 1)
    assert row["reason"].endswith("not_judged 1")
    assert [entry["type"] for entry in card.to_valor()] == ["Bias", "Error"]


def test_a_partly_missing_index_is_refused():
    frame = pl.DataFrame(
        {"datum_id": [1, 1, 2], "metric": ["ContextPrecision"] * 3,
         "verdict": ["yes", "no", None], "item_index": [1, None, None],
         "status": ["ok", "ok", "timeout"]}
    )  # fmt: skip
    with refused("null_values", side="table", column="item_index", count=1, rows=[1]):
        score(frame)
    # Error rows need no index, nor does a set without any.
    whole = pl.concat([frame.head(1).with_columns(pl.col("item_index") * 0), frame.tail(1)])
    assert statuses(score(whole)) == ["scored", "timeout"]
    bare = frame.with_columns(item_index=pl.when(pl.col("datum_id") > 1).then(0))
    assert score(bare).value("ContextPrecision") == 1.0


@pytest.mark.parametrize(
    ("metric", "spelled"),
    [
        ("ContextPrecision", [{"metric": "context_precision"}, {}]),
        ("FactualCorrectness", [{"step": "response"}, {"step": "Response"}]),
        ("Bias", [{"step": "opinions"}, {}]),
    ],
)
def test_one_verdict_in_two_spellings_is_refused(metric, spelled):
    twice = [
        {**listed(metric, [word])[0], **other}
        for word, other in zip(("yes", "no"), spelled, strict=True)
    ]
    with refused("repeated_values", column="step", count=2):
        score(twice)
    separate = [{**row, "datum_id": n} for n, row in enumerate(twice)]
    assert score(separate, mode="precision").value(metric) == 0.5


def test_a_step_that_a_metric_of_one_step_does_not_have_is_refused():
    with refused("wrong_step", column="step", row=0):
        score(listed("Bias", ["yes"], step="claims"))
    assert score(listed("Bias", ["yes"], step=" Opinions")).value("Bias") == 1.0


def test_precision_ignores_the_other_side():
    rows = listed("FactualCorrectness", ["yes", "no"], step="response")
    failed = {"datum_id": 0, "metric": "FactualCorrectness", "step": "reference",
              "status": "timeout"}  # fmt: skip
    assert statuses(score([*rows, failed])) == ["timeout"]
    assert score([*rows, failed], mode="precision").value("FactualCorrectness") == 0.5
    # A ground truth with only an error row is an error for precision too.
    assert statuses(score([failed], mode="precision")) == ["timeout"]
    lone = listed("FactualCorrectness", ["yes"], step="reference")
    assert statuses(score(lone, mode="precision")) == ["missing_verdicts"]


def test_a_decimal_suffix_is_removed_only_from_numbers():
    for dialect in ("standard", "valor"):
        card = score(listed("Bias", ["yes.0", "no"]), dialect=dialect)
        assert statuses(card) == ["wrong_vocabulary"]
    assert score(listed("Coherence", ["4.0"])).value("Coherence") == 4.0


def test_an_error_row_has_no_unknown_word():
    rows = [{"datum_id": 0, "metric": "Bias", "status": "wrong_vocabulary"}]
    assert not any("None" in note for note in score(rows).notes)


def test_unknown_words_and_unread_options_are_noted():
    card = score(listed("Faithfulness", ["YES"]), dialect="valor")
    noted(card, "unknown_words", metric="Faithfulness", words=["YES"], count=1)
    card = score(listed("Faithfulness", ["idk"]), penalize_ambiguous=True)
    noted(card, "option_not_read", option="penalize_ambiguous")
    card = score(listed("Faithfulness", ["idk"]), penalize_ambiguous=True, dialect="deepeval-4.1")
    assert card.value("Faithfulness") == 0.0
    assert not any("penalize_ambiguous" in note for note in card.notes)


def test_differing_numbers_of_items_are_an_error():
    rows = [{**row, "items": n} for row, n in zip(listed("Bias", ["yes"] * 2), (2, 3), strict=True)]
    card = score(rows)
    assert statuses(card) == ["items_differ"]
    noted(card, "items_differ", count=1)


def test_many_kinds_of_errors_are_summarised():
    """A status with a number is a separate kind; 8,000 kinds once took 7 s and 199 kB."""
    n = 8_000
    frame = pl.DataFrame(
        {
            "datum_id": range(n + 30),
            "metric": ["Bias"] * (n + 30),
            "verdict": [None] * n + ["yes"] * 10 + [None] * 20,
            "status": [f"timeout after {i:05} ms" for i in range(n)] + ["ok"] * 10
            + ["refused"] * 20,
        }
    )  # fmt: skip
    begun = time.process_time()
    card = score(frame)
    row = card.metrics.row(0, named=True)
    assert time.process_time() - begun < 3
    assert (row["support"], row["scored"]) == (n + 30, 10)
    numbers = re.findall(r"\d+(?:,\d+)*", row["reason"])
    assert numbers[:4] == ["8020", "8,030", "20", "00000"]
    assert numbers[-4:] == ["00008", "1", "7,991", "7,991"]
    assert max(map(len, card.notes)) < 500


def test_fractions_are_no_indexes():
    frame = pl.DataFrame(
        {"datum_id": [1], "metric": ["Bias"], "verdict": ["yes"], "item_index": [0.5]}
    )
    with pytest.raises(ee.InputError, match="not whole"):
        ee.score(frame)
    whole = frame.with_columns(
        item_index=pl.Series([0.0])
    )  # pandas stores integers with missing values as floats
    assert ee.score(whole).value("Bias") == 1.0


def test_unknown_metrics_are_noted_or_refused():
    valid, unknown = listed("Bias", ["no"]), listed("Charm", ["yes"], datum=1)
    card = score([*valid, *unknown])
    assert card.metrics["metric"].to_list() == ["Bias"]
    noted(card, "unknown_metrics", count=1, metrics=["Charm"])
    with refused("unknown_name", value="Charm"):
        score(unknown)


def test_a_metric_without_any_row_is_null_with_a_reason():
    card = score(listed("Bias", ["no"]), metrics=["Bias", "Faithfulness"])
    row = card.metrics.filter(pl.col("metric") == "Faithfulness").row(0, named=True)
    assert (row["value"], row["support"], row["scored"]) == (None, 0, 0)
    assert row["reason"].startswith("no verdict")


def test_an_empty_table_has_no_numbers():
    assert score(table([])).metrics.height == 0
    card = score(table([]), metrics=["Bias"])
    assert card.metrics.select("value", "support").row(0) == (None, 0)


def test_two_tables_are_refused():
    with refused("one_table_only", task="judged"):
        ee.score(table([]), table([]), task="judged")


DIALECTS = ("standard", "valor", "ragas", "deepeval-4.1", "deepeval-4.3")
EMPTY = [
    # metric, empty step, value by dialect: the table of docs/judged.md
    ("AnswerRelevance", "statements", (0, 0, 0, 1, 1)),
    ("Bias", "opinions", (0, 0, 0, 0, 1)),
    ("Toxicity", "opinions", (0, 0, 0, 0, 1)),
    ("Faithfulness", "claims", (None, 1, None, 1, 1)),
    ("Faithfulness", "contexts", (0, 0, 0, None, None)),
    ("Hallucination", "contexts", (None, None, None, 0, 1)),
    ("ContextRelevance", "contexts", (None, 0, None, 0, 0)),
    ("ContextPrecision", "contexts", (None, 0, 0, 0, 0)),
    ("ContextRecall", "contexts", (0, 0, 0, 0, 0)),
    ("ContextRecall", "statements", (None, None, None, 0, 0)),
    ("AnswerCorrectness", "references", (None, 0, None, None, None)),
    ("ContextPrecision", "references", (None, 0, None, None, None)),
    ("ContextRecall", "references", (None, 0, None, None, None)),
    ("ContextPrecision", "contexts references", (None, 1, None, None, None)),
    ("ContextRecall", "contexts references", (None, 1, None, None, None)),
    ("AnswerCorrectness", "response", (0, 0, 0, 0, 0)),
    ("FactualCorrectness", "response reference", (None, None, 0, None, None)),
    ("LLMContextRecall", "contexts", (0, 0, 0, 0, 0)),
    ("LLMContextRecall", "statements", (None, None, None, None, None)),
    ("Coherence", "text", (None, None, None, None, None)),
]


@pytest.mark.parametrize(("metric", "none", "values"), EMPTY)
def test_a_dialect_decides_the_value_of_empty_steps(metric, none, values):
    rows = [
        {"datum_id": 0, "metric": metric, "step": one, "status": "empty"} for one in none.split()
    ]
    for dialect, expected in zip(DIALECTS, values, strict=True):
        card = score(rows, dialect=dialect)
        assert card.value(metric) == expected, dialect
        if expected is None:
            assert statuses(card)[0].startswith("no_")


def test_an_empty_ground_truth_next_to_another_is_ignored():
    rows = listed("ContextRecall", ["yes", "no"], reference=0)
    rows += listed("ContextRecall", [], none="statements", reference=1)
    assert score(rows).value("ContextRecall") == 0.5


def test_directions_are_in_every_row():
    rows = [*listed("Bias", ["no"]), *listed("Faithfulness", ["yes"])]
    for dialect, bias in (("standard", "lower"), ("deepeval-4.3", "higher")):
        card = score(rows, dialect=dialect)
        directions = [json.loads(text)["better"] for text in card.metrics["parameters"]]
        assert directions == [bias, "higher"]
        assert card.directions == {"Bias": bias, "Faithfulness": "higher"}


def test_a_full_mean_has_no_reason():
    card = score(listed("Bias", ["no"]))
    assert card.metrics["reason"].to_list() == [None]


def test_partly_scored_slices_keep_their_columns():
    rows = table([*listed("Bias", ["no"]), *listed("Bias", ["yes"], datum=1),
                  {"datum_id": 2, "metric": "Bias", "status": "timeout"}])  # fmt: skip
    topics = pl.DataFrame({"datum_id": [0, 1, 2], "topic": ["a", "b", "b"]})
    out = io.StringIO()
    show(score(rows, datums=topics, by="topic"), "table", out)
    shown = out.getvalue()
    assert [line.split() for line in shown.splitlines() if line.startswith(("  a", "  b"))] == [
        ["b", "1.0000", "1", "of", "2"], ["a", "0.0000", "1"]
    ]  # fmt: skip


def test_slices_by_a_table_of_datums(tmp_path):
    rows = table([*listed("Bias", ["no"]), *listed("Bias", ["yes", "no"], datum=1),
                  {"datum_id": 2, "metric": "Bias", "status": "timeout"}])  # fmt: skip
    topics = pl.DataFrame({"datum_id": [0, 1, 2], "topic": ["a", "b", "b"]})
    card = score(rows, datums=topics, by="topic")
    sliced = card.metrics.filter(pl.col("slice") == "topic")
    assert sliced.select("slice_value", "value", "support", "scored").rows() == [
        ("a", 0.0, 1, 1),
        ("b", 0.5, 2, 1),
    ]
    inside = score(rows.join(topics, on="datum_id"), by="topic")
    assert inside.metrics.equals(card.metrics)
    card.save(tmp_path / "run")
    assert ee.load(tmp_path / "run").to_valor() == card.to_valor()


def test_options_of_factual_correctness_are_recorded_and_checked():
    sides = {"response": ["yes", "no"], "reference": ["no", "no", "yes"]}
    rows = [
        row
        for side, words in sides.items()
        for row in listed("FactualCorrectness", words, step=side)
    ]
    tp, fp, fn = 1, 1, 2
    card = score(rows, beta=2.0, atomicity="high")
    assert card.value("FactualCorrectness") == pytest.approx(5 * tp / (5 * tp + 4 * fn + fp))
    assert json.loads(card.metrics["parameters"][0]) == {
        "better": "higher", "mode": "f1", "beta": 2.0, "atomicity": "high",
    }  # fmt: skip
    for wrong in ({"mode": "f2"}, {"coverage": "much"}, {"beta": 0.0}, {"beta": math.nan}):
        with pytest.raises(ee.OptionError, match=next(iter(wrong))):
            score(rows, **wrong)
    ragas = score(rows, dialect="ragas", mode="recall").to_ragas()
    assert ragas == [{"factual_correctness(mode=recall)": 0.33}]


@pytest.mark.parametrize("words", [["yes"], ["yes", "yes", "no"]])
def test_the_best_context_precision_of_ragas_passes_in_strict_mode(words):
    """Its denominator is larger by 1e-10, so the best value is slightly below 1."""
    card = score(listed("ContextPrecision", words), dialect="ragas", strict_mode=True)
    assert card.value("ContextPrecision") == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("metric", "word", "before", "now"),
    [
        ("Bias", "No, it is fair.", 0.0, 1.0),
        ("Bias", "yes.", 0.0, 0.0),
        ("Hallucination", "Yes: it agrees", 0.0, 1.0),
        ("Faithfulness", "no!", 1.0, 0.0),
        ("ContextRecall", "yes, in context 2", 0.0, 1.0),
        ("ContextRelevance", "YES ", 0.0, 1.0),
        ("AnswerRelevance", "nothing", 1.0, 0.0),
    ],
)
def test_deepeval_reads_the_leading_word_since_4_3(metric, word, before, now):
    """``normalize_qag_verdict`` of 4.3.1; 4.1 compares the whole text."""
    for dialect, expected in (("deepeval-4.1", before), ("deepeval-4.3", now)):
        assert score(listed(metric, [word]), dialect=dialect).value(metric) == expected


def test_unread_options_are_noted():
    card = score(listed("Coherence", ["4"]), strict_mode=True, mode="recall")
    idle = [one.facts["option"] for one in card.findings if one.code == "option_not_read"]
    assert idle == ["mode", "strict_mode"]


def test_check_reports_bad_verdicts():
    report = ee.check(table(BAD["wrong_vocabulary"]), task="judged")
    assert len(report.notes) == 3
    noted(report, "wrong_vocabulary", count=1)
    noted(report, "unknown_words", metric="Bias", words=["perhaps"], count=1)
    noted(report, "coverage", metric="Bias", count=1, rows=1)


WORDS = st.lists(st.sampled_from(["yes", "no"]), min_size=1, max_size=5)


@settings(max_examples=12)
@given(st.lists(WORDS, min_size=1, max_size=6), st.randoms())
def test_shares_do_not_depend_on_the_order_of_rows(sets, random):
    rows = [row for datum, words in enumerate(sets) for row in listed("Bias", words, datum=datum)]
    random.shuffle(rows)
    expected = sum(words.count("yes") / len(words) for words in sets) / len(sets)
    assert score(rows).value("Bias") == pytest.approx(expected)


@settings(max_examples=12)
@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=3))
def test_context_precision_against_its_definition(references):
    rows = [
        row
        for place, words in enumerate(references)
        for row in listed("ContextPrecision", ["yes" if w else "no" for w in words],
                          reference=place)
    ]  # fmt: skip
    useful = [any(column) for column in zip(*references, strict=True)]
    at = [sum(useful[: k + 1]) / (k + 1) for k in range(3) if useful[k]]
    expected = sum(at) / len(at) if at else 0.0
    assert score(rows).value("ContextPrecision") == pytest.approx(expected)


def test_the_valor_dialect_ignores_case_for_other_tools_metrics():
    """Only metrics of Valor are case-sensitive, and FactualCorrectness is not one of them."""
    for word in ("TP", "tp", "Yes", "true"):
        rows = [
            *listed("FactualCorrectness", [word], step="response"),
            *listed("FactualCorrectness", ["FN"], step="reference"),
        ]
        assert score(rows, dialect="valor").value("FactualCorrectness") == pytest.approx(2 / 3)


def test_doubled_rows_are_a_warning() -> None:
    words = ["yes", "no", "yes", "yes", "no", "yes", "yes"]
    once = pl.DataFrame(
        {
            "datum_id": [i // 3 for i in range(60)],
            "metric": "Faithfulness",
            "verdict": [words[i * i % 7] for i in range(60)],
        }
    )
    noted(ee.score(pl.concat([once, once])), "rows_doubled", count=60, severity="warning")
    other = once.with_columns(pl.col("verdict").reverse())
    constant = once.with_columns(verdict=pl.lit("yes"))
    for right in (once, pl.concat([once, other]), pl.concat([constant, constant])):
        assert "rows_doubled" not in {one.code for one in ee.score(right).findings}
