"""Lab: what stands around a sub-layer, and what happens without a part.

Expected: pre-norm is close to post-norm at N = 3 and needs no warm-up, while post-norm does; scores are worse without
norms or residuals, and without the feed-forward network, less so at equal parameters; without the mask the decoder
copies what it should predict: perplexity falls to almost nothing, and BLEU with it.
Run:      python experiments/lab_parts.py --scale laptop
"""

from dataclasses import replace
from functools import partial

from repro.experiment import Paper, Row, main
from repro.model.ablations.batch_norm import BatchNormalised
from repro.model.ablations.norms import NoNorm, NoResidual, PreNorm
from repro.model.ablations.parts import NoFeedForward, NoMask
from repro.model.config import Hyper, divide
from repro.model.transformer import Transformer


def same(base: Hyper) -> Hyper:
    """The base's hyper-parameters: only the system differs."""
    return base


def no_warm_up(base: Hyper) -> Hyper:
    """The learning rate begins at the peak that the base's rises to."""
    return replace(base, warms_up=False)


def deeper(base: Hyper) -> Hyper:
    """7/3 as many layers: attention has 12 of the 28 d_model^2 weights of an encoder and a decoder layer."""
    return replace(base, n_layers=divide(7 * base.n_layers, 3))


TABLE = "lab_parts"
ROWS = [
    Row("no warm-up", no_warm_up, Paper()),
    Row("pre-norm", same, Paper(), system=partial(Transformer, around=PreNorm)),
    Row("pre-norm, no warm-up", no_warm_up, Paper(), system=partial(Transformer, around=PreNorm)),
    Row("no norm", same, Paper(), system=partial(Transformer, around=NoNorm)),
    Row("no residual", same, Paper(), system=partial(Transformer, around=NoResidual)),
    Row("batch norm", same, Paper(), system=BatchNormalised),
    Row("no feed-forward", same, Paper(), system=NoFeedForward),
    Row("no feed-forward, 7/3 N", deeper, Paper(), system=NoFeedForward),
    Row("no mask (PPL means nothing)", same, Paper(), system=NoMask),
]

if __name__ == "__main__":
    main(TABLE, ROWS)
