"""All formats of annotations, and which of them something is."""

from __future__ import annotations

import glob
import os

from evalengine.ingest.files import by_extension, files_below
from evalengine.schemas.errors import unknown

from .cvat import CVAT
from .dota import DOTA
from .format import Format, Look, Other
from .kitti import KITTI
from .label_studio import LABEL_STUDIO
from .labelme import LABELME
from .open_images import OPEN_IMAGES
from .plain_boxes import CLASS_RESULTS, IMAGE_BOXES
from .titles import TITLES, may_be_annotations
from .tracks import KITTI_TRACKS, MOT, MOTS
from .visdrone import VISDRONE, VISDRONE_TRACKS
from .voc import VOC
from .yolo import YOLO

_ALL = (
    VOC,
    CVAT,
    LABELME,
    LABEL_STUDIO,
    OPEN_IMAGES,
    DOTA,
    KITTI,
    MOT,
    MOTS,
    KITTI_TRACKS,
    YOLO,
    IMAGE_BOXES,
    CLASS_RESULTS,
    VISDRONE,
    VISDRONE_TRACKS,
)
FORMATS = {name: next(one for one in _ALL if one.name == name) for name in TITLES}
"""By name, in the order in which they are tried."""

_TABLES = ("parquet", "ipc", "ipc_stream", "ndjson")


def get(name: str) -> Format:
    """Return a format by name.

    Raises:
        OptionError: there is no such format.
    """
    if name not in FORMATS:
        raise unknown("format", name, FORMATS)
    return FORMATS[name]


def recognised(
    paths: list[str], other: Other | None = None, box_format: str | None = None
) -> tuple[Format, Look] | None:
    """Detect the format of local paths by content; None if no format matches.

    Args:
        other: the other side, if it is open.
    """
    look = look_at(paths)
    if look is None:
        return None
    look.other, look.box_format = other, box_format
    return next(((format_, look) for format_ in FORMATS.values() if format_.detect(look)), None)


def look_at(paths: list[str]) -> Look | None:
    """Return the files of paths that may be annotations; None for tables and missing paths."""
    given = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    paths = [os.path.expanduser(path.removeprefix("file://")) for path in paths]
    if len(paths) == 1 and os.path.isdir(paths[0]):
        files = _below(paths[0])
        return Look(given, paths[0], files) if files else None
    if not all(map(may_be_annotations, paths)):
        return None
    files = tuple(file for path in paths for file in _files(path))
    if not files:
        return None
    folders = [os.path.dirname(os.path.abspath(file)) for file in files]
    return Look(given, os.path.commonpath(folders), files)


def _files(path: str) -> list[str]:
    if os.path.isfile(path):
        return [path]
    return sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))


def _below(folder: str) -> tuple[str, ...]:
    """All files below a folder, if some may be annotations and none is a table."""
    found = []
    for name in files_below(folder):
        if by_extension(name) in _TABLES:
            return ()
        found.append(name)
    return tuple(found) if any(map(may_be_annotations, found)) else ()
