"""Tracking on small tables that can be checked by hand: events, ignored objects, edges, errors."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import evalengine as ee

Row = tuple[int, Any, float]
"""Video frame, object or track, and left edge of a box of 10 x 10 pixels."""


def table(rows: list[Row], name: str, **columns: Any) -> pl.DataFrame:
    schema = {"frame": pl.Int64, name: pl.Int64, "xmin": pl.Float64}
    made = pl.DataFrame(rows, schema, orient="row").with_columns(
        sequence=pl.lit("s"), ymin=pl.lit(0.0), xmax=pl.col("xmin") + 10, ymax=pl.lit(10.0)
    )
    return made.with_columns(**columns)


TRUTH: list[Row] = [(f, 1, 0.0) for f in range(1, 7)] + [(f, 2, 50.0) for f in range(1, 4)]
FOUND: list[Row] = [(1, 7, 0), (2, 7, 1), (4, 8, 0), (5, 8, 0), (6, 7, 0), (2, 9, 50), (3, 5, 90)]


def test_events() -> None:
    """Object 1 is lost in frame 3, found again as another track, and switches back."""
    card = ee.score(
        table(FOUND, "track_id"), table(TRUTH, "object_id"), metrics=["IDSW", "Frag", "Outcomes"]
    )
    events = card.frame("outcomes")
    keys = ("frame", "object_id", "track_id", "outcome", "previous_track_id", "resumed")
    assert events.select(keys).rows() == [
        (1, 1, 7, "match", None, False),
        (1, 2, None, "miss", None, False),
        (2, 1, 7, "match", None, False),
        (2, 2, 9, "match", None, False),
        (3, 1, None, "miss", None, False),
        (3, 2, None, "miss", None, False),
        (3, None, 5, "false", None, False),
        (4, 1, 8, "switch", 7, True),
        (5, 1, 8, "match", None, False),
        (6, 1, 7, "switch", 8, False),
    ]
    assert events["iou"].null_count() == 4
    assert (card.value("IDSW"), card.value("Frag")) == (2, 1)


def test_errors_are_listed_switches_first(tmp_path: Path) -> None:
    sides = table(FOUND, "track_id", score=0.5), table(TRUTH, "object_id")
    result = ee.find_errors(*sides)
    assert result.rows is not None
    keys = ("error", "frame", "object_id", "track_id", "previous_track_id", "xmin")
    assert result.rows.select(*keys, "annotation_xmin").rows() == [
        ("switch", 4, 1, 8, 7, 0, 0),
        ("switch", 6, 1, 7, 8, 0, 0),
        ("false", 3, None, 5, None, 90, None),
        ("miss", 1, 2, None, None, None, 50),
        ("miss", 3, 1, None, None, None, 0),
        ("miss", 3, 2, None, None, None, 50),
    ]
    events = ee.score(*sides, metrics=["Outcomes"]).frame("outcomes")
    assert "xmin" not in events.columns
    with pytest.raises(ee.InputError, match="frames of sequences"):
        result.write("cvat", tmp_path / "errors.xml")


def test_a_fragment_is_not_a_switch() -> None:
    found = [row for row in FOUND if row[0] != 4]
    found = [(frame, 7 if track == 8 else track, x) for frame, track, x in found]
    card = ee.score(table(found, "track_id"), table(TRUTH, "object_id"), metrics=["Outcomes"])
    listed = card.frame("outcomes").filter(pl.col("outcome") == "fragment")
    assert listed.select("frame", "object_id", "track_id", "resumed").rows() == [(5, 1, 7, True)]


def test_ignored_objects() -> None:
    """An ignored ground truth is not missed, and the prediction that matches it is ignored, too."""
    ignored = pl.col("object_id") == 2
    card = ee.score(
        table(FOUND, "track_id"), table(TRUTH, "object_id", ignored=ignored), metrics=["FN", "FP"]
    )
    assert (card.value("FN"), card.value("FP")) == (1, 1)


def test_an_empty_side() -> None:
    truth = table(TRUTH, "object_id")
    card = ee.score(table([], "track_id"), truth, task="tracking")
    assert (card.value("HOTA"), card.value("LocA"), card.value("FN")) == (0, 1, 9)
    card = ee.score(table(FOUND, "track_id"), table([], "object_id"), task="tracking")
    assert (card.value("IDF1"), card.value("FP")) == (0, 7)
    card = ee.score(table([], "track_id"), table([], "object_id"), task="tracking")
    assert card.value("HOTA") is None
    assert any("no boxes" in one for one in card.metrics["reason"].drop_nulls())


def test_a_sequence_is_as_long_as_its_frames() -> None:
    sides = table(FOUND, "track_id"), table(TRUTH, "object_id")
    for length in (6, 12):
        datums = pl.DataFrame({"sequence": ["s"], "frames": [length]})
        card = ee.score(*sides, datums=datums, metrics=["FP", "FPPerFrame"])
        assert card.value("FPPerFrame") == card.value("FP") / length
    datums = pl.DataFrame({"sequence": ["s"], "frames": [5]})
    with refused("sequence_short", column="frames", count=1, match=r"'s' \(5 of 6\)"):
        ee.score(*sides, datums=datums, metrics=["FPPerFrame"])


def test_perfect_and_swapped_ids() -> None:
    truth = table(TRUTH, "object_id")
    same = truth.rename({"object_id": "track_id"}).with_columns(track_id=-pl.col("track_id"))
    card = ee.score(same, truth)
    assert [card.value(one) for one in ("HOTA", "MOTA", "IDF1", "LocA")] == [1, 1, 1, 1]


def test_one_id_twice_in_a_frame() -> None:
    twice = [*FOUND, (2, 7, 3.0)]
    with refused("repeated_values", column="track_id", count=2, match="frame=2, track_id=7"):
        ee.score(table(twice, "track_id"), table(TRUTH, "object_id"))


def test_masks_of_one_side() -> None:
    truth = table(TRUTH, "object_id")
    found = truth.select("sequence", "frame", track_id="object_id", mask=pl.lit(None))
    masks = pl.Series([{"size": [4, 4], "counts": [2, 4, 10]}]).new_from_index(0, found.height)
    with refused("geometry_missing", side="predictions", count=9):
        ee.score(found.with_columns(mask=masks), truth, task="tracking")


def test_labels_of_one_side() -> None:
    labelled = table(TRUTH, "object_id", label_value=pl.lit("car"))
    with pytest.raises(ee.InputError, match="predictions: no labels"):
        ee.score(table(FOUND, "track_id"), labelled)


def test_a_declared_label_without_boxes_has_its_rows() -> None:
    labelled = pl.lit("car").alias("label_value")
    sides = table(FOUND, "track_id"), table(TRUTH, "object_id")
    card = ee.score(
        *(one.with_columns(labelled) for one in sides),
        labels=["car", "bus"],
        metrics=["MOTA", "FN"],
    )
    rows = card.metrics.filter(label_value="bus").select("metric", "value", "support")
    assert rows.rows() == [("MOTA", None, 0), ("FN", None, 0)]


def test_thresholds() -> None:
    sides = table(FOUND, "track_id"), table(TRUTH, "object_id")
    every = ee.score(*sides, metrics=["HOTA"], iou_thresholds_to_return=[0.05, 0.95])
    rows = every.metrics.drop_nulls("iou_threshold")
    assert rows["iou_threshold"].to_list() == pytest.approx([0.05, 0.95])
    one = ee.score(*sides, metrics=["HOTA"], iou_thresholds=[0.95])
    assert one.value("HOTA") == rows["value"][1]
    with refused("option_value", ee.OptionError, value=0.33):
        ee.score(*sides, iou_thresholds_to_return=[0.33])
    with refused("option_value", ee.OptionError, option="iou_thresholds", value=0.0):
        ee.score(*sides, iou_thresholds=[0.0])


def test_the_threshold_of_clear_and_identity() -> None:
    """The track overlaps by 6 of 14."""
    found = [(frame, 7, 4.0) for frame in range(1, 7)]
    sides = table(found, "track_id"), table(TRUTH[:6], "object_id")
    usual = ee.score(*sides, metrics=["TP", "IDTP"])
    assert (usual.value("TP"), usual.value("IDTP")) == (0, 0)
    card = ee.score(*sides, metrics=["TP", "IDTP", "Outcomes"], match_threshold=6 / 14)
    assert (card.value("TP"), card.value("IDTP")) == (6, 6)
    assert card.frame("outcomes")["iou_threshold"].unique().to_list() == [6 / 14]
    with pytest.raises(ee.OptionError, match=r"match_threshold=1\.5"):
        ee.score(*sides, match_threshold=1.5)


def tracks(seed: int, **changed: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two sequences of moving objects and a tracker with a few misses and some noise."""
    rng = np.random.default_rng(seed)
    rows = [
        (sequence, frame, i, ("car", "van", "bus")[i % 3], 90.0 * i + 4 * frame, 40.0 * i + frame)
        for sequence in ("a", "b")
        for frame in range(1, 30)
        for i in range(1, 7)
    ]
    names = ["sequence", "frame", "object_id", "label_value", "xmin", "ymin"]
    truth = pl.DataFrame(rows, names, orient="row").with_columns(
        xmax=pl.col("xmin") + 40, ymax=pl.col("ymin") + 30
    )
    found = truth.rename({"object_id": "track_id"}).filter(
        pl.Series(rng.random(truth.height) < 0.8)
    )
    shaken = [pl.col(c) + pl.Series(rng.normal(0, 2, found.height)) for c in CORNERS]
    return found.with_columns(shaken).with_columns(**changed), truth


