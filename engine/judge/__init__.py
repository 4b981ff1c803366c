"""The judge stage: texts are judged by a language model, and what it says becomes a table.

``judging`` holds the calls; ``steps`` which calls each metric needs, ``prompts`` what is asked,
``parsing`` how replies are read, ``client`` the chat, ``cache`` every answer, ``run`` the work side
by side, ``batch`` files for batch endpoints; requests, retries, budgets and keys are those of
``evalengine.endpoint``. The verdict table they make is scored by the task ``judged``, which knows
nothing of them.

The package itself can be called: ``evalengine.judge(...)`` is a function, whether or not one of
these modules was imported before.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *args: Any, **named: Any) -> Any:
        from .judging import judge

        return judge(*args, **named)


sys.modules[__name__].__class__ = _Callable
