"""Results of a benchmark with sections as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from textwrap import fill
from typing import Any

from reporting import (
    IN_PROCESS,
    WHOLE,
    agreement,
    best,
    footer,
    quotient,
    relative,
    seconds,
    table,
    whole_table,
)

AGREE = 1e-9  # a peer whose values are further off is measured, but not compared with
OURS = {"evalengine-1": "**evalengine**, 1 thread", "evalengine-2": "**evalengine**, 2 threads"}
ABOUT = """\
From Parquet to numbers, every measurement in a fresh process, contenders taking turns. CPU is
user and system seconds over all threads. *Relative* is to the best peer's figure of the same
column: below 1 is better than every peer. Peers use as many threads as they like; for those
without a reader of their own Polars reads{more}. *Values* are compared with {reference}'s,
in every run.
"""

Line = tuple[str, float | None, float | None]  # comparison, measured figure, maximum


@dataclass(frozen=True)
class Words:
    """Texts of a benchmark's pages.

    Attributes:
        benchmark: name of its script.
        title: heading of a result's section.
        goals: comparisons in its last table.
        names: contenders of evalengine.
        ways: names of peers with several methods, or none of their own; `{}` is the version.
        about: how all sections are measured.
        more: work of Polars for contenders without a reader.
        notes: section -> notes.
        within: peer -> largest difference of its values that is agreement, unless `AGREE`.
        options: section -> further options of the command that repeats it.
    """

    benchmark: str
    title: Callable[[dict[str, Any]], str]
    goals: Callable[[dict[str, Any], list[str]], list[Line]]
    names: Mapping[str, str] = field(default_factory=lambda: OURS)
    ways: Mapping[str, str] = field(default_factory=dict)
    about: str = ABOUT
    more: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    within: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    def agrees(self, name: str, contender: dict[str, Any]) -> bool:
        """Return whether a contender's values are those of the reference."""
        return bool(contender["difference"] <= self.within.get(name, AGREE))


def names_of(words: Words, contenders: dict[str, Any]) -> dict[str, str]:
    """Return the name of each contender."""
    return dict(words.names) | {
        name: words.ways.get(name, name + " {}").format(contender["version"])
        for name, contender in contenders.items()
        if name not in words.names
    }


def is_ours(name: str) -> bool:
    """Return whether a contender is evalengine in any variant, which is never a peer."""
    return name.startswith("evalengine")


def peers_of(words: Words, contenders: dict[str, Any]) -> list[str]:
    """Return the peers that agree and did all the work or, if none did, a part of it."""
    agreeing = [
        name
        for name, contender in contenders.items()
        if not is_ours(name) and words.agrees(name, contender)
    ]
    return [name for name in agreeing if not contenders[name]["sampled"]] or agreeing


def ratio(contenders: dict[str, Any], kind: str, figure: str, peers: list[str]) -> float | None:
    """Return two threads' figure divided by the lowest of the peers'; None if one has none."""
    ours, peer = contenders["evalengine-2"][kind], best(contenders, kind, figure, peers)
    return ours[figure] / peer if ours and peer else None


def in_process_table(result: dict[str, Any], peers: list[str], names: dict[str, str]) -> str:
    contenders = result["contenders"]
    wall, cpu = (best(contenders, "in_process", f"total_{k}", peers) for k in ("wall", "cpu"))
    rows = []
    for name, contender in contenders.items():
        f = contender["in_process"]
        rows.append(
            [
                names[name] + (", estimated" if contender["sampled"] else ""),
                seconds(f["total_wall"]),
                relative(f["total_wall"], wall),
                seconds(f["total_cpu"]),
                relative(f["total_cpu"], cpu),
                "reference" if name == result["reference"] else agreement(contender),
            ]
        )
    return table(["", "wall s", "relative", "CPU s", "relative", "values"], rows)


def goals(words: Words, result: dict[str, Any], peers: list[str]) -> str:
    """Project targets of this section next to the measured figures."""
    contenders = result["contenders"]
    if not peers or not contenders.get("evalengine-2", {}).get("whole"):
        return ""
    rows = []
    for name, value, limit in words.goals(result, peers):
        if value is not None:
            verdict = "" if limit is None else "reached" if value <= limit else "**missed**"
            rows.append([name, quotient(value), "" if limit is None else f"{limit:.2f}", verdict])
    # Speed does not count if the values differ.
    gap = max(c["difference"] for name, c in contenders.items() if is_ours(name))
    verdict = "reached" if gap <= AGREE else "**missed**"
    rows.append(["largest difference in the values", f"{gap:.1e}", f"{AGREE:.0e}", verdict])
    return table(["evalengine, 2 threads", "measured", "at most", ""], rows)


def page(words: Words, result: dict[str, Any]) -> str:
    """Format one section, heading and body."""
    contenders, section = result["contenders"], result["section"]
    names, peers = names_of(words, contenders), peers_of(words, contenders)
    reference = names.get(result["reference"], "none").split(",")[0]
    about = words.about.format(reference=reference, more=words.more)
    parts = [f"## {words.title(result)}", fill(about, 100)]
    parts += [fill(words.notes[section], 100)] if section in words.notes else []
    parts += [IN_PROCESS, in_process_table(result, peers, names)]
    if any(contender["whole"] for contender in contenders.values()):
        parts += [WHOLE, whole_table(contenders, peers, names)]
    deviating = [
        names[name]
        for name, contender in contenders.items()
        if not is_ours(name) and not words.agrees(name, contender)
    ]
    if deviating:
        parts.append(
            f"{', '.join(deviating)}: further than {AGREE:.0e} from the reference, "
            "so no peer to be measured against."
        )
    if met := goals(words, result, peers):
        parts.append(met)
    for name, failure in result["failures"].items():
        parts.append(f"{name} could not be measured ({failure.split(':')[0]}).")
    more = words.options.get(section, "")
    more += "" if result["scale"] == 1 else f" --scale {result['scale']:g}"
    runs = f"medians of {result['runs']} runs"
    parts.append(footer(result, runs, words.benchmark, more))
    return "\n\n".join(part.rstrip() for part in parts)
