"""Small random tables of VOC with odd content: difficult objects, ties, exact thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

CORNERS = ("xmin", "ymin", "xmax", "ymax")


def voc_tables(seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make predictions and ground truths; every fourth seed has corners between pixels."""
    r = np.random.default_rng(seed)
    labels = ["cat", "dog", "bus"][: int(r.integers(1, 4))]
    n_images, size = int(r.integers(1, 6)), int(r.choice([4, 8, 20, 60]))
    step = float(r.choice([1.0, 1.0, 0.5, 0.1]))

    def box() -> list[float]:
        low = r.integers(1, size, 2)
        return [float(x) * step for x in (*low, *(low + r.integers(0, size, 2)))]

    def row(label: str, corners: list[float], **more: Any) -> dict[str, Any]:
        image = int(r.integers(n_images))
        return {"datum_id": image, "label_value": label, **more} | dict(
            zip(CORNERS, corners, strict=True)
        )

    hard = float(r.choice([0.0, 0.2, 0.6]))
    truths = [
        row(str(r.choice(labels)), box(), difficult=int(r.random() < hard))
        for _ in range(int(r.integers(0 if seed % 50 == 0 else 1, 14)))
    ]
    result = []
    tied = bool(r.random() < 0.5)
    for _ in range(int(r.integers(0 if seed % 40 == 0 else 1, 40))):
        score = float(r.integers(0, 5) / 4) if tied else float(r.random())
        if truths and r.random() < 0.7:
            truth = truths[int(r.integers(len(truths)))]
            shift = r.integers(-1, 2, 4) * (r.random() < 0.6) * step
            moved = [truth[c] + float(s) for c, s in zip(CORNERS, shift, strict=True)]
            moved[2:] = [max(moved[0], moved[2]), max(moved[1], moved[3])]
            one = {**truth, **dict(zip(CORNERS, moved, strict=True)), "score": score}
            del one["difficult"]
            if r.random() < 0.1:
                one["label_value"] = str(r.choice(labels))
            result.append(one)
        else:
            result.append(row(str(r.choice(labels)), box(), score=score))
    schema: dict[str, Any] = {"datum_id": pl.Int64, "label_value": pl.String}
    schema |= dict.fromkeys(CORNERS, pl.Float64)
    return (
        pl.DataFrame(result, schema=schema | {"score": pl.Float64}),
        pl.DataFrame(truths, schema=schema | {"difficult": pl.Int64}),
    )


def all_at_once(seeds: range) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Concatenate the tables of many seeds, with separate images and labels for each."""
    sides: tuple[list[pl.DataFrame], list[pl.DataFrame]] = ([], [])
    for seed in seeds:
        for parts, frame in zip(sides, voc_tables(seed), strict=True):
            own = pl.lit(f"{seed:04} ")
            parts.append(
                frame.with_columns(
                    label_key=pl.lit(str(seed)),
                    datum_id=own + pl.col("datum_id").cast(pl.String),
                    label_value=own + pl.col("label_value"),
                )
            )
    return pl.concat(sides[0]), pl.concat(sides[1])
