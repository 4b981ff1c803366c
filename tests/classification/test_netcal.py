"""ECE and MCE against netcal, in an environment given by ``EVALENGINE_NETCAL``.

``EVALENGINE_NETCAL=NETCAL/bin/python pytest tests/classification/test_netcal.py`` needs netcal
1.4.0, NumPy and SciPy. Other imports of netcal, which these measures do not use, are stubs.
``EVALENGINE_EXAMPLES`` sets the number of tables.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evalengine as ee

PYTHON = os.environ.get("EVALENGINE_NETCAL")
N = int(os.environ.get("EVALENGINE_EXAMPLES", "20"))

THEIRS = """
import sys, json, importlib.abc, importlib.machinery
from unittest.mock import MagicMock
class Made(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        made = name.split(".")[0] in ("torch", "pyro", "gpytorch", "tensorboard", "matplotlib",
                                      "tikzplotlib", "uncertainty")
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if made else None
    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__spec__, module.__path__ = spec, []
        return module
    def exec_module(self, module): pass
sys.meta_path.insert(0, Made())
import numpy as np
from netcal.metrics import ECE, MCE
out = []
for bins, p, y in json.load(open(sys.argv[1])):
    p, y = np.array(p), np.array(y)
    out.append([float(of(bins).measure(p, y)) for of in (ECE, MCE)])
print(json.dumps(out))
"""


@pytest.mark.skipif(PYTHON is None, reason="EVALENGINE_NETCAL names no environment with netcal")
@pytest.mark.parametrize("classes", [2, 5])
def test_numbers_of_netcal(classes: int, tmp_path: Path) -> None:
    assert PYTHON is not None
    rng = np.random.default_rng(classes)
    cases, ours = [], []
    for _ in range(N // 2):
        n, bins = int(rng.integers(classes, 60)), int(rng.integers(1, 20))
        y = np.r_[0:classes, rng.integers(0, classes, n - classes)]  # netcal counts classes by y
        p = rng.dirichlet(np.full(classes, rng.choice([0.2, 1.0, 5.0])), n)
        if classes == 2:
            probabilities = p[:, 1]
            table = pl.DataFrame({"actual": y, "score": probabilities})
            card = ee.score(table, task="classification", metrics=["ECE", "MCE"], n_bins=bins)
        else:
            probabilities = p
            table = pl.DataFrame({f"c{i}": p[:, i] for i in range(classes)})
            card = ee.score(
                table.with_columns(actual=pl.Series([f"c{i}" for i in y])),
                task="classification", metrics=["ECE", "MCE"], n_bins=bins,
                score_columns=[f"c{i}" for i in range(classes)],
            )  # fmt: skip
        cases.append([bins, probabilities.tolist(), y.tolist()])
        ours.append([card.value("ECE"), card.value("MCE")])
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(cases))
    done = subprocess.run([PYTHON, "-c", THEIRS, path], capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout.splitlines()[-1])
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
