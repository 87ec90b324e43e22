"""Lab: how often the text is seen: the same updates on 2, 4, 8 and 16 times as much of it.

At `laptop` 3,000 pairs are seen 18 times in 1,800 updates, 48,000 once. Expected: the less often, the less dropout and
smoothing help perplexity, and the more the Transformer gains on a convolution, which is said to need less text.
Run:      python experiments/lab_text.py --seeds 4-8       (some 4 minutes a run, two at a time on two cores)
"""

from functools import partial

from ladder import FACTORS, rate
from table3_D import dropout, smoothing

from repro.experiment import Paper, Row, Translation, main
from repro.model.rivals.convs2s import ConvS2S

TABLE = "lab_text"
TIMES = (2, 4, 8, 16)  # once is what Table 3 (D) and the ladder have
KINDS = {
    "base": Row("base", partial(dropout, times=1), Paper()),
    "P_drop=0.0": Row("P_drop=0.0", partial(dropout, times=0), Paper()),
    "eps_ls=0.0": Row("eps_ls=0.0", partial(smoothing, times=0), Paper()),
    "ConvS2S": Row("ConvS2S", partial(rate, times=FACTORS["ConvS2S"]), Paper(), system=ConvS2S),
}
ROWS = [
    Row(f"{name}, text x {times}", row.change, Paper(), Translation("en-de", times), row.system)
    for times in TIMES
    for name, row in KINDS.items()
]

if __name__ == "__main__":
    main(TABLE, ROWS)
