"""Ignore regions: a plain version of VisDrone's toolkit, and exact areas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee

Array = np.ndarray[Any, Any]
IOUS = [x / 100 for x in range(50, 100, 5)]
HEIGHT, WIDTH = 40, 60


def rounded(values: Array) -> Array:
    return np.floor(values + 0.5)


def outside(boxes: Array, regions: Array) -> Array:
    """``dropObjectsInIgr.m``: keep rows of x, y, w, h outside the regions."""
    if not len(regions):
        return np.ones(len(boxes), bool)
    covered = np.zeros((HEIGHT, WIDTH))
    for x, y, w, h in np.maximum(1, regions).astype(int):
        covered[y - 1 : min(HEIGHT, y + h), x - 1 : min(WIDTH, x + w)] = 1
    whole = np.pad(covered.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    stay = []
    for x, y, w, h in np.maximum(1, rounded(boxes)).astype(int):
        x, y = min(WIDTH, x), min(HEIGHT, y)
        right, low = min(WIDTH, x + w), min(HEIGHT, y + h)
        inside = whole[y, x] + whole[low, right] - whole[y, right] - whole[low, x]
        stay.append(inside / (h * w) < 0.5)
    return np.array(stay, bool)


def matched(truths: Array, predictions: Array, threshold: float) -> Array:
    """``evalRes.m``: 1, 0 or -1 for each detection (x, y, w, h, score), best first."""
    order = np.argsort(truths[:, 4], kind="stable")
    truths = truths[order]
    state = -truths[:, 4]
    out = []
    for x, y, w, h, _ in predictions:
        best, at, kind = threshold, -1, 0
        for g, (gx, gy, gw, gh, _) in enumerate(truths):
            if state[g] == 1:
                continue
            if kind != 0 and state[g] == -1:
                break
            wide = min(x + w, gx + gw) - max(x, gx)
            high = min(y + h, gy + gh) - max(y, gy)
            shared = wide * high if wide > 0 and high > 0 else 0.0
            iou = shared / (w * h if state[g] == -1 else w * h + gw * gh - shared)
            if iou < best:
                continue
            best, at, kind = iou, g, 1 if state[g] == 0 else -1
        if kind == 1:
            state[at] = 1
        out.append(kind)
    return np.array(out, int)


def accuracy(images: list[Any], label: str) -> tuple[dict[float, float], dict[int, float]]:
    """``calcAccuracy.m`` for one label: AP by threshold, AR by cap."""
    ap, recalls = {}, {cap: [] for cap in (1, 10, 100, 500)}
    for threshold in IOUS:
        for cap in recalls:
            rows, n = [], 0
            for truths, predictions in images:
                own = truths[1][truths[0] == label]
                some = predictions[1][:cap][predictions[0][:cap] == label]
                n += len(own)
                rows += [*zip(some[:, 4], matched(own, some, threshold), strict=True)]
            rows.sort(key=lambda row: -row[0])
            kinds = np.array([kind for _, kind in rows], int)
            tp, fp = np.cumsum(kinds == 1), np.cumsum(kinds == 0)
            recall = tp / max(1, n)
            recalls[cap].append(recall.max(initial=0.0))
        precision = np.r_[0, tp / np.maximum(1, fp + tp), 0]
        recall = np.r_[0, recall, 1]
        precision = np.maximum.accumulate(precision[::-1])[::-1]
        at = np.flatnonzero(recall[1:] != recall[:-1]) + 1
        ap[threshold] = float(np.sum((recall[at] - recall[at - 1]) * precision[at]))
    return ap, {cap: float(np.mean(each)) for cap, each in recalls.items()}


def random_files(seed: int) -> tuple[list[str], list[str]]:
    """Make annotations and results of a few images, as VisDrone's text."""
    rng = np.random.default_rng(seed)
    truths, predictions = [], []
    for _ in range(5):

        def box() -> Array:
            return np.r_[rng.integers(1, [WIDTH - 5, HEIGHT - 5]), rng.integers(2, 14, 2)]

        rows = [(*box(), 0, 0, 0, 0) for _ in range(rng.integers(0, 4))]
        objects = [box() for _ in range(rng.integers(1, 12))]
        kinds = rng.choice([1, 4, 11], len(objects))
        rows += [
            (*one, int(rng.random() < 0.85), kind, 0, 0)
            for one, kind in zip(objects, kinds, strict=True)
        ]
        truths.append("".join(",".join(map(str, row)) + "\n" for row in rows))
        moved = [
            (*(one + rng.uniform(-1, 1, 4).round(2)), kind)
            for one, kind in zip(objects, kinds, strict=True)
        ]
        moved += [(*box(), rng.choice([1, 4])) for _ in range(rng.integers(0, 12))]
        scores = -np.sort(-rng.choice(np.arange(1, 900), len(moved), replace=False) / 1000)
        moved = [moved[i] for i in rng.permutation(len(moved))]
        predictions.append(
            "".join(
                ",".join(map(str, (*one[:4], score, one[4], -1, -1))) + "\n"
                for one, score in zip(moved, scores, strict=True)
            )
        )
    return truths, predictions


