"""Data, comparisons and pages of the benchmarks; installed contenders agree on small sets."""

from __future__ import annotations

import importlib
import math
import re
import sys
from array import array
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
PAGES = BENCHMARKS.parent / "docs" / "benchmarks"
SCALE = 0.001  # 10 queries of documents
TEXTS = 0.004  # 4 queries of texts


@pytest.fixture
def module(monkeypatch):
    """Import a module of the benchmarks by name; a folder of tests may have the same name."""
    for path in BENCHMARKS.glob("*.py"):
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module


def made(module: Any, section: str, folder: Path, scale: float) -> Path:
    data: ModuleType = module("retrieval_data")
    module("making").make(data.SECTIONS[section], folder, scale, seed=1)
    return folder


def numbers(module: Any, name: str, folder: Path) -> array[float]:
    run, version = module("retrieval_contenders").prepare(name)
    assert version()
    actual = run(folder, lambda step, times=1: None)
    return array("d", (math.nan if x is None else x for x in actual))


def test_costs_are_medians_with_the_reported_values(module, capsys):
    measuring = module("measuring")
    done = measuring.in_turn({"one": [sys.executable, "-c", "print([0.5, 1])"]}, 2)
    assert [run.output for run in done["one"]] == ["[0.5, 1]\n"] * 2
    runs = [measuring.Process(wall, cpu, 1234.0, "7\n") for wall, cpu in ((3, 1), (1, 5), (2, 2))]
    measuring.print_costs({"one": runs}, "AP", lambda said: int(said) + 1)
    assert capsys.readouterr().out.splitlines() == [
        "| | CPU s | wall s | peak MB | AP |",
        "|---|---:|---:|---:|---|",
        "| one | 2.00 | 2.00 | 1,234 | 8 |",
    ]


def test_imports_of_the_package_exist():
    """Scripts that benchmarks pass to new processes are strings, which no other check reads."""
    for script in BENCHMARKS.glob("*.py"):
        for name, names in re.findall(
            r"from (evalengine[\w.]*) import ([\w, ]+)", script.read_text()
        ):
            for one in names.split(", "):
                assert hasattr(importlib.import_module(name), one.split(" as ")[0]), (script, one)


def test_runs_are_untied_and_judged(module, tmp_path):
    folder = made(module, "ids", tmp_path, SCALE)
    run, qrels = (pl.read_parquet(folder / f"{side}.parquet") for side in ("run", "qrels"))
    assert run.select("query_id", "doc_id").is_unique().all()
    assert run.select("query_id", "score").is_unique().all()
    assert (run["score"].cast(pl.Float32).cast(pl.Float64) == run["score"]).all()
    assert set(run.group_by("query_id").len()["len"]) == {1000}
    assert set(qrels.group_by("query_id").len()["len"]) == {50}
    assert set(qrels["relevance"]) == {0, 1, 2}
    found = qrels.join(run, on=["query_id", "doc_id"]).height / qrels["query_id"].n_unique()
    assert 25 < found < 35
    lines = [line.split(" ") for line in (folder / "run.txt").read_text().splitlines()]
    rows = [(query, doc, float(score)) for query, _, doc, _, score, _ in lines]
    assert rows == run.select("query_id", "doc_id", "score").rows()


@pytest.mark.parametrize("peer", ["pytrec_eval", "polars-window", "polars-sort"])
def test_contenders_on_ids_agree(module, tmp_path, peer):
    folder = made(module, "ids", tmp_path, SCALE)
    ours = numbers(module, "ids/evalengine-1", folder)
    assert all(0.01 < x < 1 for x in ours)
    theirs = numbers(module, f"ids/{peer}", folder)
    assert module("sections").difference([ours], theirs) < 1e-12


