"""The learning rate of each system of the ladder, the base among them: half the base's, the base's, twice the base's.

The best ones on dev at `laptop` with seed 1, which counts in no verdict, stand in ladder.py (`FACTORS`) for all scales.

Run:   python experiments/ladder_rates.py                  (about a minute and a half a row, 1 CPU core)
"""

from functools import partial

from ladder import SYSTEMS, rate

from repro.experiment import Paper, Row, main

TIMES = (0.5, 1, 2)
TABLE = "ladder_rates"
ROWS = [
    Row(f"{name}, rate x {times:g}", partial(rate, times=times), Paper(), system=system)
    for name, system in {"base": None, **SYSTEMS}.items()
    for times in TIMES
    if system or times != 1  # that is the base row
]

if __name__ == "__main__":
    main(TABLE, ROWS)
