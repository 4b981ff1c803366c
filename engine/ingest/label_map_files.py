"""Label maps in files, and known data sets of them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..geometry.rasters import opened
from ..schemas.arrays import Array
from ..schemas.contract import GROUND_TRUTHS, LABELS, PREDICTIONS
from ..schemas.errors import InputError
from ..schemas.options import Options
from ..schemas.wording import option
from .annotations.format import broken, text_of
from .files import Source
from .id_mismatch import around
from .ids import written
from .problems import Note, count_of

# Known data sets of label maps: labels, values and colours.
# Sources: Cityscapes' labels.py, ADE20K's 150 scene parsing classes, Pascal VOC's development kit
# (colours: interleaved bits of an index). A set has several codings, by tool.

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
        indices = [self.of.get(value) for value in values]
        return -1 if None in indices else sum(number != VOID for number in indices)


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
        match = re.match(self.stem, name) if self.stem else None
        return match[1] if match else None


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
    indices = {n: n for n in range(1, len(labels) + 1)}
    reduced = {n - 1: n for n in indices} | {_BORDER: VOID}
    return LabelSet(
        "ade20k",
        "ADE20K",
        labels,
        (
            Coding("ade20k", "1 to 150, 0 unlabelled", indices | {0: VOID}),
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
MAPS = (
    "_gtFine_labelIds",
    "_gtFine_labelTrainIds",
    "_gtCoarse_labelIds",
    "_gtCoarse_labelTrainIds",
    "_gtFine_color",
    "_gtCoarse_color",
)
"""Ends of names of the label maps among the files of a data set that has several an image."""


def has_format(coding: str) -> bool:
    return coding.removesuffix(f"-{GREY}") in (*CODINGS, OWN_COLOURS, GREY)


def is_coloured(coding: str) -> bool:
    """Return whether a coding is for colour pictures, rather than one number per pixel."""
    dataset = CODINGS.get(coding)
    return (
        dataset.colours if dataset is not None else coding == OWN_COLOURS or coding.endswith(GREY)
    )


def numbers_of(coding: str, values: Array, own: Mapping[int, int]) -> Array:
    """Decode pixel values to label numbers.

    Args:
        own: number of each colour, for the coding of ``labels``.

    Returns:
        int64 [n], including ``VOID`` and ``UNKNOWN``.
    """
    base = coding
    if coding.endswith(GREY):
        base = coding.removesuffix(GREY).removesuffix("-")
        values = np.where(values % _EVEN == 0, values // _EVEN, UNKNOWN)
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


# Two sides of label map files: matching images and pixel codings.

SET = "label_set"
"""The fact of a table of labels that names the data set it is of."""
_LOOKED_AT = 8  # images a side
_PIXELS = 1 << 16  # of an image, evenly spread
_COLOURS = 256  # more of them make a picture
_BANDS = (3, 4)  # of pictures in colours
_TRAINED = "TrainIds"


def open_set(name: str) -> Source | None:
    """Return the labels of a known data set; None if the name is unknown, or that of a file."""
    dataset = SETS.get(name)
    if dataset is None or not dataset.labels or os.path.exists(name):
        return None
    rows = {"label_value": dataset.labels, "index": range(1, len(dataset.labels) + 1)}
    return Source(pl.LazyFrame(rows), f"the labels of {dataset.title}", facts={SET: name})


class _Side:
    """Files of one side, of which a few are inspected.

    Args:
        table: ``datum_id`` and ``raster``.
    """

    def __init__(self, role: str, source: Source, table: pl.DataFrame) -> None:
        self.role, self.source, self.table = role, source, table
        self.some: list[str] = []
        """Ids of the images that are looked into."""

    @property
    def called(self) -> str:
        """Its role in words."""
        return self.role.replace("_", " ")

    @property
    def named(self) -> bool:
        """Return whether its single file was given directly, not found in a folder or by a glob."""
        description, file = self.source.description, self.source.files[0]
        return os.path.basename(description) == os.path.basename(file)

    @cached_property
    def maps(self) -> dict[str, Array]:
        """Some pixels of images by id: indices, or packed colours; unreadable ones aside."""
        files = dict(self.table.iter_rows())
        result = {}
        for one in self.some:
            try:
                with opened(files[one]) as dataset:
                    pixels = dataset.read()
            except OSError:
                continue  # reported once all are read
            if pixels.dtype.kind not in "iub":
                continue
            step = max(1, math.isqrt(pixels[0].size // _PIXELS))
            some = pixels[:, ::step, ::step].astype(np.int64)
            if len(some) in _BANDS:
                some[0] |= some[1] << 8 | some[2] << 16
            result[one] = some[0]
        return result

    @cached_property
    def _header(self) -> tuple[int, dict[int, tuple[int, ...]]]:
        """Bands of the first file that opens, and its palette."""
        for one in self.some:
            try:
                with opened(dict(self.table.iter_rows())[one]) as dataset:
                    kinds = dataset.colorinterp
                    return dataset.count, dataset.colormap(1) if kinds[0].name == "palette" else {}
            except OSError:
                continue
        return 1, {}

    @property
    def picture(self) -> bool:
        """Return whether its files have colour bands."""
        return self._header[0] in _BANDS

    @property
    def spread(self) -> bool:
        """Return whether its files have Pascal VOC's palette."""
        palette = self._header[1]
        return len(palette) > 1 and all(
            packed(palette[i][:3]) == COLOUR_MAP[i] for i in (1, 2, 15, 255) if i in palette
        )

    @cached_property
    def values(self) -> Array:
        """Distinct values of the pixels looked at."""
        seen = [pl.Series(pixels.ravel()).unique() for pixels in self.maps.values()]
        return pl.concat([pl.Series([], dtype=pl.Int64), *seen]).unique().sort().to_numpy()

    @property
    def grey(self) -> bool:
        """Return whether its pictures have three equal bands."""
        return self.picture and bool((self.values % packed((1, 1, 1)) == 0).all())

    def codings(self, label_set: LabelSet) -> list[str]:
        """Return the codings of a set that contain all observed values."""
        names = [one.name for one in label_set.codings if one.colours == self.picture]
        if self.grey:
            names += [f"{one.name}-{GREY}" for one in label_set.codings if not one.colours]
        return [name for name in names if (numbers_of(name, self.values, {}) >= VOID).all()]

    def labelled(self, coding: str) -> int:
        """Count the observed values that are labels in a coding."""
        return int((numbers_of(coding, self.values, {}) != VOID).sum())


