"""Result of ``compare``: means of runs, p-values of pairs, as text, LaTeX or a dict."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ...schemas.errors import InputError
from .names import label

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RAISED = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖ۹ʳˢᵗᵘᵛʷˣʸᶻ"
_TESTS = {"student": "paired Student's t test", "fisher": "Fisher's randomisation test"}
_LATEX = r"""% \usepackage{{booktabs}}
\begin{{table}}[ht]
\centering
\caption{{Means over queries, the best of each column in bold. Superscripts name the runs that a run
is better than by a significant difference ({test}, $p \le {max_p}$).}}
\label{{tab:results}}
\begin{{tabular}}{{ll{columns}}}
\toprule
\textbf{{\#}} & \textbf{{Model}} & {heads} \\
\midrule
{rows}
\bottomrule
\end{{tabular}}
\end{{table}}"""


class OfPairs(dict[Any, Any]):
    """Something of two runs, in either order."""

    def __getitem__(self, pair: Iterable[str]) -> Any:
        return super().__getitem__(frozenset(pair))

    def __setitem__(self, pair: Iterable[str], value: Any) -> None:
        super().__setitem__(frozenset(pair), value)


class Report:
    """Result of :func:`compare`.

    Attributes:
        model_names: names of the runs.
        results: name -> metric -> mean.
        comparisons: two names, in either order -> metric -> ``p_value`` and ``significant``.
        metrics: as requested.
        max_p: highest significant p.
        win_tie_loss: (one name, other name) -> metric -> number of queries on which the first is
            better (W), equal (T) and worse (L).
        rounding_digits: displayed digits.
        show_percentages: whether percentages are shown.
        stat_test: source of p.
    """

    def __init__(
        self,
        model_names: list[str],
        results: dict[str, dict[str, float]],
        comparisons: Any,
        metrics: list[str],
        max_p: float,
        win_tie_loss: dict[tuple[str, str], dict[str, dict[str, int]]],
        rounding_digits: int = 3,
        show_percentages: bool = False,
        stat_test: str = "student",
    ) -> None:
        if len(model_names) > len(_LETTERS):
            raise InputError(
                f"a report has letters for {len(_LETTERS)} runs; there are {len(model_names)}."
            )
        self.model_names, self.results, self.comparisons = model_names, results, comparisons
        self.metrics, self.max_p, self.win_tie_loss = metrics, max_p, win_tie_loss
        self.rounding_digits, self.show_percentages = rounding_digits, show_percentages
        self.stat_test = stat_test

    def _shown(self, value: float) -> str:
        digits = self.rounding_digits
        if self.show_percentages:
            return f"{round(value * 100, max(0, digits - 2)):.{max(0, digits - 2)}f}"
        return f"{round(value, digits):.{digits}f}"

    def _beaten(self, model: str, metric: str) -> list[int]:
        """Places of the runs that a run is significantly better than."""
        return [
            i
            for i, other in enumerate(self.model_names)
            if other != model
            and self.comparisons[model, other][metric]["significant"]
            and self.results[model][metric] > self.results[other][metric]
        ]

    def to_table(self) -> str:
        """The report as text, a letter above a number for each run that is beaten."""
        columns = [["#", *_LETTERS[: len(self.model_names)]], ["Model", *self.model_names]]
        for metric in self.metrics:
            cells = [
                self._shown(self.results[model][metric])
                + "".join(_RAISED[i] for i in self._beaten(model, metric))
                for model in self.model_names
            ]
            columns.append([label(metric), *cells])
        made = [_aligned(column) for column in columns]
        rows = zip(*made, strict=True)
        return "\n".join("  ".join(row).rstrip() for row in rows)

    def to_latex(self) -> str:
        """The report as a table of LaTeX, with booktabs."""
        rows = []
        best = {
            metric: max(round(one[metric], self.rounding_digits) for one in self.results.values())
            for metric in self.metrics
        }
        for letter, model in zip(_LETTERS, self.model_names, strict=False):
            cells = [letter, model.replace("_", r"\_")]
            for metric in self.metrics:
                value = self.results[model][metric]
                shown = self._shown(value).replace("%", r"\%")
                if round(value, self.rounding_digits) == best[metric]:
                    shown = rf"\textbf{{{shown}}}"
                above = "".join(_LETTERS[i] for i in self._beaten(model, metric))
                cells.append(f"{shown}$^{{{above}}}$" if above else shown)
            rows.append(" & ".join(cells) + r" \\")
        heads = " & ".join(rf"\textbf{{{label(metric)}}}" for metric in self.metrics)
        return _LATEX.format(
            test=_TESTS[self.stat_test],
            max_p=self.max_p,
            columns="c" * len(self.metrics),
            heads=heads,
            rows="\n".join(rows),
        )

    def to_dict(self) -> dict[str, Any]:
        """``stat_test``, ``metrics``, ``model_names``, and of each run ``scores``, ``comparisons``
        (other run -> metric -> p) and ``win_tie_loss`` (other run -> metric -> W, T, L)."""
        found: dict[str, Any] = {
            "stat_test": self.stat_test,
            "metrics": self.metrics,
            "model_names": self.model_names,
        }
        for model in self.model_names:
            others = [other for other in self.model_names if other != model]
            found[model] = {
                "scores": self.results[model],
                "comparisons": {other: self._p_values(model, other) for other in others},
                "win_tie_loss": {other: self.win_tie_loss[model, other] for other in others},
            }
        return found

    def _p_values(self, model: str, other: str) -> dict[str, float]:
        tested: Mapping[str, Any] = self.comparisons[model, other]
        return {metric: tested[metric]["p_value"] for metric in self.metrics}

    def to_dataframe(self) -> Any:
        """A pandas DataFrame: ``model_names``, and a column of means a metric."""
        rows = [{"model_names": model, **self.results[model]} for model in self.model_names]
        return import_module("pandas").DataFrame(rows)

    def save(self, path: str) -> None:
        """Write :meth:`to_dict` as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=4), "utf-8")

    def print_results(self) -> None:
        """Print the means as JSON."""
        print(json.dumps(self.results, indent=4))

    def __repr__(self) -> str:
        return self.to_table()


def _aligned(column: list[str]) -> list[str]:
    """A heading, a rule and cells of one width; numbers at their points, without zeros behind."""
    head, cells = column[0], column[1:]
    numbers = all(map(_is_number, cells))
    if numbers and any("." in cell for cell in cells):
        cells = [f"{float(cell):g}" for cell in cells]
        behind = [len(cell) - len(re.split("[.e]", cell)[0]) for cell in cells]
        cells = [cell + " " * (max(behind) - own) for cell, own in zip(cells, behind, strict=True)]
    width = max(len(head) + 2, *map(len, cells))
    if numbers:
        return [head.rjust(width), "-" * width, *(cell.rjust(width) for cell in cells)]
    return [head.ljust(width), "-" * width, *(cell.ljust(width) for cell in cells)]


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
