"""Table 3 (D): dropout and label smoothing.

Paper: dropout is what keeps the model from over-fitting; smoothing hurts perplexity and helps BLEU.
Run:   python experiments/table3_D.py
"""

from dataclasses import replace
from functools import partial

from repro.experiment import Paper, Row, main
from repro.model.config import Hyper


def dropout(base: Hyper, times: float) -> Hyper:
    """P_drop as a multiple of the base's: 0.1 in the paper, more where the text is small."""
    return replace(base, dropout=times * base.dropout)


def smoothing(base: Hyper, times: float) -> Hyper:
    """epsilon_ls as a multiple of the base's."""
    return replace(base, label_smoothing=times * base.label_smoothing)


TABLE = "table3_D"
ROWS = [
    Row("P_drop=0.0", partial(dropout, times=0), Paper(ppl=5.77, bleu=24.6)),
    Row("P_drop=0.2", partial(dropout, times=2), Paper(ppl=4.95, bleu=25.5)),
    Row("eps_ls=0.0", partial(smoothing, times=0), Paper(ppl=4.67, bleu=25.3)),
    Row("eps_ls=0.2", partial(smoothing, times=2), Paper(ppl=5.47, bleu=25.7)),
]

if __name__ == "__main__":
    main(TABLE, ROWS)
