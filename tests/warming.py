"""Compile all kernels before the tests, task by task, in one process per core.

Otherwise every worker would compile the same kernels at the same time. Each process takes several
tasks, because every further process would start the compiler once more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evalengine import tasks

CODE = """
import gc, importlib, json, pkgutil, sys
import evalengine as ee
from evalengine import kernels
from evalengine.kernels.jit import Kernel

gc.disable()  # a compiler makes many objects and few cycles: collecting takes a tenth of its time
for line in sys.stdin:
    ee.warmup(line.strip())
    print(line, end="", flush=True)
modules = [importlib.import_module(f"evalengine.kernels.{one.name}")
           for one in pkgutil.iter_modules(kernels.__path__)]
every = {f"{m.__name__}.{name}": value for m in modules for name, value in vars(m).items()
         if isinstance(value, Kernel) and value.__module__ == m.__name__}
borrowing = {name: value for name, value in every.items() if value.borrows}
owned = {name for name, value in borrowing.items() if value.variants
         for one in value.compiled.overloads.values()
         if "array" in str(one.signature.return_type).lower()}
owned |= {name for name, value in borrowing.items() for used in value.__wrapped__.__code__.co_names
          if isinstance(it := value.__wrapped__.__globals__.get(used), Kernel) and not it.borrows}
assert not owned, f"arrays whose references nobody counts: {owned}"
print(json.dumps({name: value.variants for name, value in every.items()}))
"""


_LONG = ("text", "detection", "retrieval", "classification", "segmentation")


def warm(folder: Path) -> dict[str, int]:
    """Compile everything into an empty folder.

    Returns:
        For every kernel, the number of processes that compiled it (or loaded it, if another one had
        compiled it; kernels called only by kernels are loaded with them).
    """
    # Longest first, so that none runs alone at the end.
    waiting = deque([*_LONG, *(name for name in tasks.NAMES if name not in _LONG)])

    def of_process(_: int) -> dict[str, int]:
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(
                [sys.executable, "-W", "error", "-c", CODE],
                env={**os.environ, "EVALENGINE_CACHE_DIR": str(folder)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            assert process.stdin is not None
            assert process.stdout is not None
            task, message = "", ""
            while waiting and message == task:
                task = waiting.popleft() + "\n"
                process.stdin.write(task)
                process.stdin.flush()
                message = process.stdout.readline()
            reported = process.communicate()[0]
            if message != task or process.returncode:
                errors.seek(0)
                raise RuntimeError(f"warm-up of {task.strip()}: {errors.read()}")
        result: dict[str, int] = json.loads(reported)
        return result

    processes = min(os.cpu_count() or 1, len(waiting))
    with ThreadPoolExecutor(processes) as pool:
        reported = list(pool.map(of_process, range(processes)))
    return {name: sum(one[name] > 0 for one in reported) for name in reported[0]}
