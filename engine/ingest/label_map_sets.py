"""Known data sets of label maps: labels, values and colours.

A set has several codings, since tools write its labels in several ways. Sources: Cityscapes'
scripts (labels.py), the 150 classes of ADE20K's scene parsing benchmark, Pascal VOC's development
kit, whose colours are the interleaved bits of an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from ..schemas.arrays import Array

VOID = -1
"""Number of unlabelled pixels, which are ignored in ground truths; named labels count from 1, as 0
is background in some dialects.
"""


class Coding(msgspec.Struct, frozen=True):
    """One pixel coding of a set's labels.

    Attributes:
        name: value of the column ``raster_coding``.
        of: pixel value, for colours R + 256 G + 65536 B, to label number or ``VOID``.
        colours: whether pixels are colours.
    """

    name: str
    title: str
    of: dict[int, int]
    colours: bool = False

    def labelled(self, values: Iterable[int]) -> int:
        """Count the values that are labels; -1 if any is unknown."""
        found = [self.of.get(value) for value in values]
        return -1 if None in found else sum(number != VOID for number in found)


class LabelSet(msgspec.Struct, frozen=True):
    """Known data set, or a common way of writing label maps.

    Attributes:
        name: for ``labels=``.
        labels: names of labels, from number 1; empty if labels are numbers.
        codings: possible pixel codings, the data set's first.
        stem: a regular expression of its file names, whose first group is the image; or empty.
        spread: whether its ground truths have Pascal VOC's palette, without which names are no
            evidence.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    codings: tuple[Coding, ...]
    stem: str = ""
    spread: bool = False

    def image(self, name: str) -> str | None:
        """The image that a file's name without folders and extension is of."""
        found = re.match(self.stem, name) if self.stem else None
        return found[1] if found else None


def packed(colour: Iterable[int]) -> int:
    """Red, green and blue as one number."""
    red, green, blue = colour
    return red | green << 8 | blue << 16


def _of_hex(digits: str) -> int:
    return packed(bytes.fromhex(digits))


def spread(index: int) -> int:
    """The colour of an index as Pascal VOC has it: three bits of it at a time, highest first."""
    colour = [0, 0, 0]
    for bit in range(8):
        for channel in range(3):
            colour[channel] |= (index >> (3 * bit + channel) & 1) << (7 - bit)
    return packed(colour)


_CITYSCAPES = """
road 7 804080; sidewalk 8 f423e8; building 11 464646; wall 12 66669c; fence 13 be9999;
pole 17 999999; traffic light 19 faaa1e; traffic sign 20 dcdc00; vegetation 21 6b8e23;
terrain 22 98fb98; sky 23 4682b4; person 24 dc143c; rider 25 ff0000; car 26 00008e;
truck 27 000046; bus 28 003c64; train 31 005064; motorcycle 32 0000e6; bicycle 33 770b20
"""
_CITIES = (
    "aachen berlin bielefeld bochum bonn bremen cologne darmstadt dusseldorf erfurt frankfurt"
    " hamburg hanover jena krefeld leverkusen lindau mainz monchengladbach munich munster"
    " strasbourg stuttgart tubingen ulm weimar zurich"
)
_CITYSCAPES_VOID = "000000 6f4a00 510051 faaaa0 e6968c b4a5b4 966464 96785a 00005a 00006e"
_ADE20K = (
    "wall,building,sky,floor,tree,ceiling,road,bed,windowpane,grass,cabinet,"
    "sidewalk,person,earth,door,table,mountain,plant,curtain,chair,car,water,"
    "painting,sofa,shelf,house,sea,mirror,rug,field,armchair,seat,fence,desk,"
    "rock,wardrobe,lamp,bathtub,railing,cushion,base,box,column,signboard,"
    "chest of drawers,counter,sand,sink,skyscraper,fireplace,refrigerator,grandstand,"
    "path,stairs,runway,case,pool table,pillow,screen door,stairway,river,bridge,"
    "bookcase,blind,coffee table,toilet,flower,book,hill,bench,countertop,stove,"
    "palm,kitchen island,computer,swivel chair,boat,bar,arcade machine,hovel,bus,"
    "towel,light,truck,tower,chandelier,awning,streetlight,booth,television receiver,"
    "airplane,dirt track,apparel,pole,land,bannister,escalator,ottoman,bottle,"
    "buffet,poster,stage,van,ship,fountain,conveyer belt,canopy,washer,plaything,"
    "swimming pool,stool,barrel,basket,waterfall,tent,bag,minibike,cradle,oven,"
    "ball,food,step,tank,trade name,microwave,pot,animal,bicycle,lake,dishwasher,"
    "screen,blanket,sculpture,hood,sconce,vase,traffic light,tray,ashcan,fan,pier,"
    "crt screen,plate,monitor,bulletin board,shower,radiator,glass,clock,flag"
)
_VOC = (
    "background,aeroplane,bicycle,bird,boat,bottle,bus,car,cat,chair,cow,diningtable,dog,horse,"
    "motorbike,person,pottedplant,sheep,sofa,train,tvmonitor"
)
_BORDER = 255
COLOUR_MAP = tuple(map(spread, range(256)))
"""Pascal VOC's colours of indices, packed."""


