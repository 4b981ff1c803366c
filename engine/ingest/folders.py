"""Files of a folder and all below it."""

from __future__ import annotations

import os
from collections.abc import Iterator


def files_below(folder: str, hidden: tuple[str, ...] = (".",)) -> Iterator[str]:
    """Every file, folder by folder in order of names.

    Args:
        folder: where to begin.
        hidden: what names of files and folders begin with that are left out.
    """
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(hidden))
        for name in sorted(names):
            if not name.startswith(hidden):
                yield os.path.join(here, name)
