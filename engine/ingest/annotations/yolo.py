"""YOLO: labels, images, class names and splits."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...schemas.arrays import Array
from ...schemas.errors import ReadError
from ..files import Source, files_below, unreadable
from ..geometry import CORNER_NAMES
from ..problems import Note, count_of
from .format import (
    IMAGE_SUFFIXES,
    NAMELESS,
    RINGS,
    UNPACKED,
    Format,
    Look,
    broken,
    head_of,
    plain,
    quoted,
    sizes_of,
    text_of,
    without_empty,
)
from .titles import PACKED

# The folders of a YOLO data set: labels, their images, names of classes, splits.

YAML = (".yaml", ".yml")
_DARKNET = "obj.names"
_NAMES = ("classes.txt", _DARKNET, "names.txt", "labels.txt", "_darknet.labels")
_OTHERS = (
    *_NAMES,
    "readme.txt",
    "readme.roboflow.txt",
    "readme.dataset.txt",
    "train.txt",
    "val.txt",
    "test.txt",
    "requirements.txt",
    "license.txt",
    "autosplit_train.txt",
    "autosplit_val.txt",
    "autosplit_test.txt",
)
"""Text files in such folders that contain no labels."""
LOW, HIGH = -0.5, 1.5  # range of shares, for objects that cross the edge too
_SPLITS = ("train", "val", "valid", "test")
_UP = 3  # folders above the labels in which names of classes are looked for


class Files(msgspec.Struct):
    """Files of a set of labels.

    Attributes:
        split: of a label file or image, if there are several.
        names: of the classes by number; empty if unknown.
        points: number of key points, and of numbers per point: empty if the description has no
            entry; None without a description.
    """

    labels: tuple[str, ...]
    images: tuple[str, ...]
    split: dict[str, str]
    names: dict[int, str]
    points: tuple[int, int] | None


def may_be_label(file: str) -> bool:
    return os.path.basename(file).lower() not in _OTHERS


def is_label(head: bytes) -> bool:
    """Return whether the first line is a class number and relative coordinates."""
    lines = (line.split() for line in head.splitlines())
    fields = next((one for one in lines if one and not one[0].startswith(b"#")), [])
    try:
        numbers = [float(field) for field in fields]
    except ValueError:
        return False
    return (
        len(numbers) >= 5
        and numbers[0] >= 0
        and numbers[0].is_integer()
        and all(LOW <= number <= HIGH for number in numbers[1:5])
    )


def description(look: Look) -> tuple[str, dict[str, Any]] | None:
    """Return the file that describes the data set, and its content."""
    for file in sorted(look.of(*YAML), key=lambda name: name.count(os.sep)):
        data = _yaml(file)
        if data is not None:
            return file, data
    return None


def _yaml(file: str) -> dict[str, Any] | None:
    """Return the content of a YAML file that describes a data set; None for others."""
    import yaml

    text = text_of(file)
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if _expanded(node) > _NODES:
            raise RecursionError
        data = None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        if not any(line.startswith("names:") for line in text.splitlines()):
            return None  # another tool's, with custom tags
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise broken(file, line, "no YAML that can be read", "Correct the line.") from None
    described = isinstance(data, dict) and (
        "names" in data or ("nc" in data and {*_SPLITS} & {*data})
    )
    return data if described else None


_NODES = 1_000_000


def _expanded(root: Any) -> int:
    """Count the values of a YAML document with all aliases expanded."""
    sizes: dict[int, int] = {}

    def size(node: Any) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = _NODES  # of a node that has itself in it
            below = node.value if not isinstance(node.value, str) else ()
            parts = [one for part in below for one in (part if type(part) is tuple else (part,))]
            sizes[id(node)] = 1 + sum(map(size, parts))
        return sizes[id(node)]

    return 0 if root is None else size(root)


def ids_of(look: Look, files: Files, both: tuple[str, ...]) -> list[str]:
    """The datum of each label file and image: a label file's is its image's."""
    stems = [_stem(name) for name in both]
    for kind in (files.labels, files.images):
        of_kind = [_stem(name) for name in kind]
        if len({*of_kind}) < len(of_kind):
            break
    else:
        return stems
    pictures = _other(look.root, "labels", "images")  # images of a given folder of labels
    named = [look.relative(name) for name in both]
    if pictures:
        named = [
            os.path.relpath(file, pictures).replace(os.sep, "/") if name[:3] == "../" else name
            for file, name in zip(both, named, strict=True)
        ]
    named = [os.path.splitext(name.removesuffix(PACKED))[0] for name in named]
    return [
        "/".join(part for part in name.split("/") if part not in ("labels", "images"))
        for name in named
    ]


def _stem(file: str) -> str:
    return os.path.splitext(os.path.basename(file).removesuffix(PACKED))[0]


def gathered(look: Look) -> Files:
    """Collect the files of given labels, by their description or their folder."""
    described = description(look)
    if described is None:
        texts = tuple(name for name in look.of(".txt") if may_be_label(name))
        names, points = _nearest_names((look.root, *_around(look.root, texts)))
        folder = _other(look.root, "labels", "images")
        pictures = look.of(*IMAGE_SUFFIXES) or (_below(folder, IMAGE_SUFFIXES) if folder else ())
        return Files(texts, pictures, _by_folder(look, (*texts, *pictures)), names, points)
    file, data = described
    names, points = _named(file, data)
    labels: list[str] = []
    images: list[str] = []
    split: dict[str, str] = {}
    for key in _SPLITS:
        listed = data.get(key)  # folders, or lists of images
        for one in listed if isinstance(listed, list) else [listed]:
            if not isinstance(one, str):
                continue
            here = _find_folder(file, data, one)
            if here is None:  # the images may be elsewhere, and their labels here
                here = _find_folder(file, data, re.sub(r"\bimages\b", "labels", one))
                of_split = _labels_below(here) if here else []
                labels += of_split
                split |= dict.fromkeys(of_split, key)
                continue
            pictures = _below(here, IMAGE_SUFFIXES)
            if here.endswith(".txt"):
                names_of = filter(None, map(str.strip, text_of(here).splitlines()))
                pictures = tuple(
                    os.path.normpath(os.path.join(os.path.dirname(here), name)) for name in names_of
                )
            of_split = _texts_of(here, pictures)
            images += pictures
            labels += of_split
            split |= dict.fromkeys((*pictures, *of_split), key)
    if not images and not labels and not {*_SPLITS} & {*data}:
        home = os.path.dirname(os.path.abspath(file))
        labels += _labels_below(home)
        images += _below(home, IMAGE_SUFFIXES)
    if not images and not labels:
        labels += (name for name in look.of(".txt") if may_be_label(name))
        images += look.of(*IMAGE_SUFFIXES)
    if not images and not labels:
        raise ReadError(
            f"{file}: train, val and test name no existing images or labels. Correct 'path' "
            "there, or give the folder of the labels.",
            code="file_missing",
            file=file,
        )
    split = split if len({*split.values()}) > 1 else {}
    return Files(tuple(dict.fromkeys(labels)), tuple(dict.fromkeys(images)), split, names, points)


def _by_folder(look: Look, files: Iterable[str]) -> dict[str, str]:
    """Return the split of each file by its folder, if there are several splits."""
    split = {}
    for file in files:
        at = next((part for part in look.relative(file).split("/")[:-1] if part in _SPLITS), None)
        if at is None:
            return {}
        split[file] = at
    return split if len({*split.values()}) > 1 else {}


def _find_folder(file: str, renames: Mapping[str, Any], folder: str) -> str | None:
    """Find a folder of a description: relative to its ``path``, otherwise to the description."""
    home = os.path.dirname(os.path.abspath(file))
    root = renames.get("path")
    root = root if isinstance(root, str) else ""
    for base in (os.path.join(home, root), home):
        if "*" in folder:
            folder = os.path.dirname(folder.partition("*")[0])
        for name in (folder, folder.removeprefix("../")):  # as Roboflow writes them
            path = os.path.normpath(os.path.join(base, name))
            if os.path.exists(path):
                return path
    return None


def _texts_of(here: str, images: Iterable[str]) -> list[str]:
    """Return the label files of images: in a parallel folder ``labels``, or next to them."""
    folder = None if here.endswith(".txt") else _other(here, "images", "labels")
    if folder is not None and os.path.isdir(folder):
        return _labels_below(folder)
    result = []
    for image in images:
        stem = os.path.splitext(image)[0] + ".txt"
        labels = _other(stem, "images", "labels") or stem
        result += [labels] if os.path.isfile(labels) else []
    return result


def _labels_below(folder: str) -> list[str]:
    return [name for name in _below(folder, (".txt",)) if may_be_label(name)]


def _other(path: str, mine: str, theirs: str) -> str | None:
    """A path with another folder in place of the last one of a name; None without that."""
    parts = os.path.abspath(path).split(os.sep)
    if mine not in parts:
        return None
    at = len(parts) - 1 - parts[::-1].index(mine)
    return os.sep.join([*parts[:at], theirs, *parts[at + 1 :]])


def _below(folder: str, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        sorted(
            name
            for name in files_below(folder)
            if name.lower().removesuffix(PACKED).endswith(suffixes)
        )
    )


def _around(root: str, texts: Sequence[str]) -> list[str]:
    """Return further folders in which class names may be: above the root, and below it."""
    result = []
    root = folder = os.path.abspath(root)
    if "labels" in folder.split(os.sep):
        for _ in range(_UP):
            folder = os.path.dirname(folder)
            result.append(folder)
    elif os.path.isdir(os.path.join(folder, "labels")):  # of one split
        result.append(os.path.dirname(folder))
    folders = {os.path.dirname(os.path.abspath(name)) for name in texts}
    inner = os.path.commonpath(folders) if folders else ""
    below = [inner, os.path.dirname(inner)]
    return result + [one for one in below if one.startswith(root + os.sep)]


def _nearest_names(folders: Iterable[str]) -> tuple[dict[int, str], tuple[int, int] | None]:
    """Return class names from the nearest file; Darknet's are one folder up."""
    folders = (*folders,)
    for folder in folders:
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            file = os.path.join(folder, name)
            if name.lower().endswith(YAML) and os.path.isfile(file):
                data = _yaml(file)
                if data is not None:
                    return _named(file, data)
            if name.lower() in _NAMES and not is_label(head_of(file)):
                return _listed_in(file), None
    above = os.path.join(os.path.dirname(os.path.abspath(folders[0])), _DARKNET)
    return (_listed_in(above) if os.path.isfile(above) else {}), None


