"""Costs of the import and of help: modules, not milliseconds."""

from __future__ import annotations

import json
import pickle
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest
from new_process import python

HEAVY = ("polars", "numpy", "numba", "pyarrow", "rich", "msgspec", "shapely", "rasterio")


EXAMPLE = Path(__file__).parents[1] / "examples" / "detection"
TABLES = [str(EXAMPLE / f"{side}.parquet") for side in ("predictions", "groundtruths")]


def every_module(code: str) -> set[str]:
    """Return the modules that a new interpreter has imported after running the code."""
    tail = "\nimport sys, json; print('\\n' + json.dumps(sorted(sys.modules)))"
    done = python(code + tail, strict=False)
    return set(json.loads(done.stdout.splitlines()[-1]))


def loaded(code: str) -> set[str]:
    """Return the top-level modules that a new interpreter has imported after running the code."""
    return {name.split(".")[0] for name in every_module(code)}


def test_the_import_loads_no_large_module() -> None:
    assert not loaded("import evalengine as ee; ee.__version__; dir(ee)") & {*HEAVY, "click"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["convert", "--help"]])
def test_help_imports_only_click(arguments: list[str]) -> None:
    modules = loaded(f"from evalengine.cli import main; assert main({arguments!r}) == 0")
    assert "click" in modules
    assert not modules & set(HEAVY)


def test_help_of_generated_options_loads_no_dataframes() -> None:
    modules = loaded("from evalengine.cli import main; assert main(['score', '--help']) == 0")
    assert "msgspec" in modules
    assert not modules & (set(HEAVY) - {"msgspec"})


def test_calls_without_computation_import_no_compiler() -> None:
    asked = [["check", *TABLES], ["explain", *TABLES], ["explain", "--task", "detection"],
             ["metrics"], ["schemas"]]  # fmt: skip
    modules = loaded(f"from evalengine.cli import main; assert not any(map(main, {asked!r}))")
    assert "evalengine" in modules
    assert not modules & {"numba", "llvmlite"}


def test_kernel_modules_import_no_compiler() -> None:
    names = sorted(path.stem for path in (Path(__file__).parents[1] / "kernels").glob("*.py"))
    imports = "; ".join(f"import evalengine.kernels.{name}" for name in names)
    assert not loaded(imports) & {"numba", "llvmlite"}


@pytest.mark.slow
def test_warm_score_imports_the_compiler_without_its_implementations() -> None:
    code = f"from evalengine.cli import main; assert main({['score', *TABLES]!r}) == 0"
    every_module(code)  # compiles what is missing
    modules = every_module(code)
    assert "numba" in modules
    assert "numba.np.arraymath" not in modules  # imported for any compilation
    assert "pyarrow" not in modules  # for stored tallies, texts and geometry


@pytest.mark.slow
def test_kernels_with_functions_of_numba_load_without_its_modules() -> None:
    code = """import evalengine as ee
ee.score({"datum_id": range(6), "score": [.1, .4, .4, .6, .7, .9], "ground_truth": [0, 1] * 3},
         task="classification", metrics=["ROCAUC"]).metrics"""
    every_module(code)
    modules = every_module(code)
    assert "numba" in modules
    assert not modules & {"numba.np.arrayobj", "numba.cpython.unicode"}


def test_lasting_objects_are_old_at_once_and_frozen_ones_stay_frozen() -> None:
    python("""import gc
from evalengine.kernels import uncollected
with uncollected():
    assert not gc.isenabled()
    stays = [[]]
assert gc.isenabled()
assert not any(one is stays for one in gc.get_objects(generation=2))
with uncollected(lasting=True):
    pass
assert any(one is stays for one in gc.get_objects(generation=2))
assert not gc.get_freeze_count()
gc.freeze()
frozen = gc.get_freeze_count()
gc.disable()
with uncollected(lasting=True):
    pass
assert gc.get_freeze_count() == frozen
assert not gc.isenabled()
gc.enable()
with uncollected(lasting=True):
    pass
assert gc.get_freeze_count() == frozen""")


