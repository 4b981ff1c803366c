"""Make the bundled classification example: 200 messages to a help desk, sorted by subject.

    python examples/making/make_classification.py [FOLDER]

writes predictions.parquet, groundtruths.parquet and urgent.parquet into `examples/classification/`
(or FOLDER). Predictions and ground truths are two long tables: one score per message and subject,
one true subject per message and the channel of the message. `urgent.parquet` is one table of the
same messages with a binary truth and its score. The simulated classifier is more certain about
typed than about spoken messages; one message has no prediction and one has no true subject. The
seed is fixed: the same versions of NumPy and Polars write the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parents[1]
SEED = 11
MESSAGES = 200
UNPREDICTED, UNLABELLED = 57, 141  # messages without a prediction, without a ground truth
DIGITS = 3  # of scores, so that some are tied

LABELS = {"billing": 0.45, "technical": 0.35, "account": 0.2}  # share of messages
SOURCES = {"email": (0.5, 1.0), "chat": (0.3, 1.3), "phone": (0.2, 1.9)}  # share, noise
URGENT = 0.25  # share of messages


def probabilities(rng: np.random.Generator, label: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return scores [n, 3] that add up to 1 in integer units of the last digit."""
    logit = 2.0 * np.eye(len(LABELS))[label] + rng.normal(0.0, 1.0, (len(label), len(LABELS)))
    logit += (noise[:, None] - 1.0) * rng.normal(0.0, 1.5, logit.shape)
    share = np.exp(logit) / np.exp(logit).sum(axis=1, keepdims=True)
    units = np.floor(share * 10**DIGITS).astype(np.int64)
    units[np.arange(len(label)), share.argmax(axis=1)] += 10**DIGITS - units.sum(axis=1)
    return units / 10**DIGITS


def frames() -> dict[str, pl.DataFrame]:
    """Return the three tables, by file name without its extension."""
    rng = np.random.default_rng(SEED)
    share, noise = np.array(list(SOURCES.values())).T
    source = rng.choice(len(SOURCES), size=MESSAGES, p=share)
    label = rng.choice(len(LABELS), size=MESSAGES, p=np.array(list(LABELS.values())))
    score = probabilities(rng, label, noise[source])
    urgent = rng.random(MESSAGES) < URGENT
    logit = 2.4 * urgent - 1.7 + rng.normal(0.0, 1.0, MESSAGES) * noise[source]
    datum = np.array([f"message_{i + 1:03d}" for i in range(MESSAGES)])
    names, places = np.array(list(LABELS)), np.array(list(SOURCES))
    predictions = pl.DataFrame(
        {
            "datum_id": np.repeat(datum, len(LABELS)),
            "label_value": np.tile(names, MESSAGES),
            "score": score.ravel(),
        }
    )
    truths = {"datum_id": datum, "label_value": names[label], "source": places[source]}
    return {
        "predictions": predictions.filter(pl.col("datum_id") != datum[UNPREDICTED]),
        "groundtruths": pl.DataFrame(truths).filter(pl.col("datum_id") != datum[UNLABELLED]),
        "urgent": pl.DataFrame(
            {
                "actual": urgent.astype(np.int64),
                "score": np.round(1 / (1 + np.exp(-logit)), DIGITS),
                "source": places[source],
            }
        ),
    }


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "classification"
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames().items():
        frame.write_parquet(folder / f"{name}.parquet")
        print(f"{folder / name}.parquet: {len(frame)} rows")


if __name__ == "__main__":
    main()
