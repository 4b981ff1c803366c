"""Tables of texts: names, lists, nulls, empty texts, several predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import noted, refused
from text.scoring import score, values

import evalengine as ee


def notes(card: Any) -> str:
    """Return all notes."""
    return "\n".join(card.notes)


@pytest.mark.parametrize(
    "columns",
    [
        {"response": ["a cat"], "reference": ["a cat"]},
        {"answer": ["a cat"], "ground_truth_answers": [["dog", "a cat"]]},
        {"Prediction": ["a cat"], "references": [["a cat"]]},
        {"candidate": ["a cat"], "reference": ["a cat"], "id": [7]},
        {"actual_output": ["a cat"], "expected_output": ["a cat"]},
    ],
)
def test_names_of_one_table(columns: dict[str, Any]) -> None:
    card = ee.score(pl.DataFrame(columns))
    assert card.task == "text"
    assert card.value("ROUGE1") == 1.0


def test_a_missing_value_is_not_reported_as_scored() -> None:
    texts = pl.DataFrame({"text": ["a b", "..", "a b"], "reference": ["a", "b", ""]})
    card = ee.score(texts, metrics=["WER", "FleschReadingEase"])
    found = {name: rows["status"].to_list() for (name,), rows in card.per_datum.group_by("metric")}
    assert found["WER"] == ["scored", "scored", "undefined"]
    assert found["FleschReadingEase"] == ["scored", "undefined", "scored"]


def test_bleu_of_sacrebleu_is_noted_as_a_mean_of_sentences() -> None:
    texts = pl.DataFrame({"text": ["a b c d", "e f"], "reference": ["a b c e", "e f"]})
    for metrics, dialect, found in (
        (["BLEU"], "sacrebleu", True),
        (["BLEU", "CorpusBLEU"], "sacrebleu", False),
        (None, "sacrebleu", False),
        (["BLEU"], "standard", False),
    ):
        findings = ee.score(texts, metrics=metrics, dialect=dialect).findings
        assert any(one.code == "mean_of_sentences" for one in findings) == found


def test_bleu_of_zero_for_equal_texts_is_noted() -> None:
    texts = pl.DataFrame(
        {"text": ["a b", "你好", "", "a b c d"], "reference": ["a b", "你好", "", "x"]}
    )

    def counts(**options: Any) -> list[int | None]:
        findings = ee.score(texts, metrics=["BLEU"], **options).findings
        return [one.count for one in findings if one.code == "bleu_of_equal_texts"]

    assert counts() == [2]
    assert counts(dialect="sacrebleu") == counts(bleu_weights=[1.0]) == []


def test_a_corpus_without_long_n_grams_is_noted() -> None:
    def noted(*texts: str, **options: Any) -> bool:
        table = pl.DataFrame({"text": texts, "reference": texts})
        findings = ee.score(table, metrics=["CorpusBLEU"], **options).findings
        return "bleu_without_ngrams" in {one.code for one in findings}

    assert noted("ok yes", "no")
    assert noted("ok yes", "我爱北京", dialect="sacrebleu")
    assert not noted("ok yes", "a b c d")
    assert not noted("ok yes", bleu_weights=[0.5, 0.5])
    assert not noted("我爱北京", dialect="sacrebleu", tokenizer="char")


def test_other_tasks_have_priority() -> None:
    labels = pl.DataFrame({"prediction": ["x"], "target": ["x"], "text": ["some text"]})
    assert ee.score(labels).task == "classification"
    lists = pl.DataFrame(
        {"retrieved_contexts": [["a"]], "reference_contexts": [["a"]], "response": ["a"]}
    ).with_columns(reference=pl.lit("a"))
    assert ee.score(lists).task == "retrieval"
    assert ee.score(lists, task="text").task == "text"
    long = pl.DataFrame({"query_id": ["q"], "text": ["a"]})
    assert ee.score(long, long).task == "retrieval"


def test_two_tables_with_one_row_per_reference() -> None:
    ours = pl.DataFrame({"datum_id": [3, 1, 2], "prediction": ["a b", "c d", "only here"]})
    theirs = pl.DataFrame({"datum_id": [1, 3, 1, 4], "reference": ["x", "a b", "c d", "only"]})
    card = ee.score(ours, theirs, task="text", metrics=["ROUGE1", "BLEU"], bleu_weights=[1.0])
    found = card.per_datum.filter(pl.col("metric") == "BLEU").sort("datum_id")
    assert found["value"].to_list() == [1.0, None, 1.0, None]
    assert found["status"].to_list() == ["scored", "no_reference", "scored", "no_prediction"]
    row = card.metrics.row(0, named=True)
    assert (row["support"], row["scored"]) == (2, 2)
    one = pl.DataFrame({"text": ["a b", "c d"], "reference": [["a b"], ["x", "c d"]]})
    assert ee.score(one, metrics=["ROUGE1"]).value("ROUGE1") == card.value("ROUGE1")


def test_several_predictions_of_a_datum() -> None:
    ours = pl.DataFrame({"datum_id": [1, 1, 2], "text": ["a x", "a b", "c"]})
    theirs = pl.DataFrame({"datum_id": [1, 2, 2], "text": ["a b", "c", "d"]})
    with refused("repeated_values", column="text", count=1):
        ee.score(ours, theirs)
    card = ee.score(ours, theirs, dialect="valor", bleu_weights=[1.0])
    assert values(card, "ROUGE1") == [1.0, 1.0]
    assert values(card, "ROUGE1", "precision") == [1.0, 1.0]
    assert values(card, "BLEU") == [1.0, 1.0]
    worse = ee.score(ours.head(1), theirs.head(1), dialect="valor")
    assert values(worse, "ROUGE1") == [0.5]
    with pytest.raises(ee.OptionError, match="several predictions"):
        ee.score(ours, theirs, dialect="valor", metrics=["CorpusBLEU"])


def test_nulls_are_refused_or_skipped() -> None:
    table = pl.DataFrame(
        {"text": ["a", None, "c", "d"], "reference": [["a"], ["b"], None, ["d", None]]},
        schema={"text": pl.String, "reference": pl.List(pl.String)},
    )
    with refused("null_values", column="text", count=1) as caught:
        ee.score(table)
    assert {(one.kind, one.column, one.count) for one in caught.value.problems} == {
        ("null_values", "text", 1),
        ("null_values", "reference", 1),
        ("null_in_list", "reference", 1),
    }
    card = ee.score(table, nulls="skip", metrics=["ROUGE1"])
    assert values(card, "ROUGE1") == [1.0, None, None, 1.0]
    assert card.per_datum["status"][:4].to_list() == ["scored", "null_text", "null_text", "scored"]
    assert noted(card, "null_texts", count=2).message.endswith(": 1, 2.")
    ours = pl.DataFrame({"datum_id": [1, 2], "text": ["a", None]})
    theirs = pl.DataFrame({"datum_id": [1, 1, 2], "text": [None, "a", "b"]})
    card = ee.score(ours, theirs, nulls="skip", metrics=["ROUGE1"])
    assert values(card, "ROUGE1") == [1.0, None]


def test_texts_of_another_type() -> None:
    with refused("wrong_dtype", side="table", column="text"):
        ee.score(pl.DataFrame({"text": [0.5], "reference": ["a"]}), task="text")
    with refused("wrong_dtype", side="table", column="reference"):
        ee.score(pl.DataFrame({"text": ["a"], "reference": [[0.5]]}), task="text")


def test_texts_without_a_token_of_rouge_are_noted() -> None:
    """Texts of other scripts are empty to ROUGE's default tokens, as in rouge-score."""
    texts = ["你好", "a", "привет мир", "?!", ""]
    card = score(texts, [[text] for text in texts], metrics=["ROUGE1"])
    assert values(card, "ROUGE1") == [0.0, 1.0, 0.0, 0.0, 0.0]
    findings = [one for one in card.findings if one.code == "no_rouge_words"]
    assert [(one.count, one.message.split()[1]) for one in findings] == [
        (2, "predictions"), (2, "references"),
    ]  # fmt: skip
    assert all(one.message.endswith(": 0, 2.") for one in findings)
    for quiet in ({"metrics": ["ROUGE1"], "rouge_tokenizer": "unicode"}, {"metrics": ["chrF"]}):
        card = score(texts, [[text] for text in texts], **quiet)
        assert values(card, quiet["metrics"][0])[:3] == [1.0, 1.0, 1.0]
        assert not [one for one in card.findings if one.code == "no_rouge_words"]


