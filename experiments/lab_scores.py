"""Lab: how queries meet keys, and what heads share.

Expected: dot products without their scale do harm where d_k is large, as with one head, and additive scores do not;
these and bilinear ones are as good as scaled ones; a Gaussian kernel of bandwidth 1 is as sharp as dot products without
their scale, and does as they do; queries that are keys lose a little; identical heads are one small head.
Run:      python experiments/lab_scores.py --scale laptop
"""

from dataclasses import replace
from functools import partial

from repro.experiment import Paper, Row, main
from repro.model.ablations.scores import AdditiveScores, BilinearScores, GaussianKernel, UnscaledDot
from repro.model.ablations.sharing import IdenticalHeads, QueriesAreKeys
from repro.model.config import Hyper
from repro.model.transformer import Transformer


def same(base: Hyper) -> Hyper:
    """The base's hyper-parameters: only the system differs."""
    return base


def one_head(base: Hyper) -> Hyper:
    """The whole width in one head, d_k = d_v = d_model, as in Table 3 (A)."""
    return replace(base, n_heads=1, d_k=base.d_model, d_v=base.d_model)


def one_small_head(base: Hyper) -> Hyper:
    """One of the base's heads alone."""
    return replace(base, n_heads=1)


TABLE = "lab_scores"
ROWS = [
    Row("dot", same, Paper(), system=partial(Transformer, mix=UnscaledDot)),
    Row("scaled dot, h=1", one_head, Paper()),
    Row("dot, h=1", one_head, Paper(), system=partial(Transformer, mix=UnscaledDot)),
    Row("additive, h=1", one_head, Paper(), system=partial(Transformer, mix=AdditiveScores)),
    Row("additive", same, Paper(), system=partial(Transformer, mix=AdditiveScores)),
    Row("bilinear", same, Paper(), system=partial(Transformer, mix=BilinearScores)),
    Row("Gaussian kernel", same, Paper(), system=partial(Transformer, mix=GaussianKernel)),
    Row("K = Q", same, Paper(), system=partial(Transformer, self_attention=QueriesAreKeys)),
    Row("identical heads", same, Paper(), system=IdenticalHeads),
    Row("one of 8 heads", one_small_head, Paper()),
]

if __name__ == "__main__":
    main(TABLE, ROWS)
