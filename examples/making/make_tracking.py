"""Make the bundled tracking example: six short street scenes of people and bicycles.

    python examples/making/make_tracking.py [FOLDER]

writes `truth.parquet`, `tracks.parquet` and `scenes.parquet` into `examples/tracking/` (or FOLDER).
The simulated tracker loses objects for a few frames, gives some another id when they come back, and
is worse at night. The seed is fixed: the same versions of NumPy and Polars write the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parents[1]
SEED = 26
SCENES, FRAMES, OBJECTS = 6, 40, 5
CORNERS = ("xmin", "ymin", "xmax", "ymax")


def main() -> None:
    """Write the three tables."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "tracking"
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    truth, found = [], []
    scenes = [(f"scene_{i}", "night" if i % 3 == 2 else "day") for i in range(SCENES)]
    for scene, light in scenes:
        lost_at = 0.12 if light == "night" else 0.03
        track = 100
        for own in range(1, OBJECTS + 1):
            track += 1
            label = "bicycle" if own == OBJECTS else "person"
            place, step = rng.uniform(0, 300, 2), rng.normal(0, 3, 2)
            size = (30, 60) if label == "person" else (60, 50)
            lost = 0
            for frame in range(int(rng.integers(1, 10)), FRAMES + 1):
                place = place + step + rng.normal(0, 0.5, 2)
                box = np.round([*place, *(place + size)], 1)
                truth.append((scene, frame, own, label, *box))
                if lost:
                    lost -= 1
                    track += int(not lost and rng.random() < 0.5) * 10
                elif rng.random() < lost_at:
                    lost = int(rng.integers(2, 8))
                else:
                    moved = np.round(box + rng.normal(0, 2, 2)[[0, 1, 0, 1]], 1)
                    found.append(
                        (scene, frame, track, label, *moved, round(rng.uniform(0.5, 1), 2))
                    )
        for false in range(8 if light == "night" else 3):
            x, y = np.round(rng.uniform(0, 300, 2), 1)
            frame = int(rng.integers(1, FRAMES))
            found.append((scene, frame, 900 + false, "person", x, y, x + 30, y + 60, 0.4))
    columns = ("sequence", "frame", "object_id", "label_value", *CORNERS)
    pl.DataFrame(truth, columns, orient="row").write_parquet(folder / "truth.parquet")
    columns = ("sequence", "frame", "track_id", "label_value", *CORNERS, "score")
    pl.DataFrame(found, columns, orient="row").write_parquet(folder / "tracks.parquet")
    pl.DataFrame(scenes, ("sequence", "light"), orient="row").write_parquet(
        folder / "scenes.parquet"
    )


if __name__ == "__main__":
    main()
