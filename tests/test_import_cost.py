"""What importing the package and asking for help may cost: modules, not milliseconds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("polars", "numpy", "numba", "pyarrow", "rich", "msgspec", "shapely", "rasterio")


def loaded(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after running the code."""
    tail = "\nimport sys, json; print('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code + tail], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_import_brings_nothing_heavy() -> None:
    assert not loaded("import evalengine as ee; ee.__version__; dir(ee)") & {*HEAVY, "click"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["convert", "--help"]])
def test_help_brings_click_alone(arguments: list[str]) -> None:
    modules = loaded(f"from evalengine.cli import main; assert main({arguments!r}) == 0")
    assert "click" in modules
    assert not modules & set(HEAVY)


def test_help_of_generated_options_brings_no_dataframes() -> None:
    modules = loaded("from evalengine.cli import main; assert main(['score', '--help']) == 0")
    assert "msgspec" in modules
    assert not modules & (set(HEAVY) - {"msgspec"})


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
