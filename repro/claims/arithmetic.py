"""What the paper's own numbers come to: claims that need no run. Paper: abstract, sections 5.2 and 6, Tables 2 to 4.

What is printed for systems comes from `repro.paper`, what is printed for rows from their records: no number stands
here as well.
"""

import itertools

from repro.claims.claim import (
    B0,
    D256,
    D1024,
    F1024,
    F4096,
    H1,
    H4,
    H16,
    H32,
    N2,
    N4,
    N8,
    Checked,
    PrintedRows,
)  # fmt: skip
from repro.model.config import BASE as BASE_HYPER
from repro.paper import SECONDS_A_DAY, SECONDS_A_STEP, TABLE_2, TABLE_4, Pair, PrintedParser, System

BASE_MODEL, BIG_MODEL = (line for line in TABLE_2 if line.kind == "ours")


def _best(pair: Pair, *, singles_only: bool = False) -> System:
    """The best earlier system on a language pair."""
    earlier = [line for line in TABLE_2 if line.kind != "ours" and pair in line.bleu]
    return max(
        (line for line in earlier if not singles_only or line.kind == "single"), key=lambda line: line.bleu[pair]
    )


def two_above_all(_: PrintedRows) -> Checked:
    """The lead of the big model on English-German, section 6.1."""
    ours, best = BIG_MODEL.bleu["en-de"], _best("en-de")
    lead = ours - best.bleu["en-de"]
    return Checked(lead > 2.0, f"{ours} - {best.bleu['en-de']} ({best.name}) = {lead:.2f}")


def best_single_french(_: PrintedRows) -> Checked:
    """The big model's two printed scores on English-French against single models, Table 2."""
    best, ours = _best("en-fr", singles_only=True), (BIG_MODEL.bleu["en-fr"], BIG_MODEL.other_bleu["en-fr"])
    theirs = best.bleu["en-fr"]
    return Checked(min(ours) > theirs, f"{ours[0]} and {ours[1]}, as it is printed, are above {theirs} ({best.name})")


def one_french_score(_: PrintedRows) -> Checked:
    """Whether the paper prints one number for it everywhere, Table 2 and section 6.1."""
    ours, other, best = BIG_MODEL.bleu["en-fr"], BIG_MODEL.other_bleu["en-fr"], _best("en-fr")
    theirs = best.bleu["en-fr"]
    return Checked(
        ours == other,
        f"Table 2 and the abstract print {ours}, section 6.1 and the NeurIPS version {other}: "
        f"{ours - theirs:+.2f} or {other - theirs:+.2f} against the {theirs} of {best.name}",
    )


def base_above_all(_: PrintedRows) -> Checked:
    """The base model on English-German against all earlier systems, section 6.1."""
    ours, best = BASE_MODEL.bleu["en-de"], _best("en-de")
    return Checked(ours > best.bleu["en-de"], f"{ours} against {best.bleu['en-de']} ({best.name})")


def base_is_cheapest(_: PrintedRows) -> Checked:
    """Floating point operations on English-German, Table 2."""
    ours = BASE_MODEL.flops["en-de"]
    cheapest = min(
        (line for line in TABLE_2 if line.kind != "ours" and "en-de" in line.flops),
        key=lambda line: line.flops["en-de"],
    )
    theirs = cheapest.flops["en-de"]
    return Checked(
        ours < theirs, f"{ours:.1e} / {theirs:.1e} ({cheapest.name}) = {ours / theirs:.2f}".replace("e+", "e")
    )


def quarter_of_the_cost(_: PrintedRows) -> Checked:
    """Floating point operations on English-French against the best single model, section 6.1."""
    best = _best("en-fr", singles_only=True)
    ours, theirs = BIG_MODEL.flops["en-fr"], best.flops["en-fr"]
    return Checked(
        ours / theirs < 1 / 4, f"{ours:.1e} / {theirs:.1e} ({best.name}) = {ours / theirs:.2f}".replace("e+", "e")
    )


def twelve_hours(_: PrintedRows) -> Checked:
    """Steps times seconds a step, section 5.2."""
    seconds, hours = SECONDS_A_STEP[BASE_MODEL.name], 24 * BASE_MODEL.hardware["en-de"].days
    taken = BASE_HYPER.steps * seconds / (SECONDS_A_DAY / 24)
    return Checked(
        round(taken) == hours, f"{BASE_HYPER.steps:,} x {seconds:g} s = {taken:.1f} hours, {hours:g} printed"
    )


def longest_wave(_: PrintedRows) -> Checked:
    """The last wavelength of the printed formula, section 3.5."""
    longest, d = 10_000 ** ((BASE_HYPER.d_model - 2) / BASE_HYPER.d_model), BASE_HYPER.d_model
    return Checked(round(longest) == 10_000, f"the printed formula ends at {longest:,.0f} x 2 pi for d_model {d}")


def one_head_against_the_best(printed: PrintedRows) -> Checked:
    """What one head loses to the best setting, section 6.2."""
    best = max((B0, H4, H16, H32), key=lambda row: _bleu(printed, row))
    loss = _bleu(printed, best) - _bleu(printed, H1)
    return Checked(
        round(loss, 1) == 0.9, f"{_bleu(printed, best)} ({_label(best)}) - {_bleu(printed, H1)} = {loss:.1f}"
    )


def bigger_is_better_each_time(printed: PrintedRows) -> Checked:
    """BLEU at every step up in size, Table 3 (C)."""
    ladders = ((N2, N4, B0, N8), (D256, B0, D1024), (F1024, B0, F4096))
    falls = [
        f"{_label(larger)} has {_bleu(printed, larger)} and {_label(smaller)} {_bleu(printed, smaller)}"
        for ladder in ladders
        for smaller, larger in itertools.pairwise(ladder)
        if _bleu(printed, larger) <= _bleu(printed, smaller)
    ]
    return Checked(not falls, "; ".join(falls) or "BLEU rises at every step")


def _parsers(training: str) -> tuple[PrintedParser, list[PrintedParser]]:
    """Our parser of this kind of training, and all earlier ones, best first."""
    ours = next(line for line in TABLE_4 if line.ours and line.training == training)
    return ours, sorted((line for line in TABLE_4 if not line.ours), key=lambda line: -line.f1)


def above_berkeley(_: PrintedRows) -> Checked:
    """F1 of training on WSJ alone, Table 4."""
    ours, earlier = _parsers("WSJ only")
    berkeley = next(line for line in earlier if line.name.startswith("Petrov"))
    return Checked(ours.f1 > berkeley.f1, f"{ours.f1} against {berkeley.f1} ({berkeley.name})")


def above_all_parsers_but_one(_: PrintedRows) -> Checked:
    """F1 of semi-supervised training, Table 4."""
    ours, earlier = _parsers("semi-supervised")
    better = [f"{line.name}, {line.training}: {line.f1}" for line in earlier if line.f1 > ours.f1]
    return Checked(len(better) == 1, f"above its {ours.f1} stand {'; '.join(better)}")


def _bleu(printed: PrintedRows, row: str) -> float:
    bleu = printed[row]["bleu"]
    if bleu is None:
        raise ValueError(f"{row}: expected a printed BLEU, got none. Run its experiment anew, which notes it.")
    return bleu


def _label(row: str) -> str:
    return row.split("/", 1)[1]
