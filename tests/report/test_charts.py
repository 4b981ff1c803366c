"""Charts: points equal the frames, and SVG and Matplotlib show them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from refusals import refused
from report.test_page import ODD, TABLES, tables, worse

import evalengine as ee
from evalengine.cli import main
from evalengine.report.charts import (
    Bar,
    Curve,
    bar_chart,
    charts,
    frames_of,
    leads_of,
    line_chart,
    matrix_chart,
)
from evalengine.report.svg import svg
from evalengine.schemas.display import (
    DASHED,
    END,
    PLAIN,
    Area,
    Areas,
    Chart,
    Line,
    Points,
    Scale,
    Texts,
)
from evalengine.schemas.errors import OptionError, ResultError


def charts_of(card: ee.Scorecard, baseline: ee.Scorecard | None = None) -> dict[str, Any]:
    """Return the charts of a run by kind."""
    before = None if baseline is None else (baseline.metrics, frames_of(baseline))
    selected = charts(card.metrics, frames_of(card), card.directions, before)
    return {one.kind: one for one in reversed(selected)}


def lines(chart: Chart) -> dict[str, Line]:
    """Return the lines of a chart by name without support, except those of a baseline."""
    selected = [one for one in chart.marks if isinstance(one, Line) and one.legend]
    return {one.legend.split(" (n ")[0]: one for one in selected if one.dash != DASHED}


def areas(chart: Chart) -> list[Area]:
    return next(one.areas for one in chart.marks if isinstance(one, Areas))


def texts(svg_text: str) -> list[str]:
    root = ElementTree.fromstring(svg_text)
    return ["".join(one.itertext()) for one in root.iter() if one.tag.endswith("text")]


@pytest.fixture(scope="module")
def boxes() -> ee.Scorecard:
    return ee.score(*tables("detection"))


class TestPoints:
    def test_precision_by_recall_is_the_interpolated_curve(self, boxes: ee.Scorecard) -> None:
        chart = charts_of(boxes)["precision_recall"]
        frame = ee.score(*tables("detection"), metrics="InterpolatedPrecisionRecallCurve").curves
        for name, line in lines(chart).items():
            if line.colour == PLAIN:  # the mean
                continue
            rows = frame.filter(label_value=name, iou_threshold=0.5).sort("recall")
            assert rows.height
            assert line.x == rows["recall"].to_list()
            assert line.y == pytest.approx(rows["precision"].to_list(), nan_ok=True)

    def test_several_labels_are_one_line_of_summed_counts(self, boxes: ee.Scorecard) -> None:
        chart = charts_of(boxes)["thresholds"]
        frame = boxes.page_frame("thresholds")
        assert frame is not None
        sums = (
            frame.group_by("score_threshold").agg(pl.col("tp", "fp").sum()).sort("score_threshold")
        )
        expected = dict(
            zip(sums["score_threshold"], sums["tp"] / (sums["tp"] + sums["fp"]), strict=True)
        )
        line = lines(chart)["precision"]
        for x, y in zip(line.x, line.y, strict=True):
            assert y == pytest.approx(expected[x])

    def test_roc_points_are_on_the_exact_curve(self) -> None:
        rng = np.random.default_rng(2)
        actual = rng.random(5000) < 0.2
        score = np.round(rng.normal(actual, 1.0), 2)  # beyond [0, 1], with ties
        card = ee.score(pl.DataFrame({"actual": actual, "score": score}))
        (line,) = lines(charts_of(card)["roc"]).values()
        exact = ee.score(
            pl.DataFrame({"actual": actual, "score": score}), metrics="ROCCurve", thin_curves=False
        ).curves
        points = {
            (round(x, 12), round(y, 12)) for x, y in exact.select("fpr", "recall").iter_rows()
        }
        shown = {(round(x, 12), round(y, 12)) for x, y in zip(line.x, line.y, strict=True)}
        assert shown <= points | {(0.0, 0.0), (1.0, 1.0)}
        assert len(shown) > 60

    def test_a_line_has_at_most_200_points(self) -> None:
        rng = np.random.default_rng(3)
        table = pl.DataFrame({"actual": rng.random(20_000) < 0.5, "score": rng.random(20_000)})
        for chart in charts_of(ee.score(table)).values():
            for line in lines(chart).values():
                assert len(line.x) == len(line.y) <= 200

    def test_undefined_values_are_gaps(self) -> None:
        table = pl.DataFrame({"actual": [True, False, True], "score": [0.2, 0.1, 0.3]})
        line = lines(charts_of(ee.score(table))["thresholds"])["precision"]
        defined = [x for x, y in zip(line.x, line.y, strict=True) if y is not None]
        assert max(defined) == 0.3  # the highest score
        assert 0.0 not in line.y

    def test_costs_equal_the_frame(self) -> None:
        folder = "examples/detection/"
        card = ee.score(
            f"{folder}predictions.parquet",
            f"{folder}groundtruths.parquet",
            metrics=["TIDE"],
            iou_thresholds=[0.5, 0.75],
        )
        chart = charts_of(card)["costs"]
        rows = card.metrics.filter(pl.col("label_value").is_null(), iou_threshold=0.5)
        values = [one.right for one in areas(chart)]
        shown = dict(zip(chart.y.names, values, strict=True))
        assert shown == dict(rows.select("statistic", "value").rows())
        assert chart.title.endswith("IoU 0.5")

    def test_confusion_counts(self, boxes: ee.Scorecard) -> None:
        chart = charts_of(boxes)["confusion"]
        frame = boxes.page_frame("confusion")
        assert frame is not None
        texts = next(one.texts for one in chart.marks if isinstance(one, Texts))
        cells = {(x, round(y)): int(n) for x, y, n in texts if "%" not in n}
        shares = {(x, round(y)): n for x, y, n in texts if "%" in n}
        assert shares.keys() == cells.keys()
        for (x, y), n in shares.items():
            every = sum(count for (_, row), count in cells.items() if row == y)
            assert n == f"{100 * cells[x, y] / every:.0f}%"
        assert sum(cells.values()) == frame["count"].sum()
        for i, row in enumerate(chart.y.names[:5]):
            selected = frame.filter(actual=row, predicted=row)["count"].sum()
            assert cells[chart.x.names.index(row), i] == selected

    def test_many_labels_are_shown_as_pairs(self) -> None:
        rng = np.random.default_rng(4)
        truth = rng.integers(0, 60, 3000)
        table = pl.DataFrame(
            {"actual": truth, "predicted": (truth + (rng.random(3000) < 0.3)) % 60}
        )
        chart = charts_of(ee.score(table))["confusion"]
        assert len(chart.y.names) == len(areas(chart)) == 20
        assert "20 most frequent" in chart.note

    def test_values_by_cut_off_and_their_distribution(self) -> None:
        card = ee.score(*tables("retrieval"))
        line = lines(charts_of(card)["ks"])["nDCG"]
        rows = card.metrics.filter(pl.col("k").is_not_null(), metric="nDCG").sort("k")
        assert (line.x, line.y) == (rows["k"].cast(float).to_list(), rows["value"].to_list())
        bins = areas(charts_of(card)["distribution"])
        assert sum(one.high for one in bins) == card.per_datum.filter(
            pl.col("k").is_null(), pl.col("value").is_not_null(), metric="MAP"
        ).height  # fmt: skip

    def test_intervals_are_points_with_whiskers(self) -> None:
        rng = np.random.default_rng(5)
        truth = rng.integers(0, 3, 300)
        table = pl.DataFrame(
            {
                "actual": truth,
                "predicted": np.where(rng.random(300) < 0.8, truth, 0),
                "city": rng.choice(["x", "y"], 300),
            }
        )
        card = ee.score(table, by="city", intervals=0.9)
        selected = charts(card.metrics, {}, card.directions, leads=leads_of(card))
        whole, of_labels, of_slices = (one for one in selected if one.kind == "intervals")
        rows = card.metrics.filter(pl.col("slice").is_null(), pl.col("label_value").is_null())
        assert whole.y.names[0] == "Accuracy"
        for chart, metric, some in (
            (whole, "Accuracy", rows.filter(metric="Accuracy")),
            (
                of_labels,
                "F1",
                card.metrics.filter(pl.col("slice").is_null(), metric="F1", label_value=1),
            ),
            (of_slices, "Accuracy", card.metrics.filter(metric="Accuracy", slice_value="x")),
        ):
            row = some.row(0, named=True)
            name = metric if chart is whole else "1" if chart is of_labels else "city=x"
            place = chart.y.names.index(name)
            (at,) = (
                x
                for mark in chart.marks
                if isinstance(mark, Points) and mark.symbol != END
                for x, y in zip(mark.x, mark.y, strict=True)
                if y == place
            )
            whiskers = lines(chart)["interval"]
            bounds = [x for x, y in zip(whiskers.x, whiskers.y, strict=True) if y == place]
            assert (at, *bounds) == (row["value"], row["lower"], row["upper"])
            # Bars from 0 would compress the intervals.
            assert not any(isinstance(mark, Areas) for mark in chart.marks)
            assert 0 <= chart.x.low <= row["lower"] <= row["upper"] <= chart.x.high <= 1
        assert "intervals" not in ee.score(table).plot.kinds
        one = card.plot.intervals(metric="F1", label_value=2)
        assert [axes.get_title(loc="left") for axes in one.axes] == [
            "Numbers with intervals", "F1 by label", "F1 macro by slice",
        ]  # fmt: skip

    def test_a_baseline_is_dashed_in_the_same_colour(self, boxes: ee.Scorecard) -> None:
        selected = charts_of(ee.score(worse(), tables("detection")[1]), boxes)["precision_recall"]
        theirs = [one for one in selected.marks if isinstance(one, Line) and one.dash == DASHED]
        assert {one.legend for one in theirs} == {"baseline"}
        assert {one.colour for one in theirs} <= {one.colour for one in lines(selected).values()}


LINES = line_chart(
    "x",
    ODD,
    Scale(f"{ODD} x"),
    Scale("y"),
    [
        Curve(ODD, [0.0, 0.2, 0.5, 0.8, 1.0], [1.0, 0.9, None, 0.1, 0.0], 5),
        Curve('"quoted" & <b>', [0.0, 1.0], [0.5, 0.5], baseline=True),
    ],
)
BARS = bar_chart("x", ODD, Scale("v"), [Bar(ODD, 0.5, 0.4, 0.6, 3), Bar("none", None)], ODD)
CELLS = matrix_chart(ODD, [ODD, "b"], [ODD, "b"], [[1, 0], [2, 3000]], ODD)


class TestSvg:
    @pytest.mark.parametrize("chart", [LINES, BARS, CELLS], ids=["lines", "bars", "cells"])
    def test_names_are_text(self, chart: Any) -> None:
        text = svg(chart)
        root = ElementTree.fromstring(text)
        assert not [one for one in root.iter() if one.tag.endswith("script")]
        assert root[0].text == ODD
        assert "<script" not in text

    def test_a_gap_breaks_the_line(self) -> None:
        text = svg(LINES)
        paths = re.findall(r' d="(M[^"]*)"', text)
        assert "nan" not in text.lower()
        assert [path.count("M") for path in paths if path.count("L") == 2] == [2]  # two segments

    @pytest.mark.parametrize("task", TABLES)
    def test_every_chart_of_every_task(self, task: str) -> None:
        for chart in charts_of(ee.score(*tables(task))).values():
            root = ElementTree.fromstring(svg(chart))
            assert root.get("role") == "img"
            assert root[1].tag.endswith("desc")
            assert root[1].text
            for one in root.iter():
                for name in ("x", "y", "width", "height"):
                    if one.get(name) is not None:
                        assert math.isfinite(float(str(one.get(name))))

    def test_a_matrix_shows_its_counts(self) -> None:
        assert {"1", "2", "3,000"} <= set(texts(svg(CELLS)))

    def test_size_stays_small(self) -> None:
        rng = np.random.default_rng(5)
        n = 24_000
        truth = rng.permutation(n) % 1200
        score = rng.random(n)
        table = pl.DataFrame({"datum_id": range(n), "label_value": truth, "score": score})
        card = ee.score(table, table.drop("score"), task="classification")
        assert sum(len(svg(chart)) for chart in charts_of(card).values()) < 200_000


class TestPlots:
    def test_a_figure_has_title_axes_and_support(self, boxes: ee.Scorecard) -> None:
        figure = boxes.plot.precision_recall()
        axes = figure.axes[0]
        assert axes.get_title("left").startswith("Precision and recall")
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("recall", "precision")
        assert any("n 159" in text.get_text() for text in axes.get_legend().get_texts())

    def test_points_equal_the_chart(self, boxes: ee.Scorecard) -> None:
        axes = boxes.plot.precision_recall(label_value="car").axes[0]
        chart = lines(charts_of(boxes)["precision_recall"])["car"]
        line = next(one for one in axes.get_lines() if str(one.get_label()).startswith("car"))
        assert list(line.get_xdata()) == chart.x

    @pytest.mark.parametrize("task", TABLES)
    def test_every_kind_of_every_task(self, task: str) -> None:
        card = ee.score(*tables(task))
        for kind in card.plot.kinds:
            figure = card.plot.figure(kind, card)
            assert figure.axes
            figure.draw_without_rendering()
        assert figure._repr_png_().startswith(b"\x89PNG")

    @pytest.mark.filterwarnings("error")
    def test_long_names_are_shortened(self) -> None:
        names = ["a", *("x" * 300 + str(i) for i in range(4))]
        rows = {"actual": names * 9, "predicted": names[:1] * 9 + names * 7 + names[:1]}
        card = ee.score({**rows, "score": [0.5, 0.75, 0.25] * 15}, metrics=["F1", "ROCAUC"])
        shown = card.plot.labels().axes[0].get_yticklabels()
        assert max(len(one.get_text()) for one in shown) <= 40
        assert len({one.get_text() for one in shown}) == len(names)
        for kind in card.plot.kinds:
            card.plot.figure(kind).draw_without_rendering()

    def test_labels_have_the_metric_of_the_table(self) -> None:
        card = ee.score(*tables("classification"))
        assert card.plot.labels().axes[0].get_xlabel() == "F1"

    def test_differences(self, boxes: ee.Scorecard) -> None:
        figure = boxes.plot.compare(boxes, draws=50)
        assert "less" in figure.axes[0].get_title("left")

    def test_plots_without_data_are_refused(self, boxes: ee.Scorecard) -> None:
        with pytest.raises(ResultError, match="Reliability"):
            ee.score(*tables("classification")).plot.calibration()
        with refused("unknown_name", OptionError, value="rocs", match="'roc'"):
            boxes.plot.figure("rocs")
        with pytest.raises(OptionError, match="takes no"):
            boxes.plot.figure("calibration", metric="mAP")
        with pytest.raises(ResultError, match="iou_threshold"):
            boxes.plot.precision_recall(iou_threshold=0.51)
        with pytest.raises(ResultError, match="label_value"):
            boxes.plot.precision_recall(label_value="unicorn")

    def test_without_matplotlib(self, boxes: ee.Scorecard, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
        with pytest.raises(ResultError, match=r"evalengine\[plot\]"):
            boxes.plot.thresholds()


@pytest.fixture(scope="module")
def run(boxes: ee.Scorecard, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(boxes.save(tmp_path_factory.mktemp("runs") / "a"))


class TestCommand:
    def test_kinds_are_listed(self, run: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["plot", run]) == 0
        assert capsys.readouterr().out.split() == [
            "labels", "precision_recall", "thresholds", "confusion",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("ending", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
    )
    def test_the_suffix_selects_the_format(
        self, run: str, ending: str, begins: bytes, tmp_path: Path
    ) -> None:
        out = tmp_path / f"a.{ending}"
        given = ["--baseline", run, "--label", "car", "--iou", "0.75"]
        assert main(["plot", run, "precision_recall", "-o", str(out), *given]) == 0
        assert out.read_bytes().startswith(begins)

    def test_mistakes(self, run: str, capsys: pytest.CaptureFixture[str]) -> None:
        for words, message in (
            (["roc"], "no data to plot roc"),
            (["labels", "-o", "a.gif"], ".svg, .png, .pdf"),
            (["labels", "--metric", "nothing"], "nothing"),
        ):
            assert main(["plot", run, *words]) == 2, words
            assert message in capsys.readouterr().err


def test_cells_show_counts_changes_and_shares_of_rows() -> None:
    """A change is next to its count; next to a share it would look like percentage points."""
    chart = matrix_chart("t", ["a", "b"], ["a", "b"], [[6, 2], [0, 4]], before=[[8, 0], [0, 4]])
    (texts,) = (mark for mark in chart.marks if isinstance(mark, Texts))
    assert [text for *_, text in texts.texts] == ["6 −2", "75%", "2 +2", "25%", "4", "100%"]
