"""Make the bundled example of preferences: 600 comparisons of five models on 200 prompts.

    python examples/making/make_preferences.py [FOLDER]

Strengths fall by 0.5 from one model to the next, except that the last two are equal; every seventh
comparison is a tie. Seeded.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

import polars as pl

STRENGTHS = {"ada": 1.0, "bell": 0.5, "curie": 0.0, "darwin": -0.75, "euler": -0.75}


def comparisons() -> pl.DataFrame:
    """Return three comparisons per prompt."""
    chance = random.Random(5)
    rows = []
    for prompt in range(200):
        for _ in range(3):
            a, b = chance.sample(list(STRENGTHS), 2)
            share = 1 / (1 + math.exp(STRENGTHS[b] - STRENGTHS[a]))
            winner = "a" if chance.random() < share else "b"
            if chance.random() < 1 / 7:
                winner = chance.choice(["tie", "both_bad"])
            topic = ("code", "law")[prompt % 2]
            rows.append((prompt, topic, a, b, winner))
    names = ["datum_id", "topic", "model_a", "model_b", "winner"]
    return pl.DataFrame(rows, schema=names, orient="row")


def main(folder: Path) -> None:
    """Write the table."""
    folder.mkdir(parents=True, exist_ok=True)
    comparisons().write_parquet(folder / "comparisons.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "preferences")
