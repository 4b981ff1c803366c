"""Write tables for examples of metrics that need columns which no other bundled table has.

The argument is the folder to write to; by default it is ``metrics``, in the folder above.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parent.parent
JUDGED = {
    "AnswerCorrectness": {"response": ("TP", "TP", "FP"), "reference": ("FN",)},
    "FactualCorrectness": {"response": ("TP", "TP", "FP"), "reference": ("FN",)},
    "Toxicity": {None: ("no", "no", "no", "yes")},
    "SummaryCoherence": {None: ("4",)},
    "ContextRecall": {None: ("yes", "yes", "no")},
    "ContextRelevance": {None: ("yes", "no")},
    "LLMContextRecall": {None: ("yes", "yes", "no")},
}


def verdicts() -> pl.DataFrame:
    """Return verdicts of the judged metrics missing in ``judged/verdicts.parquet``."""
    rows = [
        {"datum_id": 0, "metric": metric, "step": step, "verdict": word}
        for metric, steps in JUDGED.items()
        for step, words in steps.items()
        for word in words
    ]
    return pl.DataFrame(rows)


def forecasts() -> pl.DataFrame:
    """Return forecasts with quantiles, samples, intervals, scales and groups."""
    rng = np.random.default_rng(3)
    n = 40
    target = rng.normal(50, 10, n).round(1)
    drawn = (target[:, None] + rng.normal(1, 5, (n, 20))).round(1)
    q10, q50, q90 = np.quantile(drawn, (0.1, 0.5, 0.9), axis=1).round(1)
    return pl.DataFrame(
        {
            "prediction": drawn.mean(axis=1).round(1),
            "target": target,
            "group_id": np.arange(n) % 4,
            "scale": np.full(n, 6.0),
            "squared_scale": np.full(n, 45.0),
            "lower": q10,
            "upper": q90,
            "q0.1": q10,
            "q0.5": q50,
            "q0.9": q90,
            "samples": drawn.tolist(),
        }
    )


def texts() -> pl.DataFrame:
    """Return answers with the embeddings of a model, and contexts."""
    rng = np.random.default_rng(4)
    own = rng.normal(size=(6, 8)).round(2)
    chain = "The chain is cleaned every month."
    return pl.DataFrame(
        {
            "text": [chain, "Brakes last for a year.", "Tyres need air.", chain, "No idea.", chain],
            "reference": [
                chain,
                "Brake pads last a year.",
                "Tyres need air.",
                "Monthly.",
                "3",
                "4",
            ],
            "contexts": [
                [chain],
                ["Brake pads last for a year."],
                ["Pump tyres."],
                [],
                [],
                [chain],
            ],
            "embedding": own.tolist(),
            "reference_embedding": (own + rng.normal(size=own.shape) / 2).round(2).tolist(),
        }
    )


def solids() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return 3-D boxes with velocities and attributes, and detections of them."""
    rng = np.random.default_rng(5)
    n = 24
    truth = pl.DataFrame(
        {
            "datum_id": [f"sample {i // 4}" for i in range(n)],
            "category": np.where(np.arange(n) % 3, "car", "pedestrian"),
            "cx": rng.uniform(-40, 40, n).round(2),
            "cy": rng.uniform(-40, 40, n).round(2),
            "cz": np.full(n, 0.9),
            "length": np.where(np.arange(n) % 3, 4.5, 0.7),
            "width": np.where(np.arange(n) % 3, 1.9, 0.7),
            "height": np.full(n, 1.7),
            "yaw": rng.uniform(-3, 3, n).round(2),
            "vx": rng.normal(0, 3, n).round(2),
            "vy": rng.normal(0, 3, n).round(2),
            "attribute": np.where(np.arange(n) % 2, "moving", "parked"),
        }
    )
    near = [(pl.col(name) + pl.Series(rng.normal(0, 0.4, n).round(2))) for name in ("cx", "cy")]
    turned = [(pl.col(name) + pl.Series(rng.normal(0, 0.2, n).round(2))) for name in ("yaw", "vx")]
    longer = pl.col("length") * 1.1
    attribute = pl.Series("attribute", np.where(np.arange(n) % 5, truth["attribute"], "moving"))
    score = pl.Series("score", rng.uniform(0.2, 1, n).round(3))
    return truth, truth.with_columns(*near, *turned, longer, attribute, score)[: n - 3]


def streets() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return cars in KITTI's labels, and detections of them."""
    rng = np.random.default_rng(6)
    n = 60
    truth = pl.DataFrame(
        {
            "datum_id": np.arange(n) // 2,
            "label_value": ["Car"] * n,
            "xmin": rng.uniform(0, 600, n).round(1),
            "ymin": rng.uniform(100, 150, n).round(1),
            "occluded": np.arange(n) % 3,
            "truncated": np.zeros(n),
            "alpha": rng.uniform(-3, 3, n).round(2),
        }
    ).with_columns(xmax=pl.col("xmin") + 80, ymax=pl.col("ymin") + 60)
    moved = pl.col("xmin") + pl.Series(rng.normal(0, 6, n).round(1))
    turned = pl.col("alpha") + pl.Series(rng.normal(0, 0.3, n).round(2))
    score = pl.Series("score", rng.uniform(0.2, 1, n).round(3))
    return truth, truth.with_columns(moved, turned, score)


def main(folder: Path) -> None:
    """Write all of them, and the labels of the bundled detections with frequencies."""
    folder.mkdir(parents=True, exist_ok=True)
    truth, found = solids()
    cars, found_cars = streets()
    labels = ["car", "pedestrian", "cyclist", "bus", "traffic_light"]
    tables = {
        "verdicts": verdicts(),
        "forecasts": forecasts(),
        "texts": texts(),
        "solids": truth,
        "found_solids": found,
        "streets": cars,
        "found_streets": found_cars,
        "labels": pl.DataFrame({"label_value": labels, "frequency": list("ffcrc")}),
    }
    for name, table in tables.items():
        table.write_parquet(folder / f"{name}.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "metrics")
