"""Free memory for a process: of the machine, and of every control group it is in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_UNKNOWN = 4 << 30
_FILES = (
    ("memory.max", "memory.current"),  # version 2
    ("memory.high", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),  # version 1
)
"""Files of a control group with its limit and its usage."""


def free_memory(root: Path = Path("/")) -> int:
    """Return the bytes that this process may still use.

    A limit of a group applies to all groups within it (systemd's slices, Slurm's steps, pods), so
    the minimum over all groups up to the root counts.

    Args:
        root: parent of ``/proc`` and ``/sys``.
    """
    free = _of_machine(root)
    for group in _groups(root):
        for limit, usage in _FILES:
            with suppress(OSError, ValueError):
                most = int((group / limit).read_text())  # "max" for none
                used = int((group / usage).read_text())
                free = min(free, max(0, most - used))
    return free


def _of_machine(root: Path) -> int:
    with suppress(OSError, ValueError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    if hasattr(os, "sysconf"):
        with suppress(OSError, ValueError):
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return _UNKNOWN


def _groups(root: Path) -> Iterator[Path]:
    """Folders of this process's memory groups, of both versions, each up to the root."""
    hierarchies = {"": root / "sys/fs/cgroup", "memory": root / "sys/fs/cgroup/memory"}
    places = dict.fromkeys(hierarchies, "/")
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, place = line.split(":", 2) if line.count(":") > 1 else ("", "-", "")
            if controllers == "" or "memory" in controllers.split(","):
                places["memory" if controllers else ""] = place
    for name, top in hierarchies.items():
        # In a container the place may be the host's, and only the top is to be seen.
        inner = top / places[name].strip("/")
        yield top
        while inner != top and top in inner.parents:
            yield inner
            inner = inner.parent