def _cityscapes() -> LabelSet:
    rows = [one.strip().rsplit(" ", 2) for one in _CITYSCAPES.split(";")]
    ids = {int(i): n for n, (_, i, _) in enumerate(rows, 1)}
    colours = dict.fromkeys(map(_of_hex, _CITYSCAPES_VOID.split()), VOID)
    colours |= {_of_hex(colour): n for n, (_, _, colour) in enumerate(rows, 1)}
    train = {n - 1: n for n in range(1, len(rows) + 1)}
    return LabelSet(
        "cityscapes",
        "Cityscapes",
        tuple(name for name, _, _ in rows),
        (
            Coding("cityscapes-ids", "labelIds", dict.fromkeys(range(34), VOID) | ids),
            Coding("cityscapes-train-ids", "trainIds", train | {_BORDER: VOID}),
            Coding("cityscapes-colors", "colours", colours, colours=True),
        ),
        rf"((?:{_CITIES.replace(' ', '|')})_\d{{6}}_\d{{6}})(?:_|$)",
    )


def _ade20k() -> LabelSet:
    labels = tuple(_ADE20K.split(","))
    own = {n: n for n in range(1, len(labels) + 1)}
    reduced = {n - 1: n for n in own} | {_BORDER: VOID}
    return LabelSet(
        "ade20k",
        "ADE20K",
        labels,
        (
            Coding("ade20k", "1 to 150, 0 unlabelled", own | {0: VOID}),
            Coding("ade20k-reduced", "0 to 149 (reduce_zero_label)", reduced),
        ),
        r"(ADE_[a-z]+_\d{8})",
    )


def _voc(name: str, title: str, labels: tuple[str, ...], indices: range, stem: str) -> LabelSet:
    """Codings by index and by the colour of an index; 255 is the border of objects."""
    of = {i: i + bool(labels) for i in indices} | {_BORDER: VOID}
    colours = {COLOUR_MAP[i]: n for i, n in of.items()}
    return LabelSet(
        name,
        title,
        labels,
        (
            Coding(f"{name}-indices", f"indices, {_BORDER} void", of),
            Coding(f"{name}-colors", "colours", colours, colours=True),
        ),
        stem,
        spread=True,
    )


COLOURED = _voc("voc-palette", "Pascal VOC's palette", (), range(_BORDER), "")
"""Any labels that are written in VOC's palette: indices are the labels."""
SETS = {
    one.name: one
    for one in (
        _cityscapes(),
        _ade20k(),
        _voc("voc", "Pascal VOC", tuple(_VOC.split(",")), range(21), r"(\d{4}_\d{6})$"),
        COLOURED,
    )
}
"""By name, in the order in which they are tried."""
CODINGS = {coding.name: coding for one in SETS.values() for coding in one.codings}
LISTED = "labelmap.txt"
"""List of labels and colours next to a folder, as CVAT writes it."""
OWN_COLOURS = "colors"
"""Coding by the column ``color`` of ``labels``."""
GREY = "grey"
"""The coding of pictures whose three bands are the index; behind a coding's name, its value."""
UNKNOWN = -2
"""Number of a value that a coding does not have."""
MAPS = ("_gtFine_labelIds", "_gtFine_labelTrainIds", "_gtCoarse_labelIds",
        "_gtCoarse_labelTrainIds", "_gtFine_color", "_gtCoarse_color")  # fmt: skip
"""Ends of names of the label maps among the files of a data set that has several an image."""


def is_known(coding: str) -> bool:
    return coding.removesuffix(f"-{GREY}") in (*CODINGS, OWN_COLOURS, GREY)


def is_coloured(coding: str) -> bool:
    """Return whether a coding is for colour pictures, rather than one number per pixel."""
    known = CODINGS.get(coding)
    return known.colours if known is not None else coding == OWN_COLOURS or coding.endswith(GREY)


def numbers_of(coding: str, values: Array, own: Mapping[int, int]) -> Array:
    """Decode pixel values to label numbers.

    Args:
        values: int64 [n], pixels, or packed colours.
        own: number of each colour, for the coding of ``labels``.

    Returns:
        int64 [n], including ``VOID`` and ``UNKNOWN``.
    """
    base = coding
    if coding.endswith(GREY):
        base = coding.removesuffix(GREY).removesuffix("-")
        even = values % _EVEN == 0
        values = np.where(even, values // _EVEN, UNKNOWN)
    if not base:
        return values
    of = own if base == OWN_COLOURS else CODINGS[base].of
    distinct, inverse = np.unique(values, return_inverse=True)
    numbers = np.array([of.get(one, UNKNOWN) for one in distinct.tolist()], np.int64)
    return np.asarray(numbers[inverse])


_EVEN = 0x010101


def colour_of(text: str) -> int | None:
    """A colour as people write it (``#804080``, ``128,64,128``, ``128 64 128``), packed."""
    text = text.strip().lower()
    if re.fullmatch(r"#?[0-9a-f]{6}", text):
        return _of_hex(text.removeprefix("#"))
    parts = [int(one) for one in re.findall(r"\d+", text)]
    return packed(parts) if len(parts) == 3 and max(parts) <= _BORDER else None
