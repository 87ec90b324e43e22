"""results/README.md: claims about trained rows, each with its verdict at every scale that has any. Paper: all of it.

It is made from the same verdicts as the pages of the scales, and these decide which scales it shows. Verdicts that no
run settles are the same at all scales, and stand here once.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from repro.claims.blocks import ALPHA
from repro.claims.catalogue import SCALE_ORDER
from repro.claims.decisions import EXCLUDED, OF_SIGN, OF_SIZE, Outcome
from repro.claims.judge import OUTCOMES, Judged, may_judge, may_judge_sizes, place_of_scale
from repro.pages.claims import ABOUT, RULES, agreement, by_subject, group_of, settles, told_counts, untrained
from repro.pages.claims import NAME as OF_CLAIMS
from repro.pages.columns import MEAN_OF_LAST, numbers
from repro.pages.scale_data import ScaleData, printed_of
from repro.render.origin import COMMAND, made_from
from repro.render.page import Block, Code, Column, Heading, Link, Listing, Page, Strong, Table, Text, Words, blocks
from repro.render.several import several
from repro.results.frame import DataFrame
from repro.results.texts import OnText, Worth, on_texts

NAME = "README"
LADDER = "ladder"  # the systems before the Transformer
SCORES_OF_DEV = (("PPL", "dev/ppl", 2), ("BLEU", "dev/bleu", 1))
WORTH = (("nll", "log PPL", 3), ("bleu", "BLEU", 1))
WITHOUT = {"P_drop=0.0": "no dropout", "eps_ls=0.0": "no smoothing"}
TRIED = "laptop-20000-pairs"  # the first text of laptop; its present one was chosen for the effect of dropout on it
ABOUT_LADDER = (
    "The abstract's claim, asked of systems before the Transformer that are as large as the base and see as much text: "
    "perplexity and BLEU of dev, means over seeds, and the update after which the base's dev loss is the lower one. "
    "Where none stands, one of the two led from the first measurement to the last. Rows that were run at one scale "
    "alone stand on its page."
)
ABOUT_TEXTS = (
    "What a row has more than the base of the same text on dev, over the seeds that both have, with its 95 % interval; "
    "at one scale all texts are learned from for as many updates. A text that is seen often is learned by heart where "
    "nothing is dropped, and smoothing keeps a model from being sure of it."
)
ABOUT_TRIED = (
    "The generated text of laptop had 20,000 pairs at first, then 5,000, and has 3,000 now: it became smaller until "
    "dropout showed the paper's sign, and the sign of smoothing turned round with it. So C27a, C30a, C30e, C31a and "
    "C31b served to choose that text, and their verdicts at laptop are no evidence of their own."
)
TRAINED = "about trained rows"  # as `by_subject` calls them
NEITHER = {OF_SIZE.neither, OF_SIGN.neither}
MEANINGS: dict[tuple[Outcome, ...], str] = {  # what the verdicts about trained rows mean
    (OF_SIZE.yes, OF_SIGN.yes): "the rows differ as the paper says",
    (OF_SIZE.no, OF_SIGN.no): "they differ the other way round",
    (EXCLUDED,): "no sign is shown, and the rows differ less than the paper prints",
    (OF_SIZE.neither, OF_SIGN.neither): "nothing is shown, which is not to say that they are alike",
    ("not testable here",): "what the claim needs does not hold at this scale",
    ("unstable",): "runs of its rows diverged",
}


class AtScale(NamedTuple):
    """One scale that has records, and its verdicts on the claims of the paper."""

    scale: str
    shows: str  # what its pages may show: the sign of large effects
    judged: Sequence[Judged]
    stated: Sequence[Judged] = ()
    agreement: str = ""  # how well its differences agree with the printed ones, in a sentence
    frames: "Mapping[str, DataFrame] | None" = None  # by table
    texts: Mapping[str, Sequence[OnText]] = MappingProxyType({})  # rows that leave a part out against base, by text

    @classmethod
    def of(cls, data: ScaleData) -> "AtScale":
        """The part of a scale's data that this page shows."""
        said = agreement(data.evidence, printed_of(data.result_set)) if not data.is_exploration else ""
        texts = {row: of for row, of in on_texts(data.result_set.everything).items() if row in WITHOUT}
        return cls(data.runs.scale, data.runs.claim, data.judged, data.stated, said, data.frames, texts)


Verdicts = tuple[Judged, ...]  # the verdicts on one claim, scale by scale


