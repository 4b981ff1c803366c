"""Tables of tracking: a row a box of an object in one frame of a sequence."""

from __future__ import annotations

import msgspec

from .columns import (
    BBOX,
    DATASET,
    DATUM_ID,
    LABEL_VALUE,
    OCCLUDED,
    SCORE,
    TRUNCATED,
    WEIGHT,
    XMAX,
    XMIN,
    YMAX,
    YMIN,
    renamed,
)
from .contract import GROUND_TRUTHS, PREDICTIONS, Column, Table
from .shared_tables import DATUM_ROW, DATUM_TABLE

SEQUENCE = Column(
    "sequence",
    "id",
    "Which video or scene this belongs to.",
    ("sequence_id", "sequence_name", "seq", "video_id", "video", "video_name", "clip", "scene"),
    kin=(DATUM_ID.name, *DATUM_ID.aliases),
)
FRAME = Column(
    "frame",
    "whole",
    "Number of the frame in its sequence.",
    ("frame_id", "frame_index", "frame_number", "frame_no", "timestep"),
)
_NAMES = ("object_id", "track_id", "tracker_id", "instance_id", "tracklet_id", "gt_id")
OBJECT_ID = Column(
    "object_id",
    "id",
    "Which object of its sequence this is, the same in all frames.",
    _NAMES[1:],
    kin=("id", "annotation_id"),
)
TRACK_ID = Column(
    "track_id",
    "id",
    "Which track of its sequence this is, the same in all frames.",
    tuple(name for name in _NAMES if name != "track_id"),
    kin=("id",),
)
IGNORED = Column(
    "ignored",
    "flag",
    "1 for a ground truth that need not be found; a prediction that matches it counts for nothing.",
    ("ignore", "difficult"),
)
CONSIDERED = Column(
    "considered",
    "flag",
    "0 for a ground truth that is left out, and takes no prediction along (MOTChallenge).",
    (),
)
REGION = Column(
    "region",
    "flag",
    "1 for a region of objects that are not annotated one by one: a prediction without a match"
    " counts for"
    " nothing if more than half of it lies within.",
    ("iscrowd", "is_crowd", "crowd"),
)
FRAMES = Column(
    "frames",
    "whole",
    "Length of the sequence in frames; those with a box, if absent.",
    ("n_frames", "seqlength", "sequence_length"),
    nullable=True,
    low=0.0,
)
_BOX = (XMIN, YMIN, XMAX, YMAX)
_COMMON = (LABEL_VALUE, DATASET, BBOX)
_SCORE = msgspec.structs.replace(SCORE, about="Confidence; not read by any metric.", nullable=True)
_UNREAD = ((WEIGHT, "tracking has no weights; every box counts once"),)

TRACKING_PREDICTIONS = Table(
    "tracking",
    PREDICTIONS,
    (SEQUENCE, FRAME, TRACK_ID, *_BOX),
    (*_COMMON, _SCORE),
    key=("sequence", "frame", "track_id"),
    signs=("sequence", "frame", "track_id"),
    all_signs=True,
    formats=("tracks",),
    like=("mask", "polygon"),
    shape="boxes",
    datum="sequence",
    unit=("sequence", "sequences"),
    unread=_UNREAD,
    found_by=("track_id",),
)
TRACKING_GROUND_TRUTHS = Table(
    "tracking",
    GROUND_TRUTHS,
    (SEQUENCE, FRAME, OBJECT_ID, *_BOX),
    (*_COMMON, IGNORED, CONSIDERED, REGION, OCCLUDED, TRUNCATED),
    key=("sequence", "frame", "object_id"),
    signs=("sequence", "frame", "object_id"),
    all_signs=True,
    formats=("tracks",),
    like=("mask", "polygon"),
    shape="boxes",
    datum="sequence",
    unit=("sequence", "sequences"),
    unread=_UNREAD,
)
# Other tasks may slice by columns of these names.
TRACKING_DATUMS = msgspec.structs.replace(
    DATUM_TABLE,
    task="tracking",
    required=(renamed(DATUM_ROW, "sequence", "sequence_id", "sequence_name", "seq", "video_id"),),
    optional=(*DATUM_TABLE.optional, FRAMES),
)
