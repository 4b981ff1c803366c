"""Make the set of pycocotools_calls.py: boxes in COCO's two JSON files.

python benchmarks/pycocotools_calls_data.py objects --scale 0.01 1
"""

from __future__ import annotations

import detection_data
import numpy as np
from making import Frames, Maker, main


def objects(rng: np.random.Generator, scale: float) -> Frames:
    """Return the small set of detection_data.py, or a share of its images."""
    small = detection_data.SIZES["small"]
    shares = (round(scale * n) for n in (small.images, small.ground_truths, small.detections))
    images, truths, predicted = shares
    size = detection_data.Size("objects", images, small.classes, truths, predicted)
    frames = detection_data.tables(size, seed=int(rng.integers(1 << 32)))
    return dict(zip(("gt.json", "dt.json"), detection_data.coco(frames), strict=True))


SECTIONS: dict[str, Maker] = {"objects": objects}


if __name__ == "__main__":
    main("pycocotools_calls", SECTIONS)
