"""The verdicts on statements of teaching texts, on a page like that of the claims, with an error rate of its own.

The page begins with questions that those texts leave open, each with an answer made from the verdicts. No statement was
listed for the last question before its runs, so the ladder's table answers it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from repro.claims.bootstrap import Place
from repro.claims.claim import B0
from repro.claims.decisions import EXCLUDED, OF_SIGN, OF_SIZE, Outcome
from repro.claims.evidence import Evidence
from repro.claims.judge import SETTLES_NOTHING, Found, Judged
from repro.pages import claims
from repro.pages.columns import numbers, spreads
from repro.pages.scale_data import Summary
from repro.render.page import Block, Heading, Listing, Page, Strong, Words
from repro.results.frame import DataFrame
from repro.results.parts import KEPT, PLACES, THIRDS
from repro.results.resampled import Interval

NAME = "statements"
UNDECIDED = (OF_SIZE.neither, OF_SIGN.neither, EXCLUDED)
OF_TEXTS = claims.Subject("Statements of teaching texts, and ours", "statements", "what is said")
LADDER = "ladder"
SIMPLE, STATIC, ALIGNED = (f"{LADDER}/{row}" for row in ("simple", "static, mean", "soft alignment"))


class Part(NamedTuple):
    """One part of an answer, settled by one statement."""

    name: str
    claim: str  # the id of the statement that settles it
    is_worse: bool = True  # whether it is worse if the statement is right


QUESTIONS: Mapping[str, Sequence[Part]] = {
    "Is softmax needed?": (
        Part("sigmoid weights in its place", "S25a"),
        Part("ReLU weights", "S25b"),
        Part("the scores themselves as weights", "S25c"),
    ),
    "What would a decoder without a mask do?": (
        Part("its next token, where the reference that it reads has that token in it", "S24a", is_worse=False),
        Part("its translations", "S24b"),
    ),
    "Does a Transformer need scaled scores in order to learn?": (
        Part("no scale, at the base's d_k", "S13a"),
        Part("no scale, at d_k = d_model", "S13b"),
    ),
}

FADING = "Does the source fade as a translation goes on, and does a static context keep it?"
FADES = (SIMPLE, STATIC, ALIGNED, f"{LADDER}/ByteNet", f"{LADDER}/ConvS2S", B0)
FLOOR = 5.0  # BLEU of the first third; below it there is too little to lose in the last third


def page(
    judged: Sequence[Judged],
    evidence: Evidence,
    runs: Summary,
    sentences: Mapping[Place, Interval] = claims.NO_SENTENCES,
    *,
    ladder: DataFrame | None = None,
    **shared: Any,
) -> Page:
    """The verdicts of one scale, with intervals over sentences and what the ladder's table shows.

    `shared` are arguments of the page of claims. "As printed" reads "as said" here.
    """
    return claims.page(judged, evidence, runs, sentences, of=OF_TEXTS, answers=answers(judged, ladder), **shared)


def answers(judged: Sequence[Judged], ladder: DataFrame | None = None) -> tuple[Block, ...]:
    """A line for each question, from the verdicts and the ladder's table; empty where neither answers any."""
    by_id = {one.claim.id: one for one in judged}
    lines: list[Words] = []
    for question, parts in QUESTIONS.items():
        known = [(part, by_id[part.claim]) for part in parts if part.claim in by_id]
        if known:
            lines.append((Strong(question), f" {' '.join(_sentences(known))}"))
    if ladder is not None and (kept := _kept(ladder)):
        lines.append((Strong(FADING), f" {kept}"))
    return (Heading("Questions that those texts leave open"), Listing(tuple(lines))) if lines else ()


def _sentences(known: Sequence[tuple[Part, Judged]]) -> Iterator[str]:
    """The parts of an answer, grouped: Worse: ... Better: ... Not told apart: ... Not known yet: ..."""
    said: dict[str, list[str]] = {"Worse": [], "Better": [], "Not told apart": [], "Not known yet": []}
    for part, one in known:
        told = _differences(one.found, part) if one.verdict not in SETTLES_NOTHING else ()
        said[_word(one.verdict, part)].append(f"{part.name} ({'; '.join([*told, part.claim])})")
    for word, names in said.items():
        if names:
            yield f"{word}: {', '.join(names)}."


def _word(outcome: Outcome, part: Part) -> str:
    if outcome in SETTLES_NOTHING:
        return "Not known yet"
    if outcome in UNDECIDED:
        return "Not told apart"
    is_right = outcome in (OF_SIZE.yes, OF_SIGN.yes)
    return "Worse" if is_right == part.is_worse else "Better"


def _differences(every: Iterable[Found], part: Part) -> Iterator[str]:
    """Differences in words: 0.12 log PPL worse, BLEU undetermined; only decided signs get a number."""
    known = [found for found in every if found.value is not None]
    if all(found.verdict.outcome in UNDECIDED for found in known):
        return
    for found in known:
        name, value = found.endpoint.name, found.value or 0.0
        way = "worse" if (value > 0) == part.is_worse else "better"
        is_open = found.verdict.outcome in UNDECIDED
        yield f"{name} {found.verdict.outcome}" if is_open else f"{abs(value):.{found.endpoint.decimals}f} {name} {way}"


def _kept(ladder: DataFrame) -> str:
    """The share of the first third's BLEU that the last third of translations keeps, for the rows in `FADES`.

    It is not judged, as these runs were looked at before any statement on it was listed. Empty if no row before soft
    alignment was run, since the question is about those.
    """
    places = ladder["table"] + "/" + ladder["row"]
    if KEPT not in ladder or not {SIMPLE, STATIC} & {*places[ladder[KEPT].notna()]}:
        return ""
    first, last = ladder[THIRDS[-len(PLACES)]], ladder[THIRDS[-1]]
    written = (ladder["row"], spreads(ladder, KEPT, 0), numbers(last, ".1f"), numbers(first, ".1f"), first >= FLOOR)
    lines = dict(zip(places, zip(*written, strict=True), strict=True))
    told, too_low = list[str](), list[str]()
    for place in FADES:
        row, kept, of_last, of_first, tells = lines.get(place, ("", "", "", "", False))
        if tells:
            told.append(f"{row} {kept} % ({of_last} of {of_first})")
        elif of_first:
            too_low.append(f"{row} ({of_first} BLEU in the first third)")
    said = (
        ("Of the BLEU of their first third, translations have in their last", told),
        ("Too little is right to tell", too_low),
    )
    kept = [f"{what}: {'; '.join(rows)}." for what, rows in said if rows]
    return " ".join([*kept, "The base sees the whole source at each step: only what a row keeps less can be fading."])
