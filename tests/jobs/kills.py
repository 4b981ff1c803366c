"""Check of the results of a job that is killed at random moments.

The inputs alternate between two versions. After every kill, the folder must contain the complete
result of one version: the files that its ``run.json`` lists, its numbers and its digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl

import evalengine as ee

JOB = """
name = "killed"
gates = ["mAR >= 0"]
metrics = ["mAP", "mAR", "Counts"]

[inputs]
predictions = "predictions.parquet"
ground_truths = "truths.parquet"

[outputs]
folder = "runs/latest"
history = "history"
lineage = "lineage.jsonl"
"""
COMMAND = (sys.executable, "-m", "evalengine", "run")


class Kills:
    """Folder with a job to kill.

    Args:
        folder: an empty folder.
        rows: boxes on either side.
        seed: seed of the tables and of the moments.
    """

    def __init__(self, folder: Path, rows: int = 2000, seed: int = 0) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.job = folder / "job.toml"
        self.job.write_text(JOB)
        self.versions = {name: _tables(rows, seed + place) for place, name in enumerate("ab")}
        self.expected: dict[str, tuple[str, pl.DataFrame]] = {}
        self.seconds = 0.0
        for name in self.versions:
            self.place(name)
            begun = time.perf_counter()
            subprocess.run([*COMMAND, str(self.job), "--quiet"], check=True, capture_output=True)
            self.seconds = time.perf_counter() - begun
            digest = hashlib.sha256((folder / "predictions.parquet").read_bytes()).hexdigest()
            self.expected[digest] = name, ee.load(self.result).metrics

    @property
    def result(self) -> Path:
        """Folder of the job's result."""
        return self.folder / "runs" / "latest"

    def place(self, name: str) -> None:
        """Write a version of the tables as the job's input."""
        for side, table in self.versions[name].items():
            table.write_parquet(self.folder / f".{side}")
            (self.folder / f".{side}").replace(self.folder / f"{side}.parquet")

    def kill(self, number: signal.Signals = signal.SIGKILL) -> tuple[int, float]:
        """Start the job and kill it, in half of all calls while it is writing.

        Returns:
            exit status, and seconds from the signal to the end.
        """
        # Lines are few, so the pipe does not fill.
        process = subprocess.Popen(
            [*COMMAND, str(self.job), "--force"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        if self.random.random() < 0.5:
            for line in process.stderr:
                if line.rstrip().endswith("writing"):
                    break
            time.sleep(self.random.uniform(0, 0.06))
        else:
            time.sleep(self.random.uniform(0, self.seconds))
        process.send_signal(number)
        begun = time.perf_counter()
        process.communicate(timeout=60)
        return process.returncode, time.perf_counter() - begun

    def version(self) -> str:
        """Return the name of the version whose result is in the folder.

        Raises:
            AssertionError: there is no complete result, or it mixes versions.
        """
        card = ee.load(self.result)  # checks the size of every file in run.json
        details = json.loads((self.result / "job.json").read_text())
        success = json.loads((self.result / "_SUCCESS").read_text())
        digest = details["inputs"]["predictions"][0]["sha256"]
        name, metrics = self.expected[digest]
        assert card.metrics.equals(metrics), f"numbers of another version than {name}"
        assert details["run_id"] == success["run_id"]
        listed = {*json.loads((self.result / "run.json").read_text())["files"]}
        files = {path.name for path in self.result.iterdir()}
        assert files == listed | {"run.json", "job.json", "_SUCCESS"}, files ^ listed
        for path in (self.folder / "history").glob("*.parquet"):
            rows = pl.read_parquet(path)
            assert rows["run_id"].unique().to_list() == [path.stem]
            assert rows.height == metrics.height
        for line in (self.folder / "lineage.jsonl").read_text().splitlines():
            json.loads(line)
        return name

    def other_files(self) -> list[str]:
        """Names of files next to the result other than its lock."""
        names = {path.name for path in self.result.parent.iterdir()}
        return sorted(names - {"latest", ".latest.lock"})


def _tables(rows: int, seed: int) -> dict[str, pl.DataFrame]:
    """Return boxes of up to 200 datums; predictions are the ground truths with noise."""
    import numpy as np

    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 500, (rows, 2))
    size = rng.uniform(20, 80, (rows, 2))
    truths = pl.DataFrame(
        {
            "datum_id": rng.integers(0, 200, rows),
            "label_value": rng.choice(["cat", "dog", "owl"], rows),
            "xmin": corner[:, 0],
            "ymin": corner[:, 1],
            "xmax": corner[:, 0] + size[:, 0],
            "ymax": corner[:, 1] + size[:, 1],
        }
    )
    moved = [
        pl.col(low, high) + pl.Series(rng.normal(0, 5, rows))
        for low, high in (("xmin", "xmax"), ("ymin", "ymax"))
    ]
    scores = pl.Series(rng.uniform(0, 1, rows))
    predictions = truths.with_columns(*moved, score=scores)
    return {"predictions": predictions, "truths": truths}


def trials(kills: Kills, n: int) -> dict[str, Any]:
    """Kill a job ``n`` times with alternating inputs, and check its folder each time.

    Returns:
        number of starts (some runs end before they are killed), counts of old and new results,
        seconds and processors.
    """
    names = list(kills.versions)
    old = new = killed = 0
    begun = time.perf_counter()
    while killed < n:
        before = kills.version()
        wanted = names[1 - names.index(before)]
        kills.place(wanted)
        status, _ = kills.kill()
        killed += status == -signal.SIGKILL
        after = kills.version()
        old, new = old + (after == before), new + (after == wanted)
    return {
        "started": old + new,
        "old": old,
        "new": new,
        "seconds": time.perf_counter() - begun,
        "processors": os.cpu_count(),
    }
