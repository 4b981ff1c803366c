"""Results of the text benchmark as Markdown."""

from __future__ import annotations

from functools import partial
from typing import Any

import section_reporting
from section_reporting import OURS, Line, Words, is_ours, ratio

SETS = {
    "rouge-short": ("1,000,000 pairs of 20 words", 1_000_000),
    "rouge-long": ("2,000 pairs of 3,000 words", 2_000),
}
WHAT = {
    "rouge": "ROUGE-1, -2, -L and -Lsum",
    "rouge-first": "A first run of ROUGE-1, -2, -L and -Lsum",
    "rouge-stemmed": "ROUGE-1, -2, -L and -Lsum, stemmed",
    "rouge-short": "ROUGE-1, -2, -L and -Lsum",
    "rouge-long": "ROUGE-1, -2, -L and -Lsum",
    "bleu": "Sentence BLEU",
    "bleu-13a": "Sentence BLEU, tokenizer 13a",
    "corpus-bleu": "Corpus BLEU, tokenizer 13a",
    "chrf": "chrF",
    "wer": "Word error rate",
    "cer": "Character error rate",
    "ter": "Translation edit rate",
}
LIMITS = {
    "rouge": 1.0,
    "rouge-stemmed": 1.0,
    "bleu": 0.5,
    "bleu-13a": 0.5,
    "corpus-bleu": 0.5,
    "chrf": 1 / 3,
    "wer": 0.5,
    "cer": 0.5,
    "ter": 0.1,
}
"""Section -> target for CPU, as a share of the best peer's."""
WORDS_ABOUT = (
    "Texts are their references with 5 to 60 percent of the words replaced and 5 percent"
    " removed; words are made up, their frequencies falling as natural ones do. "
)
NOTES = {
    section: WORDS_ABOUT
    + {
        "rouge-first": "Without a cache: no compiled kernels are on disk. As a whole"
        " process it compiles them, in"
        " process it compiled them while it warmed up.",
        "chrf": "fastchrf scores pair by pair, which is less than the corpus needs; its values are"
        " not compared. It counts all the same as a peer.",
        "rouge-long": "rouge-score-rs scores every 20th pair; its figures are 20 times that"
        " sample, plus reading once.",
        "bleu-13a": "bleuscore is called once for each pair, since it has no values of pairs"
        " otherwise. sacrebleu scores every 20th pair; its figures are 20 times that sample,"
        " plus reading once.",
        "ter": "sacrebleu scores every 100th pair; its figures are 100 times that sample, plus"
        " reading once.",
    }.get(section, "")
    for section in WHAT
}


def title(result: dict[str, Any]) -> str:
    section = result["section"]
    pairs = SETS.get(section, ("20,000 pairs of 60 words", 20_000))[0]
    scale = "" if result["scale"] == 1 else f", {result['scale']:g} of it"
    return f"{WHAT[section]}, {pairs}{scale}"


def goals(result: dict[str, Any], peers: list[str]) -> list[Line]:
    """Ratios to the best peers."""
    contenders, section = result["contenders"], result["section"]
    everybody = [name for name in contenders if not is_ours(name)]
    peers = everybody if section == "chrf" else peers
    return [
        (
            "in process, CPU, against the thriftiest peer",
            ratio(contenders, "in_process", "total_cpu", peers),
            LIMITS.get(section),
        ),
        (
            "in process, wall, against the fastest peer",
            ratio(contenders, "in_process", "total_wall", peers),
            None,
        ),
        (
            "peak memory, against the leanest peer",
            ratio(contenders, "whole", "peak_mb", peers),
            None,
        ),
    ]


NAMES = OURS | {"evalengine-1-cold": "**evalengine**, 1 thread, no cache"}
page = partial(section_reporting.page, Words("text", title, goals, names=NAMES, notes=NOTES))