def unify_sides(sources: dict[str, Source], options: Options) -> None:
    """Unify the image names of both sides, and detect the coding of their pixels.

    Known data sets are recognised by file names, palettes and colours; the coding of a side by its
    values. The user's labels take precedence.

    Args:
        options: with an ignored or background index, indices are read unchanged.
    """
    sides = [
        _Side(role, sources[role], sources[role].frame.collect())
        for role in (GROUND_TRUTHS, PREDICTIONS)
        if role in sources and sources[role].format == "raster"
    ]
    if not sides:
        return
    swapped = _swapped(sides)
    warned = _same_images(sides)
    if LABELS not in sources and any(side.picture for side in sides):
        listed = _listed(sides)
        if listed is not None:
            sources[LABELS] = listed
    labels = sources.get(LABELS)
    forced = SETS.get(labels.facts.get(SET, "")) if labels is not None else None
    raw = forced is None and (
        labels is not None or options.ignore_index is not None or options.background is not None
    )
    dataset = forced or _recognised(sides)
    coloured = labels is not None and "color" in labels.frame.collect_schema()
    message = ""
    if dataset is None or raw:
        codings = {side.role: _plain(side, coloured) for side in sides}
        if dataset is not None and dataset.labels and labels is None:
            message = (
                f"these seem to be label maps of {dataset.title}, and indices are read as they "
                f"are, because of ignore_index or background. {option('labels', dataset.name)} "
                "names its labels."
            )
    else:
        codings, message = _chosen(dataset, sides)
        if dataset.labels and labels is None:
            sources[LABELS] = open_set(dataset.name)  # type: ignore[assignment]
    for side in sides:
        table, coding = side.table, codings[side.role]
        if coding:
            table = table.with_columns(raster_coding=pl.lit(coding))
        side.source.frame = table.lazy()
        sources[side.role] = side.source
    if message:
        sides[0].source.notes += (Note("label_maps_recognised", message, sides[0].table.height),)
    sides[0].source.notes += (*swapped, *warned)


