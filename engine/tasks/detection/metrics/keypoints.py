"""Metrics of single keypoints: share found, and outcomes of those of found people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tally.cells import Cells, parameters
from ....tally.ranked_view import RankedView
from ..dialects import KINDS, OF_KINDS, PCK, PCKH, POINTS, SHOWN, found, places
from .members import key_members, present, present_keys, sum_by_key

if TYPE_CHECKING:
    from ..settings import Settings


_RONCHI = "M. R. Ronchi and P. Perona (ICCV 2017); coco-analyze"
_NO_POINT = "no labelled keypoint of a person of known size"


def _marked(view: RankedView, marks: Sequence[str]) -> list[Array]:
    """Return the number of points with each mark, [group, label, point]."""
    points = view.beside(POINTS)
    assert points is not None
    names = [name or "" for name, _, _ in points.tally.variants.areas]
    return [points.positives[..., places(names, mark)] for mark in marks]


def _divided(top: Array, bottom: Array) -> Array:
    out = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=out, where=bottom > 0)
    return out


def _means(near: Array, labelled: Array) -> tuple[Array, Array]:
    """Return, over the last axis, the mean of per-point shares, and the share of all points."""
    share = _divided(near, labelled)
    there = (labelled > 0).sum(axis=-1)
    total = np.zeros(near.shape[:-1])
    for q in range(near.shape[-1]):  # in order, whatever the other axes
        total += np.nan_to_num(share[..., q])
    return _divided(total, there), _divided(near.sum(axis=-1), labelled.sum(axis=-1))


def _pck(need: str, view: RankedView, settings: Settings) -> list[Cells]:
    labelled, near = _marked(view, found(need))
    constant = {"parameters": parameters(threshold=settings.share_of(need))}
    many = labelled.sum(axis=-1)
    n_points = labelled.shape[-1]
    cells = [
        Cells(
            axes=("group", "label", "statistic"),
            values={"statistic": _numbers(n_points)},
            shape=labelled.shape,
            keep=labelled > 0,
            columns={"value": _divided(near, labelled), "support": labelled, **constant},
            reason=_NO_POINT,
        )
    ]
    keys = key_members(view)
    # The points of all labels of a key, one label after the other.
    of_keys = [
        [each[:, members].reshape(view.n_groups, -1) for members in keys]
        for each in (near, labelled)
    ]
    by_key = [_means(*both) for both in zip(*of_keys, strict=True)]
    for at, average in enumerate(("macro", "micro")):
        columns = {"average": average, **constant}
        value = _means(near, labelled)[at]
        cells.append(
            Cells(
                axes=("group", "label"),
                shape=value.shape,
                keep=present(view),
                columns={"value": value, "support": many, **columns},
                reason=_NO_POINT,
            )
        )
        value = (
            np.stack([both[at] for both in by_key], axis=1)
            if keys
            else np.zeros((view.n_groups, 0))
        )
        cells.append(
            Cells(
                axes=("group", "key"),
                shape=value.shape,
                keep=present_keys(view),
                columns={"value": value, "support": sum_by_key(view, many), **columns},
                reason=_NO_POINT,
            )
        )
    return cells


def _numbers(n_points: int) -> tuple[str, ...]:
    return tuple(f"keypoint {q}" for q in range(1, n_points + 1))


def _kinds(view: RankedView, settings: Settings) -> list[Cells]:
    every = _marked(view, OF_KINDS)
    judged = np.sum(every, axis=0)
    made = parameters(background_iou=settings.background_iou)
    cells = []
    for name, many in zip(OF_KINDS, every, strict=True):
        for axis, value, support, keep in (
            ("label", many.sum(axis=-1), judged.sum(axis=-1), present(view)),
            (
                "key",
                sum_by_key(view, many.sum(axis=-1)),
                sum_by_key(view, judged.sum(axis=-1)),
                present_keys(view),
            ),
        ):
            cells.append(
                Cells(
                    axes=("group", axis),
                    shape=value.shape,
                    keep=keep,
                    columns={
                        "value": value.astype(np.float64),
                        "statistic": name,
                        "support": support,
                        "parameters": made,
                    },
                )
            )
        cells.append(
            Cells(
                axes=("group", "label", "statistic"),
                values={"statistic": [f"{name}, {one}" for one in _numbers(many.shape[-1])]},
                shape=many.shape,
                keep=judged > 0,
                columns={"value": many.astype(np.float64), "support": judged, "parameters": made},
            )
        )
    return cells


_metric = partial(Metric, task="detection")

METRICS = (
    _metric(
        name="PCK",
        frame="metrics",
        needs=(PCK,),
        params=("pck_threshold",),
        averages=("macro", "micro"),
        definition="Share of the labelled keypoints of all people that the prediction which took"
        " the person has within pck_threshold (0.2) of the longer side of its box; per keypoint,"
        " and macro (mean over keypoints) and micro (over all points).",
        formula=r"\frac{1}{m_q} \sum_i [d_{iq} \le \alpha\, h_i]",
        source="mmpose keypoint_pck_accuracy, but that a point on the edge is found",
        compute=partial(_pck, PCK),
    ),
    _metric(
        name="PCKh",
        frame="metrics",
        needs=(PCKH,),
        params=("pck_threshold", "head_segment"),
        averages=("macro", "micro"),
        definition="The same of the size of the person's head, within 0.5 of it: of column"
        " head_size, or the distance of the two keypoints of head_segment.",
        formula=r"\frac{1}{m_q} \sum_i [d_{iq} \le \alpha\, h_i]",
        source="MPII Human Pose evaluation (evaluatePCKh)",
        compute=partial(_pck, PCKH),
    ),
    _metric(
        name="KeypointCounts",
        frame="metrics",
        needs=(KINDS,),
        params=("background_iou", "mirrored_keypoints"),
        range=(0.0, float("inf")),
        better="neither",
        counts=True,
        definition="What became of the labelled keypoints of people that were found at OKS"
        " background_iou (0.1): good, jitter (alike by 0.5 to 0.85), inversion (on the other side),"
        " swap (on another person), miss; in all and per keypoint.",
        formula=r"n_k = \sum_e [\text{kind of } e = k]",
        source=_RONCHI,
        compute=_kinds,
    ),
    _metric(
        name="KeypointErrors",
        frame="errors",
        needs=(KINDS, SHOWN),
        params=("background_iou", "mirrored_keypoints"),
        better="neither",
        definition="One row per keypoint that went wrong: jitter, inversion, swap or miss, with the"
        " prediction and the person.",
        formula="",
        source=_RONCHI,
    ),
)
