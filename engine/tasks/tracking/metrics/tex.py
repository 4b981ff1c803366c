"""Formulas of tracking's numbers in TeX, by name."""

from __future__ import annotations

_MEAN = r"\frac{1}{|A|} \sum_{\alpha \in A} "
"""Of what has a value at each IoU threshold."""

TEX = {
    "HOTA": _MEAN + r"\sqrt{\text{DetA}_\alpha \cdot \text{AssA}_\alpha}",
    "DetA": _MEAN
    + r"\frac{\text{TP}_\alpha}{\text{TP}_\alpha + \text{FN}_\alpha + \text{FP}_\alpha}",
    "AssA": _MEAN + r"\frac{1}{\text{TP}_\alpha} \sum_c \frac{n_c}{g_c + t_c - n_c}",
    "DetRe": _MEAN + r"\frac{\text{TP}_\alpha}{\text{TP}_\alpha + \text{FN}_\alpha}",
    "DetPr": _MEAN + r"\frac{\text{TP}_\alpha}{\text{TP}_\alpha + \text{FP}_\alpha}",
    "AssRe": _MEAN + r"\frac{1}{\text{TP}_\alpha} \sum_c \frac{n_c}{g_c}",
    "AssPr": _MEAN + r"\frac{1}{\text{TP}_\alpha} \sum_c \frac{n_c}{t_c}",
    "LocA": _MEAN + r"\frac{1}{\text{TP}_\alpha} \sum_c \text{IoU}(c)",
    "OWTA": _MEAN + r"\sqrt{\text{DetRe}_\alpha \cdot \text{AssA}_\alpha}",
    "HOTA0": r"\sqrt{\text{DetA}_\alpha \cdot \text{AssA}_\alpha}, \quad \alpha = 0.05",
    "LocA0": r"\frac{1}{\text{TP}_\alpha} \sum_c \text{IoU}(c), \quad \alpha = 0.05",
    "HOTALocA0": r"\text{HOTA}_\alpha \cdot \text{LocA}_\alpha, \quad \alpha = 0.05",
    "HOTATP": _MEAN + r"\text{TP}_\alpha",
    "HOTAFP": _MEAN + r"\text{FP}_\alpha",
    "HOTAFN": _MEAN + r"\text{FN}_\alpha",
    "MOTA": r"\frac{\text{tp} - \text{fp} - \text{switches}}{G}",
    "MOTP": r"\frac{1}{\text{tp}} \sum_c \text{IoU}(c)",
    "MODA": r"\frac{\text{tp} - \text{fp}}{G}",
    "sMOTA": r"\frac{\sum_c \text{IoU}(c) - \text{fp} - \text{switches}}{G}",
    "MOTAL": r"\frac{\text{tp} - \text{fp} - \log_{10} \max(1, \text{switches})}{G}",
    "Recall": r"\frac{\text{tp}}{G}",
    "Precision": r"\frac{\text{tp}}{\text{tp} + \text{fp}}",
    "F1": r"\frac{\text{tp}}{\text{tp} + \tfrac{1}{2} \text{fp} + \tfrac{1}{2} \text{fn}}",
    "FPPerFrame": r"\frac{\text{fp}}{\text{frames}}",
    "TP": r"\text{tp} = |\{c\}|",
    "FP": r"\text{fp} = P - \text{tp}",
    "FN": r"\text{fn} = G - \text{tp}",
    "IDSW": r"\sum_c [\text{the object's last track was another}]",
    "Frag": r"\sum_o \max(0, r_o - 1)",
    "MT": r"\sum_o [f_o > 0.8]",
    "PT": r"\sum_o [0.2 \le f_o \le 0.8]",
    "ML": r"\sum_o [f_o < 0.2]",
    "MTR": r"\frac{\text{MT}}{\text{MT} + \text{PT} + \text{ML}}",
    "PTR": r"\frac{\text{PT}}{\text{MT} + \text{PT} + \text{ML}}",
    "MLR": r"\frac{\text{ML}}{\text{MT} + \text{PT} + \text{ML}}",
    "IDF1": r"\frac{2\,\text{IDTP}}{2\,\text{IDTP} + \text{IDFP} + \text{IDFN}}",
    "IDP": r"\frac{\text{IDTP}}{\text{IDTP} + \text{IDFP}}",
    "IDR": r"\frac{\text{IDTP}}{\text{IDTP} + \text{IDFN}}",
    "IDTP": r"\max_a \sum_o m(o, a(o))",
    "IDFP": r"P - \text{IDTP}",
    "IDFN": r"G - \text{IDTP}",
}
