"""The two strong systems of the ladder with three times the updates, to see whether their curves cross.

At `captions`, where every row makes as many updates as the base, there is nothing to run, and it says so.

Run:   python experiments/ladder_long.py                   (about 4 minutes a row and seed, 1 CPU core)
"""

from dataclasses import replace

from repro.experiment import Paper, Row, main
from repro.model.config import Hyper
from repro.model.rivals.attention_rnn import SoftAlignment


def thrice(base: Hyper) -> Hyper:
    """The base with three times the updates; the warm-up is as long as the base's."""
    return replace(base, steps=3 * base.steps)


TABLE = "ladder_long"
ROWS = [
    Row("Transformer, 3 x updates", thrice, Paper()),
    Row("soft alignment, 3 x updates", thrice, Paper(), system=SoftAlignment),
]

if __name__ == "__main__":
    main(TABLE, ROWS)
