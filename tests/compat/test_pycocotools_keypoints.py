"""``iouType="keypoints"``: all results of pycocotools on odd files, to the bit."""

from __future__ import annotations

import contextlib
import copy
import io
from typing import Any

import numpy as np
import pytest
from detection.pose_files import pose_files, pycocotools_of
from refusals import refused

from evalengine import InputError
from evalengine.compat.pycocotools.coco import COCO
from evalengine.compat.pycocotools.cocoeval import COCOeval


def evaluated(truths: Any, results: Any, sigmas: Any = None) -> tuple[COCOeval, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        ours = COCO()
        ours.dataset = copy.deepcopy(truths)
        ours.createIndex()
        result = COCOeval(ours, ours.loadRes(copy.deepcopy(results)), "keypoints")
        if sigmas is not None:
            result.params.kpt_oks_sigmas = sigmas
        result.evaluate()
        result.accumulate()
        result.summarize()
    return result, printed.getvalue()


def same(ours: COCOeval, theirs: Any) -> None:
    np.testing.assert_array_equal(ours.stats, theirs.stats)
    for name in ("precision", "recall", "scores"):
        np.testing.assert_array_equal(ours.eval[name], theirs.eval[name])
    for mine, other in zip(ours.evalImgs, theirs.evalImgs, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert mine.keys() == other.keys()
            for key, value in other.items():
                np.testing.assert_array_equal(mine[key], value, err_msg=key)
    assert ours.ious.keys() == theirs.ious.keys()
    for key, value in theirs.ious.items():
        np.testing.assert_array_equal(ours.ious[key], value)


@pytest.mark.parametrize("seed", range(4))
def test_everything_equals_pycocotools(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    k = int(rng.choice([17, 5]))
    sigmas = None if k == 17 else rng.uniform(0.02, 0.2, k)
    truths, results = pose_files(rng, k)
    theirs = pycocotools_of(truths, results, sigmas)
    ours, message = evaluated(truths, results, sigmas)
    same(ours, theirs)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        theirs.summarize()
    assert message.endswith(printed.getvalue())


def test_rows_that_do_not_fit_are_named() -> None:
    truths, results = pose_files(np.random.default_rng(1))
    results[0]["keypoints"] = results[0]["keypoints"][:-3]
    with refused("wrong_rows", InputError, side="results", count=1, of=1, rows=[0]):
        evaluated(truths, results)
    truths, results = pose_files(np.random.default_rng(1))
    del truths["annotations"][0]["num_keypoints"]
    with refused("wrong_rows", InputError, side="ground truths", count=1, of=4, rows=[0]):
        evaluated(truths, results)
