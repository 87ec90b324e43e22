"""Lab: how keys are selected, and among which; whether softmax is needed.

Expected: a single key loses, most where no gradient reaches the scores; a sigmoid for each key by itself comes close to
softmax; a short reach and two levels lose little on short sentences; weights that ignore the input lose a lot.
Run:      python experiments/lab_selection.py --scale laptop
"""

from functools import partial

from repro.experiment import Paper, Row, main
from repro.model.ablations.reach import Restricted, TwoLevel
from repro.model.ablations.selection import Hard, LinearWeights, ReluWeights, Sampled, SigmoidWeights, StraightThrough
from repro.model.ablations.static import StaticMixing
from repro.model.config import Hyper
from repro.model.transformer import Transformer


def same(base: Hyper) -> Hyper:
    """The base's hyper-parameters: only the system differs."""
    return base


TABLE = "lab_selection"
ROWS = [
    Row("hard", same, Paper(), system=partial(Transformer, mix=Hard)),
    Row("hard, straight-through", same, Paper(), system=partial(Transformer, mix=StraightThrough)),
    Row("hard, sampled", same, Paper(), system=partial(Transformer, mix=Sampled)),
    Row("sigmoid", same, Paper(), system=partial(Transformer, mix=SigmoidWeights)),
    Row("ReLU", same, Paper(), system=partial(Transformer, mix=ReluWeights)),
    Row("linear", same, Paper(), system=partial(Transformer, mix=LinearWeights)),
    Row("reach r=5", same, Paper(), system=partial(Restricted, r=5)),
    Row("two-level source", same, Paper(), system=partial(Transformer, mix_source=TwoLevel)),
    Row("static", same, Paper(), system=StaticMixing),
]

if __name__ == "__main__":
    main(TABLE, ROWS)
