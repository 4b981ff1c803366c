"""Free memory under nested control groups of versions 1 and 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalengine.outofcore.memory import free_memory

GROUPS = "sys/fs/cgroup"
TOP = {f"{GROUPS}/memory.max": 1000, f"{GROUPS}/memory.current": 300}
CASES = {
    "none": ("0::/\n", {}, 8 << 30),
    "v2 at the top": ("0::/\n", TOP, 700),
    "v2 without a limit": (
        "0::/a\n", {f"{GROUPS}/a/memory.max": "max", f"{GROUPS}/a/memory.current": 5}, 8 << 30
    ),
    "v2 nested, the outer one less": (
        "0::/job/step\n",
        {
            f"{GROUPS}/job/memory.max": 1000,
            f"{GROUPS}/job/memory.current": 900,
            f"{GROUPS}/job/step/memory.max": 5000,
            f"{GROUPS}/job/step/memory.current": 10,
        },
        100,
    ),
    "v2 high": (
        "0::/a\n",
        {
            f"{GROUPS}/a/memory.max": "max",
            f"{GROUPS}/a/memory.high": 600,
            f"{GROUPS}/a/memory.current": 100,
        },
        500,
    ),
    "v1": (
        "5:cpu,memory:/slurm/job\n0::/\n",
        {
            f"{GROUPS}/memory/slurm/job/memory.limit_in_bytes": 1500,
            f"{GROUPS}/memory/slurm/job/memory.usage_in_bytes": 400,
        },
        1100,
    ),
    "v1 in a container that shows the top alone": (
        "5:memory:/docker/abc\n",
        {
            f"{GROUPS}/memory/memory.limit_in_bytes": 800,
            f"{GROUPS}/memory/memory.usage_in_bytes": 900,
        },
        0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_lowest_limit_counts(name: str, tmp_path: Path) -> None:
    groups, files, free = CASES[name]
    system = {
        "proc/meminfo": f"MemTotal: 1 kB\nMemAvailable: {8 << 20} kB\n",
        "proc/self/cgroup": groups,
    }
    for path, text in {**system, **files}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{text}\n")
    assert free_memory(tmp_path) == free
