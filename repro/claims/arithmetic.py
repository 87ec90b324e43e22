"""Claims about the paper's own numbers, which need no run. Paper: abstract, sections 5.2 and 6, Tables 2 to 4.

The printed numbers of systems come from `repro.paper`, those of rows from their records; none is repeated here.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, cast

from repro import paper
from repro.claims.catalogue import B0, D256, D1024, F1024, F4096, H1, H4, H16, H32, N2, N4, N8, row_of
from repro.model.config import BASE as BASE_HYPER
from repro.paper import TABLE_2, TABLE_4, Pair, System
from repro.results.record import PaperNumbers

PrintedRows = Mapping[str, PaperNumbers]  # "table/row" -> what the paper prints for it
Checked = tuple[bool, str]  # whether a claim about the paper's own numbers holds, and by which numbers

BASE_MODEL, BIG_MODEL = (line for line in TABLE_2 if line.kind == "ours")
EARLIER = [line for line in TABLE_2 if line.kind != "ours"]
CHEAPEST = min((line for line in EARLIER if "en-de" in line.flops), key=lambda line: line.flops["en-de"])
BERKELEY = next(line for line in TABLE_4 if line.name.startswith("Petrov"))
PARSED = {line.training: line.f1 for line in TABLE_4 if line.ours}


def _best(pair: Pair, *, singles_only: bool = False) -> System:
    """The best earlier system on a language pair."""
    earlier = (line for line in EARLIER if pair in line.bleu and (line.kind == "single" or not singles_only))
    return max(earlier, key=lambda line: line.bleu[pair])


def _two_above_all() -> Checked:
    """The lead of the big model on English-German, section 6.1."""
    ours, best = BIG_MODEL.bleu["en-de"], _best("en-de")
    lead = ours - best.bleu["en-de"]
    return lead > 2.0, f"{ours} - {best.bleu['en-de']} ({best.name}) = {lead:.2f}"


def _best_single_french() -> Checked:
    """The big model's two printed scores on English-French against single models, Table 2."""
    best, ours = _best("en-fr", singles_only=True), (BIG_MODEL.bleu["en-fr"], BIG_MODEL.other_bleu["en-fr"])
    theirs = best.bleu["en-fr"]
    return min(ours) > theirs, f"{ours[0]} and {ours[1]}, as it is printed, are above {theirs} ({best.name})"


def _one_french_score() -> Checked:
    """Whether all editions print the same English-French score of the big model, Table 2 and section 6.1."""
    ours, other, best = BIG_MODEL.bleu["en-fr"], BIG_MODEL.other_bleu["en-fr"], _best("en-fr")
    theirs = best.bleu["en-fr"]
    return ours == other, (
        f"two editions print two numbers: {ours} in the abstract and Table 2 of one, {other} in the other (NeurIPS) "
        f"and in section 6.1 of both; that is {ours - theirs:+.2f} or {other - theirs:+.2f} against the {theirs} of "
        f"{best.name}"
    )


def _above(ours: float, theirs: float, name: str) -> Checked:
    """Whether one number of ours is above that of another system."""
    return ours > theirs, f"{ours} against {theirs} ({name})"


def _costs_less(model: System, other: System, pair: Pair, share: float = 1) -> Checked:
    """Whether the model costs less than this share of what the other costs, Table 2 and section 6.1."""
    ours, theirs = model.flops[pair], other.flops[pair]
    text = f"{ours:.1e} / {theirs:.1e} ({other.name}) = {ours / theirs:.2f}"
    return ours / theirs < share, text.replace("e+", "e")


def _step_time(model: System) -> Checked:
    """Its time divided by its steps, compared with the printed step time in tenths of a second, section 5.2."""
    steps, printed = paper.PRINTED_STEPS[model.name], paper.SECONDS_A_STEP[model.name]
    hours, whole = 24 * model.hardware["en-de"].days, steps * printed / paper.SECONDS_A_DAY
    seconds = hours * paper.SECONDS_A_DAY / 24 / steps
    return round(seconds, 1) == printed, (
        f"{hours:g} hours / {steps:,} steps = {seconds:.3f} s, printed {printed:.1f} s; {steps:,} x {printed:.1f} s = "
        f"{24 * whole:.1f} hours = {whole:.2f} days"
    )


def _costs(lines: Sequence[System]) -> Checked:
    """Both cost columns of Table 2, to the two printed digits: GPUs x days x rate, of an ensemble eight times a single.

    Costs that are unknown or were fitted to the print are left out.
    """
    as_printed, told = True, []
    for line in lines:
        for pair, printed in line.flops.items():
            computed = paper.computed_flops(line, pair)
            if computed is not None and not (pair in line.hardware and line.hardware[pair].fitted):
                as_printed = as_printed and f"{computed:.1e}" == f"{printed:.1e}"
                told.append(f"{line.name} {pair} {computed:.1e}, printed {printed:.1e}")
    return as_printed, "; ".join(told).replace("e+", "e")


