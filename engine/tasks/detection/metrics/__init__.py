"""Metrics of the task, a family a module."""

MODULES = ("averages", "counts", "calibration")
"""Modules that define ``METRICS``, in their order."""

SYMBOLS = {
    r"p(\tilde{r})": "precision at that recall",
    r"T": "the IoU thresholds",
    r"\text{AP}_t": "AP at one of them",
    r"\text{AP}_\ell": "AP of one label",
    r"\text{AP}_{\ell t}": "AP of a label at a threshold",
    r"L": "labels that have ground truth, or the frequency",
    r"\text{tp}": "predictions that match a ground truth",
    r"\text{fp}": "predictions that do not",
    r"\text{fn}": "ground truths without a match",
    r"G": "ground truths",
    r"G_\ell": "ground truths of a label",
    r"\text{AP}_{\text{without } k}": (
        "AP once errors of kind k are mended; FalsePos and FalseNeg are the plain difference"
    ),
    r"n_k": "how many of kind k",
    r"\ell_g": "label of a ground truth",
    r"\ell_p": "label of the prediction that matches it",
    r"m_q": "people on whom keypoint q is labelled",
    r"d_{iq}": (
        "distance of the predicted keypoint from the labelled one, infinite if no prediction"
        " matched the person"
    ),
    r"\alpha": "pck_threshold",
    r"h_i": "size of the person: the longer side of the box, or the head",
    r"b": "a bin of scores, of BoxECE of scores and places, with at least least_in_bin predictions",
    r"n_b": "predictions in it",
    r"n": "all predictions",
    r"s_p": "score of a prediction",
    r"\text{precision}_b": "share of a bin's predictions that match",
    r"\text{conf}_b": "their mean score",
    r"Q": "recalls 0.11, 0.12, ... up to the highest that is reached",
    r"m_r": (
        "true positives, by descending score, that reach recall r, between two of them interpolated"
    ),
    r"c": "centre on the ground; with a hat that of the prediction",
    r"\theta": "heading, same notation",
    r"v": "velocity, same notation",
    r"a": "attribute, same notation",
    r"E_j": "the means over labels of the five errors ATE, ASE, AOE, AVE, AAE",
    r"\phi_i": "alpha of a ground truth that is found; with a hat that of its prediction",
    r"\text{tp}_j": "true positives from the score of recall position j on",
    r"\text{fp}_j": "false positives from there on",
    r"\tau": "a score threshold",
    r"P(\tau)": "precision at a score threshold",
    r"R(\tau)": "recall there",
    r"F_\beta(\tau)": "F-beta there",
    r"P^*": "target_precision",
    r"R^*": "target_recall",
    r"\text{FPR}(\tau)": "false-positive rate there, fp / (fp + tn)",
    r"\text{FNR}(\tau)": "1 - recall there",
    r"\kappa_+": "false_positive_cost",
    r"\kappa_-": "miss_cost",
}
"""Meaning of the symbols in formulas, in TeX."""

SAME = "AP=averageprecision AR=averagerecall F1=f1score PCK=percentageofcorrectkeypoints"
"""Metrics, each with its names in other tools, squeezed."""

_AREA = "Write metrics '{}' under dialect='coco': rows with area '{}'."
_CAP = "Write metric 'mAR' under dialect='coco': rows with max_detections {}."

CLOSE: dict[str, str] = {
    "tp fp fn": "It is in the rows of 'Counts'.",
    "meanaverageprecision": (
        "The mean over IoU thresholds, as in COCO, is 'mAPAveragedOverIOUs'; at single"
        " thresholds it is 'mAP'."
    ),
    "bboxmap": "As COCO defines it, it is 'mAPAveragedOverIOUs'.",
    "segmmap": "As COCO defines it, it is 'mAPAveragedOverIOUs' with iou_type='segm'.",
    **{
        f"{a}{area[0]} {a}{area} m{a}{area}": _AREA.format(metric, area)
        for a, metric in (("ap", "mAPAveragedOverIOUs"), ("ar", "mAR"))
        for area in ("small", "medium", "large")
    },
    **{f"ar{n} mar{n} ar@{n} mar@{n}": _CAP.format(n) for n in (1, 10, 100)},
    "oks": "OKS takes the place of IoU with iou_type='keypoints'; ask for 'AP' or 'mAP'.",
    "missrate": "It is 1 - 'Recall'.",
}
"""Names in other tools, squeezed -> how our number differs, or which option it takes."""
