"""The command that compares runs: its output, saved results, refusals and statuses."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest

import evalengine as ee
from evalengine.cli import main
from evalengine.report.text import latex as latex_of
from evalengine.schemas.display import Cell, Column, Table

FAST = ("--draws", "400", "--metric", "Accuracy,Recall")


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, str, str]:
    """Write three runs over the same 40 rows, with 50, 90 and 85 % accuracy."""
    actual = ["cat", "dog"] * 20
    other = {"cat": "dog", "dog": "cat"}
    paths = []
    for name, wrong in (("old", 20), ("new", 4), ("odd_100%", 6)):
        predicted = [other[one] if i < wrong else one for i, one in enumerate(actual)]
        table = pl.DataFrame(
            {
                "datum_id": [f"m{i}" for i in range(40)],
                "actual": actual,
                "predicted": predicted,
                "site": ["x", "y"] * 20,
            }
        )
        table.write_parquet(tmp_path / f"{name}.parquet")
        paths.append(str(tmp_path / f"{name}.parquet"))
    return paths[0], paths[1], paths[2]


def test_the_table_begins_with_the_verdict(run, runs):
    status, out, _ = run("compare", *runs[:2], *FAST, "--by", "site")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].endswith("against new, 40 datums")
    assert "Accuracy 0.9000 against 0.5000 (+0.4000," in lines[2]
    titles = [line.split()[0] for line in lines if " difference " in line]
    assert titles == ["metric", "label", "slice"]
    assert "better on 16 datums, worse on 0" in out


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_machine_formats_contain_the_differences(capfdbinary, runs, form):
    expected = ee.compare(*runs[:2], draws=400, metrics=["Accuracy", "Recall"]).differences
    assert main(["compare", *runs[:2], *FAST, "--format", form]) == 0
    out = capfdbinary.readouterr().out
    content = {
        "json": lambda: pl.DataFrame(json.loads(out)["differences"], infer_schema_length=None),
        "csv": lambda: pl.read_csv(out),
        "parquet": lambda: pl.read_parquet(io.BytesIO(out)),
    }[form]()
    assert content.height == expected.height
    for name in ("a", "b", "difference", "p", "p_adjusted", "wins"):
        assert content[name].to_list() == pytest.approx(expected[name].to_list())


def test_latex_and_markdown_escape_names(run, runs):
    _, latex, _ = run("compare", runs[0], runs[2], *FAST, "--format", "latex")
    assert "& old & odd\\_100\\% & difference & 95 \\%" in latex
    assert "Accuracy & 0.5000 & 0.8500 & $+$0.3500 & [$+$0." in latex
    body = latex.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    columns = latex.split(r"\begin{tabular}{")[1].split("}")[0]
    assert all(line.endswith(r"\\") and line.count(" & ") == len(columns) - 1 for line in body)
    table = Table([Column("[x]"), Column("b")], [[Cell("*"), Cell("a\nb")], [Cell("["), Cell("")]])
    rows = [row for row in latex_of(table) if "&" in row]
    assert rows == [r"{}[x] & b \\", r"{}* & a\textbackslash{}nb \\", r"{}[ &  \\"]
    _, marked, _ = run("compare", *runs, *FAST, "--format", "markdown", "--name", "a|b",
                       "--name", "c", "--name", "d")  # fmt: skip
    assert r"a: a\|b" in marked
    assert "**0.9000 a (1)**" in marked


def test_flips_name_the_datums(run, runs):
    status, out, _ = run("compare", *runs[:2], *FAST, "--frame", "flips")
    rows = pl.read_csv(out.encode()).filter(metric="Accuracy")
    assert status == 0
    assert sorted(rows["datum_id"]) == sorted(f"m{i}" for i in range(4, 20))
    assert set(rows["change"]) == {"better"}


def test_a_comparison_is_saved_once(run, runs, tmp_path):
    saved = str(tmp_path / "kept")
    status, _, err = run("compare", *runs[:2], *FAST, "--out", saved)
    assert status == 0
    assert f"are in {saved}" in err
    assert ee.load(saved).n == 40
    status, _, err = run("compare", *runs[:2], *FAST, "--out", saved)
    assert status == 2
    assert "--overwrite" in err
    assert run("compare", *runs[:2], *FAST, "--out", saved, "--overwrite")[0] == 0


def test_saved_runs_compare_like_their_tables(run, runs, tmp_path):
    folders = []
    for path in runs[:2]:
        folders.append(str(tmp_path / Path(path).stem))
        options = ("--metric", "Accuracy,Recall", "--by", "site")
        assert run("score", path, *options, "--out", folders[-1])[0] == 0
    _, tables, _ = run("compare", *runs[:2], *FAST, "--by", "site", "--format", "csv")
    assert run("compare", *folders, "--draws", "400", "--format", "csv")[1] == tables
    status, out, _ = run("compare", folders[0], runs[1], *FAST)
    assert status == 0
    assert "by 'site' are" in out
    for wrong, message in (
        (("--dialect", "sklearn"), "with --dialect standard, not"),
        (("--ground-truths", runs[0]), "--ground-truths is given"),
        (("--by", "city"), "old was scored without it"),
        (("--cluster", "city"), "old was scored without that column"),
    ):
        status, _, err = run("compare", *folders, "--draws", "400", *wrong)
        assert status == 2
        assert message in err


@pytest.mark.parametrize(
    ("folders", "names"),
    [(("a/labels", "b/labels"), "a against b"), (("a/x", "b/y"), "a/x against b/y")],
)
def test_runs_of_one_file_name_are_named_by_their_folders(run, runs, tmp_path, folders, names):
    paths = [tmp_path / folder / f"p{Path(runs[0]).suffix}" for folder in folders]
    for path, source in zip(paths, runs, strict=False):
        path.parent.mkdir(parents=True)
        path.write_bytes(Path(source).read_bytes())
    status, out, _ = run("compare", *map(str, paths), *FAST)
    assert (status, names in out.splitlines()[0]) == (0, True)


def test_other_datums_and_other_truths_are_named(run, runs, tmp_path):
    fewer, other, numbered = (str(tmp_path / f"{name}.parquet") for name in ("few", "re", "nr"))
    table = pl.read_parquet(runs[1])
    table.tail(37).write_parquet(fewer)
    turned = pl.when(pl.col("datum_id") == "m7").then(pl.lit("cat")).otherwise("actual")
    table.with_columns(actual=turned).write_parquet(other)
    table.with_columns(datum_id=pl.int_range(40)).write_parquet(numbered)
    status, _, err = run("compare", runs[0], fewer, *FAST)
    assert status == 2
    assert "3 datums of the others" in err
    assert "first 'm0', 'm1', 'm2'" in err
    status, out, _ = run("compare", runs[0], fewer, *FAST, "--common")
    assert status == 0
    assert "against few, 37 datums" in out
    assert "skipped: 3 datums that" in out
    assert "have; 37 are" in out
    status, _, err = run("compare", runs[0], other, *FAST)
    assert status == 2
    assert "other ground truths: 1 datum, first 'm7'" in err
    status, _, err = run("compare", runs[0], numbered, *FAST)
    assert status == 2
    assert "datum ids" in err


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--method", "bca"), "--method bca is"),
        (("--test", "t", "--cluster", "site"), "datums are independent"),
        (("--name", "one"), "give 2, one per run"),
        (("--draws", "3"), "--draws 3"),
    ],
)
def test_impossible_requests_are_refused(run, runs, wrong, message):
    status, _, err = run("compare", *runs[:2], "--metric", "Accuracy", *wrong)
    assert status == 2
    assert message in err


def test_one_run_is_refused(run, runs):
    status, _, err = run("compare", runs[0])
    assert status == 2
    assert "two runs or" in err


def test_few_clusters_and_few_draws_are_noted(run, runs):
    _, out, _ = run("compare", *runs[:2], *FAST, "--cluster", "site")
    flat = " ".join(out.split())
    assert "2 clusters of 'site':" in flat
    assert "of fewer than 20" in flat
    assert "hardly ever below 0.5" in flat
    _, out, _ = run("compare", *runs[:2], "--draws", "30", "--metric", "Accuracy,Recall")
    assert "30 resamples are" in " ".join(out.split())
    assert "finding among 2 numbers" in " ".join(out.split())
    for adjust in ("bh", "none"):
        few = ("compare", *runs[:2], "--metric", "Accuracy", "--intervals", "99")
        few = (*few, "--adjust", adjust, "--draws")
        _, out, _ = run(*few, "50")
        assert "50 resamples are" in " ".join(out.split())
        assert "finding among 1 number" in " ".join(out.split())
        assert "below 0.02." in " ".join(out.split())
        _, out, _ = run(*few, "100")
        assert "resamples are too" not in " ".join(out.split())


def test_a_narrow_terminal_lists_hidden_columns(runs):
    from evalengine.report.show import as_text

    rows = ee.compare(*runs[:2], draws=400, metrics=["Accuracy"])
    wide, narrow = as_text(rows), as_text(rows, 80)
    assert "wins-ties-losses" in wide
    assert "wins-ties-losses" in narrow
    assert max(map(len, narrow.splitlines())) <= 80


def test_ground_truths_among_the_runs_name_their_option(run, tmp_path):
    predictions = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "score": [0.5],
                          "xmin": [0.0], "ymin": [0.0], "xmax": [9.0], "ymax": [9.0]})  # fmt: skip
    paths = [str(tmp_path / f"{name}.parquet") for name in ("a", "b", "truth")]
    for path in paths[:2]:
        predictions.write_parquet(path)
    predictions.drop("score").write_parquet(paths[2])
    status, _, err = run("compare", *paths)
    assert status == 2
    way = f"give the ground truths as --ground-truths {paths[2]}."
    assert f"is a run: {way}" in err
    status, _, err = run("compare", *paths[:2])
    assert (status, err.strip().endswith("as --ground-truths.")) == (2, True)
    assert run("compare", *paths[:2], "--qrels", paths[2], "--draws", "20")[0] == 0


def test_runs_without_a_common_metric_list_their_metrics(run, runs, tmp_path):
    for name, path, metric in (("x", runs[0], "Accuracy"), ("y", runs[1], "F1")):
        assert run("score", path, "--metric", metric, "--out", str(tmp_path / name))[0] == 0
    saved = str(tmp_path / "x"), str(tmp_path / "y")
    status, _, err = run("compare", *saved)
    assert status == 2
    assert "(x has Accuracy; y has F1)" in err
    _, _, err = run("compare", *saved, "--metric", "F1")
    assert "--metrics F1: not" in err
    assert "x has Accuracy; y has F1." in err


def test_a_condition_may_name_the_column_of_models(run, tmp_path):
    table = tmp_path / "models.csv"
    rows = [f"{i},{m},{i}.5,{i + at}.25" for at, m in enumerate("ABC") for i in range(3)]
    table.write_text("\n".join(["id,m,target,prediction", *rows]) + "\n")
    of_models = ("compare", str(table), "--model", "m", "--task", "regression", "--metric", "MAE")
    status, out, err = run(*of_models, "--where", "m != 'C'")
    assert status == 0, err
    assert "A against B" in out
    status, out, err = run(*of_models, "--where", "m <> 'x' AND id > 0")
    assert status == 0, err
    assert "A, B, C, 2 datums" in out


def test_names_of_files_and_ids_of_coco_are_matched(run, tmp_path):
    """One run has one label file per image, the other has COCO results with image ids."""
    boxes = [(10 + i, 12, 20, 20) for i in range(8)]
    truths = {
        "images": [
            {"id": 100 + i, "file_name": f"frame_{i:03}.jpg", "width": 100, "height": 100}
            for i in range(8)
        ],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": i, "image_id": 100 + i, "category_id": 1, "bbox": box, "area": 400, "iscrowd": 0}
            for i, box in enumerate(boxes)
        ],
    }
    results = [
        {"image_id": 100 + i, "category_id": 1, "bbox": box, "score": 0.5 + i / 100}
        for i, box in enumerate(boxes)
    ]
    (tmp_path / "gt.json").write_text(json.dumps(truths))
    (tmp_path / "res.json").write_text(json.dumps(results))
    (tmp_path / "yolo").mkdir()
    (tmp_path / "yolo" / "data.yaml").write_text("names: [cat]\n")
    for i, (x, y, w, h) in enumerate(boxes):
        line = f"0 {(x + w / 2 + 8 * (i % 2)) / 100} {(y + h / 2) / 100} {w / 100} {h / 100} 0.9\n"
        (tmp_path / "yolo" / f"frame_{i:03}.txt").write_text(line)
    options = ("--ground-truths", str(tmp_path / "gt.json"), "--metric", "mAP", "--format", "json")
    paths = str(tmp_path / "yolo"), str(tmp_path / "res.json")
    for order in (paths, paths[::-1]):
        status, out, err = run("compare", *order, *options)
        assert status == 0, err
        row = next(one for one in json.loads(out)["differences"] if one["iou_threshold"] == 0.75)
        values = {row["run_a"]: row["a"], row["run_b"]: row["b"]}
        assert values["res"] == 1
        assert values["yolo"] < 1
