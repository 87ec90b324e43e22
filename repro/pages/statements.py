"""The page of statements of teaching texts: verdicts like those on claims, with an error rate of its own.

It begins with questions that those texts leave open, each answered from the verdicts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from repro.claims.decisions import EXCLUDED, OF_SIGN, OF_SIZE, Outcome
from repro.claims.judge import SETTLES_NOTHING, Judged
from repro.pages import claims
from repro.render.page import Block, Heading, Listing, Strong, Words

NAME = "statements"
UNDECIDED = (OF_SIZE.neither, OF_SIGN.neither, EXCLUDED)
OF_TEXTS = claims.Subject("Statements of teaching texts, and ours", "statements", "what is said")


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


def answers(judged: Iterable[Judged]) -> tuple[Block, ...]:
    """A line for each question: Worse: ... Better: ... Not told apart: ... Not known yet: ...; empty without any."""
    by_id = {one.claim.id: one for one in judged}
    lines: list[Words] = []
    for question, parts in QUESTIONS.items():
        said: dict[str, list[str]] = {"Worse": [], "Better": [], "Not told apart": [], "Not known yet": []}
        for part in parts:
            if part.claim in by_id:
                said[_word(by_id[part.claim].verdict, part)].append(f"{part.name} ({part.claim})")
        if any(said.values()):
            told = " ".join(f"{word}: {', '.join(names)}." for word, names in said.items() if names)
            lines.append((Strong(question), f" {told}"))
    return (Heading("Questions that those texts leave open"), Listing(tuple(lines))) if lines else ()


def _word(outcome: Outcome, part: Part) -> str:
    if outcome in SETTLES_NOTHING:
        return "Not known yet"
    if outcome in UNDECIDED:
        return "Not told apart"
    is_right = outcome in (OF_SIZE.yes, OF_SIGN.yes)
    return "Worse" if is_right == part.is_worse else "Better"
