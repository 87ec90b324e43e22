"""Four formulas of the paper with a slider each: learning rate, position codes, scaled scores, Table 1.

The browser computes what it shows (`assets/explorables.js`). Paper: sections 3.2.1, 3.5, 4 and 5.3.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from markupsafe import Markup

from repro.claims.layers import ROWS, WINDOWS
from repro.model.config import BASE as PAPER
from repro.pages.scale_data import ScaleData
from repro.results.measured import Measured, load
from repro.results.record import BASE
from repro.web.report import Section

KEY, SCRIPT = "explorables", "explorables.js"
N_KEYS, LENGTH = 16, 100  # keys of one query; positions
EXPLAINED = (  # name, title, section of the paper, formula in HTML
    (
        *("rate", "The learning rate", "5.3"),
        "rate = d<sub>model</sub><sup>−0.5</sup> · min(step<sup>−0.5</sup>, step · warmup<sup>−1.5</sup>)",
    ),
    (
        *("codes", "Position codes", "3.5"),
        "PE(pos, 2i) = sin(pos / 10000<sup>2i / d</sup>)<br>PE(pos, 2i + 1) = cos(pos / 10000<sup>2i / d</sup>)",
    ),
    ("softmax", "Scaled scores", "3.2.1", "softmax(q · k / √d<sub>k</sub>)"),
    (
        *("layers", "Table 1: operations of a layer", "4"),
        "O(n<sup>2</sup> d), O(n d<sup>2</sup>), O(k n d<sup>2</sup>), O(r n d)",
    ),
)


def explorables_section(data: ScaleData) -> Section:
    """The formulas at the paper's sizes; the rate of this scale too. Table 1 only if its layers were measured."""
    measured = load(data.result_set.folder.parent, Measured)
    own = next((one.hyper for one in data.result_set.everything if one.table == BASE), None)
    figures = [
        Markup(
            '<figure class="explorable" id="explore-{}"><h3>{} <span class="small">Section {}</span></h3>'
            '<p class="formula">{}</p></figure>'
        ).format(name, title, section, Markup(formula))
        for name, title, section, formula in EXPLAINED
        if measured or name != "layers"
    ]
    body = Markup("<p>Move a slider: your browser computes what the formula gives, at the paper's sizes.</p>")
    body += Markup('<div class="beside">{}</div>').format(Markup().join(figures))
    counts = measured.counts if measured else []
    values = {
        "paper": {"d_model": PAPER.d_model, "warmup": PAPER.warmup, "d_k": PAPER.d_k},
        "own": {"scale": data.runs.scale, "d_model": own["d_model"], "warmup": own["warmup"]} if own else None,
        "scores": scores().round(6).tolist(),
        "length": LENGTH,
        "laws": [*laws(measured)] if measured else [],
        "counted": [[one.layer, one.n, one.d, one.window, one.mixing_flops] for one in counts],
    }
    return Section(key=KEY, title="The formulas", body=body, data=values, script=SCRIPT)


def scores() -> np.ndarray[Any, np.dtype[np.float64]]:
    """q . k of one query and its keys at d_k = 1: independent N(0, 1), the same in each report; [keys]."""
    return np.random.default_rng(17).standard_normal(N_KEYS)


def laws(measured: Measured) -> Iterator[dict[str, Any]]:
    """Each layer of Table 1 with the powers that the paper prints and the factor that we counted."""
    for row in ROWS:
        counted = next(count for count in measured.counts if count.layer == row.layer)
        sizes = {"n": counted.n, "d": counted.d, "window": counted.window or 1}
        whole = float(np.prod([sizes[name] ** power for name, power in row.exponents.items()]))
        yield {
            "layer": row.layer,
            "label": row.label,
            "window": WINDOWS.get(row.layer),
            "powers": row.exponents,
            "factor": counted.mixing_flops / whole,
        }
