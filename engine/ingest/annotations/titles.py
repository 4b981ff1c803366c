"""Names of annotation formats, importable without their readers."""

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
"""Formats in the order of detection: unambiguous ones first."""

PACKED = ".gz"
"""Behind the suffix of a file that is compressed."""
SUFFIXES = (".txt", ".xml", ".json", ".csv", ".yaml", ".yml")
"""Suffixes of possible annotation files; others are never opened for detection."""


def may_be_annotations(file: str) -> bool:
    """Return whether a file name may be that of annotations, compressed or not."""
    return file.lower().removesuffix(PACKED).endswith(SUFFIXES)
