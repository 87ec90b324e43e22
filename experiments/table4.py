"""Table 4: English constituency parsing, from words to brackets.

Paper: 4 layers of d_model 1024 reach 91.3 F1 on section 23 of the Wall Street Journal from its 40K training sentences,
       and 92.7 with about 17M silver ones; recurrent sequence-to-sequence parsers do badly on so little text.
Run:   python experiments/table4.py                                      (generated trees, minutes, CPU)
       python experiments/table4.py --scale captions --rows "WSJ only"   (real trees: python -m repro data fetch craft)
       python experiments/table4.py --scale paper --data-dir FOLDER      (your own copy of Treebank-3)

"WSJ only" is the gold text of a scale, "semi-supervised" that and its silver text: docs/parsing.md.
"""

from dataclasses import replace
from functools import partial

from repro.experiment import Paper, Parsing, Row, main, printed_f1
from repro.model.config import Hyper, divide
from repro.model.rivals.attention_rnn import SoftAlignment
from repro.model.rivals.recurrent import StaticLast, backwards

OURS, VINYALS = "Transformer (4 layers)", "Vinyals & Kaiser et al. (2014)"


# The learning rate and the dropout by which parsers learn best, as multiples of the base's: table4_grid.py
RATE, DROPOUT = 0.5, 1.0


def parser(base: Hyper, rate: float = RATE, dropout: float = DROPOUT) -> Hyper:
    """N = 4 for 6, d_model 1024 for 512, heads twice as wide; attention weights have the dropout of the rest."""
    return replace(
        base,
        lr_factor=rate * base.lr_factor,
        n_layers=divide(base.n_layers * 4, 6),
        d_model=2 * base.d_model,
        d_k=2 * base.d_k,
        d_v=2 * base.d_v,
        dropout=dropout * base.dropout,
        attention_dropout=dropout * base.dropout,
    )


gold, silver = Parsing(), Parsing(silver=True)
reversed_source = partial(StaticLast, order=backwards)

TABLE = "table4"
ROWS = [
    Row("WSJ only", parser, printed_f1(OURS, "WSJ only"), gold),
    Row("semi-supervised", parser, printed_f1(OURS, "semi-supervised"), silver),
    Row("recurrent, WSJ only", parser, Paper(), gold, system=reversed_source),
    Row("recurrent, semi-supervised", parser, Paper(), silver, system=reversed_source),
    Row("recurrent with attention, WSJ only", parser, printed_f1(VINYALS, "WSJ only"), gold, system=SoftAlignment),
    Row(
        "recurrent with attention, semi-supervised",
        parser,
        printed_f1(VINYALS, "semi-supervised"),
        silver,
        system=SoftAlignment,
    ),
]

if __name__ == "__main__":
    main(TABLE, ROWS)
