"""The worst slices as text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import IO, TYPE_CHECKING

from ..ingest.problems import count_of
from .found_rows import html_of, interval, markdown_of, show_found, text_of
from .summary import number, plain
from .verdicts import probability

if TYPE_CHECKING:
    from ..analysis.slice_table import FoundSlices


def heading(found: FoundSlices) -> str:
    """What was looked at, in a sentence."""
    if not len(found):
        return (
            f"no slice of {count_of(found.n, 'datum')} is worse than the rest by each of its"
            " conditions"
        )
    return (
        f"{count_of(len(found), 'slice')} of {count_of(found.n, 'datum')}, by {found.loss} of"
        f" single datums; {found.measured:,} were measured, and no other scores higher"
    )


def _table(found: FoundSlices) -> tuple[list[str], list[list[str]]]:
    header = ["slice", "datums", found.metric, f"{100 * found.level:g} % interval", "elsewhere",
              "p adjusted"]  # fmt: skip
    rows = [[plain(row["slice"]), f"{row['size']:,}", number(row["value"]),
             interval(row["lower"], row["upper"]), number(row["elsewhere"]),
             probability(row["p_adjusted"])]
            for row in found.frame.iter_rows(named=True)]  # fmt: skip
    return header, rows


def as_text(found: FoundSlices, notes: Sequence[str] | None = None) -> str:
    """For the prompt and the shell.

    Args:
        found: what to show.
        notes: as the reader's surface writes them; as Python does unless given.
    """
    return text_of(heading(found), *_table(found), found.notes if notes is None else notes)


def as_markdown(found: FoundSlices) -> str:
    """For pull requests and pages."""
    return markdown_of(heading(found), *_table(found), found.notes)


def as_html(found: FoundSlices) -> str:
    """For notebooks."""
    return html_of(heading(found), *_table(found), found.notes)


def show(found: FoundSlices, form: str, out: IO[str], notes: Sequence[str]) -> None:
    """Write slices to a text stream, in one of :data:`~.found_rows.FORMATS`, notes as given."""
    show_found(found, form, out, partial(as_text, notes=notes), as_markdown, name="slices")
