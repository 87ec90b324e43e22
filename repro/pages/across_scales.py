"""results/README.md: claims about trained rows, each with its verdict at every scale that has any. Paper: all of it.

It is made from the same verdicts as the pages of the scales, and these decide which scales it shows. Verdicts that no
run settles are the same at all scales, and stand here once.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from repro.claims.blocks import ALPHA
from repro.claims.decisions import OF_SIGN, OF_SIZE, Outcome
from repro.claims.judge import OUTCOMES, Judged, may_judge, place_of_scale
from repro.pages.claims import ABOUT, RULES, agreement, group_of, settles, told_counts
from repro.pages.claims import NAME as OF_CLAIMS
from repro.pages.columns import MEAN_OF_LAST, numbers, tabled, with_minus
from repro.pages.scale_data import ScaleData, printed_of
from repro.render.page import (
    COMMAND,
    Block,
    Code,
    Column,
    Heading,
    Link,
    Listing,
    Page,
    Strong,
    Table,
    Text,
    Words,
    blocks,
    joined,
    made_from,
)
from repro.render.several import several
from repro.results.curves import Worth, on_texts

NAME = "README"
LADDER = "ladder"  # the systems before the Transformer
SCORES_OF_DEV = (("PPL", "dev/ppl", 2), ("BLEU", "dev/bleu", 1))
WORTH = (("nll", "log PPL", 3), ("bleu", "BLEU", 1))
WITHOUT = {"P_drop=0.0": "no dropout", "eps_ls=0.0": "no smoothing"}
TRIED = "laptop-20000-pairs"  # the first text of laptop; its present one was chosen for the effect of dropout on it
ABOUT_LADDER = (
    "Systems before the Transformer that are as large as the base and see as much text: means over seeds on dev, and "
    "the update after which the base's dev loss is the lower one. Where none stands, one of the two led throughout."
)
ABOUT_TEXTS = (
    "What a row has more than the base of the same text on dev, with its 95 % interval over the seeds that both have. "
    "At one scale all texts are learned from for as many updates, so that less text is seen more often."
)
ABOUT_TRIED = (
    "The generated text of laptop had 20,000 pairs at first, then 5,000, and has 3,000 now: it became smaller until "
    "dropout showed the paper's sign, and the sign of smoothing turned round with it. So C27a, C30a, C30e, C31a and "
    "C31b served to choose that text, and their verdicts at laptop are no evidence of their own."
)
NEITHER = {OF_SIZE.neither, OF_SIGN.neither}


Verdicts = tuple[Judged, ...]  # the verdicts on one claim, scale by scale


def page(scales: Sequence[ScaleData], *, is_own: bool = False) -> Page | None:
    """The page: counts by scale, findings, then claim by claim; None where no scale settles a claim about rows.

    `scales` are all scales with records, and have judged the same claims; `is_own` says that the records are one's own,
    not the published ones.
    """
    if not (shown := settling(scales)):
        return None
    every = [of for of in zip(*(one.judged for one in shown), strict=True) if of[0].claim.is_trained]
    lines = sorted(every, key=lambda of: [*ABOUT].index(group_of(of[0].claim)))
    judged_here = [line for line in lines if any(map(_is_judged, line))]
    again = (" A sweep makes only the pages of its scale: ", Code(f"{COMMAND} --own"), " makes this one again.")
    rules = Link("How verdicts are made", f"{'../..' if is_own else '..'}/{RULES}")
    return Page(
        made_from("the verdicts of the scales in this folder"),
        blocks(
            Heading("What came of the paper's claims, scale by scale", 1),
            Text(f"The {several(len(lines), 'claim')} about trained rows at {several(len(shown), 'scale')}:"),
            Listing(tuple(map(_of_scale, shown))),
            Heading("What came out"),
            Listing(tuple(_patterns(judged_here))),
            tuple(_attention(scales)),
            tuple(_texts(scales)),
            Heading("Claim by claim"),
            _table(shown, judged_here),
            Text(_missing(shown, lines)),
            Text(_others(shown, scales)),
            tuple(_untrained(shown[0])),
            Text((_promise(shown), rules, ".", *(again if is_own else ()))),
        ),
    )


def settling(scales: Iterable[ScaleData]) -> list[ScaleData]:
    """The scales that judged a claim about trained rows, by size, then by the number of claims that they judged."""
    shown = [one for one in scales if settles(one.judged)]
    return _by_size(sorted(shown, key=lambda one: -sum(map(_is_judged, one.judged))))


def _is_judged(one: Judged) -> bool:
    return one.verdict != "not judged"


def _of_scale(one: ScaleData) -> Words:
    """A scale in one line: laptop, which shows the sign of large effects: sign as printed 10, undetermined 9."""
    trained = [of for of in one.judged if of.claim.is_trained and _is_judged(of)]
    scale, agrees = one.runs.scale, agreement(one.evidence, printed_of(one.result_set))
    return (
        Link(scale, f"{scale}/README", to_page=True),
        f", which shows {one.runs.claim}: {told_counts(trained)} {agrees} ".replace("  ", " "),
        Link("Each with its numbers", f"{scale}/{OF_CLAIMS}", to_page=True),
        ".",
    )


# Findings beyond single verdicts


def _attention(scales: Sequence[ScaleData]) -> Iterator[Block]:
    """Systems before the Transformer compared with it, at every scale where one was run."""
    frames = {one.runs.scale: one.frames[LADDER] for one in _by_size(scales) if LADDER in one.frames}
    scored = {scale: frame[frame["dev/bleu"].notna()].set_index("row") for scale, frame in frames.items()}
    found = {scale: frame for scale, frame in scored.items() if len(frame) > 1}
    if not found:
        return
    run = Counter(row for frame in found.values() for row in frame.index)
    rows = [row for row, n in run.items() if n > 1 or len(found) == 1]
    columns = [Column("", "row", rows)]
    for scale, frame in found.items():
        lines = frame.reindex(rows)
        columns += [Column(scale, name, numbers(lines[of], f".{n}f")) for name, of, n in SCORES_OF_DEV]
        places = lines.get("along/updates/crossings", [""] * len(rows))
        told = [one if isinstance(one, str) and one != "nowhere" else "" for one in places]
        columns.append(Column(scale, "base ahead after", told))
    yield Heading("Is attention all you need, here?")
    yield Text(ABOUT_LADDER)
    yield tabled(columns)


def _texts(scales: Iterable[ScaleData]) -> Iterator[Block]:
    """The effect of dropout and of smoothing on each text; nothing where no scale has a row without them."""
    lines = [line for one in _by_size(scales) for line in _on_texts(one)]
    if not lines:
        return
    columns = [
        Column("", "scale", [name for name, *_ in lines]),
        Column("", "pairs", [f"{pairs:,}" for _, pairs, _ in lines]),
    ]
    for row, name in WITHOUT.items():
        columns += [
            Column(name, title, [_told(of.get(row), score, n) for *_, of in lines]) for score, title, n in WORTH
        ]
    yield Heading("What depends on how often the text is seen")
    yield Text(ABOUT_TEXTS)
    yield Table(tuple(columns))
    if any(name == TRIED for name, *_ in lines):
        yield Text(ABOUT_TRIED)


def _on_texts(one: ScaleData) -> Iterator[tuple[str, int, dict[str, Worth]]]:
    """Name of the weights, sentence pairs of the text, and each row's difference there; the paper's weights first."""
    texts = {row: of for row, of in on_texts(one.result_set.everything).items() if row in WITHOUT}
    scale = one.runs.scale
    for name, weights in ((scale, "found"), (f"{scale}, {MEAN_OF_LAST} checkpoints", "of_mean")):
        by_pairs: dict[int, dict[str, Worth]] = {}
        for row, of in texts.items():
            for on in of:
                if found := getattr(on, weights):
                    by_pairs.setdefault(on.pairs, {})[row] = found
        yield from ((name, pairs, by_pairs[pairs]) for pairs in sorted(by_pairs))


def _told(of: Worth | None, score: str, decimals: int) -> str:
    """A difference as text, -1.2 ± 0.3; for fewer than three seeds only the mean."""
    if of is None:
        return ""
    mean, half = of[score]
    return numbers([mean], f"+z.{decimals}f")[0] + ("" if half is None else f" ± {half:.{decimals}f}")


def _by_size(scales: Iterable[ScaleData]) -> list[ScaleData]:
    return sorted(scales, key=lambda one: place_of_scale(one.runs.scale))


# Verdicts, in words


def _promise(shown: Sequence[ScaleData]) -> str:
    """How far the verdicts may be trusted, and what they do not cover."""
    level, n = 100 * ALPHA, len(shown)
    together = f", and so to {level * n:g} % over these {n} together" if n > 1 else ""
    return (
        f"The rules are meant to keep the chance of any wrong verdict to {level:g} % at each scale{together}. "
        "A verdict holds for the text, the model and the budget of its scale; sizes in the sentences are the paper's. "
    )


def _patterns(lines: Iterable[Verdicts]) -> Iterator[Words]:
    """Claims by pattern: sign as printed at every scale that judged them: 11 claims, 9 of them judged at more ..."""
    groups: dict[tuple[Outcome, ...], list[Verdicts]] = {}
    for line in lines:
        found = {one.verdict for one in line if _is_judged(one)}
        groups.setdefault(tuple(outcome for outcome in OUTCOMES if outcome in found), []).append(line)
    for outcomes in sorted(groups, key=lambda of: (len(of), [OUTCOMES.index(outcome) for outcome in of])):
        members = groups[outcomes]
        more = sum(sum(map(_is_judged, line)) > 1 for line in members)
        is_one = len(outcomes) == 1
        where = "every scale that judged them" if is_one else "another"
        twice = f", {more} of them judged at more than one" if more and is_one else ""
        told = f": {'; '.join(line[0].claim.sentence for line in members)}" * (not {*outcomes} <= NEITHER)
        strong = joined([(Strong(outcome),) for outcome in outcomes], " at one scale, ")
        yield *strong, f" at {where}: {several(len(members), 'claim')}{twice}{told}."


def _untrained(one: ScaleData) -> Iterator[Block]:
    """The claims and statements that no run settles, those that were not judged by their ids alone."""
    for title, judged in (("claims", one.judged), ("statements of teaching texts, and ours", one.stated)):
        groups: dict[str, list[Judged]] = {}
        for of in judged:
            if not of.claim.is_trained and _is_judged(of):
                groups.setdefault(ABOUT[of.claim.kind], []).append(of)
        if not groups:
            continue
        waiting = [of.claim.id for of in judged if not of.claim.is_trained and not _is_judged(of)]
        yield Heading(f"What needs no trained row: {title}")
        yield Text(f"Alike at every scale: {told_counts([of for group in groups.values() for of in group])}")
        for about, members in groups.items():
            yield Text((Strong(about),))
            yield tabled(_settled(members))
        yield Text(f"Not judged: {', '.join(waiting)}." if waiting else "")


def _settled(members: Sequence[Judged]) -> Iterator[Column]:
    """Claims that no run settles, with the printed numbers that do and with what is right."""
    yield Column("", "claim", [one.claim.id for one in members])
    yield Column("", "what is said", [one.sentence for one in members], is_words=True)
    yield Column("", "verdict", [(Strong(one.verdict),) for one in members], is_words=True)
    numbers_of = [with_minus(one.reason) if one.claim.kind == "arithmetic" else "" for one in members]
    told = [". ".join(filter(None, (by, one.claim.note))) for by, one in zip(numbers_of, members, strict=True)]
    yield Column("", "by, and what is right", told, is_words=True)


# Claim by claim


def _table(shown: Sequence[ScaleData], lines: Sequence[Verdicts]) -> Table:
    claims = [line[0].claim for line in lines]
    return Table(
        (
            Column("", "claim", [claim.id for claim in claims]),
            Column("", "table", [ABOUT[group_of(claim)].partition(":")[0] for claim in claims], is_words=True),
            Column("", "what the paper says", [claim.sentence for claim in claims], is_words=True),
            *(
                Column("", at.runs.scale, [_cell(line[i], at.runs.scale) for line in lines], is_words=True)
                for i, at in enumerate(shown)
            ),
        )
    )


def _cell(one: Judged, scale: str) -> Words:
    """The verdict, bold if it is decided; for a scale that is too small, the scale that would be large enough."""
    if _is_judged(one):
        return one.verdict if one.verdict in NEITHER else (Strong(one.verdict),)
    return "not run" if may_judge(scale, one.claim) else f"needs {one.claim.scale}"


def _missing(shown: Sequence[ScaleData], lines: Sequence[Verdicts]) -> str:
    """One sentence on the claims that were judged at no scale."""
    nowhere = [line[0].claim for line in lines if not any(map(_is_judged, line))]
    if not nowhere:
        return ""
    small = [claim for claim in nowhere if not any(may_judge(at.runs.scale, claim) for at in shown)]
    needs = [f"{n} that needs {scale}" for scale, n in Counter(claim.scale for claim in small).items()]
    told = [*(claim.sentence for claim in nowhere if claim not in small), *needs]
    return f"Judged at no scale, {len(nowhere)} of the {several(len(lines), 'claim')}: {'; '.join(told)}."


def _others(shown: Sequence[ScaleData], scales: Iterable[ScaleData]) -> Words:
    """The scales whose runs settle nothing; nothing where there is none."""
    names = sorted({one.runs.scale for one in scales} - {one.runs.scale for one in shown})
    links = joined([(Link(name, f"{name}/README", to_page=True),) for name in names], ", ")
    return ("Exploration, or too few runs to settle anything about trained rows: ", *links, ".") if names else ""