def test_empty_texts_and_missing_references() -> None:
    every = [
        "ROUGE", "ROUGE3", "BLEU", "CorpusBLEU", "chrF", "chrF++", "TER", "WER", "CER",
        "EditSimilarity", "ExactMatch", "TokenF1",
    ]  # fmt: skip
    card = score(["", "a", "b", ""], [["a"], [""], [], [""]], metrics=every)
    assert card.per_datum["status"][:4].to_list() == ["scored", "scored", "no_reference", "scored"]
    assert values(card, "ROUGE1") == [0.0, 0.0, None, 0.0]
    assert values(card, "TER") == [1.0, 1.0, None, 0.0]
    assert values(card, "WER") == [1.0, None, None, None]
    assert values(card, "ExactMatch") == [1.0, 1.0, None, 1.0]  # "a" is an article
    assert values(card, "EditSimilarity") == [0.0, 0.0, None, 1.0]
    assert card.value("WER") == 2.0  # two edits, one word
    assert "1 datum without references: 2." in notes(card)
    assert "2 empty predictions" in notes(card)
    assert "datums: 0, 3." in notes(card)
    nothing = score([], [], metrics=every)
    assert nothing.metrics["value"].null_count() == nothing.metrics.height > 0
    alone = score(["a"], [[""]], metrics=["WER"]).metrics.row(0, named=True)
    assert alone["value"] is None
    assert "is empty" in alone["reason"]


