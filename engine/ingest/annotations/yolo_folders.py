"""The folders of a YOLO data set: labels, their images, names of classes, splits."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from evalengine.schemas.errors import ReadError

from ..folders import files_below
from .format import Look, broken, head_of, text_of
from .image_headers import SUFFIXES, sizes_of
from .titles import PACKED

YAML = (".yaml", ".yml")
_DARKNET = "obj.names"
_NAMES = ("classes.txt", _DARKNET, "names.txt", "labels.txt", "_darknet.labels")
_OTHERS = (*_NAMES, "readme.txt", "readme.roboflow.txt", "readme.dataset.txt", "train.txt",
           "val.txt", "test.txt", "requirements.txt", "license.txt", "autosplit_train.txt",
           "autosplit_val.txt", "autosplit_test.txt")  # fmt: skip
"""Text files in such folders that contain no labels."""
LOW, HIGH = -0.5, 1.5  # where shares lie, however far an object reaches over the edge
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
        said = _yaml(file)
        if said is not None:
            return file, said
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
        said = None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        if not any(line.startswith("names:") for line in text.splitlines()):
            return None  # some other tool's, with tags of its own
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise broken(file, line, "no YAML that can be read", "Correct the line.") from None
    whole = isinstance(said, dict) and ("names" in said or ("nc" in said and {*_SPLITS} & {*said}))
    return said if whole else None


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
    named = [os.path.splitext(look.relative(name).removesuffix(PACKED))[0] for name in both]
    return [
        "/".join(part for part in name.split("/") if part not in ("labels", "images"))
        for name in named
    ]


def _stem(file: str) -> str:
    return os.path.splitext(os.path.basename(file).removesuffix(PACKED))[0]


def gathered(look: Look) -> Files:
    """Collect the files of given labels, by their description or their folder.

    Raises:
        ReadError: a description whose files are all missing.
    """
    described = description(look)
    if described is None:
        texts = tuple(name for name in look.of(".txt") if may_be_label(name))
        names, points = _names_beside((look.root, *_above(look.root), *_within(look.root, texts)))
        folder = _other(look.root, "labels", "images")
        pictures = look.of(*SUFFIXES) or (_below(folder, SUFFIXES) if folder else ())
        return Files(texts, pictures, _by_folder(look, (*texts, *pictures)), names, points)
    file, said = described
    names, points = _named(file, said)
    labels: list[str] = []
    images: list[str] = []
    split: dict[str, str] = {}
    for key in _SPLITS:
        for one in _folders(said.get(key)):
            here = _found(file, said, one)
            if here is None:  # the images may be elsewhere, and their labels here
                here = _found(file, said, re.sub(r"\bimages\b", "labels", one))
                of_split = _labels_below(here) if here else []
                labels += of_split
                split |= dict.fromkeys(of_split, key)
                continue
            pictures = _listed(here) if here.endswith(".txt") else _below(here, SUFFIXES)
            of_split = _texts_of(here, pictures)
            images += pictures
            labels += of_split
            split |= dict.fromkeys((*pictures, *of_split), key)
    if not images and not labels and not {*_SPLITS} & {*said}:
        home = os.path.dirname(os.path.abspath(file))
        labels += _labels_below(home)
        images += _below(home, SUFFIXES)
    if not images and not labels:
        labels += (name for name in look.of(".txt") if may_be_label(name))
        images += look.of(*SUFFIXES)
    if not images and not labels:
        raise ReadError(
            f"{file}: neither images nor labels are where train, val and test say. Correct 'path'"
            " there, or give the folder of the labels.",
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


def _folders(said: Any) -> list[str]:
    """Folders or lists of images of one split."""
    return [one for one in (said if isinstance(said, list) else [said]) if isinstance(one, str)]


def _found(file: str, said: Mapping[str, Any], folder: str) -> str | None:
    """Find a folder of a description: relative to its ``path``, otherwise to the description."""
    home = os.path.dirname(os.path.abspath(file))
    root = said.get("path")
    root = root if isinstance(root, str) else ""
    for base in (os.path.join(home, root), home):
        if "*" in folder:
            folder = os.path.dirname(folder.partition("*")[0])
        for name in (folder, folder.removeprefix("../")):  # as Roboflow writes them
            there = os.path.normpath(os.path.join(base, name))
            if os.path.exists(there):
                return there
    return None


def _listed(file: str) -> tuple[str, ...]:
    """Images that a text file lists."""
    home = os.path.dirname(file)
    return tuple(
        os.path.normpath(os.path.join(home, line.strip()))
        for line in text_of(file).splitlines()
        if line.strip()
    )


def _texts_of(here: str, images: Iterable[str]) -> list[str]:
    """Return the label files of images: in a folder ``labels`` parallel to ``images``, otherwise
    next to them.
    """
    folder = None if here.endswith(".txt") else _other(here, "images", "labels")
    if folder is not None and os.path.isdir(folder):
        return _labels_below(folder)
    found = []
    for image in images:
        stem = os.path.splitext(image)[0] + ".txt"
        labels = _other(stem, "images", "labels") or stem
        found += [labels] if os.path.isfile(labels) else []
    return found


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


def _above(folder: str) -> list[str]:
    """Return the folders above label files in which class names may be."""
    found = []
    folder = os.path.abspath(folder)
    if "labels" in folder.split(os.sep):
        for _ in range(_UP):
            folder = os.path.dirname(folder)
            found.append(folder)
    elif os.path.isdir(os.path.join(folder, "labels")):  # of one split
        found.append(os.path.dirname(folder))
    return found


def _within(root: str, texts: Sequence[str]) -> list[str]:
    """The folder of all labels and the one above it, if these are below the given one."""
    folders = {os.path.dirname(os.path.abspath(name)) for name in texts}
    inner = os.path.commonpath(folders) if folders else ""
    root = os.path.abspath(root)
    found = [inner, os.path.dirname(inner)]
    return [one for one in found if one.startswith(root + os.sep)]


def _names_beside(folders: Iterable[str]) -> tuple[dict[int, str], tuple[int, int] | None]:
    """Return class names from the nearest file; Darknet's are one folder up."""
    folders = (*folders,)
    for folder in folders:
        there = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        for name in there:
            file = os.path.join(folder, name)
            if name.lower().endswith(YAML) and os.path.isfile(file):
                said = _yaml(file)
                if said is not None:
                    return _named(file, said)
            if name.lower() in _NAMES and not is_label(head_of(file)):
                return _listed_in(file), None
    above = os.path.join(os.path.dirname(os.path.abspath(folders[0])), _DARKNET)
    return (_listed_in(above) if os.path.isfile(above) else {}), None


def _listed_in(file: str) -> dict[int, str]:
    return dict(enumerate(line.strip() for line in text_of(file).splitlines() if line.strip()))


def _listed_names(names: Any) -> list[Any]:
    if not isinstance(names, list):
        raise TypeError
    return names


def _named(file: str, said: Mapping[str, Any]) -> tuple[dict[int, str], tuple[int, int] | None]:
    """Names of classes and the shape of key points, as a description has them."""
    names = said.get("names", [])
    try:
        pairs = names.items() if isinstance(names, dict) else enumerate(_listed_names(names))
        known = {int(number): str(name) for number, name in pairs}
    except (TypeError, ValueError):
        raise broken(
            file, None, "'names' is neither a list of names nor numbers and names", "Correct it."
        ) from None
    shape = said.get("kpt_shape")
    if isinstance(shape, list) and len(shape) == 2 and all(isinstance(n, int) for n in shape):
        return known, (shape[0], shape[1])
    return known, (0, 0)


def datums_of(files: Files, ids: Mapping[str, str]) -> pl.DataFrame:
    """Return every image with a label file or a picture, with its size if the picture is
    readable.
    """
    pictures = {ids[file]: file for file in files.images}
    sizes = sizes_of(pictures)
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
