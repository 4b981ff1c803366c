"""Columns of geometry beyond boxes: polygons, masks and raster files."""

from __future__ import annotations

from .contract import Column

POLYGON = Column(
    "polygon",
    "polygon",
    "Rings of x, y in pixels (the first outside, the rest holes), several polygons, flat rings as"
    " in COCO, WKB, WKT or GeoJSON.",
    ("polygons", "segmentation", "geometry", "wkb", "wkt", "outline"),
)
OBB = Column(
    "obb",
    "vector",
    "Oriented box: centre x and y, width, height and angle of the width; angle_format says in which"
    " unit and direction. Or columns cx, cy, w, h, angle.",
    ("oriented_box", "rotated_box", "rotated_bbox", "rbox", "rbbox", "xywhr"),
    way_out="Give each row one list of five numbers, or write columns cx, cy, w, h and angle.",
)
ANGLE = Column("angle", "number", "Turn of a box.", ("theta", "rotation", "yaw"))
BOX3D = Column(
    "box3d",
    "vector",
    "3-D box: centre x, y and z, length (along its heading), width, height and yaw; angle_format"
    " says which axis is up and how yaw is measured. Or its eight corners, points in any order; or"
    " columns cx, cy, cz, length, width, height, yaw.",
    ("box_3d", "bbox_3d", "bbox3d", "boxes_3d", "cuboid"),
    nullable=True,
    way_out="Give each row one list of seven numbers, or write columns cx, cy, cz, length, width,"
    " height and yaw.",
)
YAW = Column("yaw", "number", "Turn of a 3-D box.", ("rotation_y", "rotation_z", "heading"))
VX, VY = (
    Column(
        f"v{axis}",
        "number",
        f"Velocity along {axis} of a 3-D box, metres a second; null where it is unknown.",
        (f"velocity_{axis}",),
        nullable=True,
    )
    for axis in "xy"
)
ATTRIBUTE = Column(
    "attribute",
    "text",
    "What a 3-D box is doing (nuScenes' attribute); null or empty where there is none.",
    ("attribute_name",),
    nullable=True,
)
EGO_DISTANCE = Column(
    "ego_distance",
    "number",
    "How far the centre of a 3-D box lies from the vehicle on the ground, metres: beyond the range"
    " of its label it does not count (nuScenes).",
    ("ego_dist",),
    low=0.0,
)
NUM_POINTS = Column(
    "num_points",
    "number",
    "Points of lidar and radar in a 3-D box; ground truths of 0 do not count (nuScenes),"
    " of -1, unknown, they do.",
    ("num_pts",),
    low=-1.0,
)
HEIGHT_2D = Column(
    "height_2d",
    "number",
    "How high a 3-D box is in its image, pixels (KITTI); taken from boxes in pixels, if absent.",
    (),
    nullable=True,
    low=0.0,
)
ALPHA = Column(
    "alpha",
    "number",
    "Angle at which an object is seen, radians; -10 where it is unknown (KITTI).",
    ("observation_angle",),
    nullable=True,
)
OF_SOLIDS = (VX, VY, ATTRIBUTE, EGO_DISTANCE, HEIGHT_2D, NUM_POINTS)
"""Columns that are read only for 3-D boxes."""
MASK = Column(
    "mask",
    "mask",
    "Run-length mask: a struct of size (height, width) and counts as in COCO, compressed or not;"
    " or of size and row-major runs; or rows of pixels.",
    ("masks", "rle", "segmentation", "segmentation_mask"),
)
OF_BOX = 0.53
"""The share of its box that a person of no annotated area is taken to fill, as in xtcocotools."""
KEYPOINTS = Column(
    "keypoints",
    "keypoints",
    "x, y, visibility of every keypoint, one after the other; of ground truths a point counts where"
    " visibility is above 0, of predictions the third number is not read. Or columns x_1, y_1, v_1,"
    " x_2, ...",
    ("keypoint", "pose", "landmarks"),
)
NUM_KEYPOINTS = Column(
    "num_keypoints",
    "number",
    "Labelled keypoints; a ground truth of 0 is left out, as a crowd is. Counted if absent.",
    (),
    low=0.0,
)
HEAD_SIZE = Column(
    "head_size",
    "number",
    "Size of a person's head, that PCKh holds distances against; MPII's is 0.6 of the diagonal of"
    " the head's box.",
    ("headsize", "head_length"),
    nullable=True,
    low=0.0,
)
RASTER = Column(
    "raster",
    "text",
    "Path of a raster file (PNG, TIFF, GeoTIFF): its set pixels are the mask, or in semantic"
    " segmentation the index of a label.",
    ("raster_path", "mask_path", "mask_file", "segmentation_path", "label_map"),
)
RASTER_BAND = Column(
    "raster_band", "number", "Band of the raster to read, from 1; 1 if absent.", ("band",), low=1.0
)
RASTER_VALUE = Column(
    "raster_value", "number", "Pixel value that is the object; every value but 0 if absent.",
    ("pixel_value", "instance_value"),
)  # fmt: skip
RASTER_CODING = Column(
    "raster_coding", "text", "What pixels of the file hold where that is not the index of a label:"
    " cityscapes-ids, cityscapes-train-ids, ade20k, voc-indices, colors, ...",
)  # fmt: skip
