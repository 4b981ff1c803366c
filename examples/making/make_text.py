"""Make the bundled text example: 60 answers of a simulated assistant about a bicycle workshop.

    python examples/making/make_text.py [FOLDER]

writes answers.parquet, predictions.parquet and references.parquet into `examples/text/` (or
FOLDER). `answers.parquet` is one table: the question's id, its subject, the answer and the answers
a person accepts (one or two). The other two contain the same texts as two tables, one row per
answer and one per accepted answer; one question was never answered and one has no accepted answer.
Answers are accepted ones with words replaced, deleted or moved. The seed is fixed: the same
versions of NumPy and Polars write the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parents[1]
SEED = 31
QUESTIONS = 60
UNANSWERED, UNACCEPTED = 11, 47

SUBJECTS = {"opening hours": 0.05, "repairs": 0.2, "prices": 0.35}  # share of changed words
PARTS = ("chain", "brake pads", "rear tyre", "saddle", "bottom bracket", "gear cable", "front hub")
SENTENCES = {
    "opening hours": (
        "The workshop opens at {hour} o'clock on weekdays and closes at six in the evening.",
        "On Saturdays we are open from {hour} to two, and we are closed on Sundays.",
    ),
    "repairs": (
        "The mechanic replaced the {part} and checked the wheels for play.",
        "A worn {part} is always replaced, so please leave the bicycle with us for {hour} hours.",
    ),
    "prices": (
        "Replacing the {part} costs ${price}.50, including labour and a test ride.",
        "The price for the {part} is ${price}, and a full service costs three times as much.",
    ),
}
OTHERS = ("perhaps", "usually", "the", "customers", "a", "quickly", "repairing", "tomorrow")


def spoiled(rng: np.random.Generator, text: str, share: float) -> str:
    """Replace or delete some words of a text; sometimes its end is moved first."""
    words = []
    for word in text.split():
        dice = rng.random()
        if dice < share / 2:
            words.append(str(rng.choice(OTHERS)))
        elif dice >= share:
            words.append(word)
    if rng.random() < share:
        words = [*words[-3:], *words[:-3]]
    return " ".join(words)


def answers() -> pl.DataFrame:
    """Return one row per question."""
    rng = np.random.default_rng(SEED)
    rows = []
    for question in range(QUESTIONS):
        subject = str(rng.choice(list(SUBJECTS)))
        facts = {
            "hour": int(rng.integers(7, 12)),
            "part": str(rng.choice(PARTS)),
            "price": int(rng.integers(10, 60)),
        }
        accepted = [text.format(**facts) for text in SENTENCES[subject]]
        accepted = [accepted[i] for i in rng.permutation(2)[: rng.integers(1, 3)]]
        answer = spoiled(rng, accepted[0], SUBJECTS[subject])
        rows.append((f"q{question + 1:02d}", subject, answer, accepted))
    return pl.DataFrame(
        rows, schema=["question_id", "subject", "answer", "reference"], orient="row"
    )


def frames() -> dict[str, pl.DataFrame]:
    """Return the three tables, by file name without its extension."""
    one = answers()
    plain = one.rename({"question_id": "datum_id", "answer": "text"})
    return {
        "answers": one,
        "predictions": plain.select("datum_id", "text", "subject").filter(
            pl.col("datum_id") != f"q{UNANSWERED + 1:02d}"
        ),
        "references": plain.select("datum_id", pl.col("reference").alias("text"))
        .explode("text")
        .filter(pl.col("datum_id") != f"q{UNACCEPTED + 1:02d}"),
    }


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "text"
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames().items():
        frame.write_parquet(folder / f"{name}.parquet")
        print(f"{folder / name}.parquet: {len(frame)} rows")


if __name__ == "__main__":
    main()
