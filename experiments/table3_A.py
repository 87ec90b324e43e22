"""Table 3 (A): how many heads, at constant computation.

Paper: a single head loses 0.9 BLEU against eight; too many heads lose as well.
Run:   python experiments/table3_A.py                      (minutes, 2 CPU cores)
       python experiments/table3_A.py --scale smoke        (seconds)
"""

from dataclasses import replace
from functools import partial

from repro.experiment import Paper, Row, main
from repro.model.config import Hyper, divide


def heads(base: Hyper, h: int) -> Hyper:
    """Share the model width out over h heads: d_k = d_v = d_model / h."""
    width = divide(base.d_model, h)
    return replace(base, n_heads=h, d_k=width, d_v=width)


TABLE = "table3_A"
ROWS = [
    Row("h=1", partial(heads, h=1), Paper(ppl=5.29, bleu=24.9)),
    Row("h=4", partial(heads, h=4), Paper(ppl=5.00, bleu=25.5)),
    Row("h=16", partial(heads, h=16), Paper(ppl=4.91, bleu=25.8)),
    Row("h=32", partial(heads, h=32), Paper(ppl=5.01, bleu=25.4)),
]

if __name__ == "__main__":
    main(TABLE, ROWS)
