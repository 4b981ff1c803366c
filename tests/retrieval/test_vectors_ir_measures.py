"""Recorded values of ir-measures on the files of its tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from reference_data import known_answers, real_data

import evalengine as ee

NAMES = {
    "nDCG": "nDCG", "AP": "MAP", "RR": "MRR", "P": "P", "R": "Recall", "Rprec": "RPrecision",
    "Bpref": "bpref", "infAP": "infAP", "Judged": "Judged", "Success": "Success",
    "SetP": "SetPrecision", "SetR": "SetRecall", "SetF": "SetF", "SetAP": "SetMAP", "RBP": "RBP",
    "IPrec": "InterpolatedPrecision", "NumRel": "NumRelevant", "NumRet": "NumRetrieved",
}  # fmt: skip
"""Measure of ir-measures -> metric."""
SKIPPED = ("NumQ", "Compat(p=0.8)")
"""Measures without a counterpart: a count of queries, and an unsupported persistence."""


def _options(arguments: str | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for argument in re.split(r",(?![^{]*})", arguments or ""):
        name, _, value = argument.partition("=")
        if name == "rel":
            options["relevance_levels"] = [float(value)]
        elif name == "judged_only":
            options["judged_only"] = True
        elif name == "gains":
            pairs = (pair.split(":") for pair in value.strip("{}").split(","))
            options["gains"] = {float(level): float(gain) for level, gain in pairs}
        elif name == "p":
            options["persistence"] = float(value)
        else:
            assert name in ("", "relative"), argument
    return options


def _graded(run: str, qrels: str, folder: Path) -> list[str]:
    """Write the files with relevance capped at 3 and a query with relevance 3: max_rel=3."""
    rows = [line.split() for line in Path(qrels).read_text().splitlines()]
    judged = [" ".join([*row[:3], str(min(3, int(row[3])))]) for row in rows]
    contents = Path(run).read_text().splitlines(), judged
    more = "other Q0 D1 1 1.0 R", "other 0 D1 3"
    paths = [folder / Path(path).name for path in (run, qrels)]
    for path, lines, line in zip(paths, contents, more, strict=True):
        path.write_text("\n".join([*lines, line, ""]))
    return [str(path) for path in paths]


@pytest.mark.parametrize("runs", ["cwl", "compat"])
def test_every_measure(runs: str, tmp_path: Path) -> None:
    case = known_answers("retrieval", "ir_measures_expected.json")["sets"][runs]
    files = [str(real_data(case[side])) for side in ("run", "qrels")]
    graded = _graded(*files, tmp_path)
    compared = 0
    for measure, wanted in case["measures"].items():
        if measure in SKIPPED:
            continue
        name, arguments, k = re.fullmatch(r"(\w+)(?:\((.*)\))?(?:@(.*))?", measure).groups()
        relative, capped = arguments == "relative=True", arguments == "max_rel=3"
        metric = "SetRelativePrecision" if relative else NAMES.get(name, name)
        of = pl.col("k").is_null()
        if name == "IPrec":
            of &= pl.col("parameters") == f'{{"recall": {k}}}'
        elif k:
            metric, of = f"{metric}@{k}", pl.col("k") == int(k)
        options = {} if capped else _options(arguments)
        card = ee.score(
            *(graded if capped else files), dialect="ir-measures", metrics=metric, **options
        )
        single = card.per_datum.filter(of, pl.col("datum_id") != "other")
        values = dict(zip(single["datum_id"], single["value"], strict=True))
        assert values == pytest.approx(wanted["per_query"], abs=1e-12), measure
        if not capped:
            rows = card.metrics.filter(of)["value"].to_list()
            assert rows == pytest.approx([wanted["aggregate"]], abs=1e-12), measure
        compared += 1
    assert compared >= 38