def test_only_files_of_pixels_need_rasterio_and_only_polygons_shapely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(EXAMPLE.parent)
    demos = tomllib.loads(Path("demos.toml").read_text("utf-8"))
    lines = {task: ["score", *shlex.split(line)] for task, line in demos.items()}
    pixels = [lines.pop(task) for task in ("segmentation", "panoptic")]
    scores = "from evalengine.cli import main; assert not any(map(main, {}))"
    assert not loaded(scores.format(list(lines.values()))) & {"rasterio", "shapely"}
    assert loaded(scores.format(pixels)) & {"rasterio", "shapely"} == {"rasterio"}


def test_kernels_called_by_kernels_and_pickled_ones_are_the_same() -> None:
    from evalengine.kernels.boxes import box_iou
    from evalengine.kernels.order import _positions, group_by_label

    datum, label = np.array([0, 0, 1], np.int32), np.array([1, 0, 1], np.int32)
    start, position = group_by_label(datum, label, 2, 2)
    assert start.tolist() == [0, 1, 3]
    assert position.tolist() == [1, 0, 2]
    for function in (_positions, box_iou):
        assert pickle.loads(pickle.dumps(function)) is function
    assert pickle.loads(pickle.dumps(_positions)).compiled is _positions.compiled
    assert _positions.variants == 1


def test_arguments_of_any_form_take_one_compiled_variant(tmp_path: Path) -> None:
    from evalengine.kernels.labels import majority_order

    rank, start = np.array([[0, 1], [1, 0], [2, 2]], np.int32), np.array([0, 3])
    np.save(tmp_path / "rank.npy", rank)
    frozen = rank.copy()
    frozen.flags.writeable = False
    forms = (
        rank,
        frozen,
        np.load(tmp_path / "rank.npy", mmap_mode="r"),
        rank.astype(np.float64),
        np.asfortranarray(rank),
        np.repeat(rank, 2, axis=0)[::2],
        rank.tolist(),
    )
    expected = majority_order(rank, start).tolist()
    compiled = majority_order.variants
    assert all(majority_order(form, [0, 3]).tolist() == expected for form in forms)
    assert majority_order(start=start.astype(np.int32), rank=rank).tolist() == expected
    assert majority_order.variants == compiled


def test_missing_arrays_are_empty_and_outputs_are_written_in_place() -> None:
    from evalengine.kernels.datums import drawn_sums

    values, weights = np.array([[1.0], [2.0]]), np.array([[1, 0], [3, 1]], np.uint8)
    compiled: list[int] = []
    for datum in (None, np.array([0, 1])):
        sums = np.zeros((1, 1, 2))
        drawn_sums(datum, np.zeros(2, np.int32), values, weights, sums)
        compiled.append(drawn_sums.variants)
        assert sums.tolist() == [[[7.0, 2.0]]]
    assert compiled[0] == compiled[1]


def test_scalars_and_tuples_are_converted() -> None:
    from evalengine.kernels.passages import walks_too_far

    words = [0, 1, 2], np.array([0, 2, 4], np.int32), np.array([1, 2, 2, 1])
    given = {"gold": np.int32(0), "text": np.uint8(1), "words": words}
    assert walks_too_far(**given, limit=1)
    compiled = walks_too_far.variants
    assert not walks_too_far(**given, limit=np.float64(9))
    assert not walks_too_far(0, 1, words, 9)
    assert walks_too_far.variants == compiled
    with pytest.raises(TypeError):
        walks_too_far(0, 1, words)


def test_every_public_name_is_there() -> None:
    import evalengine as ee

    for name in ee.__all__:
        assert getattr(ee, name) is not None, name
    assert set(ee.__all__) <= set(dir(ee))


def test_unknown_name_is_an_attribute_error() -> None:
    import evalengine as ee

    with pytest.raises(AttributeError, match="no attribute 'scroe'"):
        _ = ee.scroe
    assert not hasattr(ee, "scroe")


def test_errors_are_value_errors() -> None:
    import evalengine as ee

    for name in ("InputError", "ReadError", "OptionError", "ResultError"):
        assert issubclass(getattr(ee, name), ee.EvalengineError)
    assert issubclass(ee.EvalengineError, ValueError)
