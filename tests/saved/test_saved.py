"""Saved results of earlier versions are read and give the same values."""

from __future__ import annotations

import json
import subprocess
import sys
import typing
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from saved import make

import evalengine as ee
from evalengine.cli import main
from evalengine.tallies import registry, stored

VERSIONS = sorted(path.stem for path in Path(__file__).parent.glob("*.zip"))
NUMBERS = [
    "metric", "label_value", "average", "iou_threshold", "slice_value", "a", "b", "difference",
]  # fmt: skip
"""Columns of differences that do not depend on the method of intervals and p-values."""
every_task = pytest.mark.parametrize("task", [*make.RUNS])


@pytest.fixture(params=VERSIONS)
def saved(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Extract the results of one version into the working directory."""
    with zipfile.ZipFile(Path(__file__).parent / f"{request.param}.zip") as archive:
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expected(saved: Path, name: str) -> Any:
    return json.loads((saved / "expected.json").read_text())[name]


def same(frame: pl.DataFrame, rows: list[dict[str, Any]]) -> None:
    """Compare a frame with the saved values, row by row."""
    ours = make.numbers(frame)
    assert len(ours) == len(rows) > 0
    for one, other in zip(ours, rows, strict=True):
        assert one.keys() >= other.keys()  # columns may be added
        for name, value in other.items():
            near = isinstance(value, float)
            assert one[name] == (pytest.approx(value, rel=1e-12, abs=1e-12) if near else value)


def sides(task: str, name: str) -> tuple[str, str]:
    return f"tables/{task}.{name}.parquet", f"tables/{task}.truths.parquet"


def trees(path: Path) -> dict[str, Any]:
    """Return the trees in a stored tally, by member."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith("tree.json")]
        return {name: json.loads(archive.read(name)) for name in names}


def changed(source: Path, target: Path, old: str, new: str) -> None:
    """Copy a stored tally and replace text in its trees."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as copy:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith("tree.json"):
                assert old.encode() in content
                content = content.replace(old.encode(), new.encode())
            copy.writestr(name, content)


def names_in(tree: Any) -> Iterator[str]:
    """Yield the names of the structs in a tree."""
    if isinstance(tree, dict):
        if "struct" in tree:
            yield tree["struct"]
        for value in tree.values():
            yield from names_in(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from names_in(value)


class TestRuns:
    @every_task
    def test_loaded(self, saved: Path, task: str) -> None:
        same(ee.load(f"runs/{task}").metrics, expected(saved, task)[0])

    @every_task
    def test_compared_with_a_new_run(self, saved: Path, task: str) -> None:
        _, options = make.RUNS[task]
        new = ee.score(*sides(task, "second"), task=task, **options)
        same(new.metrics, expected(saved, task)[1])
        new.save("new")
        for second in (new, "new"):
            result = ee.compare(f"runs/{task}", second, names=["a", "b"], draws=200).differences
            theirs = pl.DataFrame(expected(saved, f"compare {task}"), infer_schema_length=None)
            columns = [name for name in NUMBERS if name in theirs.columns]
            same(result.select(columns), make.numbers(theirs.select(columns)))

    @every_task
    def test_saving_again_writes_current_struct_names(
        self, saved: Path, task: str, request: pytest.FixtureRequest
    ) -> None:
        _, options = make.RUNS[task]
        same_tables = ee.score(*sides(task, "first"), task=task, **options)
        same_tables.save("again")
        there = set(names_in(trees(Path("again/tally.zip"))))
        before = set(names_in(trees(Path(f"runs/{task}/tally.zip"))))
        assert not any(":" in name for name in there)
        if "c6d5482c" in request.node.name:  # written before structs had names
            assert all(":" in name for name in before)
        kinds = [{registry.struct_of(name).kind for name in names} for names in (there, before)]
        assert kinds[0] == kinds[1]

    @every_task
    def test_reported(self, saved: Path, task: str) -> None:
        assert main(["report", f"runs/{task}", "-o", "page.html"]) == 0
        assert main(["report", f"runs/{task}", "--baseline", f"runs/{task}", "-o", "b.html"]) == 0
        assert min(Path(name).stat().st_size for name in ("page.html", "b.html")) > 20_000

    def test_gates_that_ask_for_surely(self, saved: Path) -> None:
        _, options = make.RUNS["classification"]
        asked = ["--metric", ",".join(options["metrics"]), "--by", options["by"]]
        score = ["score", *sides("classification", "second"), *asked]
        score += ["--baseline", "runs/classification", "--draws", "200", "--intervals", "0.95"]
        assert main([*score, "--fail-under", "Accuracy>=baseline - 0.5 surely"]) == 0
        assert main([*score, "--fail-under", "Accuracy>=baseline + 0.5 surely"]) == 1

    def test_thresholds(self, saved: Path) -> None:
        _, options = make.RUNS["detection"]
        given = sides("detection", "second")
        card = ee.score(*given, thresholds="thresholds.json", **options)
        same(card.metrics, expected(saved, "thresholds"))
        assert main(["score", *given, "--thresholds", "thresholds.json"]) == 0
        result = ee.find_thresholds("runs/detection", metrics=["ThresholdAtMaxF"], draws=20)
        result.save("again.json")
        assert json.loads(Path("again.json").read_text()) == json.loads(
            Path("thresholds.json").read_text()
        )

    def test_a_comparison(self, saved: Path) -> None:
        result = ee.load("comparison")
        same(result.differences, expected(saved, "compare classification"))


class TestNights:
    def test_the_next_night(self, saved: Path) -> None:
        make.write_night(saved, 2)
        result = make.run_night(saved, 2)
        for job in ("parts", "nights"):
            (ours, told), (theirs, before) = result[job], expected(saved, job)
            same(pl.DataFrame(ours, infer_schema_length=None), theirs)
            if job == "nights":
                assert [one[:3] for one in told] == [one[:3] for one in before]
                assert told[0][3] is not None  # of the interval for "surely"
        history = pl.read_parquet("nights/history/*.parquet")
        assert history["run_id"].n_unique() == 3

    def test_stored_tallies_are_read(self, saved: Path) -> None:
        kept = sorted(saved.glob("parts/.tallies/**/*.tally"))
        assert [len(stored.load(path).datums) for path in kept] == [24, 24]


def test_a_saved_tally_has_no_timestamp(tmp_path: Path) -> None:
    table = pl.DataFrame({"datum_id": [1, 2], "target": [1.5, 2.5], "prediction": [1.0, 2.0]})
    ee.score(table, task="regression").save(tmp_path / "run")
    with zipfile.ZipFile(tmp_path / "run" / "tally.zip") as archive:
        assert {one.date_time for one in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


class TestRefused:
    @pytest.mark.parametrize(
        "name",
        ["detection.run/99", "nothing/1", "evalengine.tallies.units:Gone", "os:system", "/",
         "evalengine.tallies.stored:Opened", "builtins:dict", "detection.run", "detection.run/1/1",
         "detection.run/-1"],
    )  # fmt: skip
    def test_unknown_names(
        self, saved: Path, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        tally = Path("runs/detection/tally.zip")
        (root,) = (tree["root"]["struct"] for tree in trees(tally).values())
        changed(tally, Path("other.zip"), json.dumps(root), json.dumps(name))
        Path("other.zip").replace(tally)
        run = json.loads(Path("runs/detection/run.json").read_text())
        run["files"]["tally.zip"] = tally.stat().st_size
        Path("runs/detection/run.json").write_text(json.dumps(run))
        with pytest.raises(ee.InputError) as error:
            ee.compare("runs/detection", "runs/detection")
        facts = (name, stored.head_of(tally)["evalengine"], "tally.zip", run["command"])
        assert all(fact in str(error.value) for fact in facts)
        assert main(["compare", "runs/detection", "runs/detection"]) == 2
        assert name in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("old", "new", "raised"),
        [
            ('"weighted":', '"unheard": 1, "weighted":', ee.InputError),
            ('"datums":', '"unheard":', ee.InputError),
            ('"struct": "', '"struct": 5, "other": "', ee.ReadError),
            ('"fields": {', '"field": {', ee.ReadError),
            ('"dtype": "', '"dtype": "nothing', ee.ReadError),
        ],
    )
    def test_other_fields_and_damage(
        self, saved: Path, old: str, new: str, raised: type[Exception]
    ) -> None:
        changed(Path("runs/detection/tally.zip"), Path("other.zip"), old, new)
        with pytest.raises(raised):
            stored.load("other.zip")

    def test_names_import_no_module(self, saved: Path) -> None:
        """Neither the module of an unknown name nor any task but the stored one is imported."""
        Path("trap.py").write_text("raise SystemExit(9)")
        tally = Path("runs/detection/tally.zip")
        (root,) = (tree["root"]["struct"] for tree in trees(tally).values())
        changed(tally, Path("other.zip"), json.dumps(root), json.dumps("trap:Trap"))
        code = """
import sys
from evalengine.tallies import stored
before = set(sys.modules)
try:
    stored.load("other.zip")
except ValueError:
    assert "trap" not in sys.modules
else:
    raise AssertionError
stored.load("runs/detection/tally.zip")
tasks = {name.split(".")[2] for name in set(sys.modules) - before
         if name.startswith("evalengine.tasks.")}
assert "detection" in tasks and not tasks & {"classification", "tracking", "regression"}, tasks
"""
        subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def structs_in(hint: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for one in typing.get_args(hint):
        yield from structs_in(one)


class TestNames:
    @pytest.fixture(autouse=True)
    def declared(self) -> dict[str, registry.Stored]:
        for module in registry.MODULES:
            import_module(f"evalengine.{module}")
        return registry.DECLARED

    def test_modules_declare_the_structs_of_the_table(
        self, declared: dict[str, registry.Stored]
    ) -> None:
        homes = {name: m for m, names in registry.MODULES.items() for name in names}
        assert {name: f"evalengine.{m}" for name, m in homes.items()} == {
            name: one.kind.__module__ for name, one in declared.items()
        }

    def test_fields_of_stored_structs_are_stored(
        self, declared: dict[str, registry.Stored]
    ) -> None:
        """``Parts`` is the only exception: it lists files, and no file contains it."""
        kinds = {one.kind for one in declared.values()}
        reached = {
            (kind.__name__, field.__name__)
            for kind in kinds
            for hint in typing.get_type_hints(kind).values()
            for field in structs_in(hint)
            if field not in kinds
        }
        assert reached == {("Tallies", "Parts")}

    def test_versions_rise_with_fields(self, declared: dict[str, registry.Stored]) -> None:
        """Change ``fields.json`` only together with the version of the class."""
        ours = {
            f"{name}/{one.version}": list(one.kind.__struct_fields__)
            for name, one in sorted(declared.items())
        }
        table = Path(__file__).parent / "fields.json"
        assert ours == json.loads(table.read_text())

    def test_a_struct_without_a_name_is_not_written(self, tmp_path: Path) -> None:
        class Unnamed(msgspec.Struct):
            some: int

        with pytest.raises(TypeError):
            stored.save(Unnamed(1), tmp_path / "one")
        assert not [*tmp_path.iterdir()]

    def test_a_name_has_one_class(self) -> None:
        kind = msgspec.defstruct("Other", [], module="elsewhere")
        with pytest.raises(ValueError, match=r"detection\.confusion"):
            registry.stored_as("detection.confusion/1")(kind)

    def test_older_versions(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Versions since ``oldest`` are read with the fields they have; others are refused."""
        monkeypatch.setattr(registry, "DECLARED", dict(registry.DECLARED))

        def as_counts(version: int, **named: Any) -> type[msgspec.Struct]:
            written = f"detection.confusion/{version}"
            kind = msgspec.defstruct(
                "Counts", [("now", int), ("later", int, 7)], module="evalengine.tallies.ranked"
            )
            return registry.stored_as(written, **named)(kind)

        first = as_counts(2)
        stored.save(first(3), tmp_path / "two")
        changed(tmp_path / "two", tmp_path / "old", '"now": 3, "later": 7', '"then": 3, "gone": 1')
        third = as_counts(3, oldest=2, changes={2: {"then": "now", "gone": None}})
        for name in ("two", "old"):
            assert stored.load(tmp_path / name) == third(3)
        stored.save(third(3), tmp_path / "three")
        changed(tmp_path / "three", tmp_path / "new", '"now": 3', '"gone": 1, "now": 3')
        with pytest.raises(ee.InputError):  # an old field name in a newer file
            stored.load(tmp_path / "new")
        as_counts(4)
        with pytest.raises(ee.InputError):
            stored.load(tmp_path / "two")


@pytest.mark.parametrize("tables", ["retrieval/run qrels", "classification/urgent"])
def test_the_same_run_gives_the_same_bytes(tables: str, tmp_path: Path) -> None:
    folder, *names = tables.replace("/", " ").split()
    examples = Path(__file__).parent.parent.parent / "examples" / folder
    paths = [examples / f"{name}.parquet" for name in names]
    for i in range(3):
        ee.score(*paths, intervals=95).save(tmp_path / str(i))
    files = sorted(path.name for path in (tmp_path / "0").iterdir())
    assert {"tally.zip", "metrics.parquet"} <= {*files}
    for name in files:
        if name != "run.json":  # contains the time of the run and the seconds of its steps
            assert len({(tmp_path / str(i) / name).read_bytes() for i in range(3)}) == 1, name
