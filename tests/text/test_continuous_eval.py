"""continuous-eval: known answers, the package rouge, and overlap in plain Python."""

from __future__ import annotations

import re
import string

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lazy_imports import LazyModule
from reference_data import known_answers
from refusals import refused
from rouge import Rouge
from text.scoring import score, values

from evalengine.tasks.text.pairs import FUNCTION_WORDS

DIALECT = "continuous-eval"
CORRECTNESS = {
    "rouge_l_f1": ("ROUGEL", None),
    "rouge_l_precision": ("ROUGEL", "precision"),
    "rouge_l_recall": ("ROUGEL", "recall"),
    "token_overlap_f1": ("TokenF1", None),
    "token_overlap_precision": ("TokenPrecision", None),
    "token_overlap_recall": ("TokenRecall", None),
    "bleu_score": ("BLEU", None),
}
TOKENS = {"f": "TokenF1", "p": "TokenPrecision", "r": "TokenRecall"}
STATISTICS = {"f": None, "p": "precision", "r": "recall"}
destructive = LazyModule("nltk.tokenize.destructive")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_WORDS = "a b c. d The the not cannot wanna gonna gonna, 7 007 1e3 1000 9007199254740993"
_WORDS += (
    " 9007199254740992 $7.0 don't … x…cannot…cannot é ² ٣ 3 . .. ! of-the \u3000 inf 1e999 \x1f"
)
TEXT = st.one_of(
    st.lists(st.sampled_from(_WORDS.split(" ")), max_size=25).map(" ".join),
    st.text("ab. \n!\xa0", max_size=30),
    st.text(st.characters(max_codepoint=0x24F, exclude_categories=("Cs", "Cn")), max_size=20),
)


def test_correctness() -> None:
    cases = known_answers("retrieval", "continuous_eval_other.json")["text"]
    card = score(
        [case["answer"] for case in cases],
        [case["ground_truth_answers"] for case in cases],
        dialect=DIALECT,
    )
    for key, (metric, statistic) in CORRECTNESS.items():
        for case, found in zip(cases, values(card, metric, statistic), strict=True):
            wanted = case["correctness"][key]
            assert found == pytest.approx(wanted, rel=1e-12, abs=1e-300), (case["answer"], key)
    assert values(card, "ExactMatch") == [case["match"]["match"] for case in cases]
    assert len(cases) == 7


def test_rouge_of_the_vectors() -> None:
    cases = known_answers("text", "continuous_eval.json")["py_rouge"]
    ours, theirs = [case["hyp"] for case in cases], [[case["ref"]] for case in cases]
    card = score(ours, theirs, dialect=DIALECT, metrics=["ROUGEL"])
    for part, statistic in STATISTICS.items():
        wanted = [case["value"]["rouge-l"][part] for case in cases]
        assert values(card, "ROUGEL", statistic) == wanted


def rouge_l(ours: str, theirs: str) -> dict[str, float] | None:
    """Compute the package's values with continuous-eval's arguments; None for an error."""
    if all(letter in string.punctuation for letter in ours):
        return {"p": 0.0, "r": 0.0, "f": 0.0}
    try:
        result: dict[str, float] = Rouge(metrics=["rouge-l"]).get_scores(ours, theirs)[0]["rouge-l"]
    except ValueError:
        return None
    return result


def tokens(text: str) -> list[str | float]:
    """Return content words, one rule after the other."""
    bare = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    rest = " ".join(word for word in bare.split() if word not in FUNCTION_WORDS)
    rest = f" {rest} "
    known = destructive.MacIntyreContractions
    for pattern in (*known.CONTRACTIONS2, *known.CONTRACTIONS3):
        rest = re.sub(pattern, r" \1 \2 ", rest)
    return [float(one) if _NUMBER.fullmatch(one) else one for one in rest.split()]


def overlap(ours: str, theirs: str) -> dict[str, float]:
    left, right = tokens(ours), tokens(theirs)
    both = len(set(left) & set(right))
    p, r = both / max(len(left), 1), both / max(len(right), 1)
    return {"p": p, "r": r, "f": 2 * (p * r / (p + r)) if both else 0.0}


def best(found: list[dict[str, float] | None], part: str) -> float | None:
    return max((one[part] for one in found if one is not None), default=None)


@settings(max_examples=12)
@given(st.lists(st.tuples(TEXT, st.lists(TEXT, min_size=1, max_size=3)), min_size=1, max_size=4))
@example([("a b. c d", ["c d. a b", "...", ""]), ("...", ["a"]), ("a", ["."]), (" ", [" "])])
@example([("x\u2026cannot\u2026cannot wanna", ["can not na", "wan na wanna"])])
def test_against_slow_references(cases: list[tuple[str, list[str]]]) -> None:
    ours, theirs = [one for one, _ in cases], [some for _, some in cases]
    metrics = ["ROUGEL", *TOKENS.values()]
    card = score(ours, theirs, dialect=DIALECT, metrics=metrics)
    rouge = [[rouge_l(one, other) for other in some] for one, some in cases]
    shared = [[overlap(one, other) for other in some] for one, some in cases]
    for part, statistic in STATISTICS.items():
        assert values(card, "ROUGEL", statistic) == [best(one, part) for one in rouge], part
        assert values(card, TOKENS[part]) == [best([*one], part) for one in shared], part


def test_long_sentences() -> None:
    """Rows of the table are longer than a machine word, and buffers grow."""
    ours = " ".join(f"w{i * 7 % 150}" for i in range(300)) + ". " + "w1 w2 w3 " * 9
    theirs = " ".join(f"w{i * 11 % 170}" for i in range(280)) + ". w5 w4"
    card = score([ours, theirs], [[theirs], [ours]], dialect=DIALECT, metrics=["ROUGEL"])
    for i, wanted in enumerate((rouge_l(ours, theirs), rouge_l(theirs, ours))):
        assert wanted is not None
        assert 0 < wanted["f"] < 1
        for part, statistic in STATISTICS.items():
            assert values(card, "ROUGEL", statistic)[i] == wanted[part]


def test_reference_without_sentences() -> None:
    card = score(["a b", "a b"], [["..."], ["a"]], dialect=DIALECT, metrics=["ROUGEL"])
    assert values(card, "ROUGEL", "precision") == [None, 0.5]
    row = card.metrics.row(0, named=True)
    assert (row["support"], row["scored"]) == (2, 1)
    alone = score(["a b"], [["..."]], dialect=DIALECT, metrics=["ROUGEL"])
    assert all("no sentence" in reason for reason in alone.metrics["reason"])


@pytest.mark.parametrize("given", [{"use_stemmer": True}, {"rouge_tokenizer": "unicode"}])
def test_options_that_its_rouge_has_not(given: dict[str, object]) -> None:
    with refused("options_conflict", dialect="continuous-eval"):
        score(["a"], [["a"]], dialect=DIALECT, **given)


def test_default_set() -> None:
    card = score(["The cat sat.", "No."], [["A cat."], ["Yes."]], dialect=DIALECT)
    assert card.metrics.filter(pl.col("statistic").is_null())["metric"].to_list() == [
        "ROUGEL", "TokenPrecision", "TokenRecall", "TokenF1", "BLEU", "ExactMatch",
    ]  # fmt: skip
