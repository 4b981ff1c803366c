"""Names of metrics in other tools: those that are read as ours, and those that get a hint.

Names are compared in small letters and without blanks, underscores and hyphens (but for a hyphen
before a digit, which may be a sign). Own names and aliases are found so without an entry here.
"""

from __future__ import annotations

import re

_FILLER = re.compile(r"[\s_]+|-(?!\d)")

SAME: dict[str, dict[str, str]] = {
    "classification": {
        "accuracyscore": "Accuracy",
        "subsetaccuracy": "Accuracy",
        "precisionscore": "Precision",
        "positivepredictivevalue": "Precision",
        "ppv": "Precision",
        "recallscore": "Recall",
        "sensitivity": "Recall",
        "tpr": "Recall",
        "truepositiverate": "Recall",
        "jaccardindex": "Jaccard",
        "matthewscorrcoef": "MCC",
        "kappa": "CohenKappa",
        "quadratickappa": "CohenKappaQuadratic",
        "quadraticweightedkappa": "CohenKappaQuadratic",
        "qwk": "CohenKappaQuadratic",
        "linearweightedkappa": "CohenKappaLinear",
        "crossentropy": "LogLoss",
        "crossentropyloss": "LogLoss",
        "nll": "LogLoss",
        "negativeloglikelihood": "LogLoss",
        "calibrationerror": "ECE",
        "expectedcalibrationerror": "ECE",
        "maxcalibrationerror": "MCE",
        "maximumcalibrationerror": "MCE",
    },
    "detection": {
        "averageprecision": "AP",
        "averagerecall": "AR",
        "f1score": "F1",
        "percentageofcorrectkeypoints": "PCK",
    },
    "retrieval": {
        "averageprecision": "MAP",
        "meanaverageprecision": "MAP",
        "retrievalmap": "MAP",
        "meanreciprocalrank": "MRR",
        "reciprocalrank": "MRR",
        "retrievalmrr": "MRR",
        "normalizeddiscountedcumulativegain": "nDCG",
        "normalizeddcg": "nDCG",
        "retrievalnormalizeddcg": "nDCG",
        "discountedcumulativegain": "DCG",
        "retrievalprecision": "P",
        "retrievalrprecision": "RPrecision",
        "retrievalhitrate": "Success",
        "hit": "Success",
        "f1score": "F1",
    },
    "segmentation": {
        "dicecoefficient": "Dice",
        "dsc": "Dice",
        "sorensendice": "Dice",
        "f1score": "F1",
        "intersectionoverunion": "IOU",
        "overallaccuracy": "PixelAccuracy",
        "meanpixelaccuracy": "MeanClassAccuracy",
        "hausdorff95": "HD95",
        "sensitivity": "Recall",
    },
    "tracking": {
        "numswitches": "IDSW",
        "numfragmentations": "Frag",
        "mostlytracked": "MT",
        "partiallytracked": "PT",
        "mostlylost": "ML",
        "numfalsepositives": "FP",
        "nummisses": "FN",
        "motsa": "MOTA",
        "smotsa": "sMOTA",
    },
    "text": {
        "charerrorrate": "CER",
        "worderrorrate": "WER",
        "translationeditrate": "TER",
        "translationerrorrate": "TER",
    },
    "judged": {
        "responserelevancy": "AnswerRelevance",
        "answerrelevancymetric": "AnswerRelevance",
        "faithfulnessmetric": "Faithfulness",
        "hallucinationmetric": "Hallucination",
        "biasmetric": "Bias",
        "toxicitymetric": "Toxicity",
        "contextualprecisionmetric": "ContextPrecision",
        "contextualrecallmetric": "ContextRecall",
        "contextualrelevancymetric": "ContextRelevance",
    },
    "regression": {
        "weightedmeanabsolutepercentageerror": "WAPE",
        "wmape": "WAPE",
        "nd": "WAPE",
        "mdae": "MedianAE",
        "meanbiaserror": "MeanError",
        "pearsoncorrcoef": "Pearson",
        "pearsonr": "Pearson",
        "spearmancorrcoef": "Spearman",
        "kendallrankcorrcoef": "Kendall",
        "concordancecorrcoef": "Concordance",
        "continuousrankedprobabilityscore": "CRPS",
        "coefficientofdetermination": "R2",
        "r^2": "R2",
        "rsquared": "R2",
        "nse": "R2",
        "nashsutcliffe": "R2",
        "adjr2": "AdjustedR2",
        "adjustedrsquared": "AdjustedR2",
    },
}
"""Task -> other tools' name -> metric that it equals. Read without a question."""

_PR_AREA = (
    "The area under the precision-recall curve by steps, as in average_precision_score, is 'AP'."
)
_COMPLEMENT = "It is 1 - {}."
_NEGATED = "It is {} with its sign changed."
_AREA = "Write metrics 'mAPAveragedOverIOUs' under dialect='coco': rows with area '{}'."
_CAP = "Write metric 'mAR' under dialect='coco': rows with max_detections {}."
_MACRO = "It is the macro row of {}."

