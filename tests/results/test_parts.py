"""Scores by length and by position: by hand, and beside the rows of a table."""

from pathlib import Path

import numpy as np
import pytest
from kept_sentences import ladder_run

from repro.results import parts
from repro.results.frame import table
from repro.results.parts import KEPT, THIRDS, by_length, by_position, with_parts
from repro.results.sentences import NgramCounts


def counts(right: list[int], of: int = 4) -> NgramCounts:
    """Sentences of 4 words, of which so many are right, and all longer n-grams as far as they go."""
    correct = np.array([[max(0, n - k) for k in range(4)] for n in right])
    lengths = np.full(len(right), of)
    return NgramCounts(lengths, lengths, correct)


def test_parts_by_length_are_of_the_shortest_and_the_longest_whatever_their_order() -> None:
    # lengths 9 1 5 1 9 5 in this order: the shortest are sentences 1 and 3, of which all is right
    found = by_length(counts([0, 4, 3, 4, 1, 3]), [9, 1, 5, 1, 9, 5])
    assert found[0] == pytest.approx(100)
    middle = (6 / 8 * 4 / 6 * 2 / 4 * (1 / 2) / 2) ** 0.25  # no 4-gram is right: half of one
    assert found[1] == pytest.approx(100 * middle)
    assert found[2] == pytest.approx(100 * (1 / 8 * (1 / 2) / 6 * (1 / 4) / 4 * (1 / 8) / 2) ** 0.25)


def test_equally_long_sentences_stand_as_they_stood_and_parts_may_differ_by_one() -> None:
    whole = [4, 4, 0, 4, 4, 0, 4]
    first, second, third = by_length(counts(whole), [3] * 7)  # 3, 2, 2 sentences
    assert first == pytest.approx(by_position([counts(whole[:3])])[0])
    assert (second, third) == pytest.approx(tuple(by_position([counts(whole[3:5]), counts(whole[5:])])))


def test_rows_show_means_and_those_without_counts_nothing(tmp_path: Path) -> None:
    records = [
        ladder_run("One", 1, tmp_path),
        ladder_run("One", 3, tmp_path),
        ladder_run("Other", 2, tmp_path, places=False),
    ]
    frame = with_parts(table(records), records, tmp_path).set_index("row")
    assert {*THIRDS} <= {*frame.columns}
    one = frame.loc["One"]
    assert one[THIRDS[0]] == pytest.approx((one[f"{THIRDS[0]}_min"] + one[f"{THIRDS[0]}_max"]) / 2)
    assert frame.loc["Other", [*THIRDS, KEPT]].isna().all()


@pytest.mark.parametrize(("firsts", "kept"), [((20.0, 40.0), 37.5), ((20.0, 0.0), np.nan)])
def test_a_row_keeps_the_mean_of_its_runs_and_nothing_where_one_has_nothing_to_lose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, firsts: tuple[float, ...], kept: float
) -> None:
    records = [ladder_run("One", 1, tmp_path), ladder_run("One", 3, tmp_path)]
    of = iter([{name: first if name == THIRDS[3] else 10.0 for name in THIRDS} for first in firsts])
    monkeypatch.setattr(parts, "bleu_of_parts", lambda record, results: next(of))
    line = with_parts(table(records), records, tmp_path).set_index("row").loc["One"]
    assert line[THIRDS[3]] == np.mean(firsts)
    assert line[KEPT] == pytest.approx(kept, nan_ok=True)