@pytest.mark.parametrize(
    ("given", "code", "facts"),
    [
        ({"bleu_weights": [0.5, 0.4]}, "option_value", {"option": "bleu_weights", "sum": 0.9}),
        ({"bleu_weights": [1.5, -0.5]}, "option_value", {"option": "bleu_weights", "value": -0.5}),
        ({"bleu_weights": []}, "option_value", {"option": "bleu_weights"}),
        ({"bleu_weights": [0.0625] * 17}, "option_value", {"option": "bleu_weights"}),
        ({"rouge_types": ["rouge9"]}, "unknown_name", {"value": "rouge9"}),
        ({"rouge_types": []}, "option_value", {"option": "rouge_types"}),
        ({"smoothing": "method9"}, "unknown_name", {"value": "method9"}),
        ({"smoothing": "method6", "bleu_weights": [1.0]}, "option_value", {"option": "smoothing"}),
        ({"smoothing": "method5", "dialect": "sacrebleu"}, "option_value", {"value": "method5"}),
        ({"tokenizer": "moses"}, "unknown_name", {"value": "moses"}),
        ({"rouge_tokenizer": "ascci"}, "unknown_name", {"value": "ascci"}),
        ({"use_stemmer": True, "rouge_tokenizer": "unicode"}, "options_conflict", {}),
        ({"nulls": "drop"}, "unknown_name", {"value": "drop"}),
    ],
)
def test_options_that_do_not_fit(given: dict[str, Any], code: str, facts: dict[str, Any]) -> None:
    with refused(code, ee.OptionError, **facts):
        score(["a"], [["a"]], **given)


def test_unread_options_are_noted() -> None:
    card = score(["a"], [["a"]], metrics=["BLEU"], use_stemmer=True)
    assert "(BLEU)" in noted(card, "option_not_read", option="use_stemmer").message


