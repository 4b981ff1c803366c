"""Small unusual COCO sets, and their evaluation by pycocotools or its drop-in."""

from __future__ import annotations

import contextlib
import copy
import io
import random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from lazy_imports import LazyModule

from evalengine.compat import pycocotools as ours

Json = dict[str, Any]

_coco, _cocoeval = LazyModule("pycocotools.coco"), LazyModule("pycocotools.cocoeval")
coco_mask = LazyModule("pycocotools.mask")

OURS = SimpleNamespace(COCO=ours.COCO, COCOeval=ours.COCOeval, mask=ours.mask)


def reference() -> SimpleNamespace:
    """Return the names of pycocotools."""
    return SimpleNamespace(COCO=_coco.COCO, COCOeval=_cocoeval.COCOeval, mask=coco_mask)


THRESHOLDS = [
    [0.5],
    [0.75, 0.5, 0.1],
    [1.0, 0.5],
    np.arange(0.5, 1, 0.05),
    np.linspace(0.01, 0.99, 30),  # with four area ranges: more than one word of bits
    np.linspace(0.01, 0.99, 70),
]
LEVELS = [[0.5], np.linspace(0, 1, 11), [0, 0.1, 0.1, 1.0], np.linspace(0.3, 1.2, 5)]
RANGES = [
    ([[0, 1e10]], ["all"]),
    ([[0, 1e10], [0, 5], [5, 1024], [1024, 1e9]], ["all", "tiny", "small", "large"]),
    ([[0, 100], [0, 100]], ["a", "a"]),
    ([[0, 1e10], [1024, 1024]], ["all", "medium"]),
]
CAPS = [[1, 2, 3], [3, 1, 2], [1, 10, 500], [2, 100], [100]]


class Unusual(NamedTuple):
    """COCO set with results, the type of comparison and changed params."""

    truths: Json
    results: list[Json]
    kind: str
    params: dict[str, Any]


def unusual(seed: int) -> Unusual:
    """Return a random case with unusual ids, orders, ties, crowds and areas.

    Ids may be 0, large or not contiguous. Areas are at the limits of ranges, or differ from those
    of the boxes; some boxes have no area. Segmentations are polygons and run-length codes of all
    forms.
    """
    rng, floats = random.Random(seed), np.random.default_rng(seed)
    height, width = rng.choice([(40, 50), (120, 130)])
    images = [
        {"id": i, "height": height, "width": width}
        for i in _ids(rng, rng.choice([1, 2, 3, 6]), rng.choice([0, 1, 1000, 2**40]))
    ]
    categories = [
        {"id": i, "name": f"c{i}", "supercategory": f"s{i % 2}"}
        for i in _ids(rng, rng.choice([1, 2, 4]), rng.choice([0, 1, 7]))
    ]
    step = rng.choice([4, 4, 2, None])

    def box() -> list[float]:
        size = rng.choice([8, 32, width])
        x, y, w, h = floats.random(4) * [width, height, size, size]
        if rng.random() < 0.2:
            w = h = 32.0
        if rng.random() < 0.05:
            w = 0.0
        made = [float(round(v / step) * step) if step else float(v) for v in (x, y, w, h)]
        return [int(v) for v in made] if rng.random() < 0.2 else made

    def region(of: list[float], *forms: str) -> Any:
        form = rng.choice(forms or ("ring", "rings", "code", "counts"))
        x, y, w, h = of
        w, h = max(w, 3), max(h, 3)
        ring = [x, y, x, y + h, x + w, y + h, x + w, y]
        if rng.random() < 0.5:
            ring = [v + rng.random() * 3 for v in ring]
        if form == "ring":
            return [ring]
        if form == "rings":
            return [ring, [v + 5 for v in ring[:6]]]
        pixels = np.zeros((height, width), np.uint8, order="F")
        pixels[int(y) : int(y + h) + 1, int(x) : int(x + w) + 1] = 1
        if rng.random() < 0.3:
            pixels[floats.random((height, width)) < 0.1] = 0
        if form == "counts":
            return {"size": [height, width], "counts": counts_of(pixels)}
        code = coco_mask.encode(pixels)
        return code if rng.random() < 0.5 else {**code, "counts": code["counts"].decode()}

    lattice = [box() for _ in range(rng.choice([2, 5, 20]))]
    annotations: list[Json] = []
    number = rng.choice([1, 1, 1, 500, 2**45])
    for image in images:
        for _ in range(rng.choice([0, 1, 3, 8])):
            of = list(rng.choice(lattice)) if rng.random() < 0.5 else box()
            crowd = int(rng.random() < 0.2)
            annotations.append(
                {
                    "id": number,
                    "image_id": image["id"],
                    "category_id": rng.choice(categories)["id"],
                    "bbox": of,
                    "area": rng.choice([of[2] * of[3], 1024, 9216, 1024.0001, 5]),
                    "iscrowd": crowd,
                    "segmentation": region(of, *(("code", "counts") if crowd else ())),
                }
            )
            number += rng.choice([1, 1, 2])
    rng.shuffle(annotations)
    results: list[Json] = []
    form = rng.choice(["box", "box", "mask", "both"])
    for image in images:
        for _ in range(rng.choice([0, 1, 4, 15])):
            of = list(rng.choice(lattice)) if rng.random() < 0.6 else box()
            if annotations and rng.random() < 0.4:
                of = [v + rng.choice([0, 0, 1]) for v in rng.choice(annotations)["bbox"]]
            row = {
                "image_id": image["id"],
                "category_id": rng.choice(categories)["id"],
                "score": rng.choice([rng.random(), round(rng.random(), 1), 0.5, 1, 0]),
            }
            row |= {"bbox": of} if form != "mask" else {}
            row |= {"segmentation": region(of, "code")} if form != "box" else {}
            results.append(row)
    rng.shuffle(results)
    truths = {"info": {"year": 2024}, "images": images, "categories": categories,
              "annotations": annotations}  # fmt: skip
    return Unusual(truths, results, rng.choice(["bbox", "bbox", "segm"]), _params(rng, truths))