def test_contenders_on_texts_agree(module, tmp_path):
    folder = made(module, "texts", tmp_path, TEXTS)
    lists = pl.read_parquet(folder / "table.parquet").select(
        pl.col("retrieved", "relevant").list.len()
    )
    assert set(lists.rows()) == {(20, 5)}
    ours = numbers(module, "chunks/evalengine-1", folder)
    theirs = numbers(module, "chunks/plain-python", folder)
    assert module("sections").difference([ours], theirs) < 1e-12
    assert 0 < ours[3] < 1
    f1 = np.reshape(numbers(module, "texts/evalengine-1", folder), (-1, 3))[:, 2]
    assert len(f1) == 4
    assert 0 < f1.max() < 1


@pytest.mark.parametrize(
    ("section", "peers"),
    [
        ("counts", ("numpy", "polars", "scikit-learn")),
        ("noise", ("numpy",)),
        ("png", ("rasterio",)),
        ("geotiff", ("rasterio",)),
        ("windows", ("rasterio",)),
    ],
)
def test_contenders_on_label_maps_agree(module, tmp_path, section, peers):
    data = module("segmentation_data")
    data.make(section, data.Order(tmp_path, 0.002, seed=1, workers=1))
    actual = {}
    for name in ("evalengine-1", *peers):
        run, version = module("segmentation_contenders").prepare(f"{section}/{name}")
        assert version()
        actual[name] = run(tmp_path, lambda step, times=1: None)
    ours = actual.pop("evalengine-1")
    assert len(ours) == 20
    assert 0.01 < ours[-1] < 1
    for theirs in actual.values():
        assert theirs == pytest.approx(ours, abs=1e-12)


def test_samples_are_compared_item_by_item(module):
    difference = module("sections").difference
    every = array("d", range(20))
    assert difference([every], array("d", [0, 1, 10, 11]), width=2) == 0
    assert difference([array("d", [0, 1, 10, 12])], every, width=2) == 1
    assert difference([array("d", [0, math.nan])], array("d", [0, 1])) == math.inf
    assert difference([array("d", [math.nan])], array("d", [math.nan])) == 0


def test_contenders_on_masks_agree(module, tmp_path):
    data: ModuleType = module("masks_data")
    module("making").make(data.SECTIONS["segm"], tmp_path, SCALE, seed=1)
    truths = pl.read_parquet(tmp_path / "groundtruths.parquet")
    assert (truths["polygon"].is_null() == (truths["iscrowd"] == 1)).all()
    prepare = module("masks_contenders").prepare
    found = []
    for name in ("evalengine-1", "evalengine-2-json", "pycocotools"):
        run, version = prepare(f"segm/{name}")
        assert version()
        found.append(array("d", run(tmp_path, lambda step, times=1: None)))
    assert found[0] == found[1] == found[2]
    assert 0.1 < found[0][0] < 0.9


def test_contenders_on_pairs_of_polygons_agree(module, tmp_path):
    """Contenders in a loop run every hundredth image, and report all of them."""
    data: ModuleType = module("masks_data")
    module("making").make(data.SECTIONS["pairs"], tmp_path, 0.002, seed=1)
    corners = pl.read_parquet(tmp_path / "predictions.parquet")["polygon"].list.first().list.len()
    assert (corners.min() >= 16, corners.max() <= 80, corners.len()) == (True, True, 10_000)
    found, steps = {}, {}
    for name in ("evalengine-1", "evalengine-2", "shapely-loop", "rasterising"):
        run, version = module("masks_contenders").prepare(f"pairs/{name}")
        assert version()
        laps: dict[str, int] = {}
        sums = run(tmp_path, lambda step, times=1, laps=laps: laps.update({step: times}))
        found[name], steps[name] = array("d", sums), laps
    assert found["evalengine-1"] == found["evalengine-2"]
    assert [len(found[name]) for name in found] == [200, 200, 2, 2]
    difference = module("sections").difference
    assert difference([found["shapely-loop"]], found["evalengine-1"]) < 1e-9
    assert 0 < difference([found["rasterising"]], found["evalengine-1"]) < 1
    assert steps["shapely-loop"] == {"load": 1, "evaluate": 100}


