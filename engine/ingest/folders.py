"""Files of a folder and all below it."""

from __future__ import annotations

import os
from collections.abc import Iterator


def files_below(folder: str, hidden: tuple[str, ...] = (".",)) -> Iterator[str]:
    """Yield every file, folder by folder in order of names.

    Args:
        hidden: prefixes of names of files and folders to skip.
    """
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(hidden))
        for name in sorted(names):
            if not name.startswith(hidden):
                yield os.path.join(here, name)
