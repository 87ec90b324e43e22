"""Table 3 (C): depth and width.

Paper: bigger models are better, except that 8 layers translate no better than 6.
Run:   python experiments/table3_C.py
"""

from dataclasses import replace
from functools import partial

from repro.experiment import Paper, Row, main
from repro.model.config import Hyper, divide


def depth(base: Hyper, n: int) -> Hyper:
    """n layers where the paper's base has 6."""
    return replace(base, n_layers=divide(base.n_layers * n, 6))


def width(base: Hyper, d_model: int) -> Hyper:
    """d_model where the paper's base has 512; h stays, so d_k and d_v follow; d_ff stays."""
    d_k, d_v = (divide(d * d_model, 512) for d in (base.d_k, base.d_v))
    return replace(base, d_model=divide(base.d_model * d_model, 512), d_k=d_k, d_v=d_v)


def feed_forward(base: Hyper, d_ff: int) -> Hyper:
    """d_ff where the paper's base has 2,048."""
    return replace(base, d_ff=divide(base.d_ff * d_ff, 2_048))


TABLE = "table3_C"
ROWS = [
    Row("N=2", partial(depth, n=2), Paper(ppl=6.11, bleu=23.7, params=36)),
    Row("N=4", partial(depth, n=4), Paper(ppl=5.19, bleu=25.3, params=50)),
    Row("N=8", partial(depth, n=8), Paper(ppl=4.88, bleu=25.5, params=80)),
    Row("d_model=256", partial(width, d_model=256), Paper(ppl=5.75, bleu=24.5, params=28)),
    Row("d_model=1024", partial(width, d_model=1_024), Paper(ppl=4.66, bleu=26.0, params=168)),
    Row("d_ff=1024", partial(feed_forward, d_ff=1_024), Paper(ppl=5.12, bleu=25.4, params=53)),
    Row("d_ff=4096", partial(feed_forward, d_ff=4_096), Paper(ppl=4.75, bleu=26.2, params=90)),
]

if __name__ == "__main__":
    main(TABLE, ROWS)
