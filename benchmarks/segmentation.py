"""Time evalengine's semantic segmentation against other ways to the same values, side by side.

    python benchmarks/segmentation.py counts noise png geotiff windows \
        --peers-python PEERS/bin/python --torch-python TORCH/bin/python --write-docs

The sets are those of segmentation_data.py; `--scale 0.02` tries everything on small ones.
sections.py describes the measurement. PEERS is an environment with opencv-python-headless,
scikit-learn, polars and rasterio, TORCH one with torchmetrics.
"""

from __future__ import annotations

from sections import OURS, Benchmark, Section, main
from segmentation_reporting import page

IN_MEMORY = (*OURS, "opencv", "torchmetrics", "polars", "scikit-learn", "numpy", "read-once")

SECTIONS = {
    "counts": Section(IN_MEMORY),
    "noise": Section(IN_MEMORY),
    "png": Section((*OURS, "opencv", "rasterio")),
    "geotiff": Section((*OURS, "rasterio")),
    "windows": Section((*OURS, "rasterio")),
}
BENCHMARK = Benchmark(
    "segmentation",
    SECTIONS,
    references=("numpy", "rasterio"),
    page=page,
    interpreters={"torchmetrics": "--torch-python"},
)


if __name__ == "__main__":
    main(BENCHMARK)