def _listed_in(file: str) -> dict[int, str]:
    return dict(enumerate(line.strip() for line in text_of(file).splitlines() if line.strip()))


def _named(file: str, renames: Mapping[str, Any]) -> tuple[dict[int, str], tuple[int, int] | None]:
    """Names of classes and the shape of key points, as a description has them."""
    names = renames.get("names", [])
    try:
        if not isinstance(names, (dict, list)):
            raise TypeError
        pairs = names.items() if isinstance(names, dict) else enumerate(names)
        classes = {int(number): str(name) for number, name in pairs}
    except (TypeError, ValueError):
        raise broken(
            file, None, "'names' is neither a list of names nor numbers and names", "Correct it."
        ) from None
    shape = renames.get("kpt_shape")
    if isinstance(shape, list) and len(shape) == 2 and all(isinstance(n, int) for n in shape):
        return classes, (shape[0], shape[1])
    return classes, (0, 0)


def datums_of(files: Files, ids: Mapping[str, str]) -> pl.DataFrame:
    """Return every image with a label file or a picture, with its size if readable."""
    sizes = sizes_of({ids[file]: file for file in files.images})
    names = list(dict.fromkeys(ids.values()))
    columns: dict[str, pl.Series] = {"datum_id": pl.Series(names, dtype=pl.String)}
    if files.images:
        named = {ids[file]: os.path.basename(file) for file in files.images}
        columns["file_name"] = pl.Series([named.get(one) for one in names], dtype=pl.String)
    for at, column in enumerate(("width", "height")):
        values = [sizes[one][at] if one in sizes else None for one in names]
        columns[column] = pl.Series(values, dtype=pl.Int64)
    if files.split:
        split = {ids[file]: name for file, name in files.split.items()}
        columns["split"] = pl.Series([split.get(one) for one in names], dtype=pl.String)
    return pl.DataFrame(columns)


