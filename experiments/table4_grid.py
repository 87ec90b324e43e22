"""The learning rate and the dropout of Table 4's parsers: six points, one seed, which counts in no verdict.

Paper: dropout (attention and residual), learning rates and beam size were selected by a small number of experiments on
       the development set, section 22 (section 6.3); the values are not printed.
Run:   python experiments/table4_grid.py                   (about five minutes a row, 1 CPU core)

The values of the best dev F1 at `laptop` with seed 1 stand in table4.py, as multiples of the base's.
"""

from functools import partial

from table4 import gold, parser

from repro.experiment import Paper, Row, main

RATES, DROPOUTS = (0.5, 1, 2), (1, 2)
TABLE = "table4_grid"
ROWS = [
    Row(
        f"rate x {rate:g}, P_drop x {dropout:g}",
        partial(parser, rate=float(rate), dropout=float(dropout)),
        Paper(),
        gold,
    )
    for dropout in DROPOUTS
    for rate in RATES
]

if __name__ == "__main__":
    main(TABLE, ROWS)
