"""Metrics of the task, a family a module."""

MODULES = ("means",)
"""Modules that define ``METRICS``, in their order."""

SYMBOLS = {
    r"n": "datums that could be scored",
    r"g": "a ground truth",
    r"\text{TP}": "statements or claims of the response that the ground truth bears out",
    r"\text{FP}": "those that it does not",
    r"\text{FN}": "those of the ground truth missing in the response",
    r"u_i": "1 if the context at rank i is useful, else 0",
    r"\beta": "weight of recall",
}
"""Meaning of the symbols in formulas, in TeX."""

SAME = (
    "AnswerRelevance=responserelevancy,answerrelevancymetric Faithfulness=faithfulnessmetric"
    " Hallucination=hallucinationmetric Bias=biasmetric Toxicity=toxicitymetric"
    " ContextPrecision=contextualprecisionmetric ContextRecall=contextualrecallmetric"
    " ContextRelevance=contextualrelevancymetric"
)
"""Metrics, each with its names in other tools, squeezed."""
