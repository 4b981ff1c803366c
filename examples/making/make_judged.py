"""Make the bundled judged example: answers of a bicycle workshop's assistant, and verdicts on them.

    python examples/making/make_judged.py [FOLDER]

``answers.parquet`` is the input of a judge: one row per answer. ``verdicts.parquet`` has the
verdicts on 24 answers, including errors; they are synthetic, with a fixed seed. ``many.parquet`` is
one verdict on each of 4,000 answers, by a judge that is right on 92 % of the faithful ones and 55 %
of the others; ``labels.parquet`` is its frame ``to_label``, filled in.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import polars as pl

import evalengine as ee

ANSWERS = [
    (
        "brakes",
        "How often are brake pads checked?",
        "Brake pads are checked every month. They do not last a year.",
        ["Brake pads are checked every month.", "Rims are not greased."],
        ["Brake pads are checked every month."],
    ),
    (
        "chain",
        "What is a chain cleaned with?",
        "A chain is cleaned with degreaser. Then it is oiled.",
        ["A chain is cleaned with degreaser and dried.", "Then it is oiled."],
        ["A chain is cleaned with degreaser.", "With degreaser. Then it is oiled."],
    ),
    (
        "wheels",
        "When is a wheel trued?",
        "A wheel is trued when it wobbles.",
        ["Spokes are not tightened cold.", "A wheel that wobbles is trued."],
        ["A wheel is trued when it wobbles."],
    ),
    (
        "wheels",
        "Which way does the left pedal unscrew?",
        "The left pedal unscrews clockwise. Everyone who forgets that is a fool.",
        ["The left pedal has a left-hand thread."],
        ["The left pedal unscrews clockwise."],
    ),
    ("tyres", "What pressure has a tyre?", "That is printed on its side.", [], ["See its side."]),
]
METRICS = {
    "AnswerRelevance": ("statements", ("yes", "yes", "yes", "no", "idk")),
    "Bias": ("opinions", ("no", "no", "no", "yes")),
    "ContextPrecision": ("contexts", ("yes", "no")),
    "Faithfulness": ("claims", ("yes", "yes", "no")),
    "Hallucination": ("contexts", ("agrees", "agrees", "agrees", "contradicted")),
    "Coherence": ("rating", ("3", "4", "5")),
}


def answers() -> pl.DataFrame:
    """Return the input of a judge."""
    names = ("topic", "query", "text", "contexts", "reference")
    rows = [dict(zip(names, row, strict=True)) for row in ANSWERS]
    return pl.DataFrame(rows).with_row_index("datum_id").with_columns(pl.col("datum_id").cast(int))


def verdicts() -> pl.DataFrame:
    """Return possible verdicts of a judge."""
    chance = random.Random(7)
    rows: list[dict[str, Any]] = []
    for datum in range(24):
        same = {"datum_id": datum, "topic": ("brakes", "chain", "wheels")[datum % 3]}
        for metric, (step, words) in METRICS.items():
            base = {**same, "metric": metric, "step": step}
            luck = chance.random()
            items = 1 if metric == "Coherence" else chance.randint(0, 4)
            if luck < 0.04:
                rows.append({**base, "status": "rate_limited", "error": "HTTP 429"})
            elif not items:
                rows.append({**base, "status": "empty"})
            else:
                rows += [
                    {
                        **base,
                        "item_index": place,
                        "items": items,
                        "verdict": chance.choice(words),
                        "status": "ok",
                    }
                    for place in range(items)
                ]
    names = ["datum_id", "topic", "metric", "step", "item_index", "items", "verdict", "status",
             "error"]  # fmt: skip
    return pl.DataFrame([{name: row.get(name) for name in names} for row in rows], strict=False)


def many() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return verdicts on many answers, and labels of 200."""
    chance = random.Random(11)
    truth = [chance.random() < 0.62 for _ in range(4000)]
    words = ["yes" if chance.random() < (0.92 if one else 0.45) else "no" for one in truth]
    table = pl.DataFrame({"datum_id": range(4000), "metric": "Faithfulness", "verdict": words})
    rows = ee.score(table, label_next=200).to_label
    return table, rows.with_columns(pl.Series("value", [float(truth[i]) for i in rows["datum_id"]]))


def main(folder: Path) -> None:
    """Write the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    verdicts_of_many, labels = many()
    verdicts_of_many.write_parquet(folder / "many.parquet")
    labels.write_parquet(folder / "labels.parquet")
    answers().write_parquet(folder / "answers.parquet")
    verdicts().write_parquet(folder / "verdicts.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "judged")
