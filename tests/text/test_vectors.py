"""rouge-score's, nltk's, sacrebleu's and Valor's known answers."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from known import known_answers
from text.scoring import score, values

NAMES = {"rouge1": "ROUGE1", "rouge2": "ROUGE2", "rouge3": "ROUGE3", "rougeL": "ROUGEL"}
NAMES["rougeLsum"] = "ROUGELsum"
STATISTICS = {"fmeasure": None, "precision": "precision", "recall": "recall"}
SACREBLEU_SMOOTHINGS = ("none", "floor", "add-k", "exp")


def close(found: float | None, wanted: float | None) -> bool:
    """To 1e-12, or both undefined."""
    if found is None or wanted is None:
        return found is wanted
    return math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.parametrize(("group", "stems"), [("plain", False), ("stem", True)])
def test_rouge(group: str, stems: bool) -> None:
    cases = known_answers("text", "rouge_score.json")["single"]
    card = score(
        [case["prediction"] for case in cases],
        [[case["reference"]] for case in cases],
        dialect="rouge-score",
        rouge_types=list(NAMES),
        use_stemmer=stems,
    )
    for key, metric in NAMES.items():
        for name, statistic in STATISTICS.items():
            wanted = [case[group][key][name] for case in cases]
            assert values(card, metric, statistic) == wanted, (key, name)


def test_rouge_of_several_references() -> None:
    cases = known_answers("text", "rouge_score.json")["score_multi"]
    card = score(
        [case["prediction"] for case in cases],
        [case["references"] for case in cases],
        dialect="rouge-score",
        rouge_types=list(NAMES),
    )
    for key, metric in NAMES.items():
        for name, statistic in STATISTICS.items():
            wanted = [case["scores"][key][name] for case in cases]
            assert values(card, metric, statistic) == wanted, (key, name)


def bleu_cases() -> tuple[list[Any], list[str], list[list[str]]]:
    """Cases of BLEU with their texts."""
    cases = known_answers("text", "bleu_nltk.json")["sentence"]
    return cases, [c["prediction"] for c in cases], [c["references"] for c in cases]


@pytest.mark.parametrize("dialect", ["nltk", "valor", "standard"])
def test_sentence_bleu(dialect: str) -> None:
    cases, ours, theirs = bleu_cases()
    key = "nltk_raw" if dialect == "nltk" else "valor_bleu"
    for weights in cases[0][key]:
        card = score(
            ours,
            theirs,
            dialect=dialect,
            metrics=["BLEU"],
            tokenizer="words",
            bleu_weights=json.loads(weights),
        )
        for found, case in zip(values(card, "BLEU"), cases, strict=True):
            wanted = case[key][weights]
            assert close(found, wanted), (case, weights, found)
            if wanted:  # values of 1e-231 too
                assert found == pytest.approx(wanted, rel=1e-11)


def test_smoothing() -> None:
    cases, ours, theirs = bleu_cases()
    for method in cases[0]["nltk_smoothing"]:
        card = score(
            ours, theirs, dialect="nltk", metrics=["BLEU"], tokenizer="words", smoothing=method
        )
        for found, case in zip(values(card, "BLEU"), cases, strict=True):
            wanted = case["nltk_smoothing"][method]
            wanted = None if isinstance(wanted, str) else wanted  # an assertion there
            assert close(found, wanted), (case, method, found)


def test_continuous_eval() -> None:
    cases, ours, theirs = bleu_cases()
    card = score(ours, [one[:1] for one in theirs], dialect="continuous-eval")
    for found, case in zip(values(card, "BLEU"), cases, strict=True):
        assert close(found, case["char_level_bleu_continuous_eval"]), (case, found)
    card = score(["abc def", " A "], [["xyz", "abc dxf"], ["a"]], dialect="continuous-eval")
    alone = score(["abc def"], [["abc dxf"]], dialect="continuous-eval")
    assert values(card, "BLEU")[0] == values(alone, "BLEU")[0]
    assert values(card, "ExactMatch") == [0.0, 1.0]


def test_corpus_bleu() -> None:
    pairs = known_answers("text", "sacrebleu.json")["corpus"]["pairs"]
    several = {case["prediction"]: case["references"] for case in bleu_cases()[0]}
    ours = [ours for _, ours in pairs]
    theirs = [several.get(ours, [theirs]) for theirs, ours in pairs]
    compared = 0
    for case in known_answers("text", "bleu_nltk.json")["corpus"]:
        if len(case["indices"]) != len(pairs):
            continue
        card = score(
            ours,
            theirs,
            dialect="nltk",
            metrics=["CorpusBLEU"],
            tokenizer="words",
            bleu_weights=case["weights"],
        )
        assert close(card.value("CorpusBLEU"), case["value"]), case
        compared += 1
    assert compared == 4


def test_sacrebleu_by_sentence() -> None:
    cases = known_answers("text", "sacrebleu.json")["sentence"]
    ours, theirs = [c["prediction"] for c in cases], [c["references"] for c in cases]
    for tokenizer in ("13a", "none", "char", "intl", "zh"):
        card = score(ours, theirs, dialect="sacrebleu", metrics=["BLEU"], tokenizer=tokenizer)
        for found, case in zip(values(card, "BLEU"), cases, strict=True):
            assert close(found, case[f"bleu_{tokenizer}"]), (case, tokenizer, found)
    card = score(ours, theirs, dialect="sacrebleu", metrics=["BLEU"], lowercase=True)
    for found, case in zip(values(card, "BLEU"), cases, strict=True):
        assert close(found, case["bleu_lowercase"])
    card = score(ours, theirs, dialect="sacrebleu", metrics=["chrF", "chrF++", "TER"])
    for metric, key in (("chrF", "chrf"), ("chrF++", "chrf++"), ("TER", "ter")):
        for found, case in zip(values(card, metric), cases, strict=True):
            assert close(found, case[key]), (metric, case, found)


@pytest.mark.parametrize("smoothing", SACREBLEU_SMOOTHINGS)
def test_sacrebleu_smoothing(smoothing: str) -> None:
    """Its class smooths a sentence as a corpus of one."""
    for case in known_answers("text", "sacrebleu.json")["sentence"]:
        card = score(
            [case["prediction"]],
            [case["references"]],
            dialect="sacrebleu",
            metrics=["CorpusBLEU"],
            smoothing=smoothing,
        )
        assert close(card.value("CorpusBLEU"), case[f"bleu_smooth_{smoothing}"]), case


def test_sacrebleu_of_a_corpus() -> None:
    corpus = known_answers("text", "sacrebleu.json")["corpus"]
    ours = [prediction for _, prediction in corpus["pairs"]]
    theirs = [[reference] for reference, _ in corpus["pairs"]]
    card = score(ours, theirs, dialect="sacrebleu", metrics=["CorpusBLEU", "chrF", "TER"])
    assert close(card.value("CorpusBLEU"), corpus["score"])
    assert close(card.value("chrF"), corpus["chrf"])
    assert close(card.value("TER"), corpus["ter"])


def test_valor() -> None:
    cases = known_answers("valor", "text_rouge_bleu.json")["cases"]
    assert {case["metric"] for case in cases} == {"ROUGE", "BLEU"}
    for case in cases:
        texts = [case["prediction"]], [case["references"]]
        if case["metric"] == "ROUGE":
            given = case["parameters"]
            card = score(
                *texts,
                dialect="valor",
                metrics=["ROUGE"],
                rouge_types=given["rouge_types"],
                use_stemmer=given["use_stemmer"],
            )
            (entry,) = card.to_valor()
            assert entry["type"] == "ROUGE"
            assert entry["value"] == pytest.approx(case["expected"], abs=1e-12), case["id"]
            continue
        weights = case["parameters"]["weights"]
        card = score(*texts, dialect="valor", metrics=["BLEU"], bleu_weights=weights)
        (entry,) = card.to_valor()
        assert entry["type"] == "BLEU"
        assert close(entry["value"], case["expected"]), case["id"]
