"""What people are shown of a run: tables, pages, pictures.

The package itself can be called: ``evalengine.report(...)`` is a function, whether or not one of
these modules was imported before.
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