def _same_images(sides: list[_Side]) -> list[Note]:
    """Assign common ids to the images of both sides, and select the inspected images.

    Returns:
        A warning if two files are compared that were not given directly.
    """
    warned: list[Note] = []
    names = [side.table["datum_id"].to_list() for side in sides]
    for dataset in SETS.values():
        images = [[dataset.image(name.rsplit("/", 1)[-1]) for name in stems] for stems in names]
        if all(None not in stems and len({*stems}) == len(stems) for stems in images):
            names = images
            break
    if len(names) == 2 and not {*names[0]} & {*names[1]}:
        if all(len(stems) == 1 for stems in names):
            if not all(side.named for side in sides):
                truth, prediction = (side.table["raster"][0] for side in sides)
                message = (
                    f"each side has one label map, and their names differ: {prediction!r} of the"
                    f" predictions is compared with {truth!r} of the ground truths as if both were"
                    " of one image. If they are, name the files instead of their folders."
                )
                warned = [Note("one_file_each", message, 1, warning=True)]
            names = [names[0], names[0]]
        names = _without_affixes(names) or names
    for side, stems in zip(sides, names, strict=True):
        side.table = side.table.with_columns(pl.Series("datum_id", stems, dtype=pl.String))
    common = sorted({*names[0]} & {*names[-1]}) or names[0]
    every = max(1, len(common) // _LOOKED_AT)
    for side, stems in zip(sides, names, strict=True):
        side.some = (common if common[0] in stems else stems)[::every][:_LOOKED_AT]
    return warned


def _swapped(sides: list[_Side]) -> list[Note]:
    """Return a warning if only the predictions' files are named like ground truths."""
    if len(sides) < 2:
        return []
    truths, predictions = (side.table["raster"].to_list() for side in sides)
    for sign in (*MAPS, *(f"{folder}/" for folder in _OF_TRUTHS)):
        pattern = sign if sign.endswith("/") else f"*{sign}"
        signed = [[_has_sign(file, sign) for file in side] for side in (truths, predictions)]
        if all(signed[1]) and not any(signed[0]):
            message = (
                f"the label maps of the predictions are called {pattern}, as data sets call their"
                f" ground truths, and those of the ground truths are not ({truths[0]!r}): are the"
                " two sides swapped? The predictions come first."
            )
            return [Note("tables_swapped", message, warning=True)]
    return []


def _has_sign(file: str, sign: str) -> bool:
    """Return whether a file is in a folder, or its name ends with a sign."""
    if sign.endswith("/"):
        return sign[:-1] in os.path.dirname(os.path.abspath(file)).split(os.sep)
    return os.path.splitext(os.path.basename(file))[0].endswith(sign)


_OF_TRUTHS = ("gtFine", "gtCoarse", "SegmentationClass", "SegmentationObject")
"""Folders in which data sets keep the label maps of their ground truths."""


def _without_affixes(names: list[list[str]]) -> list[list[str]] | None:
    """Remove common prefixes and suffixes of each side, if the names then match."""
    pattern = around(*(pl.Series(stems) for stems in names))
    if pattern is None:
        return None
    cut = [
        pl.Series("id", stems).to_frame().select(written(pl.col("id"), [pattern]))["id"].to_list()
        for stems in names
    ]
    if any(len({*stems}) < len(stems) for stems in cut):
        return None
    matches = len({*cut[0]} & {*cut[1]})
    return cut if 2 * matches >= min(map(len, cut)) else None


def _recognised(sides: list[_Side]) -> LabelSet | None:
    """The set that files are of, by their names, else by colours or the ground truths' palette."""
    names = [name for side in sides for name in side.table["datum_id"].to_list()]
    for dataset in SETS.values():
        named = dataset.stem and all(map(dataset.image, names))
        if named and (sides[0].spread or not dataset.spread) and all(map(_has(dataset), sides)):
            return dataset
    pictures = [side for side in sides if side.picture and not side.grey]
    if pictures:
        return next((one for one in _BY_COLOURS if all(map(_has(one), sides))), None)
    return COLOURED if sides[0].spread and all(map(_has(COLOURED), sides)) else None


_BY_COLOURS = (SETS["cityscapes"], COLOURED)


def _has(label_set: LabelSet) -> Any:
    return lambda side: bool(side.codings(label_set))


def _plain(side: _Side, coloured: bool) -> str:
    """Return the coding of a side of an unknown data set."""
    if not side.picture:
        return ""
    if coloured:
        return OWN_COLOURS
    if COLOURED.codings[1].name in side.codings(COLOURED):
        return COLOURED.codings[1].name
    if side.grey:
        return GREY
    n = side.values.size
    palette = {*COLOURED.codings[1].of}
    odd = [one for one in side.values.tolist() if one not in palette]
    first = ", ".join(f"({one & 255}, {one >> 8 & 255}, {one >> 16})" for one in odd[:3])
    file = dict(side.table.iter_rows())[side.some[0]]
    why = (
        f"They have {n:,} colours: are they pictures rather than label maps, resized with"
        " interpolation, or once JPEG?"
        if n > _COLOURS
        else "If they are the colours of labels, list them:"
    )
    raise InputError(
        f"{side.called}: {file!r} contains colours ({count_of(len(odd), 'colour')} of no known "
        f"palette, first {first}), but label maps contain indices of labels. {why} "
        f"{option('labels')} with a table of label_value and color (#804080 or 128,64,128), or "
        f"{LISTED} next to the folder, as CVAT writes it, with lines such as road:128,64,128.",
        code="values_unlabelled",
        side=side.role,
        count=len(odd),
        values=odd[:3],
    )


def _chosen(label_set: LabelSet, sides: list[_Side]) -> tuple[dict[str, str], str]:
    """Return the coding of each side of a known set, and a note."""
    codings: dict[str, str] = {}
    evidence = ""
    for side in sides:
        fitting = side.codings(label_set)
        if not fitting:  # reported with the values, once all are counted
            fitting = [one.name for one in label_set.codings if one.colours == side.picture]
        if side.role == GROUND_TRUTHS or len(fitting) == 1:
            files = side.table["raster"].head(1).to_list()
            trained = [name for name in fitting if "train" in name and _TRAINED in files[0]]
            codings[side.role] = [*trained, *fitting, label_set.codings[0].name][0]
            continue
        shares = {name: _agreement(sides, codings, name) for name in fitting}
        best = max(fitting, key=lambda name: (shares[name], side.labelled(name)))
        codings[side.role] = best
        candidates = ", ".join(f"{_title(name)} {share:.1%}" for name, share in shares.items())
        evidence = f" (pixels of {count_of(len(side.some), 'image')} that agree: {candidates})"
    read = "; ".join(
        f"{role.replace('_', ' ')} contain {_title(coding)}"
        + (evidence if role == PREDICTIONS else "")
        for role, coding in codings.items()
    )
    what = f"labels of {label_set.title}" if label_set.labels else f"indices in {label_set.title}"
    return codings, (
        f"label maps are read as {what}: {read}. Void counts nowhere. {option('ignore_index', 255)}"
        f" or {option('labels')} reads indices as they are."
    )


def _title(coding: str) -> str:
    base = coding.removesuffix(f"-{GREY}")
    one = next(c for dataset in SETS.values() for c in dataset.codings if c.name == base)
    return one.title + (" as grey pictures" if base != coding else "")


def _agreement(sides: list[_Side], codings: dict[str, str], coding: str) -> float:
    """The share of labelled pixels looked at that agree, if predictions have a coding."""
    if GROUND_TRUTHS not in codings:
        return 0.0
    agreeing = counted = 0
    for one, true in sides[0].maps.items():
        predicted = sides[1].maps.get(one)
        if predicted is None or predicted.shape != true.shape:
            continue
        pairs = pl.DataFrame({"true": true.ravel(), "found": predicted.ravel()})
        pairs = pairs.group_by("true", "found").len()
        truth = numbers_of(codings[GROUND_TRUTHS], pairs["true"].to_numpy(), {})
        labelled, n = truth != VOID, pairs["len"].to_numpy()
        agreeing += int(
            n[labelled & (truth == numbers_of(coding, pairs["found"].to_numpy(), {}))].sum()
        )
        counted += int(n[labelled].sum())
    return agreeing / counted if counted else 0.0


def _listed(sides: list[_Side]) -> Source | None:
    """Read the labels and colours of a list next to the files, as CVAT writes it."""
    for side in sides:
        folder = os.path.dirname(side.table["raster"][0])
        for place in (folder, os.path.dirname(folder)):
            file = os.path.join(place, LISTED)
            if os.path.isfile(file):
                return _read_list(file)
    return None


def _read_list(file: str) -> Source:
    rows = []
    for number, line in enumerate(text_of(file).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, sign, rest = line.partition(":")
        colour = rest.split(":")[0]
        if not sign or colour_of(colour) is None:
            raise broken(
                file,
                number,
                f"{line[:60]!r} is not a label and colour",
                "Write lines such as road:128,64,128.",
            )
        rows.append({"label_value": name, "color": colour})
    message = f"labels and their colours are those of {file}."
    return Source(pl.LazyFrame(rows), file, notes=(Note("labels_listed", message, len(rows)),))
