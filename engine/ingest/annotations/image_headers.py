"""Width and height of image files, from their headers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".jp2", ".pgm",
            ".ppm")  # fmt: skip
_TURNED = ("5", "6", "7", "8")  # orientations of EXIF in which width is height


def images_by_stem(files: Iterable[str]) -> dict[str, str]:
    """Image files by their names without folder and extension; of several the first."""
    found: dict[str, str] = {}
    for file in files:
        stem, suffix = os.path.splitext(os.path.basename(file))
        if suffix.lower() in SUFFIXES:
            found.setdefault(stem, file)
    return found


def sizes_of(images: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Width and height of each image as it is shown, in pixels; without those that cannot be read.

    Args:
        images: key to path of a local file.
    """
    from evalengine.geometry.grids import opened  # rasterio takes a while to import

    sizes = {}
    for key, path in images.items():
        try:
            with opened(path) as image:
                size = (image.width, image.height)
                turned = image.tags().get("EXIF_Orientation") in _TURNED
                sizes[key] = size[::-1] if turned else size
        except OSError:
            continue
    return sizes