def test_a_group_of_metrics() -> None:
    card = score(["a b"], [["a b"]], metrics=["ROUGE", "ROUGE3"], rouge_types=["rouge2"])
    assert card.metrics["metric"].unique(maintain_order=True).to_list() == ["ROUGE2", "ROUGE3"]


def test_unicode_tokens() -> None:
    ours, theirs = ["naïve café", "我爱你", "मैं जाता हूँ"], [["naïve café"], ["我恨你"], ["मैं जाता हूँ"]]
    ascii_only = score(ours, theirs, metrics=["ROUGE1"])
    every = score(ours, theirs, metrics=["ROUGE1"], rouge_tokenizer="unicode")
    assert values(ascii_only, "ROUGE1")[1:] == [0.0, 0.0]
    assert values(every, "ROUGE1") == [1.0, pytest.approx(2 / 3), 1.0]
    assert every.metrics["parameters"][0] == '{"rouge_tokenizer": "unicode"}'


def test_slices_sum_their_own_counts() -> None:
    table = pl.DataFrame(
        {
            "text": ["a b c d e", "a b x d", "q", "a b c d f"],
            "reference": ["a b c d e", "a b c d", "r s", "a b c d e"],
            "part": ["one", "one", "two", "two"],
        }
    )
    metrics = ["CorpusBLEU", "chrF", "TER", "WER", "ROUGE1"]
    card = ee.score(table, metrics=metrics, by="part")
    for part in ("one", "two"):
        alone = ee.score(table.filter(part=part), metrics=metrics)
        for metric in metrics:
            found = card.value(metric, slice="part", slice_value=part)
            assert found == alone.value(metric), (metric, part)
    assert card.value("WER") == pytest.approx(4 / 16)


def test_plain_calls() -> None:
    ours, theirs = ["the cat sat", "a dog"], [["a cat sat", "the dog sat"], "a dog"]
    result = ee.rouge(ours, theirs, rouge_types=["rouge1"])
    assert result == [{"rouge1": pytest.approx(2 / 3)}, {"rouge1": 1.0}]
    assert ee.rouge(ours[0], theirs[0], rouge_types=["rouge1"]) == result[0]
    assert ee.bleu(["a b c d"], ["a b c d"]) == [1.0]
    assert ee.bleu("a b", ["x", "a b"], weights=[0.5, 0.5]) == 1.0
    with pytest.raises(ee.InputError, match="same length: 2 and 1"):
        ee.rouge(ours, ["a"])
    with pytest.raises(ee.InputError, match="references of text 1"):
        ee.rouge(ours, ["a", []])
    with refused("wrong_type", row=0):
        ee.bleu([3], ["a"])  # type: ignore[list-item]


def test_a_topic_next_to_texts_is_not_a_query() -> None:
    ours = pl.DataFrame({"datum_id": [1, 2], "text": ["a b", "c"], "topic": ["x", "y"]})
    theirs = pl.DataFrame({"datum_id": [1, 2], "text": ["a b", "d"]})
    card = ee.score(ours, theirs, by="topic")
    assert card.task == "text"
    assert card.value("ROUGE1", slice="topic", slice_value="x") == 1.0
    named = ours.rename({"datum_id": "id"})
    assert ee.score(named, theirs.rename({"datum_id": "id"})).task == "text"
    assert ee.score(ours, theirs.with_columns(topic=pl.lit("x"))).task == "text"
    # A topic that identifies the rows is a query, and so is one next to documents.
    queries = pl.DataFrame({"topic": ["x", "y"], "text": ["a b", "c"]})
    assert ee.score(queries, queries).task == "retrieval"
    run = pl.DataFrame({"id": [1], "topic": ["x"], "docno": ["d"], "score": [0.5]})
    judged = pl.DataFrame({"topic": ["x"], "docno": ["d"], "relevance": [1]})
    assert ee.score(run, judged).task == "retrieval"


