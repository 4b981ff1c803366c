"""Single keypoints: PCK, PCKh, and the kinds of errors of matched people.

During development, kinds of errors were compared with coco-analyze on 2,000 random sets like these.
Shares are those of mmpose's ``keypoint_pck_accuracy``, except that a point on the edge is a hit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from detection.pose_files import File, Rows, pose_files
from merging import parts

import evalengine as ee
from evalengine.tasks.detection.settings import NAMED

KINDS = ("good", "jitter", "inversion", "swap", "miss")
MIRROR = [0, *(i + 1 if i % 2 else i - 1 for i in range(1, 17))]
POSE: dict[str, Any] = {"dialect": "coco", "iou_type": "keypoints"}


def mixed_up(rng: np.random.Generator) -> tuple[File, Rows]:
    """Make files of one label with points at those of the same person or another."""
    truths, predictions = pose_files(rng)
    people = [one for one in truths["annotations"] if one["category_id"] == 1]
    predictions = [one for one in predictions if one["category_id"] == 1]
    for guess in predictions:
        others = [one for one in people if one["image_id"] == guess["image_id"]]
        points = np.array(guess["keypoints"], np.float64).reshape(17, 3)
        for q in np.flatnonzero(rng.random(17) < 0.3 * bool(others)):
            other = others[rng.integers(len(others))]["keypoints"]
            place = q if rng.random() < 0.5 else MIRROR[q]
            points[q, :2] = other[3 * place : 3 * place + 2]
        guess["keypoints"] = points.ravel().tolist()
    return {**truths, "annotations": people, "categories": truths["categories"][:1]}, predictions


def kinds_of(
    truths: File, pairs: pl.DataFrame, predictions: Rows
) -> set[tuple[int, int, int, str]]:
    """Classify every labelled point of the pairs slowly: (prediction, person, point, kind)."""
    sigma = NAMED["coco"]
    result = set()
    for row, person in pairs.iter_rows():
        own = next(one for one in truths["annotations"] if one["id"] == person)
        others = [
            one
            for one in truths["annotations"]
            if one["image_id"] == own["image_id"] and one["id"] != person
        ]

        def similarity(one: dict[str, Any], point: int, q: int, row: int = row) -> float:
            x, y, visible = one["keypoints"][3 * point : 3 * point + 3]
            if not visible:
                return -1.0
            mine = predictions[row]["keypoints"][3 * q : 3 * q + 2]
            far = (mine[0] - x) ** 2 + (mine[1] - y) ** 2
            return math.exp(-far / (2 * sigma[q]) ** 2 / (one["area"] + 2**-52) / 2)

        for q in range(17):
            if not own["keypoints"][3 * q + 2]:
                continue
            order = [(own, q), *((one, q) for one in others)]
            order += [(one, MIRROR[point]) for one, point in order]
            every = [similarity(one, point, q) for one, point in order]
            best = int(np.argmax(every))
            kind = "swap"
            if every[best] < 0.5:
                kind = "miss"
            elif best == 0:
                kind = "good" if every[0] >= 0.85 else "jitter"
            elif best == len(order) // 2:
                kind = "inversion"
            result.add((row, person, q + 1, kind))
    return result


def test_kinds_are_those_of_the_definition() -> None:
    visible = dict.fromkeys(KINDS, 0)
    for seed in range(12):
        truths, predictions = mixed_up(np.random.default_rng([seed, 21]))
        card = ee.score(
            predictions, truths, **POSE, metrics=["KeypointErrors", "KeypointCounts", "Outcomes"],
            iou_thresholds=[0.1],
        )  # fmt: skip
        hits = card.outcomes.with_row_index("row").filter(outcome="tp")
        rows = {(d, s): i for i, one in enumerate(predictions) for d, s in [(one["image_id"], i)]}
        assert len(rows) == len(predictions)
        shown = card.errors.select("prediction_row", "annotation_id", "keypoint", "error")
        people = card.errors.select("prediction_row", "annotation_id").unique()
        slow = kinds_of(truths, people, predictions)
        assert {one for one in slow if one[3] != "good"} == set(shown.iter_rows())
        assert hits.height >= people.height
        for kind in KINDS[1:]:
            many = shown.filter(error=kind).height
            assert many == (card.value("KeypointCounts", statistic=kind) if hits.height else 0)
            visible[kind] += many
    assert min(visible[kind] for kind in KINDS[1:]) > 10


def people() -> pl.DataFrame:
    """Make two people in one image, with 17 points each, 100 pixels between them."""
    points = [[(10.0 * q + at, 5.0 * q, 2.0) for q in range(17)] for at in (0.0, 400.0)]
    return pl.DataFrame(
        {
            "datum_id": [1, 1],
            "label_value": ["person"] * 2,
            "annotation_id": [7, 8],
            "area": [3000.0, 3000.0],
            "head_size": [20.0, None],
            "keypoints": [[x for point in one for x in point] for one in points],
            "xmin": [0.0, 400.0],
            "ymin": [0.0] * 2,
            "xmax": [160.0, 560.0],
            "ymax": [80.0] * 2,
        }
    )


def predictions_of(truth: pl.DataFrame, **moved: tuple[float, float]) -> pl.DataFrame:
    """Make a prediction of the first person, with some points moved."""
    points = truth["keypoints"][0].to_list()
    for name, place in moved.items():
        at = 3 * (int(name.removeprefix("point")) - 1)
        points[at : at + 2] = place
    return (
        truth.head(1)
        .select("datum_id", "label_value")
        .with_columns(keypoints=pl.Series([points]), score=0.9)
    )


def test_rows_link_prediction_person_and_point() -> None:
    truth = people()
    predictions = predictions_of(
        truth, point1=(3.0, 0.0), point2=(20.0, 10.0), point4=(430.0, 15.0), point6=(50.0, 300.0)
    )
    errors = ee.score(predictions, truth, iou_type="keypoints", metrics=["KeypointErrors"]).errors
    shown = errors.select("keypoint", "error", "annotation_id", "swapped_annotation_id")
    assert shown.rows() == [
        (1, "jitter", 7, None), (2, "inversion", 7, None), (4, "swap", 7, 8), (6, "miss", 7, None)
    ]  # fmt: skip
    assert errors["prediction_row"].to_list() == [0] * 4
    close = math.exp(-9 / (2 * NAMED["coco"][0]) ** 2 / 3000 / 2)
    assert errors["iou"][0] == pytest.approx(close, abs=1e-12)
    listed = ee.find_errors(predictions, truth, iou_type="keypoints").rows
    assert set(listed["error"]) >= {"jitter", "inversion", "swap", "miss", "Miss"}


def test_mirrored_points_can_be_given() -> None:
    truth = people()
    predictions = predictions_of(truth, point1=(160.0, 80.0))
    for mirrored, kind in ((None, "miss"), ({1: 17}, "inversion"), ({"17": "1"}, "inversion")):
        card = ee.score(
            predictions, truth, iou_type="keypoints", metrics=["KeypointErrors"],
            mirrored_keypoints=mirrored,
        )  # fmt: skip
        assert card.errors["error"].to_list() == [kind]


def side(xy: np.ndarray, visible: np.ndarray) -> pl.DataFrame:
    """Make one person per image."""
    numbers = np.concatenate([xy, visible[..., None]], axis=2).reshape(len(xy), -1)
    return pl.DataFrame(
        {"datum_id": np.arange(len(xy)), "label_value": "a", "keypoints": numbers.tolist()}
    )


def test_a_person_without_keypoints_takes_none_of_the_next() -> None:
    """An empty list of keypoints must not shift the values of the next person's row."""
    truth = people().with_columns(datum_id=pl.Series([1, 2]))
    empty = truth.head(1).with_columns(
        annotation_id=pl.lit(9, pl.Int64), keypoints=pl.lit(pl.Series([[]], dtype=pl.List(float)))
    )
    predictions = predictions_of(
        truth, point3=(420.0, 10.0)
    )  # point 3 of the person in the other image
    rows = ee.score(
        predictions, pl.concat([truth.head(1), empty, truth.tail(1)]), iou_type="keypoints",
        keypoint_sigmas=0.1, metrics=["KeypointErrors"],
    ).errors  # fmt: skip
    assert rows.select("keypoint", "error").rows() == [(3, "miss")]