CORNERS = ("xmin", "ymin", "xmax", "ymax")
SWAPPED = ("ymin", "xmin", "ymax", "xmax")
FAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "frames from 0": ("frames_shifted", {"frame": pl.col("frame") - 1}),
    "frames from 2": ("frames_shifted", {"frame": pl.col("frame") + 1}),
    "frames of another clip": ("frames_shifted", {"frame": pl.col("frame") + 500}),
    "columns exchanged": (
        "frames_exchanged",
        {"frame": pl.col("track_id") + 900, "track_id": pl.col("frame")},
    ),
    "every second number": ("frames_skipped", {"frame": 2 * pl.col("frame")}),
    "no frame in common": ("no_common_frame", {"frame": 1000 + 7 * pl.col("frame")}),
    "scaled": ("boxes_apart", {c: pl.col(c) * 2 for c in CORNERS}),
    "another origin": ("boxes_apart", {c: pl.col(c) + 25 for c in CORNERS}),
    "shares of the image": ("boxes_apart", {c: pl.col(c) / 1000 for c in CORNERS}),
    "x and y exchanged": (
        "boxes_apart",
        {c: pl.col(d) for c, d in zip(CORNERS, SWAPPED, strict=True)},
    ),
    "labels exchanged": (
        "labels_apart",
        {"label_value": pl.col("label_value").replace({"car": "van", "van": "bus", "bus": "car"})},
    ),
}