def by_hand(truths: list[str], predictions: list[str]) -> list[Any]:
    images = []
    for truth, result in zip(truths, predictions, strict=True):
        rows = np.array([line.split(",") for line in truth.split()], float).reshape(-1, 8)
        regions = rows[rows[:, 5] == 0, :4]
        rows = rows[rows[:, 5] != 0]
        rows = rows[outside(rows[:, :4], regions)]
        named = np.array([str(int(kind)) for kind in rows[:, 5]])
        true = np.c_[rows[:, :4], rows[:, 4] == 0]
        rows = np.array([line.split(",") for line in result.split()], float).reshape(-1, 8)
        rows = rows[outside(rows[:, :4], regions)]
        rows = rows[rows[:, 5] != 11]
        images.append(((named, true), (np.array([str(int(k)) for k in rows[:, 5]]), rows[:, :5])))
    return images


@pytest.mark.parametrize("seed", range(12))
def test_visdrone(seed: int, tmp_path: Path) -> None:
    """Files of a data set, scored with default options."""
    truths, predictions = random_files(seed)
    for name, texts in (("annotations", truths), ("results", predictions)):
        (tmp_path / name).mkdir()
        for i, text in enumerate(texts):
            (tmp_path / name / f"{i:04}.txt").write_text(text)
    datums = pl.DataFrame(
        {"datum_id": [f"{i:04}" for i in range(5)], "height": HEIGHT, "width": WIDTH}
    )
    card = ee.score(
        tmp_path / "results", tmp_path / "annotations", dialect="visdrone", datums=datums
    )
    assert "regions_left_out" not in {one.code for one in card.findings}
    images = by_hand(truths, predictions)
    means = []
    for number, label in (("1", "pedestrian"), ("4", "car")):
        if not any((truth[0] == number).any() for truth, _ in images):
            continue
        ap, recalls = accuracy(images, number)
        means.append([ap[iou] for iou in IOUS])
        rows = card.metrics.filter(pl.col("label_value") == label)
        for iou in (0.5, 0.75):
            ours = rows.filter(metric="AP", iou_threshold=iou)["value"].item()
            assert ours == pytest.approx(ap[iou], abs=1e-12)
        for cap, value in recalls.items():
            ours = rows.filter(metric="AR", max_detections=cap)["value"].item()
            assert ours == pytest.approx(value, abs=1e-12)
    whole = card.metrics.filter(metric="mAPAveragedOverIOUs")["value"].item()
    assert whole == pytest.approx(np.mean(means), abs=1e-12)


