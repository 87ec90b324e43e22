"""The page of published translations of newstest2017, scored here: the ladder's systems at full size."""

from repro.pages.columns import comma_separated, rules_between
from repro.render.page import Code, Column, Heading, Listing, Page, Table, Text, blocks, made_from
from repro.results.outputs_2017 import KINDS, QUARTERS, SCORES_2017, Outputs2017, ScoredOutput

NAME = "outputs"
ABOUT = (
    "Systems of several layers, trained on WMT 2017 by the authors of a toolkit or by Hieber et al. (2017): their "
    "translations are scored here, their training was not repeated. So they are not rows of the ladder; they show "
    "where its upper rungs are at full size."
)


def page(scored: Outputs2017) -> Page:
    """The page: one line per system, by kind, the best of each kind first."""
    systems = _ordered(scored)
    shown = [
        Column("", "system", [KINDS[one.kind] for one in systems]),
        Column("", "toolkit", [one.toolkit for one in systems], is_words=True),
        Column("BLEU", "all", [f"{one.bleu:.1f}" for one in systems]),
        *(
            Column("BLEU by quarter of source length", name, [f"{one.quarters[i]:.1f}" for one in systems])
            for i, name in enumerate(("shortest", "second", "third", "longest"))
        ),
    ]
    return Page(
        made_from(SCORES_2017),
        blocks(
            Heading("Published translations of newstest2017, English-German", 1),
            Listing(tuple(_said(systems))),
            Table(tuple(shown), rules_between([one.kind for one in systems])),
            Text(
                f"{scored.sentences:,} sentences, sorted by the words of their source, in {QUARTERS} equal parts; "
                "BLEU is sacreBLEU's, and differences are of scores that are not rounded."
            ),
            Heading("How it was made"),
            Text(ABOUT),
            Text((Code("python experiments/outputs_2017.py"), f" scored them with {scored.signature}.")),
        ),
    )


def sheet(scored: Outputs2017) -> str:
    """The same as comma-separated values."""
    return comma_separated(
        {"kind": one.kind, "toolkit": one.toolkit, "bleu": one.bleu}
        | {f"quarter {i + 1}": one.quarters[i] for i in range(QUARTERS)}
        for one in _ordered(scored)
    )


def _ordered(scored: Outputs2017) -> list[ScoredOutput]:
    kinds = [*KINDS]
    return sorted(scored.systems, key=lambda one: (kinds.index(one.kind), -one.bleu))


def _said(systems: list[ScoredOutput]) -> list[str]:
    """The findings in sentences, from the numbers."""
    of = {kind: [one.bleu for one in systems if one.kind == kind] for kind in KINDS}
    others = [score for kind in ("rnn", "cnn") for score in of[kind]]
    lines = []
    if of["transformer"] and others:
        least, most = min(of["transformer"]) - max(others), max(of["transformer"]) - max(others)
        lines.append(
            f"Against the best of the others the weakest Transformer has {least:+.1f} BLEU, the strongest {most:+.1f}."
        )
    fall = [one.quarters[0] - one.quarters[-1] for one in systems]
    lines.append(
        f"From the shortest to the longest quarter of sentences they lose {min(fall):.1f} to {max(fall):.1f} BLEU."
    )
    return lines
