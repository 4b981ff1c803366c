"""Metrics of the task, a family a module."""

MODULES = ("labels", "images")
"""Modules that define ``METRICS``, in their order."""

SYMBOLS = {
    r"T": "pixels of the label in the ground truths of all datums",
    r"P": "pixels predicted as the label",
    r"T_i": "pixels of label i",
    r"P_j": "pixels predicted as label j",
    r"T_\ell": "pixels of a label",
    r"P_\ell": "pixels predicted as it",
    r"\text{tp}": "pixels of the label predicted as it",
    r"\text{fp}": "other pixels predicted as it",
    r"\text{fn}": "pixels of the label not predicted as it",
    r"L": "labels that count",
    r"L_d": "labels that count in image d",
    r"N": "pixels that count",
    r"N_d": "pixels of image d that count",
    r"y_x": "true label of a pixel",
    r"\hat{y}_x": "predicted label of a pixel",
    r"n": "images on which it is defined",
    r"B": (
        "pixels of the label within boundary_ratio of the image's diagonal from its outline,"
        " of all datums"
    ),
    r"\hat{B}": "the same of predictions",
    r"S": "the label's true outline in an image",
    r"\hat{S}": "its predicted outline",
    r"\delta(x, S)": "distance of a pixel from an outline, in pixel_spacing",
    r"\tau": "surface_tolerance",
    r"q_{95}": "95th percentile",
}
"""Meaning of the symbols in formulas, in TeX."""

SAME = (
    "Dice=dicecoefficient,dsc,sorensendice F1=f1score IOU=intersectionoverunion"
    " PixelAccuracy=overallaccuracy MeanClassAccuracy=meanpixelaccuracy HD95=hausdorff95"
    " Recall=sensitivity"
)
"""Metrics, each with its names in other tools, squeezed."""

_MACRO = "It is the macro row of {}."

CLOSE: dict[str, str] = {
    "meandice dicemetric": "It is the macro row of 'Dice', or, image by image, 'DicePerImage'.",
    "mdice": _MACRO.format("'Dice'"),
    "mfscore": _MACRO.format("'F1'"),
    "mprecision": _MACRO.format("'Precision'"),
    "mrecall": _MACRO.format("'Recall'"),
    "voe": "It is 1 - 'IOU'.",
}
"""Names in other tools, squeezed -> how our number differs, or which option it takes."""