def _regularisers_are_as_many() -> Checked:
    """How many kinds of regularisation are announced and how many described, section 5.4."""
    return len(paper.REGULARISERS) == paper.N_REGULARISERS, (
        f"{paper.N_REGULARISERS} are announced; described are {' and '.join(paper.REGULARISERS)}. Dropout of the "
        "embeddings' sums is told as a part of the first"
    )


def _longest_wave() -> Checked:
    """The last wavelength of the printed formula, section 3.5."""
    d = BASE_HYPER.d_model
    longest = 10_000 ** ((d - 2) / d)
    return round(longest) == 10_000, f"the printed formula ends at {longest:,.0f} x 2 pi for d_model {d}"


def _one_head_against_the_best(printed: PrintedRows) -> Checked:
    """How much one head loses against the best setting, section 6.2."""
    of = {row: cast("float", printed[row]["bleu"]) for row in (B0, H1, H4, H16, H32)}
    best = max(of, key=of.__getitem__)
    loss = of[best] - of[H1]
    return round(loss, 1) == 0.9, f"{of[best]} ({row_of(best)}) - {of[H1]} = {loss:.1f}"


LADDERS = ((N2, N4, B0, N8), (D256, B0, D1024), (F1024, B0, F4096))  # of Table 3 (C), each from small to large


def _bigger(score: Literal["ppl", "bleu"], printed: PrintedRows, sign: int) -> Checked:
    """The largest row of each ladder of sizes is better than the smallest, Table 3 (C); steps against it are named."""
    of = {row: cast("float", printed[row][score]) for ladder in LADDERS for row in ladder}
    ends = [(ladder[0], ladder[-1]) for ladder in LADDERS]
    steps = [step for ladder in LADDERS for step in itertools.pairwise(ladder)]
    against = [(small, large) for small, large in steps if sign * (of[large] - of[small]) <= 0]
    lines = [("", ends), ("though ", against)]
    told = [f"{word}{row_of(b)} has {of[b]} and {row_of(a)} {of[a]}" for word, pairs in lines for a, b in pairs]
    return all(sign * (of[large] - of[small]) > 0 for small, large in ends), f"{score.upper()}: {'; '.join(told)}"


def _above_all_parsers_but_one() -> Checked:
    """F1 of semi-supervised training, compared with all earlier parsers, Table 4."""
    ours = PARSED["semi-supervised"]
    above = sorted((line for line in TABLE_4 if not line.ours and line.f1 > ours), key=lambda line: -line.f1)
    better = "; ".join(f"{line.name}, {line.training}: {line.f1}" for line in above)
    return len(above) == 1, f"above its {ours} stand {better}"


CHECKS: Mapping[str, Callable[[PrintedRows], Checked]] = {  # by the names in claims.toml and statements.toml
    "two_above_all": lambda _: _two_above_all(),
    "best_single_french": lambda _: _best_single_french(),
    "one_french_score": lambda _: _one_french_score(),
    "base_above_all": lambda _: _above(BASE_MODEL.bleu["en-de"], (best := _best("en-de")).bleu["en-de"], best.name),
    "base_is_cheapest": lambda _: _costs_less(BASE_MODEL, CHEAPEST, "en-de"),
    "quarter_of_the_cost": lambda _: _costs_less(BIG_MODEL, _best("en-fr", singles_only=True), "en-fr", 1 / 4),
    "base_takes_its_hours": lambda _: _step_time(BASE_MODEL),
    "big_takes_its_days": lambda _: _step_time(BIG_MODEL),
    "costs_of_ours": lambda _: _costs([BASE_MODEL, BIG_MODEL]),
    "costs_of_singles": lambda _: _costs([line for line in TABLE_2 if line.kind == "single"]),
    "costs_of_ensembles": lambda _: _costs([line for line in TABLE_2 if line.kind == "ensemble"]),
    "regularisers_are_as_many": lambda _: _regularisers_are_as_many(),
    "longest_wave": lambda _: _longest_wave(),
    "one_head_against_the_best": _one_head_against_the_best,
    "bigger_has_more_bleu": lambda printed: _bigger("bleu", printed, +1),
    "bigger_has_less_ppl": lambda printed: _bigger("ppl", printed, -1),
    "above_berkeley": lambda _: _above(PARSED["WSJ only"], BERKELEY.f1, BERKELEY.name),
    "above_all_parsers_but_one": lambda _: _above_all_parsers_but_one(),
}
