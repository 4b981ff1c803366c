"""Metrics of the task, a family a module."""

MODULES = ("counts", "scores")
"""Modules that define ``METRICS``, in their order."""

SYMBOLS = {
    r"n": "datums with ground truth, weighted if there are weights",
    r"y_d": "true label of datum d, or the set of its labels",
    r"\hat{y}_d": "its hard prediction",
    r"L": "how many labels count",
    r"T": "labels with ground truth",
    r"\text{tp}": "datums of a label that are predicted as it, or score at least the threshold",
    r"\text{fp}": "datums without the label that do",
    r"\text{fn}": "datums of the label that do not",
    r"t_\ell": "datums whose true label is this one",
    r"p_\ell": "datums whose prediction is this one; no prediction counts as a separate label",
    r"t_i\, p_j": "datums with true label i, times those with prediction j",
    r"C_{ij}": "datums of label i predicted as j; of a kappa i and j are the labels' ranks",
    r"r_d": "rank of the true label by its score",
    r"s_i": "score of the label on datum i",
    r"n_+": "datums with the label",
    r"n_-": "datums without it",
    r"A_\ell": "ROC AUC of one label against the rest",
    r"A_{i|j}": "ROC AUC of the scores of label i on only the datums of labels i and j",
    r"x": "max_fpr",
    r"P_i": "precision at the i-th highest distinct score",
    r"R_i": "recall there",
    r"\text{AP}_\ell": "AP of one label",
    r"p_d": "score of the true label",
    r"p_{d\ell}": "score of a label",
    r"\varepsilon": "machine epsilon of the scores' type",
    r"b": "a bin of confidences",
    r"n_b": "datums in it",
    r"c_d": "confidence: the best score, or the positive label's",
    r"\text{conf}_b": "mean confidence in a bin",
    r"\text{acc}_b": "share of right predictions in it",
    r"\tau": "a score threshold",
    r"P(\tau)": "precision at a score threshold",
    r"R(\tau)": "recall there",
    r"F_\beta(\tau)": "F-beta there",
    r"P^*": "target_precision",
    r"R^*": "target_recall",
    r"\text{FPR}^*": "target_fpr",
    r"\text{FPR}(\tau)": "false-positive rate there, fp / (fp + tn)",
    r"\text{FNR}(\tau)": "1 - recall there",
    r"\kappa_+": "false_positive_cost",
    r"\kappa_-": "miss_cost",
}
"""Meaning of the symbols in formulas, in TeX."""

SAME = (
    "Specificity=tnr,truenegativerate,selectivity NPV=negativepredictivevalue"
    " FPR=falsepositiverate,fallout FNR=falsenegativerate,missrate"
    " ZeroOneLoss=errorrate,misclassificationrate KSStatistic=ks,kolmogorovsmirnov Lift=liftscore"
    " Gain=cumulativegain Accuracy=accuracyscore,subsetaccuracy"
    " Precision=precisionscore,positivepredictivevalue,ppv"
    " Recall=recallscore,sensitivity,tpr,truepositiverate Jaccard=jaccardindex"
    " MCC=matthewscorrcoef CohenKappa=kappa"
    " CohenKappaQuadratic=quadratickappa,quadraticweightedkappa,qwk"
    " CohenKappaLinear=linearweightedkappa"
    " LogLoss=crossentropy,crossentropyloss,nll,negativeloglikelihood"
    " ECE=calibrationerror,expectedcalibrationerror"
    " MCE=maxcalibrationerror,maximumcalibrationerror"
)
"""Metrics, each with its names in other tools, squeezed."""

_NEGATED = "It is {} with its sign changed."

CLOSE: dict[str, str] = {
    "tp fp fn tn": "It is in the rows of 'Counts'.",
    "prauc auprc aucpr averageprecisionrecall": (
        "The area under the precision-recall curve by steps, as in average_precision_score, is"
        " 'AP'."
    ),
    "negbrierscore": _NEGATED.format("'Brier'"),
    "neglogloss": _NEGATED.format("'LogLoss'"),
    "hammingdistance": "'HammingLoss' counts the wrong labels of all datums together.",
    "gini": "It is 2 * 'ROCAUC' - 1.",
    "precisionrecallcurve": (
        "A point per score, as in scikit-learn: 'ScorePrecisionRecallCurve'; at the given"
        " score thresholds: 'PrecisionRecallCurve'."
    ),
    "roc": "The curve is 'ROCCurve', the area 'ROCAUC'.",
    "eer equalerrorrate": "The threshold with equal error rates is 'ThresholdAtEqualError'.",
    "classificationreport": "Ask for 'Precision', 'Recall', 'F1' and 'Accuracy'.",
}
"""Names in other tools, squeezed -> how our number differs, or which option it takes."""