@pytest.mark.parametrize("rows", [0, 1])
def test_without_datums_no_other_reason_is_given(rows: int) -> None:
    card = score(["a"] * rows, [[]] * rows, metrics=["ROUGE1", "BLEU", "WER", "FleschReadingEase"])
    assert card.metrics["value"].null_count() == card.metrics.height
    assert set(card.metrics["reason"].str.head(8)) == {"no datum"}


def test_a_dotted_capital_i_does_not_change_stems_of_other_rows() -> None:
    """Each distinct token is stemmed once, from its first occurrence: here half of "İ"."""
    texts = ["İzmir", "I agree", "i runs"]
    card = score(texts, [[text] for text in texts], metrics=["ROUGE1"], use_stemmer=True)
    assert values(card, "ROUGE1") == [1.0, 1.0, 1.0]
    card = score(texts, [["I"], ["i agrees"], ["I run"]], metrics=["ROUGE1"], use_stemmer=True)
    assert values(card, "ROUGE1") == pytest.approx([2 / 3, 1.0, 1.0])


def test_null_texts_may_be_empty_texts(tmp_path: Path) -> None:
    """An unquoted empty field of a CSV is null; it is scored like a quoted one."""
    for name, field in (("null", ""), ("empty", '""')):
        (tmp_path / f"{name}.csv").write_text(
            f"id,text,reference\n1,{field},hello world\n2,how are you,how are you\n"
        )
    want = ee.score(tmp_path / "empty.csv", metrics=["WER"]).value("WER")
    with refused("null_values", side="table", column="text", count=1, rows=[0]):
        ee.score(tmp_path / "null.csv", metrics=["WER"])
    card = ee.score(tmp_path / "null.csv", metrics=["WER"], nulls="empty")
    assert card.value("WER") == want == pytest.approx(0.4)
    texts = {"text": ["a", None], "reference": [["a", None], None]}
    filled = {"text": ["a", ""], "reference": [["a", ""], [""]]}
    for one in ("ROUGE1", "chrF"):
        got = ee.score(texts, metrics=[one], nulls="empty")
        assert got.per_datum["value"].equals(ee.score(filled, metrics=[one]).per_datum["value"])


@pytest.mark.parametrize("side", ["predictions", "references"])
def test_missing_values_as_text(side: str) -> None:
    texts = pl.Series([f"the cat {i}" for i in range(40)])
    for step, severity in ((4, "warning"), (10, "note")):
        odd = pl.select(pl.when(pl.int_range(40) % step == 0).then(pl.lit("nan")).otherwise(texts))
        pair = (odd.to_series(), texts) if side == "predictions" else (texts, odd.to_series())
        table = pl.DataFrame({"prediction": pair[0], "reference": pair[1]})
        card = ee.score(table, metrics=["ROUGEL"])
        noted(card, "missing_as_text", count=40 // step, side=side, severity=severity)
    both = pl.DataFrame({"prediction": odd.to_series(), "reference": odd.to_series()})
    codes = {one.code for one in ee.score(both, metrics=["ROUGEL"]).findings}
    assert "missing_as_text" not in codes


def test_metrics_of_other_tools_are_noted() -> None:
    table = pl.DataFrame({"response": ["a b"], "reference": ["a c"], "faithfulness": [0.5]})
    card = ee.score(table, metrics=["ROUGE1"])
    assert noted(card, "unread_column", severity="note", count=1)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 129])
def test_subsequences_of_any_length(n: int) -> None:
    """Lengths around the 64 bits of a word; every third word of the reference is missing."""
    words = [f"w{i}" for i in range(n)]
    texts = {"prediction": [" ".join(words[::3])], "reference": [" ".join(words)]}
    card = ee.score(pl.DataFrame(texts), metrics=["ROUGEL"])
    assert card.value("ROUGEL", statistic="recall") == len(words[::3]) / n