def tables(seed: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(seed)

    def side(n: int) -> pl.DataFrame:
        low = rng.uniform(0, 30, (n, 2)).round(1)
        high = low + rng.uniform(1, 15, (n, 2)).round(1)
        names = ("xmin", "ymin", "xmax", "ymax")
        corners = np.c_[low, high]
        return pl.DataFrame({"datum_id": rng.integers(0, 4, n)}).with_columns(
            pl.Series(name, corners[:, i]) for i, name in enumerate(names)
        )

    labels = pl.Series("label_value", rng.choice(["a", "b"], 40))
    predictions = side(40).with_columns(labels, score=pl.Series(rng.permutation(40) / 40))
    return predictions, side(15).with_columns(label_value=pl.lit("a")), side(9)


@pytest.mark.parametrize("geometry", ["box", "obb", "polygon"])
def test_exact_areas(geometry: str) -> None:
    """Predictions with half their area inside the union of regions are ignored; truths are not."""
    shapely = pytest.importorskip("shapely")
    predictions, truths, regions = tables(3)
    unions = {
        datum: shapely.unary_union([shapely.box(*row[1:]) for row in rows.iter_rows()])
        for (datum,), rows in regions.group_by("datum_id")
    }
    names = ["xmin", "ymin", "xmax", "ymax"]
    share = [
        shapely.intersection(shapely.box(*box), unions[datum]).area / shapely.box(*box).area
        if datum in unions
        else 0.0
        for datum, *box in predictions.select("datum_id", *names).iter_rows()
    ]
    selected = predictions.filter(pl.Series(share) < 0.5)
    assert 0 < selected.height < predictions.height

    def shaped(table: pl.DataFrame) -> pl.DataFrame:
        if geometry == "box":
            return table
        if geometry == "obb":
            x, y = ((pl.col(f"{a}min") + pl.col(f"{a}max")) / 2 for a in "xy")
            wide, high = (pl.col(f"{a}max") - pl.col(f"{a}min") for a in "xy")
            return table.with_columns(obb=pl.concat_list(x, y, wide, high, pl.lit(0.0))).drop(names)
        rings = [
            [[row[0], row[1], row[2], row[1], row[2], row[3], row[0], row[3]]]
            for row in table.select(names).iter_rows()
        ]
        return table.with_columns(polygon=pl.Series(rings)).drop(names)

    options = {"angle_format": "radians-clockwise"} if geometry == "obb" else {}
    ours = ee.score(shaped(predictions), shaped(truths), regions=regions, **options)
    theirs = ee.score(shaped(selected), shaped(truths), **options)
    assert ours.metrics["value"].to_list() == theirs.metrics["value"].to_list()
    counts = {one.code: one.count for one in ours.findings}
    assert counts["inside_regions"] == predictions.height - selected.height


def test_masks_and_ways_to_give_regions(tmp_path: Path) -> None:
    """A table, a file, truths without a label and a column of datums give the same numbers."""
    predictions, truths, regions = tables(5)
    expected = ee.score(predictions, truths, regions=regions).metrics
    regions.write_parquet(tmp_path / "regions.parquet")
    path = str(tmp_path / "regions.parquet")
    rows = regions.with_columns(label_value=pl.lit(None, pl.String), ignore=1)
    labelled = pl.concat([truths.with_columns(ignore=0), rows], how="diagonal")
    every = range(4)
    renamed = [one.rename({"datum_id": "picture"}) for one in (predictions, truths, regions)]
    for inputs in (regions, renamed[2]):
        card = ee.score(*renamed[:2], regions=inputs, columns={"picture": "datum_id"})
        assert card.metrics.equals(expected)
    lists = [[x for row in regions.filter(datum_id=i).rows() for x in row[1:]] for i in every]
    datums = pl.DataFrame({"datum_id": [*every], "regions": lists})
    for sides, inputs in (
        ((predictions, truths), {"regions": path}),
        ((predictions, labelled), {}),
        ((predictions, truths), {"datums": datums}),
        ((predictions, truths), {"regions": regions.head(4), "datums": datums}),
    ):
        assert ee.score(*sides, **inputs).metrics.equals(expected)
    sizes = pl.DataFrame({"datum_id": [*every], "height": 50, "width": 50})
    whole = [one.with_columns(pl.col("xmin", "ymin", "xmax", "ymax").round(0)) for one in
             (predictions, truths, regions)]  # fmt: skip
    masks = ee.score(*whole[:2], regions=whole[2], datums=sizes, convert_to="mask", metrics=["mAP"])
    boxes = ee.score(*whole[:2], regions=whole[2], metrics=["mAP"])
    assert masks.metrics["value"].to_list() == pytest.approx(boxes.metrics["value"].to_list())


def test_refused_regions() -> None:
    predictions, truths, regions = tables(5)
    with pytest.raises(ee.OptionError) as error:
        ee.score(predictions, truths, regions=regions, dialect="coco")
    assert error.value.code == "option_unfit"
    with pytest.raises(ee.InputError) as wrong:
        ee.score(predictions, truths, regions=regions.with_columns(pl.col("datum_id") + 99))
    assert wrong.value.code == "ids_differ"
    with pytest.raises(ee.InputError) as broken:
        ee.score(predictions, truths, regions=regions.with_columns(xmax=pl.lit(None, pl.Float64)))
    assert broken.value.code == "geometry_missing"
    card = ee.score(predictions, truths, regions=regions, dialect="coco", region_overlap=0.5)
    codes = {one.code for one in card.findings}
    assert "inside_regions" in codes
    assert "regions_left_out" not in codes
    labelled = pl.concat(
        [
            truths.with_columns(ignore=0),
            regions.with_columns(label_value=pl.lit(None, pl.String), ignore=1),
        ],
        how="diagonal",
    )
    card = ee.score(predictions, labelled, dialect="coco")
    assert "regions_left_out" in {one.code for one in card.findings}


BOX = ("xmin", "ymin", "xmax", "ymax")


@pytest.mark.parametrize("memory", [None, "1GB"])
def test_truths_inside_regions_stay_and_are_reported(memory: str | None) -> None:
    rows = [(i, "a", 10.0 * j, 0.0, 10.0 * j + 9, 9.0) for i in range(4) for j in range(5)]
    truths = pl.DataFrame(rows, schema=["datum_id", "label_value", *BOX], orient="row")
    predictions = truths.with_columns(score=pl.Series([1 - i / 20 for i in range(20)]))
    regions = pl.DataFrame([(0, 0.0, 0.0, 19.0, 9.0)], schema=["datum_id", *BOX], orient="row")
    inputs = {"regions": regions, "metrics": ["Recall"], "memory_limit": memory}
    inputs |= {"iou_thresholds": [0.5], "score_thresholds": [0.0]}
    card = ee.score(predictions, truths, **inputs)
    assert card.value("Recall", label_value="a") == 0.9
    (findings,) = (one for one in card.findings if one.code == "truths_in_regions")
    assert (findings.count, findings.severity) == (2, "note")
    more = pl.concat([regions, regions.with_columns(datum_id=pl.lit(1, pl.Int64))])
    assert any("4 rows inside regions" in one for one in
               ee.score(predictions, truths, **{**inputs, "regions": more}).warnings)  # fmt: skip
    ignored = truths.with_columns(ignore=pl.col("datum_id").eq(0) & (pl.col("xmin") < 20))
    card = ee.score(predictions, ignored, **inputs)
    assert card.value("Recall", label_value="a") == 1
    assert {one.code: one.count for one in card.findings} == {"inside_regions": 2}


@pytest.mark.parametrize("options", [{}, {"dialect": "coco", "region_overlap": 0.5}])
def test_keypoints_have_no_regions(options: dict[str, Any]) -> None:
    corners = dict.fromkeys(BOX[:2], 5.0) | dict.fromkeys(BOX[2:], 25.0)
    truths = pl.DataFrame(
        {"datum_id": [1], "label_value": ["p"], "keypoints": [[10.0, 10, 2, 20, 20, 2]]}
    ).with_columns(area=pl.lit(90.0), **{name: pl.lit(end) for name, end in corners.items()})
    region = pl.DataFrame(
        {"datum_id": [1], **dict.fromkeys(BOX[:2], 0), **dict.fromkeys(BOX[2:], 50)}
    )
    card = ee.score(
        truths.with_columns(score=0.9), truths, regions=region, metrics=["mAP"],
        iou_type="keypoints", keypoint_sigmas=[0.1, 0.1], **options,
    )  # fmt: skip
    assert card.metrics["value"][0] == pytest.approx(1)
    counts = {one.code: one.count for one in card.findings}
    assert counts["regions_left_out"] == 1
    assert "inside_regions" not in counts


def test_regions_that_have_no_part_are_noted() -> None:
    box = {"xmin": [0, 50], "ymin": [0, 0], "xmax": [20, 60], "ymax": [20, 10]}
    predictions = pl.DataFrame(
        {"datum_id": [1, 1], "label_value": ["a"] * 2, "score": [0.9, 0.8], **box}
    )
    corners = {"xmin": [45, 1, 1, 3], "ymin": [0] * 4, "xmax": [99, 9, 9, 3], "ymax": [40] * 4}
    regions = pl.DataFrame({"datum_id": [1, 7, 7, 1], **corners})
    card = ee.score(predictions, predictions.drop("score"), regions=regions)
    counts = {one.code: one.count for one in card.findings}
    assert (counts["regions_of_no_datum"], counts["regions_without_area"]) == (1, 1)
    assert "of no datum: their regions are left out: 7." in "".join(card.notes)


def test_ignored_labels_that_are_never_predicted_are_noted() -> None:
    """``ignore`` excuses only predictions of its label; a null label makes a region."""
    box = {"xmin": [0.0, 100.0], "ymin": [0.0, 0.0], "xmax": [10.0, 200.0], "ymax": [10.0, 100.0]}
    truth = pl.DataFrame({"datum_id": [1, 1], "label_value": ["car", "region"], **box})
    truth = truth.with_columns(pl.Series("ignore", [0, 1]))
    predictions = truth.select("datum_id", "^[xy].*$", label_value=pl.lit("car"), score=0.5)

    def kinds(truth: pl.DataFrame, predictions: pl.DataFrame = predictions) -> set[str]:
        return {one.code for one in ee.score(predictions, truth, metrics=["AP"]).findings}

    assert "ignored_labels" in kinds(truth)
    labels = pl.col("label_value")
    region = truth.with_columns(labels.replace("region", None))
    assert "ignored_labels" not in kinds(region)
    assert "ignored_labels" not in kinds(truth.with_columns(ignore=pl.lit(0)))
    assert "ignored_labels" not in kinds(truth.with_columns(labels.replace("region", "car")))
    assert "ignored_labels" not in kinds(truth, predictions.clear())
    with pytest.raises(ee.InputError, match="ignore"):
        kinds(truth.with_columns(ignore=pl.concat_list("ignore")))


ONE = {"label_value": "x", "xmin": 1, "ymin": 1, "xmax": 5, "ymax": 5}
AREA = {"xmin": 20, "ymin": 20, "xmax": 30, "ymax": 30}
INSIDE = {"label_value": "x", "xmin": 21, "ymin": 21, "xmax": 25, "ymax": 25, "score": 0.95}


@pytest.mark.parametrize("memory", [None, "1GB"])
@pytest.mark.parametrize(
    ("forms", "predicted", "true", "regions"),
    [
        (["stem"], ["a", "b"], ["a.jpg", "b.jpg"], ["a.jpg", "a", "/x/a.png"]),
        (["extension"], ["a.b.png", "c.b.png"], ["a.b.jpg", "c.b.jpg"], ["a.b.jpg"]),
        (["case"], ["A", "B"], ["a", "b"], ["A", "a"]),
        (["+1"], [0, 1], [1, 2], [1]),
        (["number", "+1"], ["f_0", "f_1"], ["x1", "x2"], ["1", "f_001"]),
    ],
)
def test_ids_of_regions_are_rewritten_as_those_of_tables(
    forms: list[str], predicted: list[Any], true: list[Any], regions: list[Any], memory: str | None
) -> None:
    result = [{"datum_id": one, **ONE, "score": 0.9} for one in predicted]
    result.append({"datum_id": predicted[0], **INSIDE})
    truths = [{"datum_id": one, **ONE} for one in true]
    options: Any = {"id_format": forms, "metrics": ["AP"], "memory_limit": memory}
    for one in regions:
        datums = pl.DataFrame({"image": true, "size": [1, 2]})
        table = pl.DataFrame([{"datum_id": one, **AREA}])
        for extra in ({}, {"datums": datums}):
            card = ee.score(pl.DataFrame(result), truths, regions=table, **extra, **options)
            assert card.metrics["value"].to_list() == [1.0] * card.metrics.height
    within = [{**row, "ignore": 0} for row in truths]
    within.append({"datum_id": true[0], **AREA, "label_value": None, "ignore": 1})
    card = ee.score(pl.DataFrame(result), pl.DataFrame(within), **options)
    assert card.metrics["value"].to_list() == [1.0] * card.metrics.height


@pytest.mark.parametrize("memory", [None, "1GB"])
@pytest.mark.parametrize(
    ("forms", "predicted", "true"),
    [
        (["extension"], ["a.b.png", "c.b.png"], ["a.b.jpg"]),
        (["number"], ["f_1", "f_2"], [1]),
        (["+1"], [0, 1], [1]),
    ],
)
def test_datums_of_only_predictions_are_those_without_regions(
    forms: list[str], predicted: list[Any], true: list[Any], memory: str | None
) -> None:
    result = [{"datum_id": one, **ONE, "score": 0.9} for one in predicted]
    truths = [{"datum_id": one, **ONE} for one in true]
    options: Any = {"id_format": forms, "metrics": ["AP"], "memory_limit": memory}
    table = pl.DataFrame([{"datum_id": one, **AREA} for one in true])
    plain = ee.score(pl.DataFrame(result), truths, **options)
    card = ee.score(pl.DataFrame(result), truths, regions=table, **options)
    assert card.notes == plain.notes
    assert "1 datum without ground truths" in str(card.notes)
