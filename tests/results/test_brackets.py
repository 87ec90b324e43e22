"""The brackets of each sentence beside the record of a parser's run: what its F1 is made of."""

import random
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data.test_treebank import whole
from paper_runs import paper_run
from parser_runs import parser

from repro.corpora.grammar.generate import gold_trees
from repro.results.artifacts import are_of, own_file
from repro.results.details import F1_THIRDS, with_brackets
from repro.results.frame import table
from repro.results.record import Record, path
from repro.results.sentences import (
    Brackets,
    fault_of_brackets,
    read_brackets,
    write_brackets,
)
from repro.runs.outputs import brackets_of
from repro.runs.parsing import Parsing

SPLITS = {
    "dev": Brackets(
        np.array([4, 9, 2, 7, 7]),
        np.array([2, 6, 1, 4, 3]),
        np.array([2, 5, 2, 4, 5]),
        np.array([2, 3, 1, 4, 1]),
        {"a leaf missing": np.array([0, 1, 0, 0, 0]), "never closed": np.array([0, 2, 0, 0, 1])},
    ),
    "test": Brackets(np.array([3, 3, 3]), np.array([1, 2, 1]), np.array([1, 2, 2]), np.array([1, 1, 1]), {}),
}


def parser_run(results: Path) -> Record:
    """A record of which the scores are those of SPLITS, with its brackets beside it."""
    return parser(results, "WSJ only", 4, SPLITS, run="0123456789abcdef", corpus="wmt14")


def test_scores_by_hand() -> None:
    assert SPLITS["dev"].scores() == {
        "f1": pytest.approx(100 * 2 * 11 / (16 + 18)),
        "precision": pytest.approx(100 * 11 / 16),
        "recall": pytest.approx(100 * 11 / 18),
        "exact": 40.0,
        "mended": 40.0,
    }
    # the third, the first; the two of 7 words in their order; the one of 9: parts of 2, 2 and 1
    assert SPLITS["dev"].by_length() == pytest.approx([100 * 6 / 7, 100 * 10 / 16, 100 * 6 / 11])
    nothing = Brackets(*(np.zeros(0, np.int64) for _ in range(4)), {})  # type: ignore[arg-type]
    assert set(nothing.scores().values()) == {0.0}


def test_scores_of_counts_are_those_of_the_task() -> None:
    """Outputs with words, brackets and tags left out, twice and in other places: sums of sentences are the score."""
    draw = random.Random(3)
    gold = [whole(tree) for tree in islice(gold_trees(5), 60)]
    outputs = []
    for line in gold:
        tokens = line.split()
        for _ in range(draw.randrange(4)):
            i, j = (draw.randrange(len(tokens)) for _ in range(2))
            tokens = [*tokens[:i], *tokens[i + draw.randrange(2) :], *tokens[j : j + draw.randrange(2)]]
        outputs.append(" ".join(tokens))
    found, scored = brackets_of(outputs, gold), Parsing().score(outputs, gold, in_tokens=False)
    assert 0 < found.scores()["mended"] < 100
    for name, value in found.scores().items():
        assert value == pytest.approx(scored[name]), name
    assert found.words.tolist() == [sum(token[0] not in "()" for token in line.split()) for line in gold]


def test_brackets_that_were_written_are_read_again_and_what_gives_other_scores_is_refused(tmp_path: Path) -> None:
    record = parser_run(tmp_path)
    assert repr(read_brackets(tmp_path, record)) == repr(SPLITS)
    assert fault_of_brackets(tmp_path, record) is None
    for column, values, complaint in (
        ("found", [2, 6, 1, 4, 4], "dev: expected brackets that give the record's f1 of"),
        ("right", [3, 2, 1, 4, 1], "dev: expected no more right brackets than were found"),
    ):
        dev = SPLITS["dev"]._replace(**{column: np.array(values)})
        write_brackets(path(tmp_path, record), record.run, {**SPLITS, "dev": dev})
        assert complaint in (fault_of_brackets(tmp_path, record) or "")


def test_brackets_of_another_run_and_damaged_files_are_named(tmp_path: Path) -> None:
    record = parser_run(tmp_path)
    place = path(tmp_path, record)
    fewer: Any = {**record.corpus, "n_test": 2}
    with pytest.raises(ValueError, match="test: expected 2 sentences, got 3"):
        read_brackets(tmp_path, replace(record, corpus=fewer))
    write_brackets(place, "f" * 16, SPLITS)
    with pytest.raises(ValueError, match="expected dev of run 0123456789abcdef, got that of run f+"):
        read_brackets(tmp_path, record)
    file = own_file(place, "dev")
    file.write_bytes(file.read_bytes()[:-9])
    assert "is damaged" in (fault_of_brackets(tmp_path, record) or "")
    assert not are_of(place, record.run)
    file.unlink()
    assert fault_of_brackets(tmp_path, record) == "its brackets of dev and test are missing"
    assert fault_of_brackets(tmp_path, paper_run()) is None, "translations have none"


def test_a_row_shows_f1_by_length_and_nothing_where_a_run_kept_no_brackets(tmp_path: Path) -> None:
    records = [parser(tmp_path, "WSJ only", seed, SPLITS, run=f"{seed:016x}", corpus="wmt14") for seed in (4, 5)]
    frame = with_brackets(table(records), records, tmp_path)
    assert frame.loc[0, [*F1_THIRDS]].tolist() == pytest.approx(SPLITS["dev"].by_length())
    next(tmp_path.rglob("*seed5.dev.parquet")).unlink()
    assert with_brackets(table(records), records, tmp_path)[[*F1_THIRDS]].isna().all(axis=None)
