"""Access control for raster paths in tables.

GDAL accepts much more than files: addresses, archives, virtual rasters that refer to other files
and services. Tables may be untrusted, so their paths open only plain files of plain formats, unless
the user allows more.
"""

from __future__ import annotations

import os

import msgspec

from evalengine.schemas.wording import option

FORMATS = ("GTiff", "PNG", "JPEG", "JPEGXL", "WEBP", "JP2OpenJPEG", "BMP", "GIF", "PNM")
"""Allowed GDAL drivers; they do not follow references to other files."""


class RasterFiles(msgspec.Struct, frozen=True):
    """Allowed locations for the rasters of one table.

    Attributes:
        folder: folder of the table's file, searched after the current folder; empty for none.
        root: folder that must contain the files; None for any.
    """

    folder: str = ""
    root: str | None = None
    remote: bool = False

    def find(self, path: str) -> str | None:
        """Find a file relative to the current folder, or to that of the table.

        Args:
            path: as in the table; ``~`` is the user's folder.

        Returns:
            the path of a file; an unchanged address, if allowed; otherwise None.
        """
        for candidate in (os.path.expanduser(path), os.path.join(self.folder, path)):
            if os.path.isfile(candidate):
                return candidate
        return path if self.remote and is_remote(path) else None

    def refusal(self, path: str) -> str | None:
        """Return why a path is refused, with the remedy; None if it is allowed."""
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
    return "://" in path or path.startswith("/vsi")