# YOLO: one text file per image, one line per object, in relative coordinates.
#
# A line is a class number and ``cx cy w h`` (a box), ``x1 y1 x2 y2 ...`` (a polygon, including
# oriented boxes of four points), or a box and key points; predictions end with a confidence.
# Folder layout as in Ultralytics' documentation of datasets:
# https://docs.ultralytics.com/datasets

_SCORED = 5  # numbers behind the class: a box and a confidence
_EDGE = 0.02  # how far, in shares of the image, detectors predict beyond its edge
_FEW_BEYOND, _MANY_BEYOND = 0.1, 0.2  # shares of boxes from which the order is doubtful, and clear
_LEAST = 5  # boxes from which it is clear


def _detect(look: Look) -> bool:
    """A data set's YAML, or text files whose first lines are all those of labels."""
    if look.of(*YAML) and description(look) is not None:
        return True
    return look.mostly(lambda name, head: is_label(head), ".txt", selects=may_be_label)


def _read(look: Look) -> Source:
    files = gathered(look)
    lines = _Lines.of(files.labels)
    points = files.points
    of_points: tuple[Note, ...] = ()
    theirs = look.other.points if look.other else None
    if points is None and theirs is not None:
        message = (
            f"lines are read as a box and {theirs[0]:,} key points of {theirs[1]} numbers each, by "
            f"the other side's kpt_shape: [{theirs[0]}, {theirs[1]}]."
        )
        points, of_points = theirs, (Note("key_points_of_other_side", message),)
    rows, notes = lines.rows(points)
    notes = (*of_points, *notes) if "keypoints" in rows.columns else notes
    file_names = dict.fromkeys((*files.labels, *files.images))
    ids = dict(zip(file_names, ids_of(look, files, tuple(file_names)), strict=True))
    rows = rows.with_columns(
        pl.Series("datum_id", [ids[files.labels[at]] for at in rows["file"]], dtype=pl.String)
    ).drop("file")
    if files.names:
        odd = np.flatnonzero(~rows["label_value"].is_in([*files.names]).to_numpy())
        if odd.size:
            raise lines.broken(
                int(odd[0]),
                f"class {rows['label_value'][int(odd[0])]} has no name, and {len(files.names)}"
                f" classes have ({odd.size:,} such lines)",
                "Add it to the names, or correct the line.",
            )
    labels = pl.DataFrame(
        {"label_value": [*files.names], "label_name": [*files.names.values()]},
        schema={"label_value": pl.Int64, "label_name": pl.String},
    )
    return Source(
        rows.select("datum_id", pl.exclude("datum_id")).lazy(),
        datums=datums_of(files, ids),
        labels=labels if files.names else None,
        shares=True,
        notes=notes if files.names else (*notes, _NAMELESS),
        points=files.points if files.points and files.points[0] else None,
    )


