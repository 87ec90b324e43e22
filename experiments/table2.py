"""Table 2: base and big on both language pairs, against the best systems of 2017, with the cost of training.

Paper: 28.4 BLEU on English-German and 41.8 on English-French for less training than any system before.
Run:   python experiments/table2.py
"""

from dataclasses import replace

from table3_big import big

from repro.experiment import Row, Translation, main, printed
from repro.model.config import Hyper


def base_averaged(base: Hyper) -> Hyper:
    """The base model; its last 5 checkpoints are averaged. Paper: section 6.1."""
    return replace(base, average=5)


def big_averaged(base: Hyper) -> Hyper:
    """The big model; its last 20 checkpoints are averaged."""
    return replace(big(base), average=20)


def big_french(base: Hyper) -> Hyper:
    """The same with the base's dropout, as the paper used for English-French."""
    return replace(big_averaged(base), dropout=base.dropout)


BASE, BIG = "Transformer (base model)", "Transformer (big)"
TABLE = "table2"
ROWS = [
    Row("base en-de", base_averaged, printed(BASE, "en-de"), Translation("en-de")),
    Row("big en-de", big_averaged, printed(BIG, "en-de"), Translation("en-de")),
    Row("base en-fr", base_averaged, printed(BASE, "en-fr"), Translation("en-fr")),
    Row("big en-fr", big_french, printed(BIG, "en-fr"), Translation("en-fr")),
]

if __name__ == "__main__":
    main(TABLE, ROWS)