def test_two_detectors_compared(module, tmp_path):
    """The differences of COCO's twelve values between a model and a worse one agree."""
    module("making").make(
        module("intervals_detection_data").SECTIONS["images-1000"], tmp_path, 0.05, 1
    )
    run, version = module("intervals_detection_contenders").prepare("images-1000/evalengine-1")
    assert version()
    actual = run(tmp_path, lambda step, times=1: None)
    tables = [tmp_path / f"{name}.parquet" for name in ("predictions", "predictions_b")]
    rest = {name: tmp_path / f"{name}.parquet" for name in ("datums", "labels")}
    first, second = (
        ee.score(one, tmp_path / "groundtruths.parquet", dialect="coco", **rest).to_coco()["stats"]
        for one in tables
    )
    assert actual == [b - a for a, b in zip(first, second, strict=True)]
    assert actual[0] < 0


@pytest.mark.parametrize("section", ["objects", "files"])
def test_contenders_by_pycocotools_calls_agree(module, tmp_path, section):
    data: ModuleType = module("pycocotools_calls_data")
    module("making").make(data.SECTIONS["objects"], tmp_path, 0.004, seed=1)
    prepare = module("pycocotools_calls_contenders").prepare
    found = []
    for name in ("evalengine-2", "pycocotools"):
        run, version = prepare(f"{section}/{name}")
        assert version()
        found.append(run(tmp_path, lambda step, times=1: None))
    assert found[0] == found[1]
    assert found[0][0] > 0


def test_calls_of_scikit_learn_agree(module):
    """tests/compat compares all of them; this checks that both sides are called alike."""
    script = module("compat_calls")
    ours, theirs = (
        dict(script.sklearn_calls(importlib.import_module(home), 150))
        for home in script.MODULES["sklearn"].values()
    )
    for name in ("accuracy_score", "roc_curve", "f1_score, 5 labels a row, macro"):
        assert ours[name]() == pytest.approx(theirs[name](), rel=1e-12), name


def test_calls_of_missing_packages_are_skipped(module, monkeypatch, capsys):
    script = module("compat_calls")
    monkeypatch.setattr(sys, "argv", ["compat_calls.py", "torchmetrics"])
    script.main()
    assert "torchmetrics: left" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    [
        "classification",
        "compat_text_retrieval",
        "intervals_detection",
        "masks",
        "pycocotools_calls",
        "retrieval",
        "segmentation",
        "text",
    ],
)
def test_every_section_has_its_place_and_its_set(module, name):
    benchmark = module(name).BENCHMARK
    page = "".join(path.read_text("utf-8") for path in PAGES.glob("*.md"))
    for section, about in benchmark.sections.items():
        assert f"<!-- benchmark {name}-{section}: begin -->" in page
        assert (about.data or section) in module(f"{name}_data").SECTIONS
        assert set(about.sampled) <= set(about.contenders)
        assert set(benchmark.references) & set(about.contenders)


