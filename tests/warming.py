"""Kernels compiled once before the tests, task by task in processes side by side.

Otherwise every worker would compile the same ones at the same time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evalengine import tasks

CODE = """
import importlib, json, pkgutil, sys
import evalengine as ee
from evalengine import kernels
from evalengine.kernels.jit import Kernel

ee.warmup(sys.argv[1])
modules = [importlib.import_module(f"evalengine.kernels.{one.name}")
           for one in pkgutil.iter_modules(kernels.__path__)]
every = {f"{m.__name__}.{name}": value for m in modules for name, value in vars(m).items()
         if isinstance(value, Kernel) and value.__module__ == m.__name__}
print(json.dumps({name: len(value.compiled.signatures) for name, value in every.items()}))
"""


_ORDER = ("detection", "classification", "retrieval", "text", "segmentation", "judged")


def warm(folder: Path) -> dict[str, int]:
    """Compile everything into a folder that is empty.

    Returns:
        For every kernel, in how many of the tasks' processes it was compiled (or loaded, if
        another one had compiled it).
    """

    def of_task(task: str) -> dict[str, int]:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", CODE, task],
            env={**os.environ, "EVALENGINE_CACHE_DIR": str(folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"warm-up of {task}: {done.stderr}")
        found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
        return found

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # Those that take longest first: none is left to run alone at the end.
        told = list(pool.map(of_task, sorted(tasks.NAMES, key=_ORDER.index)))
    return {name: sum(one[name] > 0 for one in told) for name in told[0]}
