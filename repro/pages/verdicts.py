"""The verdicts on the rows of a table as a column of it: each on the row's difference to the base. Paper: Table 3.

And which runs of a row, that its mean is of, have no part in them.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from repro.claims.bootstrap import DIFFERENCES
from repro.claims.claim import B0, BASE_DE, BASE_FR
from repro.claims.evidence import Apart, Evidence, why_apart
from repro.claims.judge import Judged
from repro.render.page import Column

if TYPE_CHECKING:
    from pandas import DataFrame

HEADING, STATED = "verdict", "statements"
BASES = {B0, BASE_DE, BASE_FR}  # what other rows are compared with, each in its own language pair


def verdict_columns(frame: "DataFrame", judged: Sequence[Judged]) -> list[Column]:
    """What the claims say that compare a row with the base, in their words; no column where none does.

    With their names where they do not all say the same.
    """
    said: dict[str, list[Judged]] = {}
    for one in judged:
        others = [row for row in one.claim.rows if row not in BASES]
        if one.claim.kind in DIFFERENCES and len(others) == 1:
            said.setdefault(others[0], []).append(one)
    rows = zip(frame["table"], frame["row"], strict=True)
    texts = [_joined(said.get(f"{table}/{row}", ())) for table, row in rows]
    return [Column("", HEADING, texts, is_words=True)] if any(texts) else []


def statement_columns(frame: "DataFrame", stated: Sequence[Judged]) -> list[Column]:
    """What became of the statements of teaching texts about each row, by their names; no column where none is."""
    said: dict[str, list[str]] = {}
    for one in stated:
        if one.claim.kind in DIFFERENCES and one.verdict != "not judged":
            for row in one.claim.rows:
                if row not in BASES:
                    said.setdefault(row, []).append(f"{one.claim.id}: {one.verdict}")
    rows = zip(frame["table"], frame["row"], strict=True)
    texts = [", ".join(said.get(f"{table}/{row}", ())) for table, row in rows]
    return [Column("", STATED, texts, is_words=True)] if any(texts) else []


def tell_exploration(frame: "DataFrame", evidence: Evidence) -> None:
    """Have a frame tell how many runs of each row settle nothing, and which in its notes.

    Not where no run of the scale settles anything: then there is no verdict to take for one of these means.
    """
    by_run = {(record.table, record.row, record.seed): Apart(record, why) for record, why in evidence.apart}
    lines = zip(frame["table"], frame["row"], frame["seeds"], strict=True)
    runs = [[by_run.get((table, row, int(seed))) for seed in seeds.split()] for table, row, seeds in lines]
    apart = [[run for run in of if run] for of in runs]
    if evidence.records and any(apart):
        frame.attrs["apart"] = [len(of) for of in apart]
        whole = why_apart([run for of in apart for run in of])
        frame.attrs["notes"] = [
            *frame.attrs["notes"],
            *(f"Exploratory, in means and in no verdict: {line}." for line in whole),
        ]


def _joined(about: Collection[Judged]) -> str:
    """In one cell; that a claim was not judged is told where nothing else is: most say how large a difference is."""
    told = [one for one in about if one.verdict != "not judged"] or about
    words = dict.fromkeys(one.verdict for one in told)
    return ", ".join(words if len(words) < 2 else (f"{one.claim.id}: {one.verdict}" for one in told))
