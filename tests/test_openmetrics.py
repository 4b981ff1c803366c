"""OpenMetrics text. Its format was checked with the parser of prometheus_client 0.23."""

from __future__ import annotations

import math

import pytest

from evalengine.exports.monitoring import Sample, openmetrics


def test_samples_of_a_gauge_and_series_are_contiguous_in_time_order() -> None:
    text = openmetrics(
        [
            Sample("ee_map", {"job": "a"}, 0.5, 200),
            Sample("ee_count", {}, 3.0),
            Sample("ee_map", {"job": "b", "slice": ""}, 0.25, 100.5),
            Sample("ee_map", {"job": "a"}, 0.4, 100),
        ],
        help={"ee_map": "Mean of the\nAPs."},
    )
    assert text == (
        "# TYPE ee_map gauge\n"
        "# HELP ee_map Mean of the\\nAPs.\n"
        'ee_map{job="a"} 0.4 100\n'
        'ee_map{job="a"} 0.5 200\n'
        'ee_map{job="b"} 0.25 100.5\n'
        "# TYPE ee_count gauge\n"
        "ee_count 3\n"
        "# EOF\n"
    )


def test_odd_values_and_labels() -> None:
    text = openmetrics(
        [
            Sample("a", {"label": 'quote " back \\ line\n ü'}, math.nan),
            Sample("a", {"label": "x"}, math.inf),
            Sample("a", {"label": "y"}, -math.inf),
            Sample("a", {"label": "z"}, 1e-300),
        ]
    )
    assert text == (
        "# TYPE a gauge\n"
        'a{label="quote \\" back \\\\ line\\n ü"} NaN\n'
        'a{label="x"} +Inf\n'
        'a{label="y"} -Inf\n'
        'a{label="z"} 1e-300\n'
        "# EOF\n"
    )
    assert openmetrics([]) == "# EOF\n"


@pytest.mark.parametrize(
    "samples",
    [
        [Sample("F0.5", {}, 1.0)],
        [Sample("a", {"label-key": "x"}, 1.0)],
        [Sample("a", {}, 1.0, 5), Sample("a", {}, 2.0, 5)],
        [Sample("a", {}, 1.0, 5), Sample("a", {}, 2.0)],
        [Sample("a", {}, 1.0), Sample("a", {"slice": ""}, 2.0)],
    ],
)
def test_refusals(samples: list[Sample]) -> None:
    with pytest.raises(ValueError, match=r"OpenMetrics|one series"):
        openmetrics(samples)
