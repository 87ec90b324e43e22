"""The ladder: the systems before the Transformer, one above the other, on one text and one budget.

From one vector for a whole sentence over a static context to a look at every word of it, anew at each step. Each
system is as large as the base outside the embedding, which all share; the rate of each is the schedule of section 5.3
times the factor that was best on dev, of 0.5, 1 and 2.

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


as_base = partial(rate, times=1)

TABLE = "ladder"
ROWS = [
    Row("simple", as_base, Paper(), system=Simple),
    Row("simple, source reversed", as_base, Paper(), system=partial(Simple, order=backwards)),
    Row("static, last state", as_base, Paper(), system=StaticLast),
    Row("static, mean", as_base, Paper(), system=StaticMean),
    Row("soft alignment", as_base, Paper(), system=SoftAlignment),
    Row("soft alignment, dot", as_base, Paper(), system=partial(SoftAlignment, score=Dot)),
    Row("soft alignment, scaled dot", as_base, Paper(), system=partial(SoftAlignment, score=ScaledDot)),
    Row("soft alignment, GRU", as_base, Paper(), system=partial(SoftAlignment, unit=GRU)),
    Row("ByteNet", as_base, Paper(), system=ByteNet),
    Row("ConvS2S", as_base, Paper(), system=ConvS2S),
    Row("encoder: recurrent", as_base, Paper(), system=partial(HybridEncoder, slot=Recurrence)),
    Row("encoder: convolutional", as_base, Paper(), system=partial(HybridEncoder, slot=GatedConvolution)),
    Row("decoder: recurrent", as_base, Paper(), system=partial(HybridDecoder, slot=Recurrence)),
    Row("decoder: convolutional", as_base, Paper(), system=partial(HybridDecoder, slot=GatedConvolution)),
    Row("decoder: nothing", as_base, Paper(), system=partial(HybridDecoder, slot=Nothing)),
]

if __name__ == "__main__":
    main(TABLE, ROWS)
