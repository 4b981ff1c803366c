"""Run one evaluator in one process; text.py starts it once per measurement.

    python text_contenders.py SECTION/CONTENDER FOLDER [WARM_UP_FOLDER]

Prints the line of JSON of contender.py: wall and CPU seconds of the import and of the step from
Parquet to values, the peak resident memory, and the values. Needs only the evaluator and Polars,
which reads the table for those without a reader.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Last, so that module names of this folder do not shadow the contenders' own dependencies.
sys.path.append(str(Path(__file__).resolve().parent))

from contender import Lap, Run, Version, answer, in_one_step

Texts = list[str]
TYPES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
OF_RUST = ["rouge1", "rouge2", "rougeL"]
SAMPLED = {"rouge-long": 20, "ter": 100, "bleu-13a": 20}
"""Section -> slow peers process every n-th pair."""

ASKED: dict[str, dict[str, Any]] = {
    "rouge": {"metrics": ["ROUGE"]},
    "rouge-first": {"metrics": ["ROUGE"]},
    "rouge-stemmed": {"metrics": ["ROUGE"], "use_stemmer": True},
    "rouge-short": {"metrics": ["ROUGE"]},
    "rouge-long": {"metrics": ["ROUGE"]},
    "bleu": {"metrics": ["BLEU"], "dialect": "nltk"},
    "bleu-13a": {"metrics": ["BLEU"], "tokenizer": "13a"},
    "corpus-bleu": {"metrics": ["CorpusBLEU"], "dialect": "sacrebleu", "smoothing": "none"},
    "chrf": {"metrics": ["chrF"], "dialect": "sacrebleu"},
    "wer": {"metrics": ["WER"]},
    "cer": {"metrics": ["CER"]},
    "ter": {"metrics": ["TER"], "dialect": "sacrebleu"},
}
"""Section -> options of evalengine."""
BY_PAIR = ("rouge-long", "ter", "bleu-13a")
"""Sections with values per pair, not of the corpus."""


def columns(folder: Path) -> tuple[Texts, Texts]:
    """Read texts and references by Polars."""
    import polars as pl

    table = pl.read_parquet(folder / "table.parquet")
    return table["text"].to_list(), table["reference"].to_list()


def evalengine(section: str, contender: str) -> Run:
    """`evalengine-N`: N threads; `-cold` finds no compiled kernels."""
    if contender.endswith("-cold"):
        folder = tempfile.mkdtemp(prefix="cold-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["EVALENGINE_CACHE_DIR"] = folder
    import polars as pl

    import evalengine as ee

    threads = int(contender.split("-")[1])

    def run(folder: Path) -> list[float | None]:
        card = ee.score(folder / "table.parquet", threads=threads, **ASKED[section])
        if section in BY_PAIR:
            own = card.per_datum.filter(pl.col("statistic").is_null())
            columns = own.partition_by("metric", maintain_order=True)
            return [x for pair in zip(*(c["value"] for c in columns), strict=True) for x in pair]
        return card.metrics.filter(pl.col("statistic").is_null())["value"].to_list()

    return in_one_step(run)


def means(scores: list[Any], types: list[str]) -> list[float]:
    """Return the mean F of each type."""
    return [sum(score[name].fmeasure for score in scores) / len(scores) for name in types]


def rouge_score(section: str, _contender: str) -> Run:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(TYPES, use_stemmer=section == "rouge-stemmed")

    def run(folder: Path) -> list[float]:
        ours, theirs = columns(folder)
        return means([scorer.score(r, p) for p, r in zip(ours, theirs, strict=True)], TYPES)

    return in_one_step(run)


def rouge_score_rs(section: str, _contender: str) -> Run:
    from rouge_score_rs import RougeScorer

    scorer = RougeScorer(TYPES, use_stemmer=section == "rouge-stemmed")

    def run(folder: Path, lap: Lap) -> list[float]:
        ours, theirs = columns(folder)
        if section not in BY_PAIR:
            scores = means(scorer.score_batch(theirs, ours), TYPES)
            lap("evaluate")
            return scores
        lap("load")
        step = SAMPLED[section]
        some = scorer.score_batch(theirs[::step], ours[::step])
        scores = [float(score[name].fmeasure) for score in some for name in TYPES]
        lap("evaluate", round(len(ours) / len(some)))
        return scores

    return run


def nltk(_section: str, _contender: str) -> Run:
    """Sentence BLEU of texts split at spaces."""
    import warnings

    from nltk.translate.bleu_score import sentence_bleu

    warnings.simplefilter("ignore")

    def run(folder: Path) -> list[float]:
        ours, theirs = columns(folder)
        scores = [sentence_bleu([r.split()], p.split()) for p, r in zip(ours, theirs, strict=True)]
        return [sum(scores) / len(scores)]

    return in_one_step(run)


def sacrebleu(section: str, _contender: str) -> Run:
    from sacrebleu import CHRF, TER
    from sacrebleu.metrics.bleu import BLEU

    plain = partial(BLEU, smooth_method="none")
    made = {"corpus-bleu": plain, "bleu-13a": plain, "chrf": CHRF, "ter": TER}[section]
    # evalengine's BLEU is at most 1, and sacrebleu's at most 100
    unit = 0.01 if section == "bleu-13a" else 1.0

    def run(folder: Path, lap: Lap) -> list[float]:
        ours, theirs = columns(folder)
        scorer = made()
        if section not in BY_PAIR:
            scores = [scorer.corpus_score(ours, [theirs]).score]
            lap("evaluate")
            return scores
        lap("load")
        some = range(0, len(ours), SAMPLED[section])
        scores = [unit * scorer.sentence_score(ours[i], [theirs[i]]).score for i in some]
        lap("evaluate", round(len(ours) / len(scores)))
        return scores

    return run


def bleuscore(section: str, _contender: str) -> Run:
    """One call for the corpus, or one per pair, because it has no other way to those values."""
    from bleuscore import compute

    def corpus(ours: Texts, theirs: Texts) -> float:
        return float(compute(references=[[one] for one in theirs], predictions=ours)["bleu"])

    def run(folder: Path) -> list[float]:
        ours, theirs = columns(folder)
        if section in BY_PAIR:
            return [corpus([p], [r]) for p, r in zip(ours, theirs, strict=True)]
        return [100 * corpus(ours, theirs)]

    return in_one_step(run)


def fastchrf(_section: str, _contender: str) -> Run:
    """One call per pair's statistics, in the form of its aggregate."""
    from fastchrf import pairwise_chrf

    def run(folder: Path) -> list[float | None]:
        ours, theirs = columns(folder)
        pairwise_chrf([[one] for one in ours], [[one] for one in theirs])
        return [None]  # of every pair, not of the corpus

    return in_one_step(run)


def jiwer(section: str, _contender: str) -> Run:
    import jiwer as package

    measure = {"wer": package.wer, "cer": package.cer}[section]

    def run(folder: Path) -> list[float]:
        ours, theirs = columns(folder)
        return [measure(theirs, ours)]

    return in_one_step(run)


MAKERS: dict[str, Callable[[str, str], Run]] = {
    "evalengine": evalengine,
    "rouge-score-rs": rouge_score_rs,
    "rouge-score": rouge_score,
    "nltk": nltk,
    "sacrebleu": sacrebleu,
    "bleuscore": bleuscore,
    "fastchrf": fastchrf,
    "jiwer": jiwer,
}
"""Prefix of a contender's name -> its preparation; the first that fits is used."""


def prepare(name: str) -> tuple[Run, Version]:
    """Import the contender and return its function and version."""
    section, contender = name.split("/")
    start = next(start for start in MAKERS if contender.startswith(start))
    return MAKERS[start](section, contender), partial(version, start)


if __name__ == "__main__":
    answer(prepare)
