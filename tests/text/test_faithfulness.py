"""DeterministicFaithfulness: continuous-eval's vectors, and rouge and NLTK by sentence."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lazy_imports import LazyModule
from reference_data import known_answers
from refusals import refused
from sizes import tune
from text.scoring import TEXTS, values
from text.test_continuous_eval import TEXT, overlap, rouge_l

import evalengine as ee
from evalengine.tasks.encoding import sentences_of

bleu_score = LazyModule("nltk.translate.bleu_score")

METRICS = {
    "rouge_faithfulness": "RougeFaithfulness",
    "token_overlap_faithfulness": "TokenOverlapFaithfulness",
    "bleu_faithfulness": "BLEUFaithfulness",
}
_SHORT = re.compile(r"(?<=[.!?])\s+")
"""Sentence splitter of the vectors, because Punkt was not available."""


def score(texts: list[str], contexts: list[list[str] | None], **named: Any) -> Any:
    """Score texts and contexts, all with the same reference."""
    columns: dict[str, Any] = {"text": texts, "contexts": contexts}
    table = pl.DataFrame(columns, schema={"text": pl.String, "contexts": TEXTS})
    given = {"task": "text", "metrics": ["DeterministicFaithfulness"], **named}
    return ee.score(table.with_columns(reference=pl.lit("none")), **given)


def same(found: float | None, wanted: float | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-300)


def bleu(text: str, context: str) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(bleu_score.sentence_bleu([context], text))


def test_vectors() -> None:
    cases = known_answers("retrieval", "continuous_eval_other.json")["text"]
    for case in cases:
        wanted = case["faithfulness"]
        sentences = [one for one in _SHORT.split(case["answer"].strip()) if one]
        if "error" in wanted:  # no sentence: a division by zero there
            assert values(score([""], [case["retrieved_context"]]), "BLEUFaithfulness") == [None]
            continue
        card = score(sentences, [case["retrieved_context"]] * len(sentences))
        for key, metric in METRICS.items():
            assert same(card.value(metric), wanted[key]), case
        whole = score([case["answer"]], [case["retrieved_context"]])
        if len(sentences_of(pl.Series([case["answer"]]))[0]) == len(sentences):
            for key, metric in METRICS.items():
                assert same(values(whole, metric)[0], wanted[key]), case
    assert len(cases) == 7


def slow(text: str, contexts: list[str], threshold: float) -> dict[str, float | None]:
    """Reference implementation by sentence, in plain Python."""
    context = "\n".join(contexts)
    sentences = sentences_of(pl.Series([text]))[0].to_list()
    if not contexts or not sentences:
        return dict.fromkeys(METRICS)
    rouge = [rouge_l(one, context) for one in sentences]
    by_words = [overlap(one, context)["p"] >= threshold for one in sentences]
    by_rouge = [one["p"] >= threshold for one in rouge if one is not None]
    known = len(by_rouge) == len(sentences)
    return {
        "rouge_faithfulness": sum(by_rouge) / len(sentences) if known else None,
        "token_overlap_faithfulness": sum(by_words) / len(sentences),
        "bleu_faithfulness": sum(bleu(one, context) for one in sentences) / len(sentences),
    }


CASES = st.lists(st.tuples(TEXT, st.lists(TEXT, max_size=3)), min_size=1, max_size=4)


@settings(max_examples=12)
@given(CASES, st.sampled_from([0.0, 0.3, 0.5, 1.0]))
@example([("A b. C d.", ["A b.", ""]), ("a", []), ("", ["a"]), ("a b. . . !", ["..."])], 0.5)
def test_against_slow_references(cases: list[tuple[str, list[str]]], threshold: float) -> None:
    card = score(
        [text for text, _ in cases], [some for _, some in cases], faithfulness_threshold=threshold
    )
    wanted = [slow(text, contexts, threshold) for text, contexts in cases]
    for key, metric in METRICS.items():
        for found, case in zip(values(card, metric), wanted, strict=True):
            assert same(found, case[key]), (key, cases)


def test_small_buffers_change_nothing() -> None:
    texts = ["A cat sat. It slept. The end.", "No.", "", "Yes. A dog ran."] * 3
    contexts = [["A cat sat on a mat.", "It slept."], ["Yes."], ["x"], ["A dog ran."]] * 3
    whole = score(texts, contexts)
    tune(text_bytes=30)
    pieces = score(texts, contexts)
    for metric in METRICS.values():
        assert values(whole, metric) == values(pieces, metric)
    assert values(whole, "RougeFaithfulness")[:4] == [2 / 3, 0.0, None, 0.5]


def test_texts_without_a_context() -> None:
    card = score(["A cat.", "A cat.", "", "A cat."], [["A cat."], [], ["x"], ["..."]])
    found = card.per_datum.filter(pl.col("metric") == "RougeFaithfulness")
    assert found["value"].to_list() == [1.0, None, None, None]
    assert found["status"].to_list() == ["scored", "no_context", "undefined", "undefined"]
    row = card.metrics.row(0, named=True)
    assert (row["support"], row["scored"], row["value"]) == (4, 1, 1.0)
    none = score(["A cat.", ""], [[], ["x"]])
    (reason,) = set(none.metrics["reason"])
    assert "no contexts" in reason
    assert "no sentence" in reason
    table = pl.DataFrame({"text": ["a"], "reference": ["a"]})
    without = ee.score(table, metrics=["DeterministicFaithfulness", "ROUGE1"])
    assert without.value("ROUGE1") == 1.0
    (reason,) = set(without.metrics.filter(pl.col("value").is_null())["reason"])
    assert reason.endswith("no contexts")
    assert "no_context" in without.per_datum["status"].to_list()


def test_columns_of_contexts() -> None:
    one = pl.DataFrame({"text": ["A b."], "reference": ["x"], "context": ["A b."]})
    assert ee.score(one, task="text", metrics="rouge_faithfulness").value("RougeFaithfulness") == 1
    ours = pl.DataFrame(
        {"datum_id": [1, 2, 3], "text": ["A b.", "C.", "D."], "contexts": [["A b."], ["x"], ["D."]]}
    )
    theirs = pl.DataFrame({"datum_id": [3, 1, 9], "text": ["x", "y", "z"]})
    card = ee.score(ours, theirs, task="text", metrics="RougeFaithfulness")
    assert values(card, "RougeFaithfulness") == [1.0, None, 1.0, None]
    nulls = pl.DataFrame(
        {"text": ["A b.", "A b."], "reference": ["x", "x"], "contexts": [["A b.", None], None]}
    )
    with refused("null_values", column="contexts", count=1) as caught:
        ee.score(nulls, metrics="RougeFaithfulness")
    (lists,) = [one for one in caught.value.problems if one.kind == "null_in_list"]
    assert (lists.column, lists.count) == ("contexts", 1)
    card = ee.score(nulls, metrics="RougeFaithfulness", nulls="skip")
    assert values(card, "RougeFaithfulness") == [1.0, None]
    assert ee.score(nulls, metrics="ROUGE1").value("ROUGE1") == 0.0, "contexts are not read"
    assert ee.score(nulls).value("ROUGE1") == 0.0
    with pytest.raises(ee.InputError, match="'contexts' has dtype"):
        ee.score(nulls.with_columns(contexts=1.5), metrics="RougeFaithfulness")


def test_threshold() -> None:
    card = score(["a b c d."], [["a b x."]], faithfulness_threshold=0.6)
    assert card.value("RougeFaithfulness") == 0.0
    assert score(["a b c d."], [["a b x."]]).value("RougeFaithfulness") == 1.0
    by_name = dict(card.metrics.select("metric", "parameters").rows())
    assert by_name["RougeFaithfulness"] == '{"faithfulness_threshold": 0.6}'
    assert by_name["BLEUFaithfulness"] is None
    with refused("option_value", ee.OptionError, value=1.5):
        score(["a"], [["a"]], faithfulness_threshold=1.5)
