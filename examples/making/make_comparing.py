"""Make the bundled example for comparing: three detectors on the same 180 frames of 30 videos.

    python examples/making/make_comparing.py [FOLDER]

writes groundtruths, old, new and small (.parquet) into `examples/comparing/` (or FOLDER). Frames of
a video show the same few objects at successive times, and a detector that misses an object in one
frame mostly misses it in the next: frames are not independent, videos are. At night the new
detector is better and the small one worse; by day all are alike. The seed is fixed: the same
versions of NumPy and Polars write the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parents[1]
SEED = 6
VIDEOS, FRAMES = 30, 6  # frames per video
NIGHT = 0.4  # share of videos
WIDTH, HEIGHT = 1280, 720  # pixels
CORNERS = ["xmin", "ymin", "xmax", "ymax"]

LABELS = {"car": (0.5, 120, 70), "person": (0.35, 35, 90), "cyclist": (0.15, 60, 95)}
"""Share of objects, width and height in pixels."""
RUNS = {"old": 0.0, "new": 0.6, "small": -1.5}  # additional share detected at night


def tracks(rng: np.random.Generator) -> pl.DataFrame:
    """Return one row per object of a video, with its difficulty."""
    share, width, height = np.array(list(LABELS.values())).T
    video = np.repeat(np.arange(VIDEOS), rng.integers(1, 5, VIDEOS))
    label = rng.choice(len(LABELS), size=video.size, p=share)
    size = np.exp(rng.normal(0.0, 0.4, video.size))
    night = rng.random(VIDEOS) < NIGHT
    return pl.DataFrame(
        {
            "track": np.arange(video.size),
            "video": video,
            "night": night[video],
            "label": label,
            "width": width[label] * size,
            "height": height[label] * size,
            "x": rng.uniform(0.0, WIDTH - 250.0, video.size),
            "y": rng.uniform(200.0, HEIGHT - 250.0, video.size),
            "speed": rng.normal(0.0, 8.0, video.size),
            "hard": rng.normal(0.0, 1.0, video.size) + 1.2 * night[video],
        }
    )


def boxes(rng: np.random.Generator, x: pl.DataFrame, error: float) -> pl.DataFrame:
    """Return corners in integer pixels, with an error relative to the size."""
    moved = rng.normal(0.0, 1.0, (len(x), 4)) * error
    left = x["x"] + x["speed"] * x["frame"] + moved[:, 0] * x["width"]
    top = x["y"] + moved[:, 1] * x["height"]
    sides = (
        left,
        top,
        left + x["width"] * np.exp(moved[:, 2]),
        top + x["height"] * np.exp(moved[:, 3]),
    )
    ends = (WIDTH, HEIGHT, WIDTH, HEIGHT)
    rounded = [side.clip(0, end).round() for side, end in zip(sides, ends, strict=True)]
    return x.with_columns(pl.Series(name, one) for name, one in zip(CORNERS, rounded, strict=True))


def detected(rng: np.random.Generator, shown: pl.DataFrame, skill: float) -> pl.DataFrame:
    """Return the detections of a detector, including false positives."""
    own = rng.normal(0.0, 0.5, VIDEOS)[shown["video"]]  # what this detector is good at
    chance = np.random.default_rng(SEED).normal(0.0, 0.7, len(shown))  # the same for all
    seen = 1.6 - shown["hard"] + skill * shown["night"] + own + chance
    there = boxes(rng, shown, 0.06).with_columns(seen=seen)
    ghosts = boxes(rng, shown.filter(pl.Series(rng.random(len(shown)) < 0.25)), 0.9)
    ghosts = ghosts.with_columns(seen=rng.normal(-0.4, 0.8, len(ghosts)))
    every = pl.concat([there.filter(seen > 0.0), ghosts])
    return every.with_columns(score=(1 / (1 + (-pl.col("seen")).exp())).round(2))


def frames() -> dict[str, pl.DataFrame]:
    """Return the four tables, by file name without its extension."""
    rng = np.random.default_rng(SEED)
    shown = tracks(rng).join(pl.DataFrame({"frame": np.arange(FRAMES)}), how="cross")
    named = {"video": pl.format("video_{}", pl.col("video").cast(pl.String).str.zfill(2))}
    datum = pl.format("{}/{}", named["video"], pl.col("frame")).alias("datum_id")
    label = pl.col("label").replace_strict(dict(enumerate(LABELS))).alias("label_value")
    light = pl.when("night").then(pl.lit("night")).otherwise(pl.lit("day")).alias("light")
    truths = boxes(rng, shown, 0.0)
    tables = {"groundtruths": truths.select(datum, label, *CORNERS, light, **named)}
    for name, skill in RUNS.items():
        found = detected(rng, shown, skill)
        tables[name] = found.select(datum, label, "score", *CORNERS)
    return tables


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "comparing"
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames().items():
        frame.write_parquet(folder / f"{name}.parquet")
        print(f"{folder / name}.parquet: {len(frame)} rows")


if __name__ == "__main__":
    main()
