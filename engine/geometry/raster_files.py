"""Which raster files the paths of a table may open: values in a table are no commands.

GDAL takes a path for much more than a file: addresses, archives, virtual rasters that name other
files and services. A table may come from anywhere, so its paths open plain files of plain formats
and nothing else, unless the user asks for more.
"""

from __future__ import annotations

import os

import msgspec

from evalengine.schemas.wording import option

FORMATS = ("GTiff", "PNG", "JPEG", "JPEGXL", "WEBP", "JP2OpenJPEG", "BMP", "GIF", "PNM")
"""GDAL's drivers that are used: none of them reads what a file points to."""


class RasterFiles(msgspec.Struct, frozen=True):
    """Where the paths of one table's rasters lead.

    Attributes:
        folder: of the table's file, where paths are looked for that are not found from the current
            folder; empty for none.
        root: the folder that files have to lie in; None for anywhere.
        remote: whether addresses and GDAL's virtual file systems may be opened.
    """

    folder: str = ""
    root: str | None = None
    remote: bool = False

    def find(self, path: str) -> str | None:
        """Where a file is: from the current folder, else from that of the table.

        Args:
            path: as it stands in the table; ``~`` is the user's folder.

        Returns:
            the path of a file; an address as it is, where such may be opened; else None.
        """
        for candidate in (os.path.expanduser(path), os.path.join(self.folder, path)):
            if os.path.isfile(candidate):
                return candidate
        return path if self.remote and is_remote(path) else None

    def refusal(self, path: str) -> str | None:
        """Why a path is not opened, with the way out; None of one that may be, if it is there."""
        found = self.find(path)
        if found is None:
            if not is_remote(path):
                return None
            return (
                "is not a file of this machine, and a table's paths open nothing else. Copy the"
                f" rasters here, or write {option('remote_rasters', True)} if you trust the table"
            )
        if self.root is None:
            return None
        if is_remote(found) and not os.path.isfile(found):
            return f"is not a file in {option('raster_root', self.root)}"
        root, there = (os.path.realpath(path) for path in (os.path.expanduser(self.root), found))
        if os.path.commonpath([root, there]) == root:
            return None
        return f"leads out of {option('raster_root', self.root)}, to {there}"


def is_remote(path: str) -> bool:
    """Whether a path is an address, or one of GDAL's virtual file systems."""
    return "://" in path or path.startswith("/vsi")
