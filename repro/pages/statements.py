"""The verdicts on what teaching texts say, on a page like that of the claims and with an error rate of its own.

Before them stand the questions that those texts ask and leave open, each with an answer made from the verdicts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from repro.claims.bootstrap import Place
from repro.claims.decisions import OF_SIGN, OF_SIZE, Outcome
from repro.claims.evidence import Evidence
from repro.claims.judge import SETTLES_NOTHING, Found, Judged
from repro.pages import claims
from repro.render.page import Block, Heading, Listing, Page, Strong, Words
from repro.results.resampled import Interval
from repro.results.summary import Summary

NAME = "statements"
UNDECIDED = (OF_SIZE.neither, OF_SIGN.neither)
OF_TEXTS = claims.Subject("Statements of teaching texts", "statements", "what is said")


class Part(NamedTuple):
    """One thing that an answer has to say something of."""

    name: str
    claim: str  # the statement that tells
    is_worse: bool = True  # where the statement is right


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


def page(
    judged: Sequence[Judged],
    evidence: Evidence,
    runs: Summary,
    sentences: Mapping[Place, Interval] = claims.NO_SENTENCES,
    *,
    to_project: str = "../..",
) -> Page:
    """The verdicts of one scale, with intervals over sentences; `to_project` leads to the project's folder."""
    return claims.page(judged, evidence, runs, sentences, to_project=to_project, of=OF_TEXTS, answers=answers(judged))


def answers(judged: Sequence[Judged]) -> tuple[Block, ...]:
    """A line for each question, from the verdicts; nothing where none of its statements is there."""
    by_id = {one.claim.id: one for one in judged}
    lines: list[Words] = []
    for question, parts in QUESTIONS.items():
        known = [(part, by_id[part.claim]) for part in parts if part.claim in by_id]
        if known:
            lines.append((Strong(question), f" {' '.join(_sentences(known))}"))
    return (Heading("Questions that those texts leave open"), Listing(tuple(lines))) if lines else ()


def _sentences(known: Sequence[tuple[Part, Judged]]) -> Iterator[str]:
    """Worse: ... Better: ... Not told apart: ... Not known yet: ..."""
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
    """0.12 log PPL worse, BLEU open: a number where its sign was decided, and only there; nothing where none was."""
    known = [found for found in every if found.value is not None]
    if all(found.verdict.outcome in UNDECIDED for found in known):
        return
    for found in known:
        name, value = found.endpoint.name, found.value or 0.0
        way = "worse" if (value > 0) == part.is_worse else "better"
        is_open = found.verdict.outcome in UNDECIDED
        yield f"{name} {found.verdict.outcome}" if is_open else f"{abs(value):.{found.endpoint.decimals}f} {name} {way}"