_NAMELESS = Note(
    NAMELESS, "no class names next to the labels (data.yaml, classes.txt), so classes are numbers."
)


class _Lines(msgspec.Struct):
    """Lines of all non-empty label files.

    Attributes:
        file: int64 [n], the file of each line.
        number: int64 [n], from 1.
    """

    files: tuple[str, ...]
    file: Array
    number: Array
    fields: list[list[bytes]]

    @classmethod
    def of(cls, files: tuple[str, ...]) -> _Lines:
        file, number, fields = [], [], []
        for at, name in enumerate(files):
            try:
                with plain(name) as opened:
                    text = opened.read().removeprefix(b"\xef\xbb\xbf")
            except UNPACKED as error:
                raise unreadable(name, error) from None
            for line, words in enumerate(map(bytes.split, text.splitlines()), 1):
                if words and not words[0].startswith(b"#"):
                    file.append(at)
                    number.append(line)
                    fields.append(words)
        return cls(files, np.array(file, np.int64), np.array(number, np.int64), fields)

    def broken(self, i: int, wrong: str, repair: str) -> ReadError:
        """Make the error for a line."""
        return broken(self.files[self.file[i]], int(self.number[i]), wrong, repair)

    def rows(self, points: tuple[int, int] | None) -> tuple[pl.DataFrame, tuple[Note, ...]]:
        """Parse all objects, in relative coordinates; return notes, too."""
        kinds: dict[int, list[int]] = defaultdict(list)
        for i, words in enumerate(self.fields):
            kinds[len(words) - 1].append(i)
        parts = [pl.DataFrame(schema=_OBJECTS)]
        notes: tuple[Note, ...] = ()
        for count, members in sorted(kinds.items()):
            at = np.array(members, np.int64)
            numbers = self._numbers(at, count)
            label = numbers[:, 0]
            odd: Array = (label < 0) | (label % 1 != 0)
            self._refuse(at, odd, "the first field is not a class number", "Correct the line.")
            self._hold_shares(at, numbers[:, 1:5])
            three = (count - 4) // 3 if points is None and len(kinds) == 1 else 0
            if count == 4 + 3 * three and three and np.isin(numbers[:, 7::3], (0, 1, 2)).all():
                points = three, 3  # whose visibility is 0, 1 or 2
                message = _GUESSED.format(three)
                notes = (Note("key_points_guessed", message, len(self.fields)),)
            if count == _SCORED:
                numbers, first = self._score_last(at, numbers)
                notes += first
            if count in (4, _SCORED):
                notes += self._outside(at, numbers[:, 1:3])
            parts.append(self._objects(at, numbers, points or (0, 0)))
        frame = pl.concat(parts).sort("at").drop("at")
        scored = frame["score"].is_not_null()
        if scored.any() and not scored.all():
            first_unscored = int(scored.arg_min() or 0)
            raise self.broken(
                first_unscored,
                f"no confidence, and {int(scored.sum()):,} other lines have one:"
                f" {self._quoted(first_unscored)}",
                "Write it on every line, or on none.",
            )
        n_boxes = frame["polygon"].null_count()
        if 0 < n_boxes < frame.height:
            message = (
                f"{n_boxes:,} of {frame.height:,} objects are boxes and the others polygons: the"
                " boxes of all count."
            )
            notes += (Note("boxes_among_polygons", message, n_boxes),)
        if n_boxes:
            frame = frame.drop("polygon")
        return without_empty(frame, {"score", "polygon", "keypoints"} & {*frame.columns}), notes

    def _score_last(self, at: Array, numbers: Array) -> tuple[Array, tuple[Note, ...]]:
        """Move the confidence of boxes to the end; return a note if it was first.

        If it is first, the usual order would use the confidence as centre, and about half of the
        boxes would cross the image border; in the right order almost no box does.

        Raises:
            ReadError: neither order is much more likely.
        """
        last, first = (_beyond(numbers[:, start : start + 4]) for start in (1, 2))
        many, few = int(last.sum()), int(first.sum())
        if many < _FEW_BEYOND * len(at) or few > many / 4:
            return numbers, ()
        message = (
            f"{many:,} of {len(at):,} boxes reach over the edge of the image if the confidence is"
            f" the last field, {few:,} if it is the second"
        )
        if many < _MANY_BEYOND * len(at) or len(at) < _LEAST:
            worst = int(at[np.argmax(last)])
            raise self.broken(
                worst,
                f"{self._quoted(worst)}: {message}",
                "Write the confidence last, as Ultralytics does (awk '{print $1, $3, $4, $5, $6,"
                " $2}' for each file), or clip the boxes to the image.",
            )
        message = f"the second field of each line is read as the confidence: {message}."
        return numbers[:, [0, 2, 3, 4, 5, 1]], (Note("confidence_first", message, len(at)),)

    def _outside(self, at: Array, centres: Array) -> tuple[Note, ...]:
        """Return a note on boxes whose centre is outside the image."""
        out = np.flatnonzero(((centres < 0) | (centres > 1)).any(axis=1))
        if not out.size:
            return ()
        first = int(at[out[0]])
        message = (
            f"{out.size:,} of {count_of(len(at), 'box', 'boxes')} have their centre outside the"
            f" image, and are scored as they are; first in {self.files[self.file[first]]}, line"
            f" {int(self.number[first])}: {self._quoted(first)}."
        )
        return (Note("centres_outside", message, int(out.size)),)

    def _numbers(self, at: Array, count: int) -> Array:
        """Lines of as many fields as numbers, float64 [k, count + 1]."""
        if count < 4:
            raise self.broken(
                int(at[0]),
                f"{count_of(count + 1, 'field')}: {self._quoted(int(at[0]))}",
                "An object is a class number and a box (cx cy w h) or a polygon (x y, three times"
                " or more). A file without labels belongs elsewhere.",
            )
        words = [self.fields[i] for i in at]
        try:
            return np.array(words).astype(np.float64)
        except ValueError:
            for i in at.tolist():
                for word in self.fields[i]:
                    try:
                        float(word)
                    except ValueError:
                        raise self.broken(
                            i,
                            f"{word.decode('utf-8', 'replace')!r} is not a number:"
                            f" {self._quoted(i)}",
                            "Correct the line, or move the file away if it has no labels.",
                        ) from None
            raise

    def _hold_shares(self, at: Array, numbers: Array, more: str = "") -> None:
        out = ~((numbers >= LOW) & (numbers <= HIGH))
        repair = f"Divide x by the image's width and y by its height.{more}"
        self._refuse(
            at,
            np.logical_or.reduce(out, axis=1),
            "coordinates that are not shares of the image",
            repair,
        )

    def _refuse(self, at: Array, wrong: Array, message: str, repair: str) -> None:
        """Refuse lines, if any are wrong, naming the first."""
        if wrong.any():
            first = int(at[np.argmax(wrong)])
            many = f" ({int(wrong.sum()):,} such lines)" if wrong.sum() > 1 else ""
            raise self.broken(first, f"{message}: {self._quoted(first)}{many}", repair)

    def _quoted(self, i: int) -> str:
        return quoted([field.decode("utf-8", "replace") for field in self.fields[i]])

    def _objects(self, at: Array, numbers: Array, points: tuple[int, int]) -> pl.DataFrame:
        """Interpret the numbers of lines of one length."""
        label, numbers = numbers[:, 0].astype(np.int64), numbers[:, 1:]
        count, of_points = numbers.shape[1], points[0] * points[1]
        boxes, rings, keys = _corners(numbers[:, :4]), None, None
        if of_points and count - 4 - of_points in (0, 1):
            keys = numbers[:, 4 : 4 + of_points].reshape(len(at), *points).tolist()
            scored = count > 4 + of_points
        elif count <= 5:
            scored = count == 5
        else:
            self._refuse_points(at, numbers)
            scored = count % 2 == 1
            self._hold_shares(at, numbers[:, : count - scored], _OR_POINTS)
            shape = numbers[:, : count - scored].reshape(len(at), -1, 2)
            rings = [[ring] for ring in shape.tolist()]
            boxes = np.concatenate([shape.min(axis=1), shape.max(axis=1)], axis=1)
        none = [None] * len(at)
        score = pl.Series(numbers[:, -1], nan_to_null=True) if scored else none
        columns = (at, self.file[at], label, score, *np.ascontiguousarray(boxes.T))
        named = dict(zip(_OBJECTS, (*columns, rings or none, keys or none), strict=True))
        return pl.DataFrame(named, schema=_OBJECTS)

    def _refuse_points(self, at: Array, numbers: Array) -> None:
        """Refuse lines that may be boxes with key points as well as polygons.

        Polygons of a file differ in length; key points are inside the box of the first four
        numbers.
        """
        count = numbers.shape[1]
        if count < 10 or len(at) < len(self.fields) or len(at) < 3:
            return
        box = _corners(numbers[:, :4])
        for each in (2, 3):
            rest = numbers[:, 4 : 4 + (count - 4) // each * each].reshape(len(at), -1, each)
            inside = (rest[..., :2] >= box[:, None, :2]) & (rest[..., :2] <= box[:, None, 2:])
            if inside.all(axis=-1).mean() > 0.9:
                raise self.broken(
                    int(at[0]),
                    f"{count + 1} fields may be a polygon, or a box and key points",
                    "Add a data.yaml next to the labels: 'names', and for key points 'kpt_shape: "
                    "[number, 2 or 3]'.",
                )


_OBJECTS: dict[str, Any] = {
    **dict.fromkeys(("at", "file", "label_value"), pl.Int64),
    **dict.fromkeys(("score", *CORNER_NAMES), pl.Float64),
    "polygon": RINGS,
    "keypoints": pl.List(pl.List(pl.Float64)),
}
"""Columns of objects; ``at`` is the index of the line."""
_OR_POINTS = (
    " If they are a box and key points, add a data.yaml next to the labels: 'names', and "
    "'kpt_shape: [number, 2 or 3]'."
)


_GUESSED = (
    "every line is read as a box and {:,} key points, by flags of 0, 1 or 2. To decide it, add a "
    "data.yaml with 'names' and, if so, 'kpt_shape' next to the labels."
)


def _beyond(boxes: Array) -> Array:
    """Boxes that reach over the edge of the image, bool [n]."""
    corners = _corners(boxes)
    out: Array = (corners < -_EDGE) | (corners > 1 + _EDGE)
    return np.asarray(out.any(axis=1))


def _corners(boxes: Array) -> Array:
    half = boxes[:, 2:] / 2
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)


YOLO = Format("yolo", (".txt", *YAML), _read, detects=_detect)
