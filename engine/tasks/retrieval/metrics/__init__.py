"""Metrics of the task, a family a module."""

MODULES = ("gains", "counts", "users")
"""Modules that define ``METRICS``, in their order."""

SYMBOLS = {
    r"n": "queries",
    r"i": "a rank of one query's list",
    r"k": "the cut-off; without one the whole list",
    r"m": "documents retrieved",
    r"\text{rel}_i": "1 if the document at rank i is relevant, else 0; in ERR its relevance",
    r"R": "documents that are relevant",
    r"R_i": "relevant documents among the first i",
    r"R_j": "relevant documents among the first j",
    r"R_k": "relevant documents among the first k",
    r"R_m": "relevant documents retrieved",
    r"D": "ids of the documents retrieved",
    r"G": "ids of those that are relevant",
    r"h": "texts retrieved that are relevant",
    r"f": "relevant texts that some text retrieved matches",
    r"g_i": "gain of the document at rank i",
    r"g^*_i": "gain at rank i of the ideal order",
    r"\text{nDCG}_i": "nDCG at rank i",
    r"J": "ranks at which the gain of the ideal order falls, and the end of the list",
    r"c_i": (
        "gains of the ideal order up to rank i, each at least 1, and 1 for every rank behind"
        " its end"
    ),
    r"G_i": "gain up to rank i",
    r"p": "persistence",
    r"s_i": "the chance that the document at rank i satisfies",
    r"\max \text{rel}": "the highest relevance of all judgments",
    r"N": "documents judged not relevant",
    r"a_i": "documents ahead of rank i that are judged not relevant",
    r"h_i": "relevant documents ahead of rank i",
    r"z_i": "documents of the pool ahead of rank i, judged or not",
    r"\varepsilon": "0.00001",
    r"r": "rank of the first relevant document up to k; without one the term is 0",
    r"u_i": "relevance of rank i / the highest of all judgments",
    r"v_i": "the chance that rank i is looked at",
    r"C_j": "the chance to look on behind rank j",
    r"U_j": "gain up to rank j",
    r"D_i": "the first i documents of the list",
    r"I_i": "the first i of the ideal order that is most like it",
}
"""Meaning of the symbols in formulas, in TeX."""

SAME = (
    "MAP=averageprecision,meanaverageprecision,retrievalmap"
    " MRR=meanreciprocalrank,reciprocalrank,retrievalmrr"
    " nDCG=normalizeddiscountedcumulativegain,normalizeddcg,retrievalnormalizeddcg"
    " DCG=discountedcumulativegain P=retrievalprecision RPrecision=retrievalrprecision"
    " Success=retrievalhitrate,hit F1=f1score"
)
"""Metrics, each with its names in other tools, squeezed."""
