"""Options that were given to a task that does not read them."""

from __future__ import annotations

from .option_groups import TASKS_OF
from .options import Options


def idle(options: Options, task: str) -> list[str]:
    """Options that were given and that the task does not read, one sentence each."""
    return [
        f"{name} is an option of {' and '.join(owners)}; {task} does not read it."
        for name, owners in TASKS_OF.items()
        if task not in owners and getattr(options, name) is not None
    ]
