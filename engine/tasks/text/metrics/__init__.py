"""Metrics of the task, a family a module."""

MODULES = ("ngrams", "overlap")
"""Modules that define ``METRICS``, in their order."""

SYMBOLS = {
    r"n": "texts that can be scored",
    r"c": "the text",
    r"r": "its reference, of several the best",
    r"|c|": "how long the text is: in n-grams, tokens or characters, whichever the metric counts",
    r"|r|": "the same of its reference; of BLEU the reference nearest in length",
    r"r_d": "length of the reference in words or characters; of TER the mean of several",
    r"M": ("those in both, each as often as in both; for ROUGEL the longest common subsequence"),
    r"o": "an order of n-grams; chrF counts those that both sides have",
    r"O": "how many orders there are",
    r"M_o": (
        "n-grams of an order that both have, each as often as in both; of BLEU as in any one"
        " reference"
    ),
    r"c_o": "n-grams of the text",
    r"r_o": "n-grams of the reference",
    r"w_o": "bleu_weights",
    r"e_d": "fewest edits from the text to the reference",
    r"u": "vector of the text",
    r"v_r": "vector of a reference",
    r"|s|": "sentences of the text",
    r"P_s": (
        "share of a sentence's tokens that the contexts have too: its ROUGE-L precision, or"
        " of content words"
    ),
    r"\theta": "faithfulness_threshold",
    r"\text{BLEU}_s": "BLEU of a sentence's characters against all contexts",
}
"""Meaning of the symbols in formulas, in TeX."""

SAME = "CER=charerrorrate WER=worderrorrate TER=translationeditrate,translationerrorrate"
"""Metrics, each with its names in other tools, squeezed."""

CLOSE: dict[str, str] = {
    "bleuscore": "BLEU of a corpus is 'CorpusBLEU'; 'BLEU' is the mean over datums.",
    "sacrebleuscore": "Write metric 'CorpusBLEU' under dialect='sacrebleu'.",
    "chrfscore": "Without words it is 'chrF', with words 'chrF++'.",
    "rougescore": "Write 'ROUGE', or one of 'ROUGE1', 'ROUGE2', 'ROUGEL', 'ROUGELsum'.",
    "f1": "F1 of words, as in SQuAD, is 'TokenF1'.",
    "squad": "Its two numbers are 'ExactMatch' and 'TokenF1'.",
}
"""Names in other tools, squeezed -> how our number differs, or which option it takes."""
