"""What the paper prints for every row, from the experiment files themselves."""

import runpy
import sys
from pathlib import Path

from repro.claims.catalogue import B0
from repro.results.record import PaperNumbers
from repro.runs.table import BASE_ROW

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


def row_list() -> dict[str, PaperNumbers]:
    """ "table/row" -> what is printed, from the experiment files themselves."""
    found = {B0: BASE_ROW.paper.numbers}
    sys.path.insert(0, str(EXPERIMENTS))
    try:
        for file in sorted(
            [*EXPERIMENTS.glob("table2.py"), *EXPERIMENTS.glob("table3_*.py"), *EXPERIMENTS.glob("table4.py")]
        ):
            names = runpy.run_path(str(file))
            found |= {f"{names['TABLE']}/{row.name}": row.paper.numbers for row in names["ROWS"]}
    finally:
        sys.path.remove(str(EXPERIMENTS))
    return found


PRINTED = row_list()