def test_a_similarity_of_exactly_a_half_is_jitter() -> None:
    """With a sigma of 0.5 the similarity is exp(-distance^2 / 2 / area)."""
    tiny = 2.0**-52
    shift = next(s for s in map(float, range(20, 999)) if
                 math.exp(-(s * s / (s * s / 2 / math.log(2) + tiny) / 2)) == 0.5)  # fmt: skip
    for more, error in ((0.0, "jitter"), (0.01, "miss")):
        truth = people().head(1).with_columns(area=shift**2 / 2 / math.log(2))
        predictions = predictions_of(truth, point3=(20.0, 10.0 + shift + more))
        rows = ee.score(
            predictions,
            truth,
            iou_type="keypoints",
            keypoint_sigmas=0.5,
            metrics=["KeypointErrors"],
        ).errors
        assert rows.filter(keypoint=3)["error"].to_list() == [error]


def test_shares_are_those_of_the_definition() -> None:
    """One person per image, as top-down models are evaluated."""
    for seed in range(6):
        rng = np.random.default_rng([seed, 22])
        n = 12
        points = rng.uniform(0, 100, (n, 17, 2)).round()
        visible = rng.random((n, 17)) < 0.7
        guess = points + rng.choice([0.0, 1.0, 5.0, 10.0, 40.0], (n, 17, 1)) * np.eye(2)[0]
        size = rng.choice([0.0, 50.0, 100.0], n)

        truth = side(points, visible).with_columns(
            area=pl.lit(5000.0), head_size=pl.Series(size), xmin=0.0, ymin=0.0,
            xmax=pl.Series(size), ymax=pl.Series(size / 2),
        )  # fmt: skip
        predictions = side(guess, np.ones((n, 17))).with_columns(score=0.5)
        close = np.linalg.norm(guess - points, axis=2) <= 0.1 * size[:, None]
        counts = visible & (size[:, None] > 0)
        share = (close & counts).sum(0) / counts.sum(0)
        for name in ("PCK", "PCKh"):
            card = ee.score(
                predictions, truth, iou_type="keypoints", metrics=[name], pck_threshold=0.1
            )
            rows = card.metrics.filter(pl.col("statistic").is_not_null())
            assert rows["value"].to_list() == share.tolist()
            assert card.value(name) == pytest.approx(share.mean(), abs=1e-15)
            assert card.value(name, average="micro") == (close & counts).sum() / counts.sum()
            assert any("unknown size" in note for note in card.notes) == (size == 0).any()


