"""Report page: sections, numbers, comparison with a baseline, size, commands."""

from __future__ import annotations

import html
import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee
from evalengine.cli import main
from evalengine.report import charts
from evalengine.report.page import MOST_BYTES, Gate, lead
from evalengine.report.summary import sections
from evalengine.reporting import make_report
from evalengine.schemas.display import Line
from evalengine.schemas.errors import InputError, OptionError, ResultError

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
TABLES = {
    "classification": ("predictions", "groundtruths"),
    "detection": ("predictions", "groundtruths"),
    "segmentation": ("predicted", "truth"),
    "retrieval": ("run", "qrels"),
    "text": ("predictions", "references"),
    "judged": ("verdicts",),
}


def tables(task: str) -> list[str]:
    return [str(EXAMPLES / task / f"{name}.parquet") for name in TABLES[task]]


class Page(HTMLParser):
    """Parser of a page: ids, tables as rows of text, and unclosed tags."""

    VOID = frozenset({"meta", "link", "input", "br", "img"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.open: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self._rows: list[list[str]] | None = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        if "id" in given:
            self.ids.append(str(given["id"]))
        if tag == "table":
            self._rows = self.tables[str(given["id"])] = []
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag in ("td", "th") and self._rows is not None:
            self._rows[-1].append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.getpos())
        if tag == "table":
            self._rows = None

    def handle_data(self, data: str) -> None:
        if self._rows and self._rows[-1] and "caption" not in self.open:
            self._rows[-1][-1] += data


def page_of(card: ee.Scorecard, folder: Path, **given: Any) -> Page:
    found = Page(card.to_html(folder / "report.html", **given).read_text(encoding="utf-8"))
    assert not found.open
    assert len(set(found.ids)) == len(found.ids)
    assert len(found.html.encode()) <= MOST_BYTES
    return found


@pytest.mark.parametrize("task", TABLES)
def test_a_saved_run_has_the_same_page(task: str, tmp_path: Path) -> None:
    card = ee.score(*tables(task))
    page = page_of(card, tmp_path)
    assert {"verdict", "numbers", "notes", "provenance"} <= {*page.ids}
    back = ee.load(card.save(tmp_path / "run"))
    assert back.paged == card.paged
    loaded = page_of(back, tmp_path)
    assert loaded.tables.keys() == page.tables.keys()
    for name in page.tables.keys() - {"facts"}:
        assert loaded.tables[name] == page.tables[name], name


def test_numbers_equal_the_metrics_frame(tmp_path: Path) -> None:
    card = ee.score(*tables("detection"), intervals=95, draws=50)
    page = page_of(card, tmp_path)
    row = next(row for row in page.tables["numbers-0"] if row[0] == "mAP50 (mAP @ IoU 0.5)")
    found = card.metrics.filter(metric="mAP", iou_threshold=0.5).row(0, named=True)
    assert row[1] == f"{found['value']:.4f}"
    assert row[2] == f"[{found['lower']:.4f}, {found['upper']:.4f}]"
    labels = [row[0] for row in page.tables["labels-0"][1:]]
    worst = card.metrics.filter(metric="APAveragedOverIOUs").sort("value")["label_value"]
    assert labels == worst.to_list()


@pytest.mark.parametrize("dialect", ["standard", "coco"])
def test_counts_equal_the_curve_at_each_threshold(dialect: str, tmp_path: Path) -> None:
    page = page_of(ee.score(*tables("detection"), dialect=dialect), tmp_path)
    data = json.loads(re.findall(r'id="counts-data">(.*?)</script>', page.html)[0])
    at = data["thresholds"].index("0.3")
    curve = ee.score(
        *tables("detection"), metrics="PrecisionRecallCurve", score_thresholds=[0.3]
    ).curves
    names = [row[0] for row in page.tables["counts"][1:]]
    assert names == ["all labels", *(row[0] for row in page.tables["labels-0"][1:])]
    assert len(names) == 6
    for name, (tp, fp, fn) in zip(names, data["rows"], strict=True):
        rows = curve if name == "all labels" else curve.filter(label_value=name)
        assert [tp[at], fp[at], fn[at]] == [rows[one].sum() for one in ("tp", "fp", "fn")]


def test_counts_of_label_keys_are_separate(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    n = 400
    table = pl.DataFrame(
        {
            "datum_id": np.repeat(np.arange(100), 4),
            "label_key": ["colour", "colour", "shape", "shape"] * 100,
            "label_value": ["red", "blue", "round", "flat"] * 100,
            "score": rng.random(n),
        }
    )
    truth = pl.DataFrame(
        {
            "datum_id": np.repeat(np.arange(100), 2),
            "label_key": ["colour", "shape"] * 100,
            "label_value": [
                x
                for _ in range(100)
                for x in (rng.choice(["red", "blue"]), rng.choice(["round", "flat"]))
            ],
            "weight": np.repeat(rng.random(100), 2),
        }
    )
    card = ee.score(table, truth, task="classification")
    rows = {row[0]: row for row in page_of(card, tmp_path).tables["counts"][1:]}
    assert {"all labels of colour", "all labels of shape", "colour red", "shape flat"} <= set(rows)
    for key in ("colour", "shape"):
        tp, fn = (float(rows[f"all labels of {key}"][i].replace(",", "")) for i in (1, 3))
        assert tp + fn == pytest.approx(truth.filter(label_key=key)["weight"].sum())


ODD = '<script>alert("x")</script>'


def test_data_is_escaped(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "datum_id": [f"{ODD} \" ' {i}" for i in range(6)],
            "actual": [ODD, "b&b", "</table>"] * 2,
            "predicted": ["b&b", "b&b", "</table>", ODD, ODD, "<img src=x>"],
            "slice": ["<b>", '"onload="x'] * 3,
        }
    )
    page = page_of(ee.score(table, by="slice"), tmp_path)
    assert ODD not in page.html
    assert "&lt;script&gt;" in page.html
    assert "img" not in page.tags
    assert page.html.count("<script") == 1  # the script of the page


def worse(seed: int = 0) -> pl.DataFrame:
    """Return the example's detections with the scores of one label shuffled."""
    rows = pl.read_parquet(tables("detection")[0])
    mixed = rows["score"].shuffle(seed)
    car = pl.col("label_value") == "car"
    return rows.with_columns(score=pl.when(car).then(mixed).otherwise("score"))


def test_a_baseline_is_next_to_each_number(tmp_path: Path) -> None:
    truth = tables("detection")[1]
    before, after = ee.score(*tables("detection")), ee.score(worse(), truth)
    page = page_of(after, tmp_path, baseline=before)
    header, *rows = page.tables["labels-0"]
    at = header.index("verdict")
    read = {row[0]: row[at] for row in rows}
    assert read.pop("car") == "▼ worse"
    assert set(read.values()) == {"= same"}
    value = after.value("mAP", iou_threshold=0.5)
    old = before.value("mAP", iou_threshold=0.5)
    assert value is not None
    assert old is not None
    row = next(row for row in page.tables["numbers-0"] if row[0] == "mAP50 (mAP @ IoU 0.5)")
    assert row[2] == f"{old:.4f}"
    assert row[3].startswith(f"{value - old:+.4f} [")
    assert "by APAveragedOverIOUs: car (-0." in page.html


def test_examples_that_got_worse_come_first(tmp_path: Path) -> None:
    """Datums that got worse since the baseline precede the worst datums."""
    truths = pl.DataFrame(
        {"datum_id": range(40), "label_value": ["a"] * 40, "kind": ["x", "y"] * 20}
    )
    cards = []
    for wrong in ({3}, {3, 5, 8}):
        labels = ["b" if i in wrong else "a" for i in range(40)]
        found = pl.DataFrame({"datum_id": range(40), "label_value": labels, "score": [0.8] * 40})
        cards.append(ee.score(found, truths, by="kind", report=tmp_path / "one.html"))
    page = page_of(cards[1], tmp_path, baseline=cards[0])
    since, whole = page.tables["examples-since"], page.tables["examples-table"]
    assert [line[:2] for line in since[1:]] == [["5", "y"], ["8", "x"]]
    assert [line[0] for line in whole[1:]] == ["3", "5", "8"]
    assert page.html.index("examples-since") < page.html.index("examples-table")


def test_the_mean_of_several_targets_leads(tmp_path: Path) -> None:
    """Without a mean, the leading number names its target."""
    rows = pl.DataFrame({"datum_id": range(40), "target": [float(i % 7) for i in range(40)]})

    def run(of_y: float) -> ee.Scorecard:
        sizes = (("x", 1.0), ("y", of_y))
        both = pl.concat(
            rows.with_columns(
                label_key=pl.lit(key),
                prediction=pl.col("target") + size * (pl.col("datum_id") % 3 - 1),
            )
            for key, size in sizes
        )
        return ee.score(both, task="regression", metrics=["MAE"])

    before, after = run(1.0), run(3.0)
    assert "MAE macro 1.3500." in page_of(after, tmp_path).html
    page = page_of(after, tmp_path, baseline=before)
    assert "MAE macro 1.3500 against 0.6750" in page.html
    assert 'class="verdict worse"' in page.html
    keyed = [part for part in sections(after) if part.label_key is not None]
    assert lead(keyed) == "x: MAE 0.6750."


def sliced_runs(*wrong: set[int], n: int = 200, slices: int = 2) -> list[ee.Scorecard]:
    """Score the same datums with different errors, in numbered slices."""
    truths = pl.DataFrame({"datum_id": range(n), "label_value": "a"}).with_columns(
        kind=pl.format("kind {}", pl.col("datum_id") % slices)
    )
    return [
        ee.score(
            pl.DataFrame(
                {
                    "datum_id": range(n),
                    "label_value": ["b" if i in some else "a" for i in range(n)],
                    "score": [0.8] * n,
                }
            ),
            truths,
            by="kind",
            metrics=["Accuracy"],
        )
        for some in wrong
    ]


def test_losses_precede_unchanged_numbers(tmp_path: Path) -> None:
    before, after = sliced_runs({*range(1, 81, 2)}, {*range(0, 80, 2)})
    page = page_of(after, tmp_path, baseline=before)
    verdict = page.html.split('id="verdict"')[1].split("</section>")[0]
    places = [verdict.index(one) for one in ("kind 0 (-0.4", "kind 1 (+0.4", "0.8000 against 0.8")]
    assert places == sorted(places)
    assert verdict.startswith(' class="verdict worse"')
    assert re.findall('<li><a href="#([a-z]+)">', verdict) == ["slices"]


def test_better_and_worse_numbers_make_a_mixed_verdict(tmp_path: Path) -> None:
    """ROCAUC, which leads, improves and ECE gets worse."""
    rng = np.random.default_rng(2)
    actual = (rng.random(2000) < 0.5).astype(int)
    noise = rng.random(2000)
    before, after = (
        ee.score(
            pl.DataFrame({"datum_id": range(2000), "actual": actual, "score": score}),
            metrics=["ROCAUC", "ECE"],
        )
        for score in (0.25 + 0.5 * (0.9 * noise + 0.1 * actual), 0.05 * noise + 0.02 * actual)
    )
    page = page_of(after, tmp_path, baseline=before)
    verdict = page.html.split('id="verdict"')[1].split("</section>")[0]
    assert {"worse", "better"} & {*verdict.split(">")[0].strip(' "').split()} == set()
    assert "worse by ECE" in verdict


def test_differences_with_intervals_beyond_0_show_adjusted_p(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    wrong = [{*np.flatnonzero(rng.random(800) < share).tolist()} for share in (0.2, 0.22)]
    before, after = sliced_runs(*wrong, n=800, slices=20)
    page = page_of(after, tmp_path, baseline=before)
    found = ee.compare(before, after).differences.filter(metric="Accuracy", slice="kind")
    adjusted = dict(found.select("slice_value", "p_adjusted").iter_rows())
    shown = 0
    header, *rows = page.tables["slices-0-0"]
    for row in rows:
        low, high = (
            float(bound)
            for bound in re.findall(r"[+-]?\d\.\d+", row[header.index("difference")])[1:]
        )
        p = re.findall(r"p\W+([\d.]+)\)", row[header.index("verdict")])
        assert bool(p) == (low > 0 or high < 0), row
        assert not p or float(p[0]) == pytest.approx(adjusted[row[0]], rel=0.05)
        shown += bool(p)
    assert shown


def test_the_verdict_names_too_few_resamples() -> None:
    """With 100 resamples, none of ten adjusted numbers can be significant."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 400)
    worse, better = (
        pl.DataFrame(
            {
                "datum_id": range(400),
                "actual": true,
                "predicted": np.where(rng.random(400) < share, true, 1 - true),
            }
        )
        for share in (0.7, 0.9)
    )
    few, enough = (ee.compare(worse, better, draws=draws) for draws in (100, 1000))
    assert "100 resamples" in few.verdict
    assert "resamples" not in enough.verdict
    unadjusted = ee.compare(worse, better, draws=100, adjust="none")
    assert "resamples" not in unadjusted.verdict


def test_a_page_cites_its_baseline(tmp_path: Path) -> None:
    run, baseline = (ee.score(*tables("text"), metrics=[name]) for name in ("ROUGE1", "ROUGE2"))
    page = Page(ee.report(run, tmp_path / "r.html", baseline=baseline).read_text())
    cells = {cell.strip() for row in page.tables["facts"] for cell in row}
    assert {run.cite, baseline.cite} <= cells


def test_next_steps_come_from_findings(tmp_path: Path) -> None:
    """Each step links to a section of the page and may have a command."""
    quiet = ee.score(pl.DataFrame({"datum_id": range(9), "actual": "a", "predicted": "a"}))
    assert "steps" not in page_of(quiet, tmp_path).ids
    runs = tmp_path / "a", tmp_path / "b"
    ee.score(*tables("detection")).save(runs[0])
    ee.score(worse(), tables("detection")[1], metrics=["mAP", "AP", "LabelErrors"]).save(runs[1])
    make_report(
        ee.load(runs[1]),
        tmp_path / "c.html",
        baseline=ee.load(runs[0]),
        gates=[Gate("failed", "mAP > 0.9", "0.7"), Gate("failed", "AP > 0.9", "0.7")],
    )
    page = Page((tmp_path / "c.html").read_text("utf-8"))
    steps = page.html.split('id="steps"')[1].split("</ul>")[0]
    assert re.findall('href="#([a-z]+)"', steps) == ["gates", "labels", "notes"]
    verbs = [one.split()[1] for one in re.findall("<code>(.*?)</code>", steps)]
    assert verbs == ["errors", "compare", "label-errors"]
    assert "car" in steps


def test_warnings_come_first_and_appear_once(tmp_path: Path) -> None:
    card = ee.score(pl.DataFrame({"actual": ["a", "b"] * 10, "predicted": ["c", "d"] * 10}))
    page = page_of(card, tmp_path)
    assert card.warnings
    assert re.findall('href="#([a-z]+)">', page.html.split('id="steps"')[1])[0] == "warnings"
    for one in card.notes:
        assert html.unescape(page.html).count(one) == 1, one


def test_notes_of_a_run_and_its_comparison_appear_once(tmp_path: Path) -> None:
    ours, theirs = (pl.read_parquet(one) for one in tables("detection"))
    some = pl.col("datum_id").is_in(ours["datum_id"].unique().sort().head(40).implode())
    before, after = ee.score(ours, theirs), ee.score(ours.filter(some), theirs)
    page = page_of(after, tmp_path, baseline=before)
    assert any("without predictions" in one for one in after.notes)
    for one in after.notes:
        assert html.unescape(page.html).count(one) == 1, one


def test_datums_without_predictions_are_compared_with_the_baseline(tmp_path: Path) -> None:
    ours, theirs = (pl.read_parquet(one) for one in tables("detection"))
    some = pl.col("datum_id").is_in(ours["datum_id"].unique().sort()[:-2].implode())
    before, after = ee.score(ours, theirs), ee.score(ours.filter(some), theirs)
    counts = [
        next(one.count for one in card.findings if one.code == "datums_without_predictions")
        for card in (before, after)
    ]
    steps = page_of(after, tmp_path, baseline=before).html.split('id="steps"')[1]
    assert re.findall(r"(\d+) datums? without predictions; (\d+) in", steps) == [
        (str(counts[1]), str(counts[0]))
    ]


def test_a_baseline_over_other_datums_is_compared_by_intervals(tmp_path: Path) -> None:
    rows, truth = (pl.read_parquet(path) for path in tables("detection"))
    some = sorted(truth["datum_id"].unique())[:30]
    few = ee.score(
        rows.filter(pl.col("datum_id").is_in(some)), truth.filter(pl.col("datum_id").is_in(some))
    )
    page = page_of(ee.score(rows, truth), tmp_path, baseline=few)
    assert "30 of 60 datums" in page.html
    header, *lines = page.tables["numbers-0"]
    assert all("[" in line[header.index("difference")] for line in lines)
    assert {line[header.index("verdict")] for line in lines} == {"≈ not significant"}


def test_a_baseline_without_a_tally_has_no_intervals(tmp_path: Path) -> None:
    folder = ee.score(*tables("detection")).save(tmp_path / "run")
    (folder / "tally.zip").unlink()
    run = json.loads((folder / "run.json").read_text())
    del run["files"]["tally.zip"]
    (folder / "run.json").write_text(json.dumps(run))
    page = page_of(ee.score(*tables("detection")), tmp_path, baseline=folder)
    header, *lines = page.tables["numbers-0"]
    assert {line[header.index("verdict")] for line in lines} == {"not tested"}
    assert {line[header.index("difference")] for line in lines} == {"0.0000"}


def test_a_baseline_with_other_options_is_refused(tmp_path: Path) -> None:
    card = ee.score(*tables("detection"))
    other = ee.score(*tables("detection"), dialect="coco")
    with pytest.raises(InputError, match="dialect"):
        card.to_html(tmp_path / "a.html", baseline=other)
    assert not (tmp_path / "a.html").exists()


def test_many_labels_stay_within_the_size(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    truth = rng.permutation(6000) % 1200
    table = pl.DataFrame(
        {
            "datum_id": range(6000),
            "actual": [f"a rather long name of a label, number {i}" for i in truth],
            "predicted": [
                f"a rather long name of a label, number {i}"
                for i in np.where(rng.random(6000) < 0.7, truth, rng.integers(0, 1200, 6000))
            ],
        }
    )
    page = page_of(ee.score(table), tmp_path)
    assert len(page.tables["labels-0"]) == 1 + 1200


def test_rows_beyond_the_size_are_noted(tmp_path: Path) -> None:
    truth = np.arange(9000) % 4500
    names = [f"{'x' * 200} {i}" for i in truth]
    table = pl.DataFrame({"datum_id": range(9000), "actual": names, "predicted": names})
    page = page_of(ee.score(table), tmp_path)
    shown = len(page.tables["labels-0"]) - 1
    assert f"{4500 - shown:,} more of 4,500 rows" in page.html


def test_a_run_within_a_memory_limit_has_the_same_page(tmp_path: Path) -> None:
    def tables_of(limit: str | None) -> dict[str, list[list[str]]]:
        path = tmp_path / "a.html"
        ee.score(*tables("detection"), report=path, memory_limit=limit)
        page = Page(path.read_text(encoding="utf-8"))
        return {name: rows for name, rows in page.tables.items() if name != "facts"}

    assert tables_of("600MiB") == tables_of(None)


def test_missing_charts_have_a_reason(tmp_path: Path) -> None:
    card = ee.score(*tables("detection"), metrics="mAP")
    assert set(card.missing) == {"thresholds", "confusion"}
    page = page_of(card, tmp_path)
    assert all(why in html.unescape(page.html) for why in card.missing.values())
    assert all("report=" in why for why in card.missing.values())
    whole = ee.score(*tables("detection"), metrics="mAP", report=tmp_path / "b.html")
    assert not whole.missing
    assert whole.frames == card.frames


def test_reasons_do_not_suggest_impossible_options(tmp_path: Path) -> None:
    labels = pl.DataFrame({"actual": ["a", "b"] * 10, "predicted": ["a", "b", "b", "b"] * 5})
    card = ee.score(labels, report=tmp_path / "a.html")
    assert set(card.missing) == {"thresholds", "reliability"}
    assert all("'score'" in why and "metrics=" not in why for why in card.missing.values())
    with pytest.raises(ResultError) as raised:
        card.plot.thresholds()
    assert card.missing["thresholds"] in str(raised.value)
    scores = pl.DataFrame({"actual": [1, 0] * 10, "score": [row / 20 for row in range(20)]})
    usual = ee.score(scores).missing["reliability"]
    assert "metrics=" in usual
    complete = ee.score(scores, metrics=re.findall(r"'(\w+)'", usual))
    assert "reliability" not in complete.missing


def test_only_gates_and_baselines_make_a_verdict(tmp_path: Path) -> None:
    card = ee.score(*tables("detection"))
    titles = []
    for name, named in {
        "plain": {},
        "gated": {"gates": [Gate("passed", "mAP > 0", "0.7 > 0")]},
        "against": {"baseline": card},
    }.items():
        make_report(card, tmp_path / f"{name}.html", **named)  # type: ignore[arg-type]
        text = (tmp_path / f"{name}.html").read_text("utf-8")
        titles.append(re.findall("<h2>(.*?)</h2>", text)[0])
    assert titles == ["Summary", "Verdict", "Verdict"]


def test_a_curve_of_one_label_is_one_line(tmp_path: Path) -> None:
    ours, theirs = (pl.read_parquet(one).with_columns(label_value=pl.lit("it")) for one in
                    tables("detection"))  # fmt: skip
    card = ee.score(ours, theirs, report=tmp_path / "a.html")
    found = charts.charts(card.metrics, charts.frames_of(card), card.directions)
    [curve] = [one for one in found if one.kind == "precision_recall"]
    lines = [one for one in curve.marks if isinstance(one, Line)]
    assert [one.legend.split()[0] for one in lines] == ["it"]


@pytest.mark.parametrize("name", ["report.pdf", "report", "no/folder/report.html"])
def test_invalid_report_paths_are_refused_before_any_work(name: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="report"):
        ee.score("nowhere.parquet", report=tmp_path / name)


def test_a_comparison_has_no_page(tmp_path: Path) -> None:
    card = ee.score(*tables("text"))
    ee.compare(card, card, names=["a", "b"], draws=20).save(tmp_path / "both")
    with pytest.raises(ResultError, match="comparison"):
        ee.report(tmp_path / "both", tmp_path / "a.html")


class TestCommands:
    def test_report_of_a_folder(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run, out = str(tmp_path / "run"), str(tmp_path / "page.html")
        assert main(["score", *tables("detection"), "--out", run]) == 0
        assert main(["report", run, "-o", out, "--title", "Boxes & more"]) == 0
        assert out in capsys.readouterr().err
        html = Path(out).read_text(encoding="utf-8")
        assert "<h1>Boxes &amp; more</h1>" in html
        assert f"evalengine score {tables('detection')[0]}" in html

    def test_score_writes_it_with_its_gates(self, tmp_path: Path) -> None:
        out = str(tmp_path / "page.html")
        given = ["--report", out, "--fail-under", "mAP[iou=0.5] >= 0.9"]
        assert main(["score", *tables("detection"), *given]) == 1
        page = Page(Path(out).read_text(encoding="utf-8"))
        assert page.tables["gates"][1][0] == "mAP[iou=0.5] >= 0.9"
        assert page.tables["gates"][1][1].endswith("failed")
        assert "1 of 1 gate failed." in page.html

    def test_score_with_a_baseline(self, tmp_path: Path) -> None:
        run, out = str(tmp_path / "run"), str(tmp_path / "page.html")
        assert main(["score", *tables("text"), "--out", run]) == 0
        assert main(["score", *tables("text"), "--report", out, "--baseline", run]) == 0
        assert "verdict" in Page(Path(out).read_text(encoding="utf-8")).tables["numbers-0"][0]

    def test_the_shown_command_writes_the_same_page(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        old, new, out = (str(tmp_path / name) for name in ("old", "new", "page.html"))
        assert main(["score", *tables("text"), "--out", old]) == 0
        gated = ["--fail-under", "BLEU >= baseline - 0.1", "--fail-if", "BLEU < 0.01"]
        for asked in (
            ["score", *tables("text"), "--baseline", old, *gated, "--out", new, "--report", out],
            ["compare", old, new, *gated, "--report", out],
            ["report", new, "--baseline", old, "-o", out, "--draws", "50"],
        ):
            assert main(asked) == 0
            page = Page(Path(out).read_text("utf-8"))
            [shown] = re.findall('aria-label="Command"><code>(.*?)</code>', page.html, re.S)
            words = shlex.split(html.unescape(shown).splitlines()[-1])
            assert words[0] == "evalengine"
            Path(out).unlink()
            assert main(words[1:]) == 0
            repeated = Page(Path(out).read_text("utf-8"))
            for one in (page, repeated):
                del one.tables["facts"]
            assert repeated.tables == page.tables
            assert ("gates" in page.tables) == (asked[0] != "report")

    def test_images_need_a_report(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["score", *tables("text"), "--images", "."]) == 2
        assert "--report" in capsys.readouterr().err


def test_one_operating_point(tmp_path: Path) -> None:
    """Counts, confusions and examples use one score threshold, which the page states once."""
    card = ee.score(*tables("detection"))
    page = page_of(card, tmp_path)
    confusion, worst = card.page_frame("confusion"), card.page_frame("worst")
    assert confusion is not None
    assert worst is not None
    [point] = confusion["score_threshold"].unique()
    assert {json.loads(one)["score_threshold"] for one in worst["parameters"]} == {point}
    assert page.html.count(f"Operating point: score {point:g}.") == 1
    assert f'id="threshold-value">{point:g}</output>' in page.html
    assert f"Confusion, IoU 0.5, score {point:g}" in page.html
    diagonal = confusion.filter(pl.col("actual") == pl.col("predicted"))["count"].sum()
    counts = page.tables["counts"]
    assert counts[1][counts[0].index("TP")] == str(diagonal)


def test_a_detector_with_low_scores_has_a_low_operating_point() -> None:
    table = pl.read_parquet(tables("detection")[0]).with_columns(pl.col("score") / 100)
    worst = ee.score(table, tables("detection")[1]).page_frame("worst")
    assert worst is not None
    assert 0 < json.loads(worst["parameters"][0])["score_threshold"] < 0.01
    assert worst["value"].max() > 0


def test_intervals_have_one_format_per_column(tmp_path: Path) -> None:
    card = ee.score(*tables("detection"), intervals=95, draws=50)
    page = page_of(card, tmp_path)
    columns = [*zip(*page.tables["labels-0"][1:], strict=True)]
    assert all("[" in cell and "±" not in cell for cell in columns[1])
    for line in sections(card):
        for grid in [line.labels, *line.slices]:
            for cells in zip(*(row.reaches for row in grid.rows if row.reaches), strict=True):
                assert len({cell[:1] for cell in cells if cell}) <= 1


def test_examples_without_images_are_outlines(tmp_path: Path) -> None:
    page = page_of(ee.score(*tables("detection")), tmp_path)
    sizes = re.findall(r'<svg class="picture lines" viewBox="0 0 (\d+) (\d+)"', page.html)
    assert len(sizes) == page.html.count("<article")
    assert "data:image" not in page.html
    [box] = re.findall(r'<g class="missed"><rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"',
                       page.html)[:1]  # fmt: skip
    assert 0 <= float(box[0]) <= float(box[0]) + float(box[2]) <= float(sizes[0][0]) + 0.1


def test_confusions_link_to_examples(tmp_path: Path) -> None:
    page = page_of(ee.score(*tables("classification")), tmp_path)
    links = re.findall(r'<a href="#(datum-[\d-]+)"><rect[^>]*><title>([^<]*)</title>', page.html)
    assert links
    for target, title in links:
        article = page.html.split(f'aria-labelledby="{target}"')[1].split("</article>")[0]
        actual, predicted = re.findall(r"of [\d,]+ (.*) predicted as (.*)$", title)[0]
        assert f"predicted {predicted}" in article
        assert f"True: {actual}" in article


def test_common_names_of_metrics(tmp_path: Path) -> None:
    text = lead(sections(ee.score(*tables("detection"))))
    assert text.startswith("mAP50-95 (mAPAveragedOverIOUs) 0.")
    some = ee.score(*tables("detection"), iou_thresholds=[0.3, 0.4])
    assert lead(sections(some)).startswith("mAP30-40 (mAPAveragedOverIOUs)")
    assert lead(sections(ee.score(*tables("detection"), dialect="coco"))).startswith(
        "mAP50-95 (AP)"
    )


def test_only_numbers_are_right_aligned(tmp_path: Path) -> None:
    before = ee.score(*tables("detection"))
    page = page_of(ee.score(worse(), tables("detection")[1]), tmp_path, baseline=before)
    for text in re.findall(r'<td class="n(?: [^"]*)?"[^>]*>([^<]+)</td>', page.html):
        assert re.search(r"\d|–", text), text


def test_the_verdict_states_why_differences_are_not_tested(tmp_path: Path) -> None:
    folder = EXAMPLES / "comparing"
    old, new, truth = (folder / f"{name}.parquet" for name in ("old", "new", "groundtruths"))
    before = ee.score(old, truth)
    after = ee.score(new, truth, cluster="video", intervals=95, draws=20)
    page = page_of(after, tmp_path, baseline=before)
    verdict = page.html.split('id="verdict"')[1].split("</section>")[0]
    assert "Not tested against the baseline:" in verdict
    assert "video" in verdict


def test_compare_writes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "a", tmp_path / "b"
    ee.score(*tables("detection")).save(before)
    ee.score(worse(), tables("detection")[1]).save(after)
    path = tmp_path / "page.html"
    asked = ["compare", str(before), str(after), "--draws", "50", "--report", str(path)]
    assert main([*asked, "--fail-under", "mAP[iou=0.5] >= baseline - 0.9 surely"]) == 0
    page = Page(path.read_text(encoding="utf-8"))
    assert "1 gate passed." in page.html
    assert "verdict" in page.tables["numbers-0"][0]
    assert main(["compare", str(before), tables("detection")[0], "--report", str(path)]) == 2
