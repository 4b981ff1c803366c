"""Unsupported formats of other tools, by name, with alternatives."""

from __future__ import annotations

import re

_BOXES = "a table of datum_id, label_value, xmin, ymin, xmax, ymax (and score), or COCO JSON"
_TEXTS = "a table of datum_id and text"
_KNOWN = (
    ("GeoJSON", rb'^\{[^{}]{0,200}?"type"\s*:\s*"(FeatureCollection|Feature)"',
     "a table of datum_id, label_value and polygon (WKT or GeoJSON texts; GeoPandas: to_wkt())"),
    ("VGG Image Annotator's JSON",
     rb'^\{\s*"(_via_\w+"\s*:|[^"]+"\s*:\s*\{\s*("fileref"\s*:|"filename"\s*:\s*"[^"]*",\s*"size"\s*:))',
     f"its export as COCO JSON, or {_BOXES}"),
    ("MegaDetector's JSON",
     rb'^\{.*("(detection_categories|max_detection_conf)"\s*:|"detections"\s*:\s*\[\s*\{\s*"category")',
     _BOXES),
    ("odgt (CrowdHuman)", rb'^\{.*"(gtboxes|dtboxes)"\s*:\s*\[', _BOXES),
    ("run-length codes of a competition", rb"^[^\n]*\bEncodedPixels\b[^\n]*[\r\n]",
     "a table of datum_id, label_value and mask (COCO's run lengths)"),
)  # fmt: skip
"""Name, first bytes, and alternative."""
_NAMED = {
    ".trn": ("trn transcripts", _TEXTS),
    ".ctm": ("ctm transcripts", _TEXTS),
    ".stm": ("stm transcripts", _TEXTS),
    ".conll": ("CoNLL", "a table with a list of tags per sentence"),
    ".conllu": ("CoNLL-U", "a table with a list of tags per sentence"),
}
"""Suffixes of text formats without marks in their content."""


def foreign(head: bytes, name: str = "") -> str | None:
    """Return the name of an unsupported format, and the alternative; None for others.

    Args:
        head: first bytes of the file.
    """
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] == b"<":
        return (
            "is XML, and neither an annotation of Pascal VOC (<annotation>) nor of CVAT"
            " (<annotations> with images or tracks). Bring one of these, or a table."
        )
    found = [(title, way) for title, mark, way in _KNOWN if re.match(mark, start, re.DOTALL)]
    found += [named for end, named in _NAMED.items() if name.lower().endswith(end)]
    return f"is {found[0][0]}, which is not read. Bring {found[0][1]}." if found else None
