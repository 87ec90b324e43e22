"""Table 3 (B): narrower keys.

Paper: d_k of 16 instead of 64 loses 0.7 BLEU; compatibility is not easy to determine by a dot product of few numbers.
Run:   python experiments/table3_B.py
"""

from dataclasses import replace
from functools import partial

from repro.experiment import Paper, Row, main
from repro.model.config import Hyper, divide


def keys(base: Hyper, d_k: int) -> Hyper:
    """Queries and keys of d_k numbers where the paper's base has 64; values keep their width."""
    return replace(base, d_k=divide(base.d_k * d_k, 64))


TABLE = "table3_B"
ROWS = [
    Row("d_k=16", partial(keys, d_k=16), Paper(ppl=5.16, bleu=25.1, params=58)),
    Row("d_k=32", partial(keys, d_k=32), Paper(ppl=5.01, bleu=25.4, params=60)),
]

if __name__ == "__main__":
    main(TABLE, ROWS)
