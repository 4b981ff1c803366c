"""Metrics of panoptic segmentation, by family."""

MODULES = ("quality",)

SYMBOLS = {
    r"(g, p)": (
        "a ground truth and a predicted segment of one label that match: their IoU is above 0.5"
    ),
    r"\text{tp}": "matched segments",
    r"\text{fp}": "predicted segments without a match",
    r"\text{fn}": "ground truths without a match",
    r"G": "ground truths of the label",
    r"\ell_g": "label of a ground truth",
    r"\ell_p": "label of the segment that matches it",
}
"""Meaning of the symbols in formulas, in TeX."""

CLOSE: dict[str, str] = {
    name: f"They are the rows of 'PQ' with average '{average}'."
    for name, average in (("pqth", "things"), ("pqst", "stuff"))
}
"""Names in other tools, squeezed -> how our number differs, or which option it takes."""
