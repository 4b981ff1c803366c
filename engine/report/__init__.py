"""Display of a run: tables, pages, pictures.

The package itself is callable: ``evalengine.report(...)`` is a function, even if one of these
modules was imported before.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *args: Any, **named: Any) -> Any:
        from ..jobs.reports import report

        return report(*args, **named)


sys.modules[__name__].__class__ = _Callable