def _ids(rng: random.Random, n: int, first: int) -> list[int]:
    found = [first + i * rng.choice([1, 3]) for i in range(n)]
    found = [*dict.fromkeys(found)]
    rng.shuffle(found)
    return found


def _params(rng: random.Random, truths: Json) -> dict[str, Any]:
    params: dict[str, Any] = {}
    if rng.random() < 0.3:
        params["maxDets"] = rng.choice(CAPS)
    if rng.random() < 0.3:
        params["iouThrs"] = np.array(rng.choice(THRESHOLDS))
    if rng.random() < 0.3:
        params["recThrs"] = np.array(rng.choice(LEVELS))
    if rng.random() < 0.3:
        params["areaRng"], params["areaRngLbl"] = rng.choice(RANGES)
    if rng.random() < 0.3:
        params["useCats"] = 0
    for name, key in (("imgIds", "images"), ("catIds", "categories")):
        if rng.random() < 0.2:
            ids = [row["id"] for row in truths[key]]
            params[name] = rng.sample(ids, max(1, len(ids) // 2))
    return params


def counts_of(pixels: Any) -> list[int]:
    """Return run lengths in column order, zeros first."""
    flat = np.r_[0, pixels.T.ravel(), 2]
    ends = np.flatnonzero(np.diff(flat) != 0)
    return [int(n) for n in np.diff(np.r_[0, ends])]


def loaded(lib: Any, truths: Json, results: list[Json]) -> tuple[Any, Any]:
    """Load copies of both sides into their classes, because pycocotools modifies rows."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = lib.COCO()
        truth.dataset = copy.deepcopy(truths)
        truth.createIndex()
        result = truth.loadRes(copy.deepcopy(results)) if results else lib.COCO()
    return truth, result


def evaluated(lib: Any, case: Unusual, *, look: bool = False) -> tuple[Any, str]:
    """Return the evaluation, and the output of ``summarize`` until it ended or failed.

    Args:
        lib: names of pycocotools, or of the drop-in.
        case: set to evaluate.
        look: whether ``evalImgs`` is read before the accumulation.
    """
    truth, result = loaded(lib, case.truths, case.results)
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = lib.COCOeval(truth, result, case.kind)
        for name, value in case.params.items():
            setattr(evaluation.params, name, copy.deepcopy(value))
        evaluation.evaluate()
        if look:
            assert evaluation.evalImgs is not None
        evaluation.accumulate()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(IndexError):
        evaluation.summarize()  # which indexes the third of maxDets
    return evaluation, printed.getvalue()


def same(mine: Any, theirs: Any, at: str = "") -> None:
    """Return whether two values are equal to the bit, in type and in shape."""
    if isinstance(theirs, dict):
        assert {*mine} == {*theirs}, at
        for key in theirs:
            same(mine[key], theirs[key], f"{at}.{key}")
    elif isinstance(theirs, np.ndarray):
        assert mine.shape == theirs.shape, at
        assert np.array_equal(mine, theirs), at
        assert mine.dtype == theirs.dtype or not theirs.size, at
    elif isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs), at
        for i, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            same(one, other, f"{at}[{i}]")
    else:
        assert type(mine) is type(theirs), at
        assert mine == theirs, at
