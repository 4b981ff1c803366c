"""Time evalengine's text metrics against other ways to the same values, side by side.

    python benchmarks/text.py rouge rouge-first rouge-stemmed rouge-short rouge-long bleu \
        bleu-13a corpus-bleu chrf wer cer ter --peers-python PEERS/bin/python --write-docs

`rouge-first` measures the first run on a machine: `-cold` has no compiled kernels. The sets are
those of text_data.py; `--scale 0.02` tries everything on small ones. sections.py describes the
measurement. PEERS is an environment with rouge-score, rouge-score-rs, nltk, sacrebleu, bleuscore,
fastchrf, jiwer and polars.
"""

from __future__ import annotations

from sections import OURS, Benchmark, Section, main
from text_reporting import page

RUST = "rouge-score-rs"
SECTIONS = {
    "rouge": Section((*OURS, RUST, "rouge-score"), data="pairs"),
    "rouge-first": Section(("evalengine-1", "evalengine-1-cold", RUST), data="pairs"),
    "rouge-stemmed": Section((*OURS, RUST, "rouge-score"), data="pairs"),
    "rouge-short": Section((*OURS, RUST), data="short", warm_up=0.001),
    "rouge-long": Section((*OURS, RUST), data="long", sampled=(RUST,), width=4),
    "bleu": Section((*OURS, "nltk"), data="pairs"),
    "bleu-13a": Section((*OURS, "bleuscore", "sacrebleu"), data="pairs", sampled=("sacrebleu",)),
    "corpus-bleu": Section((*OURS, "bleuscore", "sacrebleu"), data="pairs"),
    "chrf": Section((*OURS, "fastchrf", "sacrebleu"), data="pairs"),
    "wer": Section((*OURS, "jiwer"), data="pairs"),
    "cer": Section((*OURS, "jiwer"), data="pairs"),
    "ter": Section((*OURS, "sacrebleu"), data="pairs", sampled=("sacrebleu",)),
}
BENCHMARK = Benchmark(
    "text",
    SECTIONS,
    references=("rouge-score", RUST, "nltk", "sacrebleu", "jiwer", "bleuscore"),
    page=page,
)


if __name__ == "__main__":
    main(BENCHMARK)
