"""Formats of annotations by name, for what must not wait for what reads them."""

from __future__ import annotations

PER_IMAGE = "image-boxes"
BY_SIZE = "boxes_by_size"
"""Kind of the note that boxes of text without names of columns have widths and heights."""
TITLES = {
    "voc": "Pascal VOC XML",
    "cvat": "CVAT XML",
    "labelme": "LabelMe JSON",
    "label-studio": "Label Studio JSON",
    "open-images": "Open Images CSV",
    "dota": "DOTA labels",
    "kitti": "KITTI labels",
    "visdrone": "VisDrone boxes",
    "visdrone-tracking": "VisDrone tracks",
    "mot": "MOTChallenge tracks",
    "mots": "MOTS masks of tracks",
    "kitti-tracking": "KITTI tracks",
    "yolo": "YOLO labels",
    PER_IMAGE: "boxes in a text file per image",
    "voc-results": "detections in a text file per class",
}
"""In the order in which they are tried: what tells itself plainly comes first."""

PACKED = ".gz"
"""Behind the suffix of a file that is compressed."""
SUFFIXES = (".txt", ".xml", ".json", ".csv", ".yaml", ".yml")
"""Of files that may be annotations; others are never looked into for them."""


def may_be_annotations(file: str) -> bool:
    """Whether a file's name is one of annotations, compressed or not."""
    return file.lower().removesuffix(PACKED).endswith(SUFFIXES)