@pytest.mark.parametrize(
    ("fault", "metric"), [*zip(FAULTS, cycle(("HOTA", "MOTA", "IDF1", "Errors")), strict=False)]
)
def test_tracks_that_would_match_otherwise_are_a_warning(fault: str, metric: str) -> None:
    kind, changed = FAULTS[fault]
    for seed, metrics in ((0, ["HOTA"]), (1, [metric])):
        predictions, truth = tracks(seed, **changed)
        card = ee.score(predictions, truth, metrics=metrics)
        assert [one.code for one in card.findings if one.severity == "warning"] == [kind]
        assert ee.check(predictions, truth, metrics=metrics).warnings == [*card.warnings]
    if kind == "frames_skipped":
        (finding,) = (one for one in card.findings if one.code == kind)
        assert (finding.facts["side"], [*finding.facts["steps"]]) == ("predictions", [1, 2])
    assert ee.diagnose(predictions, truth, metrics=metrics).frame.height
    bounded = ee.score(*tracks(9, **changed), metrics=["HOTA"], memory_limit="1GB")
    assert [one.code for one in bounded.findings if one.severity == "warning"] == [kind]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_one_sequence(fault: str) -> None:
    """The warning names the sequence; the others match."""
    kind, changed = FAULTS[fault]
    other = pl.col("sequence") == "b"
    predictions, truth = tracks(3)
    several = [
        pl.concat([side, side.filter(sequence="a").with_columns(sequence=pl.lit("c"))])
        for side in (predictions, truth)
    ]
    only = {n: pl.when(other).then(one).otherwise(pl.col(n)) for n, one in changed.items()}
    card = ee.score(several[0].with_columns(**only), several[1], metrics=["HOTA"])
    (finding,) = (one for one in card.findings if one.severity == "warning")
    assert finding.code == kind
    assert finding.message.startswith("in 1 of 3 sequences, first 'b', ")
    late = pl.col("frame") > pl.when(other).then(5).otherwise(1)
    lost = other & (pl.col("track_id") > 1)  # by the tracker
    for fair in (late, ~lost):
        assert ee.score(several[0].filter(fair), several[1]).warnings == ()


