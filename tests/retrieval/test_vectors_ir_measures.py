"""ir-measures' answers on its own runs, from the files to the numbers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from known import known_answers, real_data

import evalengine as ee

NAMES = {
    "nDCG": "nDCG",
    "AP": "MAP",
    "RR": "MRR",
    "P": "P",
    "R": "Recall",
    "Rprec": "RPrecision",
    "Bpref": "bpref",
    "infAP": "infAP",
    "Judged": "Judged",
    "Success": "Success",
    "SetP": "SetPrecision",
    "SetR": "SetRecall",
    "SetF": "SetF",
    "SetAP": "SetMAP",
    "RBP": "RBP",
}
"""Its measure -> our metric; those of its other providers (cwl-eval, Compat) we do not have."""
OTHERS = ("IPrec", "INST", "INSQ", "BPM", "SDCG", "NERR", "Compat", "Accuracy", "Num")


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


@pytest.mark.parametrize("runs", ["cwl", "compat"])
def test_every_measure(runs: str) -> None:
    case = known_answers("retrieval", "ir_measures_expected.json")["sets"][runs]
    run, qrels = (str(real_data(case[side])) for side in ("run", "qrels"))
    compared = 0
    for measure, wanted in case["measures"].items():
        found = re.fullmatch(r"([A-Za-z]+)(?:\((.*)\))?(?:@(.*))?", measure)
        if found is None or found[1].startswith(OTHERS):
            continue
        name, arguments, k = found.groups()
        metric = "SetRelativePrecision" if arguments == "relative=True" else NAMES[name]
        asked = f"{metric}@{k}" if k else metric
        card = ee.score(run, qrels, dialect="ir-measures", metrics=asked, **_options(arguments))
        rows = card.metrics if k else card.metrics.filter(card.metrics["k"].is_null())
        assert rows["value"].to_list() == pytest.approx([wanted["aggregate"]], abs=1e-12), measure
        single = card.per_datum if k else card.per_datum.filter(card.per_datum["k"].is_null())
        values = dict(zip(single["datum_id"], single["value"], strict=True))
        assert values == pytest.approx(wanted["per_query"], abs=1e-12), measure
        compared += 1
    assert compared >= 25
