"""Width and height of image files, from their headers.

JPEG and PNG are parsed here, as GDAL takes ten times as long to open them; other and unusual files
use GDAL. JPEG: ITU-T T.81, annex B; orientation: Exif 2.32, tag 0x0112; PNG: W3C, section 5.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from typing import BinaryIO

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".jp2", ".pgm",
            ".ppm")  # fmt: skip
_TURNED = (5, 6, 7, 8)  # orientations of EXIF in which width is height
_HEAD = 4096  # bytes in which most headers end
_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # markers that say an image's size
_EXIF = 0xE1
_ORIENTATION = 0x0112


def images_by_stem(files: Iterable[str]) -> dict[str, str]:
    """Image files by their names without folder and extension; of several the first."""
    found: dict[str, str] = {}
    for file in files:
        stem, suffix = os.path.splitext(os.path.basename(file))
        if suffix.lower() in SUFFIXES:
            found.setdefault(stem, file)
    return found


def sizes_of(images: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Return width and height of each image as displayed, in pixels; unreadable ones are omitted.

    Args:
        images: key to path of a local file.
    """
    sizes = {}
    for key, path in images.items():
        try:
            size = _size(path) or _by_gdal(path)
        except OSError:
            continue
        sizes[key] = size
    return sizes


def _size(path: str) -> tuple[int, int] | None:
    """Return the size of a plain JPEG or PNG; None for other files."""
    with open(path, "rb", buffering=_HEAD) as file:
        head = file.read(24)
        try:
            if head.startswith(_PNG):
                width, height = struct.unpack(">II", head[16:])
                # An orientation, if any, comes before the pixels.
                return None if b"eXIf" in file.read(_HEAD - len(head)) else (width, height)
            return _of_jpeg(file) if head.startswith(b"\xff\xd8\xff") else None
        except (struct.error, IndexError):  # cut off, or nothing that is known
            return None


def _of_jpeg(file: BinaryIO) -> tuple[int, int] | None:
    """Skip segments up to the frame header; read an orientation on the way."""
    turned, at = False, 2
    while True:
        file.seek(at)
        mark, marker, length = struct.unpack(">BBH", file.read(4))
        if mark != 0xFF:
            return None
        if marker == 0xFF:  # a byte that fills
            at += 1
            continue
        if marker in _FRAMES:
            _, height, width = struct.unpack(">BHH", file.read(5))
            size = (height, width) if turned else (width, height)
            return size if height and width else None
        if marker == _EXIF:
            turned = _orientation(file.read(length - 2)) in _TURNED or turned
        at += 2 + length


def _orientation(exif: bytes) -> int:
    """The orientation of an Exif segment; 0 without one."""
    if not exif.startswith(b"Exif\0\0"):
        return 0
    tiff = exif[6:]
    order = "<" if tiff[:2] == b"II" else ">"
    (first,) = struct.unpack_from(f"{order}I", tiff, 4)
    (entries,) = struct.unpack_from(f"{order}H", tiff, first)
    for i in range(entries):
        tag, kind, _, value = struct.unpack_from(f"{order}HHIH", tiff, first + 2 + 12 * i)
        if tag == _ORIENTATION and kind == 3:
            return int(value)
    return 0


def _by_gdal(path: str) -> tuple[int, int]:
    from evalengine.geometry.grids import opened  # rasterio takes a while to import

    with opened(path) as image:
        turned = image.tags().get("EXIF_Orientation") in map(str, _TURNED)
        return (image.height, image.width) if turned else (image.width, image.height)
