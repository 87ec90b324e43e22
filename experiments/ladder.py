"""The ladder: the systems before the Transformer, one above the other, on one text and one budget.

They go from one vector for a whole sentence, over a static context, to a new look at every word at each step. Outside
the embedding, which all share, each system is as large as the base. Its learning rate is the schedule of section 5.3
times 0.5, 1 or 2, whichever was best on dev.

Run:   python experiments/ladder.py                        (about a minute and a half a row and seed, 1 CPU core)
       python experiments/ladder.py --rows simple "static, mean" "soft alignment"
"""

from dataclasses import replace
from functools import partial

from repro.experiment import Paper, Row, main
from repro.model.config import Hyper
from repro.model.rivals.attention_rnn import Dot, ScaledDot, SoftAlignment
from repro.model.rivals.bytenet import ByteNet
from repro.model.rivals.convs2s import ConvS2S
from repro.model.rivals.hybrids import GatedConvolution, HybridDecoder, HybridEncoder, Nothing, Recurrence
from repro.model.rivals.recurrent import GRU, Simple, StaticLast, StaticMean, backwards


def rate(base: Hyper, times: float) -> Hyper:
    """The base, at a multiple of its learning rate."""
    return replace(base, lr_factor=times * base.lr_factor)


SYSTEMS = {
    "simple": Simple,
    "simple, source reversed": partial(Simple, order=backwards),
    "static, last state": StaticLast,
    "static, mean": StaticMean,
    "soft alignment": SoftAlignment,
    "soft alignment, dot": partial(SoftAlignment, score=Dot),
    "soft alignment, scaled dot": partial(SoftAlignment, score=ScaledDot),
    "soft alignment, GRU": partial(SoftAlignment, unit=GRU),
    "ByteNet": ByteNet,
    "ConvS2S": ConvS2S,
    "encoder: recurrent": partial(HybridEncoder, slot=Recurrence),
    "encoder: convolutional": partial(HybridEncoder, slot=GatedConvolution),
    "decoder: recurrent": partial(HybridDecoder, slot=Recurrence),
    "decoder: convolutional": partial(HybridDecoder, slot=GatedConvolution),
    "decoder: nothing": partial(HybridDecoder, slot=Nothing),
}
# where a factor other than 1 was best on dev at laptop: ladder_rates.py, seed 1
FACTORS = {
    "simple": 0.5,
    "simple, source reversed": 0.5,
    "soft alignment": 2,
    "soft alignment, scaled dot": 2,
    "ByteNet": 2,
    "ConvS2S": 2,
    "encoder: recurrent": 2,
}
TABLE = "ladder"
ROWS = [
    Row(name, partial(rate, times=FACTORS.get(name, 1)), Paper(), system=system) for name, system in SYSTEMS.items()
]

if __name__ == "__main__":
    main(TABLE, ROWS)
