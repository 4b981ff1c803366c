"""Metrics of tracking, by family."""

MODULES = ("numbers",)

SYMBOLS = {
    r"A": "IoU thresholds, 0.05 to 0.95 by 0.05",
    r"\text{TP}_\alpha": "pairs that HOTA matches at a threshold",
    r"\text{FP}_\alpha": "predictions without such a match",
    r"\text{FN}_\alpha": "ground truths without one",
    r"c": "a matched pair of a ground truth and a prediction in one frame",
    r"n_c": "matches of that object and track in all frames",
    r"g_c": "boxes of the object",
    r"t_c": "boxes of the track",
    r"\text{tp}": "pairs that CLEAR matches at IoU 0.5",
    r"\text{fp}": "predictions without such a match",
    r"\text{fn}": "ground truths without one",
    r"\text{switches}": "matches of an object whose last track was another",
    r"G": "ground truths",
    r"P": "predictions",
    r"o": "an object",
    r"r_o": "runs of frames in which it is matched",
    r"f_o": "share of its frames in which it is matched",
    r"m(o, a(o))": (
        "frames in which object and the track assigned to it overlap by IoU 0.5 or more; a"
        " assigns every track once at most"
    ),
}
"""Meaning of the symbols in formulas, in TeX."""

SAME = (
    "IDSW=numswitches Frag=numfragmentations MT=mostlytracked PT=partiallytracked ML=mostlylost"
    " FP=numfalsepositives FN=nummisses MOTA=motsa sMOTA=smotsa"
)
"""Metrics, each with its names in other tools, squeezed."""