def test_missed_people_count_and_heads_may_be_segments() -> None:
    truth = people()
    predictions = predictions_of(truth, point3=(25.0, 10.0))
    inputs = {"iou_type": "keypoints", "head_segment": [1, 2]}  # sqrt(125) pixels
    card = ee.score(predictions, truth, **inputs, metrics=["PCKh"])
    assert card.value("PCKh", average="micro") == 0.5
    card = ee.score(predictions, truth, **inputs, metrics=["PCKh"], pck_threshold=0.4)
    assert card.value("PCKh", average="micro") == 16 / 34
    assert card.value("PCKh", statistic="keypoint 3") == 0.0


def test_labels_of_different_points_in_parts() -> None:
    """A label with many points occurs only in some buckets."""
    truth = people().with_columns(datum_id=pl.Series([1, 2]))
    short = truth.with_columns(
        datum_id=pl.col("datum_id") + 10, label_value=pl.lit("hand"),
        annotation_id=pl.Series([1, 2]), keypoints=pl.col("keypoints").list.head(9),
    )  # fmt: skip
    truth = pl.concat([truth, short])
    predictions = truth.select("datum_id", "label_value", "keypoints", score=pl.lit(0.5))
    inputs = {"iou_type": "keypoints", "keypoint_sigmas": 0.1, "metrics": ["PCK", "KeypointCounts"]}
    whole = ee.score(predictions, truth, **inputs).metrics
    assert whole.filter(metric="PCK", label_value="hand")["statistic"].n_unique() == 4
    for seed in range(4):
        parts.check(parts.Case((predictions, truth), inputs), "detection", seed, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iou_type": "bbox", "metrics": ["PCK"]}, "no keypoints"),
        ({"metrics": ["PCKh"], "columns": {"other": "head_size"}}, "head_size"),
        ({"pck_threshold": 0.0}, "above 0"),
        ({"head_segment": [1]}, "two keypoints"),
        ({"head_segment": [1, 1]}, "two keypoints"),
        ({"mirrored_keypoints": {1: 18}}, "have 17 keypoints"),
        ({"mirrored_keypoints": {0: 1}}, "counted from 1"),
    ],
)
def test_undefined_options_are_refused(options: dict[str, Any], message: str) -> None:
    truth = people()
    with pytest.raises(ValueError, match=message):
        ee.score(
            truth.drop("area").with_columns(score=0.5), truth,
            **{"iou_type": "keypoints", "metrics": ["KeypointCounts"]} | options,
        )  # fmt: skip


def test_without_heads_pckh_is_skipped() -> None:
    truth = people().drop("head_size")
    card = ee.score(predictions_of(truth), truth, iou_type="keypoints", metrics=["PCK", "PCKh"])
    assert card.metrics["metric"].unique().to_list() == ["PCK"]
    assert any("PCKh skipped" in note for note in card.notes)


def test_results_of_which_some_have_boxes() -> None:
    """Each row is compared by the columns it has."""
    truth = people()
    predictions = pl.concat(
        [
            predictions_of(truth).with_columns(xmin=x, ymin=x, xmax=x, ymax=x)
            for x in (pl.lit(None), 1.0)
        ],
        how="vertical_relaxed",
    )
    card = ee.score(predictions, truth, iou_type="keypoints", metrics=["mAP"])
    assert card.value("mAP", iou_threshold=0.5) == pytest.approx(51 / 101)