def page(scales: Sequence[AtScale], *, is_own: bool = False) -> Page | None:
    """The page: counts by scale, findings, then claim by claim; None where no scale settles a claim about rows.

    `scales` are all scales with records, and have judged the same claims; `is_own` says that the records are one's own,
    not the published ones.
    """
    if not (shown := settling(scales)):
        return None
    lines = _lines(shown)
    judged_here = [line for line in lines if any(map(_is_judged, line))]
    rules = f"{'../..' if is_own else '..'}/{RULES}"
    return Page(
        made_from("the verdicts of the scales in this folder"),
        blocks(
            Heading("What came of the paper's claims, scale by scale", 1),
            Text(
                f"The {several(len(lines), 'claim')} of the paper {TRAINED}, as the runs of "
                f"{several(len(shown), 'scale')} judged them:"
            ),
            Listing(tuple(map(_of_scale, shown))),
            Heading("What came out"),
            Listing(tuple(_patterns(judged_here))),
            tuple(_attention(scales)),
            tuple(_texts(scales)),
            Heading("Claim by claim"),
            _table(shown, judged_here),
            Text(_about_table(shown, judged_here)),
            Heading("What is not judged"),
            Listing((*_missing(shown, scales, lines), *_others(shown, scales))),
            _untrained(shown[0]),
            Heading("What a verdict says"),
            Listing(tuple(_meanings(judged_here))),
            Text((_promise(shown), Link("How verdicts are made", rules), ".")),
            Text(("A sweep makes only the pages of its scale: ", Code(f"{COMMAND} --own"), " makes this one again."))
            if is_own
            else (),
        ),
    )


def settling(scales: Iterable[AtScale]) -> list[AtScale]:
    """The scales that judged a claim about trained rows, by size, then by the number of claims that they judged."""
    shown = [one for one in scales if settles(one.judged)]
    return sorted(shown, key=lambda one: (place_of_scale(one.scale), -sum(map(_is_judged, one.judged)), one.scale))


def _is_judged(one: Judged) -> bool:
    return one.verdict != "not judged"


def _lines(shown: Sequence[AtScale]) -> list[Verdicts]:
    """Each claim about trained rows with its verdicts, table by table, within a table in the catalogue's order."""
    every = [of for of in zip(*(one.judged for one in shown), strict=True) if of[0].claim.is_trained]
    return sorted(every, key=lambda of: [*ABOUT].index(group_of(of[0].claim)))


def _of_scale(one: AtScale) -> Words:
    """A scale in one line: laptop, which shows the sign of large effects: sign as printed 10, undetermined 9."""
    trained = [of for of in by_subject(one.judged)[TRAINED] if _is_judged(of)]
    return (
        Link(one.scale, f"{one.scale}/README", to_page=True),
        f", which shows {one.shows}: {told_counts(trained)} {one.agreement} ".replace("  ", " "),
        Link("Each with its numbers", f"{one.scale}/{OF_CLAIMS}", to_page=True),
        ".",
    )


# Findings beyond single verdicts


def _attention(scales: Sequence[AtScale]) -> Iterator[Block]:
    """Systems before the Transformer compared with it, at every scale where one was run."""
    scored = ((one.scale, _scored(one, LADDER)) for one in _by_size(scales))
    found = {scale: frame for scale, frame in scored if frame is not None and len(frame) > 1}
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
    yield Table(tuple(columns))


def _texts(scales: Iterable[AtScale]) -> Iterator[Block]:
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


def _on_texts(one: AtScale) -> Iterator[tuple[str, int, dict[str, Worth]]]:
    """Name of the weights, sentence pairs of the text, and each row's difference there; the paper's weights first."""
    for name, weights in ((one.scale, "found"), (f"{one.scale}, {MEAN_OF_LAST} checkpoints", "of_mean")):
        by_pairs: dict[int, dict[str, Worth]] = {}
        for row, of in one.texts.items():
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


def _scored(one: AtScale, table: str) -> DataFrame | None:
    """The scored rows of a table, by name; None where it was not run."""
    frame = (one.frames or {}).get(table)
    return None if frame is None else frame[frame["dev/bleu"].notna()].set_index("row")


def _by_size(scales: Iterable[AtScale]) -> list[AtScale]:
    return sorted(scales, key=lambda one: (place_of_scale(one.scale), one.scale))


# Verdicts, in words


def _meanings(lines: Iterable[Verdicts]) -> Iterator[Words]:
    """The meaning of each verdict that occurs: sign as printed: the rows differ as the paper says."""
    there = {one.verdict for line in lines for one in line}
    for outcomes, meaning in MEANINGS.items():
        if told := [outcome for outcome in outcomes if outcome in there]:
            yield *_strong(told, " or "), f": {meaning}."


