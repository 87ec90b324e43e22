"""The page of parsers: what the runs say to the claims, and no word about what the page does not have."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parser_runs import parser

from repro.claims.catalogue import CLAIMS
from repro.claims.decisions import Outcome
from repro.claims.judge import Judged
from repro.pages.tables import page_of_table, special_at_the_end
from repro.render.markdown import markdown
from repro.render.terminal import terminal
from repro.results.brackets import Brackets
from repro.results.frame import table
from repro.results.labels import AT_PAPER_SIZE
from repro.results.parts import with_brackets

ROWS = ("WSJ only", "semi-supervised")
PAPER = "**paper**: as printed"
OF_SEEDS = "in the intervals above"
PAIRED = "ifferences are paired"
IN_BRACKETS = "**(In brackets)**"
VERDICTS = "## Verdicts on the paper's claims"


def brackets(right: int) -> Brackets:
    """Of six sentences, all gold brackets found but in the longest, of which so many."""
    sizes = np.array([1, 2, 3, 5, 7, 11])
    return Brackets(sizes, sizes, sizes, np.array([1, 2, 3, 5, 7, right]), {})


def frame_of(
    results: Path, *, n_seeds: int, rows: tuple[str, ...] = ROWS, name: str = "table4", corpus: str = "grammar_trees"
) -> Any:
    records = [
        parser(results, row, seed, dict.fromkeys(("dev", "test"), of), table=name, corpus=corpus, position=i)
        for i, row in enumerate(rows)
        for seed in range(4, 4 + n_seeds)
        for of in [brackets(seed + 2 * i)]
    ]
    return with_brackets(table(records), records, results)


def text_of(frame: Any, *judged: Judged, name: str = "table4") -> str:
    return markdown(page_of_table(frame, "laptop", name, judged))


def came_out(id: str, verdict: Outcome, reason: str) -> Judged:
    return Judged(claim=next(one for one in CLAIMS if one.id == id), verdict=verdict, reason=reason)


JUDGED = (
    came_out("C33c", "sign as printed", "F1 above 42.4"),
    came_out("C32e", "not judged", "too few runs"),
    came_out("C33d", "opposite sign", "F1 the other way round: below -16.1"),
    came_out("C29a", "sign as printed", "BLEU above 0.3"),
    came_out("C32a", "holds here", "91.3 and 90.4"),
)


def test_the_claims_about_the_table_that_were_judged_stand_below_the_scores(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, n_seeds=1)
    text = text_of(frame, *JUDGED)
    under = text.split(f"{VERDICTS}\n\n")[1].split("\n\n## ")[0].split("\n")
    assert [line for line in under if line.startswith("- ")] == [
        "- **sign as printed**: A recurrent parser with attention is better with silver text (C33c; F1 above 42.4)",
        "- **opposite sign**: On little text a recurrent parser with attention is below the Transformer (C33d; "
        "F1 the other way round: below −16.1)",
    ]
    assert "[claims.md](claims.md)" in under[0]
    assert text.index("## Our runs") < text.index(VERDICTS) < text.index("## By length")


@pytest.mark.parametrize(
    ("name", "judged"),
    [("table4", ()), ("table4", JUDGED[1:2]), ("table4", JUDGED[3:]), ("table4_grid", JUDGED)],
    ids=["no claim", "not judged", "about other tables and print", "a table without claims"],
)
def test_where_no_claim_about_it_was_judged_the_page_says_nothing_of_claims(
    name: str, judged: tuple[Judged, ...], tmp_path: Path
) -> None:
    text = text_of(frame_of(tmp_path, n_seeds=1, name=name), *judged, name=name)
    assert "Verdicts" not in text
    assert "claims.md" not in text


def test_what_is_printed_stands_beside_runs_on_the_papers_text_alone(tmp_path: Path) -> None:
    for corpora, is_papers in ((("wsj",), True), (("wsj", "wsj_silver"), True), (("craft",), False)):
        frame = frame_of(tmp_path, n_seeds=1, corpus=corpora[0])
        frame.attrs["corpora"] = list(corpora)
        runs = text_of(frame).split("## Our runs")[1].split("\n## ")[0]
        assert (PAPER in runs, "91.3" in runs) == (is_papers, is_papers), corpora
        at_the_end = " ".join(terminal(special_at_the_end(frame, "table4")).split())
        assert ("91.3" in at_the_end, "no number here can be compared" in at_the_end) == (is_papers, not is_papers)


@pytest.mark.parametrize(("n_seeds", "has_intervals"), [(1, False), (2, False), (3, True)])
def test_intervals_over_seeds_are_spoken_of_where_there_are_any(
    n_seeds: int, has_intervals: bool, tmp_path: Path
) -> None:
    text = text_of(frame_of(tmp_path, n_seeds=n_seeds))
    assert (bool(re.search(r"\d\s±\s\d", text)), OF_SEEDS in text) == (has_intervals, has_intervals)
    assert "This shows what depends on the sentences" in text


def test_differences_between_rows_are_spoken_of_where_there_are_two(tmp_path: Path) -> None:
    both, alone = (text_of(frame_of(tmp_path, n_seeds=1, rows=rows)) for rows in (ROWS, ROWS[:1]))
    assert ("more than WSJ only" in both, PAIRED in both) == (True, True)
    assert ("more than WSJ only" in alone, PAIRED in alone) == (False, False)


def test_brackets_around_settings_are_spoken_of_where_there_are_any(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, n_seeds=1)
    assert "A row shows what it changes" not in text_of(frame), "no setting differs"
    frame["n_layers"] = frame["n_layers" + AT_PAPER_SIZE] = [1, 2]
    same = text_of(frame)
    frame["n_layers" + AT_PAPER_SIZE] = [2, 4]
    other = text_of(frame)
    assert ("A row shows what it changes" in same, IN_BRACKETS in same) == (True, False)
    assert ("| 1 (2) |" in other.replace("\N{NO-BREAK SPACE}", " "), IN_BRACKETS in other) == (True, True)
