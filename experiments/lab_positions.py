"""Lab: how a model knows where a token stands.

Expected: no positions are worst, but usable, since the decoder's mask tells order; one number is poor; one-hot and
learned codes are close to sinusoids; distances are a little better, gain nothing by sinusoids; a clip of 2 suffices.
Run:      python experiments/lab_positions.py --scale laptop
"""

from dataclasses import replace
from functools import partial

from repro.experiment import Paper, Row, main
from repro.model.ablations.codes import FastSinusoids, NoPositions, OneHotPositions, ScalarPositions, SlowSinusoids
from repro.model.ablations.relative import RelativePositions
from repro.model.config import Hyper
from repro.model.embedding import SinusoidalPositions
from repro.model.transformer import Transformer


def same(base: Hyper) -> Hyper:
    """The base's hyper-parameters: only the system differs."""
    return base


def learned(base: Hyper) -> Hyper:
    """Row E of Table 3."""
    return replace(base, learned_positions=True)


TABLE = "lab_positions"
ROWS = [
    Row("none", same, Paper(), system=partial(Transformer, positions=NoPositions)),
    Row("scalar", same, Paper(), system=partial(Transformer, positions=ScalarPositions)),
    Row("one-hot", same, Paper(), system=partial(Transformer, positions=OneHotPositions)),
    Row("learned", learned, Paper()),
    Row("fast sinusoids", same, Paper(), system=partial(Transformer, positions=FastSinusoids)),
    Row("slow sinusoids", same, Paper(), system=partial(Transformer, positions=SlowSinusoids)),
    Row("relative", same, Paper(), system=RelativePositions),
    Row("relative, clip 2", same, Paper(), system=partial(RelativePositions, clip=2)),
    Row("relative, sinusoids", same, Paper(), system=partial(RelativePositions, positions=SinusoidalPositions)),
]

if __name__ == "__main__":
    main(TABLE, ROWS)
