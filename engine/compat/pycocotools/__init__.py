"""Modules and classes of pycocotools on top of the engine: change the import, keep the calls.

``coco.COCO``, ``cocoeval.COCOeval``, ``cocoeval.Params`` and ``mask`` have the same places as in
pycocotools; :func:`init_as_pycocotools` installs them for code whose imports cannot be changed.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack

from . import coco, cocoeval, mask
from .coco import COCO
from .cocoeval import COCOeval, Params

__all__ = ["COCO", "COCOeval", "Params", "coco", "cocoeval", "init_as_pycocotools", "mask"]


def init_as_pycocotools() -> ExitStack:
    """Make ``import pycocotools`` and its modules return these ones from now on.

    Earlier imports are unaffected.

    Returns:
        an ExitStack that undoes it: call its ``close()``, or use it in a ``with`` statement.
    """
    here = sys.modules[__name__]
    modules = {"": here, ".coco": coco, ".cocoeval": cocoeval, ".mask": mask, "._mask": mask}
    replacements = {f"pycocotools{name}": module for name, module in modules.items()}
    before = {name: sys.modules[name] for name in replacements if name in sys.modules}

    def undo() -> None:
        for name in replacements:
            sys.modules.pop(name, None)
        sys.modules.update(before)

    sys.modules.update(replacements)
    undone = ExitStack()
    undone.callback(undo)
    return undone
