"""Tiny tables that make every kernel of text run once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from ... import metrics
from .measures import by_vectors

Sample = tuple[pl.DataFrame, pl.DataFrame | None, dict[str, Any]]


def samples() -> Iterator[Sample]:
    """Texts of one line and of several, short and long, by every tokenizer."""
    long = " ".join(f"word{i}" for i in range(80))
    texts = pl.DataFrame(
        {
            "text": ["The cats sat.\nOn a mat.", f"naïve {long}", ""],
            "reference": [["Cats sat on a mat.\nThe end.", "a cat"], [f"{long} end"], ["none"]],
        }
    )
    every = [one.name for one in metrics.all_metrics("text").values() if not by_vectors(one.needs)]
    for more in (
        {},
        {"use_stemmer": True, "tokenizer": "none"},
        {"rouge_tokenizer": "unicode", "tokenizer": "char"},
        {"tokenizer": "13a", "lowercase": True},
        {"dialect": "continuous-eval"},
    ):
        yield texts, None, {"metrics": every, **more}


def warm_large() -> None:
    """Run the kernels that only large tables reach."""
    from ...kernels import warm

    warm.walks()
