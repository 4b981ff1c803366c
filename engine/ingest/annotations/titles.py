"""Formats of annotations by name, for what must not wait for what reads them."""

from __future__ import annotations

TITLES = {
    "voc": "Pascal VOC XML",
    "cvat": "CVAT XML",
    "labelme": "LabelMe JSON",
    "label-studio": "Label Studio JSON",
    "open-images": "Open Images CSV",
    "dota": "DOTA labels",
    "kitti": "KITTI labels",
    "yolo": "YOLO labels",
    "voc-results": "detections in a text file a class",
}
"""In the order in which they are tried: what tells itself plainly comes first."""

SUFFIXES = (".txt", ".xml", ".json", ".csv", ".yaml", ".yml")
"""Of files that may be annotations; others are never looked into for them."""