def _promise(shown: Sequence[AtScale]) -> str:
    """How far the verdicts may be trusted, and what they do not cover."""
    level, n, largest = 100 * ALPHA, len(shown), SCALE_ORDER[-1]
    together = f", and so to {level * n:g} % over these {n} together" if n > 1 else ""
    signs = (
        f" Below {largest} it speaks of the sign of a difference: model and text are others there."
        if any(not may_judge_sizes(one.scale) for one in shown)
        else ""
    )
    return (
        f"The rules are meant to keep the chance of any wrong verdict to {level:g} % at each scale{together}. "
        f"A verdict holds for the text, the model and the budget of its scale.{signs} "
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
        yield *_strong(outcomes, " at one scale, "), f" at {where}: {several(len(members), 'claim')}{twice}{told}."


def _strong(outcomes: Sequence[Outcome], between: str) -> Sequence[str | Link]:
    """The outcomes in bold, with words between them."""
    return [part for outcome in outcomes for part in (between, Strong(outcome))][1:]


def _untrained(one: AtScale) -> Iterator[Block]:
    """The claims and statements that no run settles, grouped by what settles them."""
    for title, judged in (("claims", one.judged), ("statements of teaching texts, and ours,", one.stated)):
        groups: dict[str, list[Judged]] = {}
        for of in judged:
            if not of.claim.is_trained:
                groups.setdefault(ABOUT[of.claim.kind], []).append(of)
        if groups:
            n = sum(map(len, groups.values()))
            yield Heading(f"What needs no trained row: {title}".rstrip(","))
            yield Text(f"{n}, alike at every scale: {told_counts([of for group in groups.values() for of in group])}")
        for about, members in groups.items():
            yield Text((Strong(about),))
            yield untrained(members, "what is said")


# Claim by claim


def _table(shown: Sequence[AtScale], lines: Sequence[Verdicts]) -> Table:
    claims = [line[0].claim for line in lines]
    return Table(
        (
            Column("", "claim", [claim.id for claim in claims]),
            Column("", "table", [ABOUT[group_of(claim)].partition(":")[0] for claim in claims], is_words=True),
            Column("", "what the paper says", [claim.sentence for claim in claims], is_words=True),
            *(
                Column("", at.scale, [_cell(line[i], at.scale) for line in lines], is_words=True)
                for i, at in enumerate(shown)
            ),
        )
    )


def _cell(one: Judged, scale: str) -> Words:
    """The verdict, bold if it is decided; for a scale that is too small, the scale that would be large enough."""
    if _is_judged(one):
        return one.verdict if one.verdict in NEITHER else (Strong(one.verdict),)
    return "not run" if may_judge(scale, one.claim) else f"needs {one.claim.scale}"


def _about_table(shown: Sequence[AtScale], lines: Iterable[Verdicts]) -> str:
    """The explanation of the words in the table."""
    lines = list(lines)
    said = []
    if any(one.sentence != one.claim.sentence for line in lines for one in line):
        said.append("Sizes in the sentences are the paper's; the page of a scale has those of its own rows.")
    if any(not may_judge(at.scale, line[i].claim) for line in lines for i, at in enumerate(shown)):
        said.append("A scale that would be too small for a claim says which it needs.")
    if any(
        not _is_judged(line[i]) and may_judge(at.scale, line[i].claim) for line in lines for i, at in enumerate(shown)
    ):
        said.append("Not run: too few runs that count, or rows that do not compare; the page of the scale says which.")
    return " ".join(said)


def _missing(shown: Sequence[AtScale], scales: Iterable[AtScale], lines: Sequence[Verdicts]) -> Iterator[str]:
    """How many claims were judged at no scale, which scales they need, and which of these have no runs."""
    nowhere = [line[0].claim for line in lines if not any(map(_is_judged, line))]
    small = [claim for claim in nowhere if not any(may_judge(at.scale, claim) for at in shown)]
    yield f"{len(nowhere)} of the {several(len(lines), 'claim')} {TRAINED} were judged at no scale."
    for scale in SCALE_ORDER:
        if n := Counter(claim.scale for claim in small)[scale]:
            yield f"{n} of them cannot be judged below {scale}."
    if waiting := [claim.sentence for claim in nowhere if claim not in small]:
        told = "; ".join(waiting)
        yield f"{len(waiting)} of them a scale above may judge, and its page says what is wanting: {told}."
    run = {one.scale.split("-")[0] for one in scales}
    trained = [line[0].claim for line in lines]
    if idle := [of for of in SCALE_ORDER if of not in run and any(may_judge(of, claim) for claim in trained)]:
        yield f"Nothing here was run at {' or '.join(idle)}."
    if not any(may_judge_sizes(at.scale) for at in shown):
        yield f"No size that the paper prints is judged: that takes {SCALE_ORDER[-1]}."


def _others(shown: Sequence[AtScale], scales: Iterable[AtScale]) -> Iterator[Words]:
    """The scales whose runs settle nothing; nothing where there is none."""
    names = sorted({one.scale for one in scales} - {one.scale for one in shown})
    if names:
        said = "Runs that are exploration, or too few to settle anything about trained rows: "
        yield said, *[part for name in names for part in (", ", Link(name, f"{name}/README", to_page=True))][1:], "."