@pytest.mark.parametrize("step", [1, 2])
def test_exchanged_sequences(step: int) -> None:
    predictions, truth = tracks(0)
    next_sequence = pl.DataFrame(
        {"sequence": [*"abcd"], "next": [*"bcda"], "x": [0.0, 90.0, 900.0, 2e3]}
    )
    four = [
        pl.concat([side, side.with_columns(pl.col("sequence").replace({"a": "c", "b": "d"}))])
        .join(next_sequence, on="sequence")
        .with_columns(xmin=pl.col("xmin") + pl.col("x"), xmax=pl.col("xmax") + pl.col("x"))
        for side in (predictions, truth)
    ]
    assert ee.score(*(side.drop("x", "next") for side in four)).warnings == ()
    moved = four[0]
    for _ in range(step):
        moved = moved.drop("x", "next", strict=False).join(next_sequence, on="sequence")
        moved = moved.with_columns(sequence="next")
    card = ee.score(moved.drop("x", "next"), four[1].drop("x", "next"))
    (finding,) = (one for one in card.findings if one.severity == "warning")
    assert (finding.code, finding.facts["sequences"][0]) == ("boxes_apart", "a")
    assert finding.facts["sequences"][1] == {1: "d", 2: "c"}[step]


@pytest.mark.parametrize("few", ["predictions", "ground_truths"])
def test_every_fifth_frame_of_one_side(few: str) -> None:
    rows = [(s, f, o, 5.0 * f + 90 * o) for s in "ab" for f in range(2, 42) for o in (1, 2)]
    names = ["sequence", "frame", "object_id", "xmin"]
    truth = pl.DataFrame(rows, names, orient="row").with_columns(
        ymin=pl.lit(0.0), xmax=pl.col("xmin") + 40, ymax=pl.lit(50.0)
    )
    found = truth.rename({"object_id": "track_id"})
    selected = pl.col("frame") % 5 == 3
    sides = (
        (found.filter(selected), truth) if few == "predictions" else (found, truth.filter(selected))
    )
    card = ee.score(*sides)
    (finding,) = (one for one in card.findings if one.severity == "warning")
    assert (finding.code, finding.facts["side"]) == ("frames_skipped", few)
    assert sorted(finding.facts["steps"]) == [1, 5]
    mended = ee.score(*sides, where="frame % 5 = 3")
    assert (mended.value("HOTA"), mended.warnings) == (1, ())
    assert ee.score(found.filter((pl.col("frame") * 7) % 11 < 7), truth).warnings == ()