CLOSE: dict[str, dict[str, str]] = {
    "classification": {
        **dict.fromkeys(("prauc", "auprc", "aucpr", "averageprecisionrecall"), _PR_AREA),
        **dict.fromkeys(
            ("zerooneloss", "errorrate", "misclassificationrate"), _COMPLEMENT.format("'Accuracy'")
        ),
        "fnr": _COMPLEMENT.format("'Recall'"),
        "missrate": _COMPLEMENT.format("'Recall'"),
        "negbrierscore": _NEGATED.format("'Brier'"),
        "neglogloss": _NEGATED.format("'LogLoss'"),
        "hammingdistance": "'HammingLoss' counts the wrong labels of all datums together.",
        "gini": "It is 2 * 'ROCAUC' - 1.",
        "precisionrecallcurve": (
            "A point per score, as in scikit-learn: 'ScorePrecisionRecallCurve'; at the given"
            " score thresholds: 'PrecisionRecallCurve'."
        ),
        "roc": "The curve is 'ROCCurve', the area 'ROCAUC'.",
        "eer": "The threshold with equal error rates is 'ThresholdAtEqualError'.",
        "equalerrorrate": "The threshold with equal error rates is 'ThresholdAtEqualError'.",
        "classificationreport": "Ask for 'Precision', 'Recall', 'F1' and 'Accuracy'.",
    },
    "detection": {
        "meanaverageprecision": (
            "The mean over IoU thresholds, as in COCO, is 'mAPAveragedOverIOUs'; at single"
            " thresholds it is 'mAP'."
        ),
        "bboxmap": "As COCO defines it, it is 'mAPAveragedOverIOUs'.",
        "segmmap": "As COCO defines it, it is 'mAPAveragedOverIOUs' with iou_type='segm'.",
        **{
            f"{name}{suffix}": _AREA.format(area)
            for area in ("small", "medium", "large")
            for name, suffix in (("ap", area[0]), ("ap", area), ("map", area))
        },
        **{
            f"{name}{suffix}": _AREA.replace("mAPAveragedOverIOUs", "mAR").format(area)
            for area in ("small", "medium", "large")
            for name, suffix in (("ar", area[0]), ("ar", area), ("mar", area))
        },
        **{f"{name}{cap}": _CAP.format(cap) for name in ("ar", "mar") for cap in (1, 10, 100)},
        **{f"{name}@{cap}": _CAP.format(cap) for name in ("ar", "mar") for cap in (1, 10, 100)},
        "oks": "OKS takes the place of IoU with iou_type='keypoints'; ask for 'AP' or 'mAP'.",
        "missrate": _COMPLEMENT.format("'Recall'"),
    },
    "segmentation": {
        "meandice": "It is the macro row of 'Dice', or, image by image, 'DicePerImage'.",
        "dicemetric": "It is the macro row of 'Dice', or, image by image, 'DicePerImage'.",
        "mdice": _MACRO.format("'Dice'"),
        "mfscore": _MACRO.format("'F1'"),
        "mprecision": _MACRO.format("'Precision'"),
        "mrecall": _MACRO.format("'Recall'"),
        "voe": "It is 1 - 'IOU'.",
    },
    "panoptic": {
        name: f"They are the rows of 'PQ' with average '{average}'."
        for name, average in (("pqth", "things"), ("pqst", "stuff"))
    },
    "text": {
        "bleuscore": "BLEU of a corpus is 'CorpusBLEU'; 'BLEU' is the mean over datums.",
        "sacrebleuscore": "Write metric 'CorpusBLEU' under dialect='sacrebleu'.",
        "chrfscore": "Without words it is 'chrF', with words 'chrF++'.",
        "rougescore": "Write 'ROUGE', or one of 'ROUGE1', 'ROUGE2', 'ROUGEL', 'ROUGELsum'.",
        "f1": "F1 of words, as in SQuAD, is 'TokenF1'.",
        "squad": "Its two numbers are 'ExactMatch' and 'TokenF1'.",
    },
    "regression": {
        **{
            f"neg{name}": _NEGATED.format(f"'{ours}'")
            for name, ours in (
                ("meanabsoluteerror", "MAE"),
                ("meansquarederror", "MSE"),
                ("rootmeansquarederror", "RMSE"),
                ("meansquaredlogerror", "MSLE"),
                ("rootmeansquaredlogerror", "RMSLE"),
                ("medianabsoluteerror", "MedianAE"),
                ("meanabsolutepercentageerror", "MAPE"),
                ("maxerror", "MaxError"),
                ("meanpoissondeviance", "PoissonDeviance"),
                ("meangammadeviance", "GammaDeviance"),
            )
        },
        **dict.fromkeys(
            ("wis", "weightedintervalscore"),
            "With a median and pairs of quantiles it equals 'CRPSFromQuantiles'.",
        ),
        "bias": "The mean of prediction - target is 'MeanError'.",
        "tweediedeviancescore": "Write metric 'TweedieDeviance' with tweedie_power.",
        "wql": "It is 'CRPSFromQuantiles' divided by the mean of |target|.",
    },
}
"""Task -> other tools' name -> sentence on how our number differs, or which option it takes."""


def squeezed(name: str) -> str:
    """A name in small letters, without blanks, underscores and hyphens between words."""
    return _FILLER.sub("", name).casefold()
