"""Run one package's calls in one process; compat_text_retrieval.py starts it.

    python compat_text_retrieval_contenders.py SECTION/CONTENDER FOLDER [WARM_UP_FOLDER]

Prints the line of JSON of contender.py. Texts and dicts are in memory when the clock starts. Needs
the package or evalengine, and Polars, which reads the set.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Last, so that module names of this folder do not shadow the contenders' own dependencies.
sys.path.append(str(Path(__file__).resolve().parent))

from contender import Lap, Run, Version, answer

MODULES = {"rouge-score": "rouge_score", "sacrebleu": "sacrebleu", "ranx": "ranx"}
TYPES = ["rouge1", "rouge2", "rougeL"]
METRICS = ["ndcg@10", "map", "mrr", "recall@100", "precision@10"]


def pairs(folder: Path) -> tuple[list[str], list[str]]:
    import polars as pl

    table = pl.read_parquet(folder / "table.parquet")
    return table["text"].to_list(), table["reference"].to_list()


def nested(folder: Path) -> tuple[dict[str, Any], ...]:
    """Return a run and the judgments as dicts of dicts."""
    import polars as pl

    lists = []
    for name in ("run", "qrels"):
        rows = pl.read_parquet(folder / f"{name}.parquet")
        own: dict[str, Any] = {}
        for query, document, number in rows.iter_rows():
            own.setdefault(query, {})[document] = number
        lists.append(own)
    return tuple(lists)


def rouge(package: Any, at_once: bool, inputs: Any) -> Iterator[float]:
    texts, references = inputs
    scorer = package.rouge_scorer.RougeScorer(TYPES, use_stemmer=False)
    if at_once:
        scores = scorer.score_all(references, texts)
    else:
        scores = [scorer.score(*pair) for pair in zip(references, texts, strict=True)]
    return (one[name].fmeasure for one in scores for name in TYPES)


def corpus(package: Any, at_once: bool, inputs: Any) -> list[float]:
    texts, references = inputs
    return [package.corpus_bleu(texts, [references]).score]


def sentences(package: Any, at_once: bool, inputs: Any) -> list[float]:
    texts, references = inputs
    metric = package.BLEU(effective_order=True)
    if at_once:
        return [one.score for one in metric.sentence_scores(texts, [references])]
    both = zip(texts, references, strict=True)
    return [metric.sentence_score(text, [reference]).score for text, reference in both]


def evaluated(package: Any, at_once: bool, inputs: Any) -> list[float]:
    run, qrels = inputs
    scores = package.evaluate(package.Qrels(qrels), package.Run(run), METRICS)
    return [float(scores[metric]) for metric in METRICS]


CALLS = {
    "rouge": ("rouge_score", pairs, rouge),
    "bleu": ("sacrebleu", pairs, corpus),
    "sentence-bleu": ("sacrebleu", pairs, sentences),
    "evaluate": ("ranx", nested, evaluated),
}
"""Section -> package, reader of the set, calls."""


def prepare(name: str) -> tuple[Run, Version]:
    """Import the contender and return its function and version."""
    section, contender = name.split("/")
    module, read, call = CALLS[section]
    ours = contender.startswith("evalengine")
    module = f"evalengine.compat.{module}" if ours else module
    package = import_module(module)
    if section == "rouge":
        import_module(f"{module}.rouge_scorer")
    at_once = contender.endswith("-all")

    def run(folder: Path, lap: Lap) -> list[float]:
        inputs = read(folder)
        lap("rows", times=0)  # which a caller has in memory
        scores = list(call(package, at_once, inputs))
        lap("evaluate")
        return scores

    return run, partial(version, "evalengine" if ours else contender)


if __name__ == "__main__":
    answer(prepare)
