"""Display of ``diagnose``: text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ingest.problems import count_of
from .found_rows import Layout, of_frame

if TYPE_CHECKING:
    from ..analysis.diagnosis_table import Diagnosis


def heading(found: Diagnosis) -> str:
    """Return a one-sentence summary."""
    if not len(found):
        return "nothing stands out"
    left = len(found) - found.shown.height
    shown = f", the first {found.shown.height:,}" if left else ""
    return f"{count_of(len(found), 'finding')}{shown}, by how much of what is wrong each explains"


LAYOUT = Layout("findings", heading, of_frame(lambda found: found.shown), lambda found: found.shown)
