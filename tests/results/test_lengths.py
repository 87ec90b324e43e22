"""How long translations are, and how many are empty: by hand, and on the page of a table."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from kept_sentences import REFERENCES, with_scores
from paper_runs import paper_run

from repro.pages.columns import DELTA
from repro.pages.sections import OF_TRANSLATIONS, lengths_section
from repro.render.page import Table
from repro.results.frame import table
from repro.results.parts import EMPTY, RATIO, length_decides, with_lengths
from repro.results.record import Record, path
from repro.results.sentences import write_sentences
from repro.runs.outputs import translated

WHOLE = REFERENCES["dev"]  # of 8, 6 and 3 words


def run(row: str, seed: int, dev: list[str], results: Path, table: str = "table3_A") -> Record:
    """A run that translated dev so, and test as its references are; no file beside it where dev is nothing."""
    hypotheses = {"dev": dev or WHOLE, "test": REFERENCES["test"]}
    made = {
        split: translated(lines, REFERENCES[split], "en-de", in_tokens=False) for split, lines in hypotheses.items()
    }
    record = with_scores(paper_run(row, table, seed=seed, run=f"{len(row)}{seed:015x}"), made)
    if dev:
        write_sentences(path(results, record), record.run, made)
    return record


def test_empty_ones_are_counted_and_all_tokens_are_held_against_the_references(tmp_path: Path) -> None:
    records = [
        run("h=1", 1, ["", WHOLE[1], "das ist"], tmp_path),
        run("h=1", 2, [*WHOLE], tmp_path),
        run("h=4", 3, [f"{line} , ja" for line in WHOLE], tmp_path),
        run("h=16", 1, [*WHOLE], tmp_path),
        run("h=16", 2, [], tmp_path),
    ]
    made = with_lengths(table(records), records, tmp_path)
    found = made.set_index("row")
    assert found.loc["h=1", EMPTY] == pytest.approx(100 * (1 / 3 + 0) / 2)
    assert found.loc["h=1", [f"{RATIO}_min", f"{RATIO}_max"]].tolist() == pytest.approx([8 / 17, 1])
    assert found.loc["h=4", [EMPTY, RATIO]].tolist() == pytest.approx([0, 23 / 17])
    assert found.loc["h=16", [EMPTY, RATIO]].isna().all(), "one of its runs is not known"
    _, shown, *_ = lengths_section(made, ())
    assert isinstance(shown, Table)
    columns = {column.heading: dict(zip(made["row"], column.texts, strict=True)) for column in shown.columns[1:]}
    assert {column.group for column in shown.columns[1:]} == {OF_TRANSLATIONS}
    assert columns["empty (%)"] == {"h=1": "16.7 [0.0, 33.3]", "h=4": "0.0", "h=16": ""}
    assert columns["length"] == {"h=1": "0.735 [0.471, 1.000]", "h=4": "1.353", "h=16": ""}
    assert DELTA not in columns, "there is no base"


def test_a_difference_of_lengths_is_over_common_seeds_and_says_where_it_decides(tmp_path: Path) -> None:
    # 16 of 17 words and all of them right, so less BLEU for the penalty alone; another word wrong, and no penalty
    short, wrong = [" ".join(WHOLE[0].split()[:-1]), *WHOLE[1:]], [f"x {WHOLE[0].split(' ', 1)[1]}", *WHOLE[1:]]
    base = [run("base", 1, short, tmp_path, table="base")]
    records = [run("h=1", 1, wrong, tmp_path), run("h=1", 2, [*WHOLE], tmp_path), run("h=4", 2, [*WHOLE], tmp_path)]
    of_other_text = {**records[0].corpus, "sha256": "cd"}
    records.append(replace(run("other", 1, wrong, tmp_path), corpus=of_other_text))
    made = with_lengths(table(records, base=base), [*base, *records], tmp_path)
    _, shown, *_ = lengths_section(made, ())
    assert isinstance(shown, Table)
    assert [column.texts for column in shown.columns if column.heading == DELTA] == [["", "+0.059", "", ""]]


@pytest.mark.parametrize(
    ("bleus", "lengths", "decides"),
    [
        ((20.0, 25.0), (0.8, 1.0), True),  # 20 e^0.25 = 25.7: better words, and fewer of them
        ((20.0, 25.0), (0.85, 1.0), False),  # 20 e^0.176 = 23.9
        ((25.0, 20.0), (1.2, 0.9), False),
        ((25.0, 24.0), (1.2, 0.9), True),  # 24 e^0.111 = 26.8; what is too long has no penalty
        ((0.0, 20.0), (0.1, 1.0), False),
    ],
)
def test_length_decides_where_bleu_without_its_penalty_has_the_other_sign(
    bleus: tuple[float, float], lengths: tuple[float, float], decides: bool
) -> None:
    assert length_decides(bleus[0] - bleus[1], bleus, lengths) == decides


def test_where_nobody_knows_there_is_no_column_and_no_section(tmp_path: Path) -> None:
    records = [run("h=1", 1, [], tmp_path)]
    frame = table(records)
    pd.testing.assert_frame_equal(with_lengths(frame, records, tmp_path), frame)
    assert lengths_section(frame, ()) == ()
