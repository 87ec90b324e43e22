"""Table 3 (E): learned positions instead of sinusoids.

Paper: nearly identical results to the base model.
Run:   python experiments/table3_E.py
"""

from dataclasses import replace

from repro.experiment import Paper, Row, main
from repro.model.config import Hyper


def learned(base: Hyper) -> Hyper:
    """A learned vector for each position, on each side."""
    return replace(base, learned_positions=True)


TABLE = "table3_E"
ROWS = [Row("learned positions", learned, Paper(ppl=4.92, bleu=25.7))]

if __name__ == "__main__":
    main(TABLE, ROWS)
