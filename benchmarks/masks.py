"""Time evalengine's instance segmentation against other evaluators of COCO, side by side.

    python benchmarks/masks.py segm --peers-python PEERS/bin/python --write-docs

The set is that of masks_data.py: annotated polygons, including crowds, and detections as compressed
run-length codes; `--scale 0.02` tries everything on a small one. sections.py describes the
measurement. PEERS is an environment with hotcoco, ultrafast-pycocotools, faster-coco-eval and
pycocotools. The section `pairs` has overlapping polygons and needs shapely and pycocotools. At
scale 1 that is 6 M polygons; `pairs --images 10000` makes and compares fewer, as `--scale 0.1`
does.
"""

from __future__ import annotations

import polygon_pairs
from masks_reporting import page
from sections import OURS, Benchmark, Section, main

SECTIONS = {
    "segm": Section(
        (
            *OURS,
            "evalengine-2-json",
            "hotcoco",
            "ultrafast-pycocotools",
            "faster-coco-eval",
            "pycocotools",
        )
    ),
    "pairs": Section(
        (*OURS, *polygon_pairs.PEERS),
        sampled=tuple(polygon_pairs.PEERS),
        images=polygon_pairs.IMAGES,
    ),
}
BENCHMARK = Benchmark("masks", SECTIONS, references=("pycocotools", "shapely-loop"), page=page)


if __name__ == "__main__":
    main(BENCHMARK)
