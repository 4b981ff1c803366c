"""After a warm-up into an empty folder every kernel is compiled, for tables of any size."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs
from new_process import python

import evalengine as ee
from evalengine import api, tasks
from evalengine.kernels import warm

CODE = """
import importlib, json, os, pathlib, pkgutil, sys
import numpy as np, polars as pl
import evalengine as ee
from evalengine import kernels
from evalengine.kernels.folder import cache_folder
from evalengine.kernels.jit import Kernel

folder = pathlib.Path(cache_folder())
ee.warmup()
modules = [importlib.import_module(f"evalengine.kernels.{one.name}")
           for one in pkgutil.iter_modules(kernels.__path__)]
every = {f"{m.__name__}.{name}": value for m in modules for name, value in vars(m).items()
         if isinstance(value, Kernel) and value.__module__ == m.__name__}

def compiled():
    return {name: sorted(map(str, value.compiled.signatures)) for name, value in every.items()}

def files():
    return {str(p): p.stat().st_mtime_ns for p in folder.rglob("*.*") if p.is_file()}

warm, kept = compiled(), files()

from evalengine.ingest import ids
ids._FEW_MARKED = 50_000  # kernels from there on, as where there are many more rows
rng = np.random.default_rng(5)
n = 120_000
ids = rng.permutation(n)
label = np.array(["a", "b", "c"])

def both(names):
    truth = pl.DataFrame({"datum_id": names, "label_value": label[rng.integers(0, 3, n)]})
    guess = truth.with_columns(
        label_value=pl.Series(label[rng.integers(0, 3, n)]), score=pl.Series(rng.random(n))
    )
    return guess.sample(fraction=1.0, shuffle=True, seed=1), truth

strings = np.array([f"item-{i:07d}" for i in ids])
asked = ["Accuracy", "F1", "mROCAUC", "ThresholdAtMaxF"]
for names in (ids, strings):
    guess, truth = both(names)
    ee.score(guess, truth, task="classification", metrics=asked).metrics
    several = {"datum_id": names.repeat(2), "label_value": label[[0, 1] * n]}
    scores = pl.DataFrame({**several, "score": rng.random(2 * n)})
    ee.score(scores, truth.filter(pl.col("label_value") != "c"), metrics=asked).metrics
binary = pl.DataFrame({
    "actual": rng.integers(0, 2, n), "score": rng.integers(0, 100, n) / 128,
    "part": rng.integers(0, 2000, n),
})
ee.score(binary, metrics=asked, by="part").metrics
edge = rng.random((n, 2)) * 50
boxes = pl.DataFrame({
    "datum_id": ids // 4, "label_value": label[rng.integers(0, 3, n)],
    "xmin": edge[:, 0], "ymin": edge[:, 1], "xmax": edge[:, 0] + 9.0, "ymax": edge[:, 1] + 8.0,
})
found = boxes.with_columns(score=pl.Series(rng.random(n)))
for dtype in (pl.Int64, pl.String):
    sides = [one.with_columns(pl.col("datum_id").cast(dtype)) for one in (found, boxes)]
    ee.score(*sides, task="detection", metrics=["AP", "mAP", "Counts"]).metrics
maps = rng.integers(0, 19, (3, 301, 303)).astype(np.uint8)
for dtype in (np.uint8, np.int64, np.uint16):
    ee.score(maps.astype(dtype) * (1 if dtype == np.uint8 else 77), maps.astype(dtype)).metrics

print(json.dumps({
    "kept": len(kept),
    "without": [name for name, signatures in warm.items()  # what only kernels call is not loaded
                if not signatures and "no_cpython_wrapper" not in every[name]._flags],
    "more": {name: s for name, s in compiled().items() if s != warm[name]},
    "written": sorted(set(files().items()) - set(kept.items())),
}))
"""


@pytest.mark.slow
def test_a_warm_up_compiles_every_kernel(warmed: tuple[str, dict[str, int]]) -> None:
    _, compiled = warmed
    assert len(compiled) > 20
    assert [name for name, times in compiled.items() if not times] == []


@pytest.mark.slow
def test_larger_runs_need_no_compilation_after_a_warm_up(
    warmed: tuple[str, dict[str, int]], tmp_path: Path
) -> None:
    folder, compiled = warmed
    done = python(CODE, cwd=tmp_path, EVALENGINE_CACHE_DIR=folder)
    reported = json.loads(done.stdout.splitlines()[-1])
    assert reported["kept"] > len(compiled)  # an index and the code
    assert reported["without"] == []  # as if one process warmed up all tasks
    assert reported["more"] == {}
    assert reported["written"] == []


@pytest.mark.parametrize("task", tasks.NAMES)
def test_masks_are_compiled_for_tasks_that_have_them(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    get = tasks.get
    names = ("inputs", "scores", "parts", "boxes", "walks", "masks", "rows")
    for name in names:
        monkeypatch.setattr(warm, name, partial(ran.append, name))
    monkeypatch.setattr(api.tasks, "get", lambda name: structs.replace(get(name), samples=tuple))
    ee.warmup(task)
    assert ran[0] == "inputs"
    assert ("masks" in ran) == (task in ("detection", "segmentation", "panoptic"))