def result(section: str, contenders: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Make a result whose contenders took so many seconds and differ by so much."""
    return {
        "section": section,
        "scale": 1.0,
        "runs": 1,
        "date": "2026-01-01",
        "machine": {"cpu": "c", "cores": 2, "load_average": 0, "system": "s", "python": "3"},
        "reference": list(contenders)[-1],
        "failures": {},
        "contenders": {
            name: {
                "version": "1.0",
                "sampled": name == "continuous-eval",
                "difference": gap,
                "in_process": {"total_wall": time, "total_cpu": time},
                "whole": None
                if name == "continuous-eval"
                else {"wall": time, "cpu": time, "peak_mb": 1, "import_wall": 0},
            }
            for name, (time, gap) in contenders.items()
        },
    }


def test_pages_measure_against_peers_that_agree(module):
    page = module("retrieval_reporting").page
    given = {
        "evalengine-2": (1, 0),
        "ranx": (0.5, 1e-3),
        "trec_eval": (4, 4e-5),
        "pytrec_eval": (2, 0),
    }
    text = page(result("ids", given))
    assert "the thriftiest peer | 0.50 |" in text
    assert "ranx 1.0: further than 1e-09" in text
    text = page(result("texts", {"evalengine-2": (0.001, 0), "continuous-eval": (4, 0)}))
    assert "the thriftiest peer | 0.0003 |" in text
    assert "continuous-eval 1.0, estimated" in text
    assert "peak memory" not in text


@pytest.mark.parametrize("task", ["detection", "text"])
def test_tables_of_workers_are_those_that_are_made(module, task, tmp_path):
    workers = module("workers")
    options = SimpleNamespace(task=task, folder=tmp_path, images=200)
    workers.make(options)
    assert sorted(workers.tables(options)) == sorted(tmp_path.iterdir())


def test_two_workers_are_next_to_one(module):
    """On a page of made figures, the workers' CPU is halved, and 0.61 misses the target."""
    workers = module("workers")

    def run(n: int, wall: float, own: float) -> dict[str, Any]:
        steps = dict.fromkeys(workers.STEPS, wall / 3)
        return {"workers": n, "wall": wall, "walls": steps, "own_cpu": own, "workers_cpu": 80.0,
                "buckets": 2 * n, "rows": 15_000_000, "evalengine": "0"}  # fmt: skip

    one = workers.medians([run(1, 100.0, 20.0), run(1, 300.0, 20.0), run(1, 90.0, 20.0)])
    assert one["wall"] == 100.0
    assert workers.reachable(one) == pytest.approx(0.6)
    given = {"task": "detection", "images": 9, "executor": "dask", "limit": "3GB", "runs": 3}
    options = type("Options", (), given)()
    page = workers.page(one, run(2, 61.0, 20.0), options, module("measuring").machine())
    assert "0.61 of one worker's" in page
    assert "(at most 0.6: missed)" in page
    assert "| wall, all | 100.0 | 61.0 | 0.61 |" in page
    assert "take 0.60 of" in workers.page(one, run(2, 60.0, 20.0), options, {**_MACHINE})
    options.task = "text"
    assert "9 pairs of" in workers.page(one, run(2, 60.0, 20.0), options, {**_MACHINE})


def test_pairs_of_texts_for_two_workers(module, tmp_path):
    """There are as many as requested, in several row groups if they are many."""
    workers = module("workers")
    options = type("Options", (), {"task": "text", "images": 300, "folder": tmp_path})()
    workers.make(options)
    (file,) = workers.tables(options)
    rows = pl.read_parquet(file)
    assert rows.columns == ["datum_id", "text", "reference"]
    assert (rows.height, rows["datum_id"].n_unique()) == (300, 300)


_MACHINE = dict.fromkeys(("cpu", "cores", "load_average", "system", "python"), "")


def test_evalengine_is_not_its_own_peer(module):
    page = module("text_reporting").page
    given = {"evalengine-1": (2, 0), "evalengine-1-cold": (1, 0), "rouge-score-rs": (4, 0)}
    text = page(result("rouge-first", given))
    assert "no cache | 1.000 | 0.25 | 1.000 | 0.25 |" in text
    rows = [line for line in text.splitlines() if line.startswith("| rouge-score-rs 1.0 |")]
    assert rows
    assert all("| 4.000 | 1.00 |" in row for row in rows)
    worse = page(result("rouge-first", {**given, "evalengine-1-cold": (1, 0.5)}))
    assert "no peer" not in worse


def test_processes_keep_their_bytecode(module, monkeypatch, tmp_path):
    """They have it as installed packages do, whatever environment benchmarks are started from."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "one.py").write_text("import sys\nsaid = sys.dont_write_bytecode\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import one; print(one.said)"
    assert module("measuring").spawn([sys.executable, "-c", code]).output.strip() == "False"
    assert list(tmp_path.glob("__pycache__/one.*.pyc"))
