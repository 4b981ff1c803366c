"""Judge stage: a language model judges texts, and its verdicts become a table.

``judging`` contains the public calls and the files of batch endpoints, ``run`` the steps of each
metric and their concurrent execution, ``prompts`` the prompts and the parsers of replies,
``client`` the chat and the cache of answers. Requests, retries, budgets and keys are in
``evalengine.endpoint``. The task ``judged`` scores the verdict table independently.

The package itself is callable: ``evalengine.judge(...)`` is a function, even if one of these
modules was imported before.
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