def test_a_sequence_without_predictions_is_a_warning() -> None:
    """One of two sequences; in detection, an image with few objects may have none."""
    predictions, truth = tracks(0)
    card = ee.score(predictions.filter(pl.col("sequence") == "a"), truth)
    codes = [one.code for one in card.findings if one.severity == "warning"]
    assert codes == ["datums_without_predictions"]


def test_frames_without_predictions_are_a_warning() -> None:
    """Only the first ten of each sequence are predicted."""
    predictions, truth = tracks(0)
    card = ee.score(predictions.filter(pl.col("frame") <= 10), truth)
    (finding,) = (one for one in card.findings if one.severity == "warning")
    assert finding.code == "frames_without_predictions"
    assert (finding.facts["count"], finding.facts["of"]) == (38, 58)
    assert (
        ee.score(predictions.filter(pl.col("frame") <= 10), truth, where="frame <= 10").warnings
        == ()
    )


def walkers(sequence: str, n_frames: int, n_objects: int) -> pl.DataFrame:
    """Return objects next to each other in every frame, with boxes."""
    rows = pl.DataFrame({"frame": range(1, n_frames + 1)}).join(
        pl.DataFrame({"object_id": range(n_objects)}), how="cross"
    )
    left, top = 100.0 * pl.col("object_id") + pl.col("frame"), pl.lit(5.0)
    return rows.select(
        "frame", "object_id", sequence=pl.lit(sequence), xmin=left, ymin=top, xmax=left + 40,
        ymax=top + 80,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("n_objects", "last", "warns"), [(3, 25, True), (3, 45, False), (1, 25, False)]
)
def test_predictions_that_end_early_are_a_warning(n_objects: int, last: int, warns: bool) -> None:
    """One of several sequences; a single object may be lost."""
    rest = [walkers(name, 50, 3) for name in ("a", "b", "c")]
    truth = pl.concat([*rest, walkers("d", 50, n_objects)])
    found = truth.filter((pl.col("sequence") != "d") | (pl.col("frame") <= last))
    warned = [one for one in ee.score(found, truth).findings if one.severity == "warning"]
    expected = [("frames_without_predictions", {"count": 1, "sequences": ["d"]})]
    assert [(one.code, one.facts) for one in warned] == expected * warns


@pytest.mark.parametrize("factor", [1 / 10, 1 / 3, 1 / 2, 2, 3, 10])
def test_tracks_on_another_scale(factor: float) -> None:
    predictions, truth = tracks(0, **{c: pl.col(c) * factor for c in CORNERS})
    card = ee.score(predictions, truth)
    assert [one.code for one in card.findings if one.severity == "warning"] == ["boxes_apart"]


def test_ground_truths_that_are_all_ignored_are_a_warning() -> None:
    predictions, truth = tracks(0)
    for share, severity in ((0, "warning"), (0.5, "note")):
        counts = pl.int_range(pl.len()) < share * pl.len()
        card = ee.score(predictions, truth.with_columns(considered=counts.cast(pl.Int8)))
        (finding,) = (one for one in card.findings if one.code == "not_considered")
        assert finding.severity == severity
        assert (finding.count, finding.facts["of"]) == ((1 - share) * truth.height, truth.height)


def test_tracks_that_match_have_no_warning() -> None:
    """Nor do tracks whose first or last frames are missed, or a poor tracker's."""
    noise = np.random.default_rng(0)
    for seed in range(4):
        predictions, truth = tracks(seed)
        for selected in (
            predictions,
            predictions.filter(pl.col("frame") > 3),
            predictions.filter(pl.col("frame") < 19),
            predictions.filter(pl.col("track_id") == 1),
            predictions.with_columns(
                pl.col(CORNERS) + 25 * pl.Series(noise.normal(size=predictions.height))
            ),
        ):
            assert ee.score(selected, truth).warnings == ()
