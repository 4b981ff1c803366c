"""Known answers of rouge-score, nltk, sacrebleu and Valor."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from reference_data import known_answers
from text.scoring import score, values

NAMES = {"rouge1": "ROUGE1", "rouge2": "ROUGE2", "rouge3": "ROUGE3", "rougeL": "ROUGEL"}
NAMES["rougeLsum"] = "ROUGELsum"
STATISTICS = {"fmeasure": None, "precision": "precision", "recall": "recall"}
OPTIONS = ("bleu_weights", "rouge_types", "use_stemmer")
SACREBLEU_SMOOTHINGS = ("none", "floor", "add-k", "exp")


def check(found: list[float | None], wanted: list[float | None], *about: Any) -> None:
    """Compare to 1e-12, values of 1e-231 to 1e-11 relatively; or both are undefined."""
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours is None) == (theirs is None), about
        if theirs is not None:
            tiny = 0 < theirs < 1e-12
            near = {"rel": 1e-11, "abs": 0.0} if tiny else {"rel": 1e-12, "abs": 1e-12}
            assert ours == pytest.approx(theirs, **near), about


@pytest.mark.parametrize(
    ("kind", "group", "stems"),
    [("single", "plain", False), ("single", "stem", True), ("score_multi", "scores", False)],
)
def test_rouge(kind: str, group: str, stems: bool) -> None:
    cases = known_answers("text", "rouge_score.json")[kind]
    card = score(
        [case["prediction"] for case in cases],
        [case["references"] if "references" in case else [case["reference"]] for case in cases],
        dialect="rouge-score", rouge_types=list(NAMES), use_stemmer=stems,
    )  # fmt: skip
    for (key, metric), (name, statistic) in product(NAMES.items(), STATISTICS.items()):
        wanted = [case[group][key][name] for case in cases]
        assert values(card, metric, statistic) == wanted, (key, name)


def bleu_cases() -> tuple[list[Any], list[str], list[list[str]]]:
    """Return cases of BLEU with their texts."""
    cases = known_answers("text", "bleu_nltk.json")["sentence"]
    return cases, [c["prediction"] for c in cases], [c["references"] for c in cases]


@pytest.mark.parametrize(
    ("key", "dialect", "option"),
    [
        ("nltk_raw", "nltk", "bleu_weights"),
        ("valor_bleu", "valor", "bleu_weights"),
        ("valor_bleu", "standard", "bleu_weights"),
        ("nltk_smoothing", "nltk", "smoothing"),
    ],
)
def test_sentence_bleu(key: str, dialect: str, option: str) -> None:
    """By weights and by smoothing method."""
    cases, ours, theirs = bleu_cases()
    for written in cases[0][key]:
        given = {option: json.loads(written) if option == "bleu_weights" else written}
        card = score(ours, theirs, dialect=dialect, metrics=["BLEU"], tokenizer="words", **given)
        wanted = [case[key][written] for case in cases]
        wanted = [None if isinstance(one, str) else one for one in wanted]  # an assertion there
        check(values(card, "BLEU"), wanted, written)


def test_continuous_eval() -> None:
    cases, ours, theirs = bleu_cases()
    card = score(ours, [one[:1] for one in theirs], dialect="continuous-eval")
    check(values(card, "BLEU"), [case["char_level_bleu_continuous_eval"] for case in cases])
    card = score(["abc def", " A "], [["xyz", "abc dxf"], ["a"]], dialect="continuous-eval")
    alone = score(["abc def"], [["abc dxf"]], dialect="continuous-eval")
    assert values(card, "BLEU")[0] == values(alone, "BLEU")[0]
    assert values(card, "ExactMatch") == [0.0, 1.0]


def test_corpus_bleu() -> None:
    pairs = known_answers("text", "sacrebleu.json")["corpus"]["pairs"]
    several = {case["prediction"]: case["references"] for case in bleu_cases()[0]}
    ours = [ours for _, ours in pairs]
    theirs = [several.get(ours, [theirs]) for theirs, ours in pairs]
    cases = known_answers("text", "bleu_nltk.json")["corpus"]
    cases = [case for case in cases if len(case["indices"]) == len(pairs)]
    assert len(cases) == 4
    for case in cases:
        card = score(
            ours, theirs, dialect="nltk", metrics=["CorpusBLEU"], tokenizer="words",
            bleu_weights=case["weights"],
        )  # fmt: skip
        check([card.value("CorpusBLEU")], [case["value"]], case)


OF_TOKENS = {f"bleu_{name}": {"tokenizer": name} for name in ("13a", "none", "char", "intl", "zh")}


@pytest.mark.parametrize(
    ("metric", "key", "given"),
    [
        *(("BLEU", key, given) for key, given in OF_TOKENS.items()),
        ("BLEU", "bleu_lowercase", {"lowercase": True}),
        *((metric, metric.lower(), {}) for metric in ("chrF", "chrF++", "TER")),
    ],
)
def test_sacrebleu_by_sentence(metric: str, key: str, given: dict[str, Any]) -> None:
    cases = known_answers("text", "sacrebleu.json")["sentence"]
    ours, theirs = [c["prediction"] for c in cases], [c["references"] for c in cases]
    card = score(ours, theirs, dialect="sacrebleu", metrics=[metric], **given)
    check(values(card, metric), [case[key] for case in cases], key)


@pytest.mark.parametrize("smoothing", SACREBLEU_SMOOTHINGS)
def test_sacrebleu_smoothing(smoothing: str) -> None:
    """Its class smooths a sentence like a corpus of one."""
    for case in known_answers("text", "sacrebleu.json")["sentence"]:
        texts = [case["prediction"]], [case["references"]]
        card = score(*texts, dialect="sacrebleu", metrics=["CorpusBLEU"], smoothing=smoothing)
        check([card.value("CorpusBLEU")], [case[f"bleu_smooth_{smoothing}"]], case)


def test_sacrebleu_of_a_corpus() -> None:
    corpus = known_answers("text", "sacrebleu.json")["corpus"]
    ours = [prediction for _, prediction in corpus["pairs"]]
    theirs = [[reference] for reference, _ in corpus["pairs"]]
    metrics = ["CorpusBLEU", "chrF", "TER"]
    card = score(ours, theirs, dialect="sacrebleu", metrics=metrics)
    check(list(map(card.value, metrics)), [corpus[key] for key in ("score", "chrf", "ter")])


def test_valor() -> None:
    cases = known_answers("valor", "text_rouge_bleu.json")["cases"]
    assert {case["metric"] for case in cases} == {"ROUGE", "BLEU"}
    for case in cases:
        given = dict(case["parameters"])
        if case["metric"] == "BLEU":
            given = {"bleu_weights": given["weights"]}
        given = {
            k: v for k, v in given.items() if k in ("bleu_weights", "rouge_types", "use_stemmer")
        }
        texts = [case["prediction"]], [case["references"]]
        (entry,) = score(*texts, dialect="valor", metrics=[case["metric"]], **given).to_valor()
        assert entry["type"] == case["metric"]
        assert entry["value"] == pytest.approx(case["expected"], rel=1e-12, abs=1e-12), case["id"]
