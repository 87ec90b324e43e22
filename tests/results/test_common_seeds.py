"""A difference between two rows is one between runs of the same seeds, wherever it is shown."""

import math
from pathlib import Path
from typing import Any

import pytest
from table_records import at_the_end, cell, laptop, page_of, run, save

from repro.pages.columns import columns_of_dev
from repro.results.curves import compared
from repro.results.frame import ResultSet, common, difference_over_common, table


def frame_of(tmp_path: Path, base: dict[int, float], row: dict[int, float], *, own: bool = False) -> Any:
    """A table of base and h=1, with these BLEU by seed."""
    save(
        tmp_path,
        [run(name, seed, bleu=bleu) for name, of in (("base", base), ("h=1", row)) for seed, bleu in of.items()],
    )
    there = ResultSet.read_own(tmp_path / "laptop", tmp_path / "none") if own else laptop(tmp_path)
    return there.frame(["table3_A"])


def test_only_seeds_of_both_count() -> None:
    assert common({1: "a", 3: "c", 2: "b"}, {3: "z", 2: "y", 5: "x"}) == [("b", "y"), ("c", "z")]
    assert difference_over_common({1: 7.0, 2: 5.0}, {2: 3.0, 4: 100.0}) == 2.0
    assert difference_over_common({1: 7.0}, {2: 3.0}) is None
    assert difference_over_common({}, {}) is None


@pytest.mark.parametrize("own", [False, True])
def test_one_more_seed_of_the_base_changes_no_difference(tmp_path: Path, *, own: bool) -> None:
    few = frame_of(tmp_path / "few", {1: 60.0}, {1: 58.7}, own=own)
    more = frame_of(tmp_path / "more", {1: 60.0, 2: 40.0}, {1: 58.7}, own=own)
    for frame in (few, more):
        assert cell(frame, "BLEU (dev)", "Δ")["h=1"] == "−1.3"
    assert not any("over the seeds" in note for note in few.attrs["notes"])
    assert "Differences to the base are over the seeds that both have: 1 (h=1)." in more.attrs["notes"]


def test_rows_that_share_no_seed_have_no_difference(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, {1: 60.0, 2: 61.0}, {3: 50.0, 4: 51.0})
    assert math.isnan(frame["dev/bleu_to_base"][1])
    assert len([column for column in columns_of_dev(frame) if column[:2] == ("BLEU (dev)", "Δ")]) == 1  # the paper's
    assert "No seed in common with the base, so no difference to it: h=1." in frame.attrs["notes"]
    assert "so no difference to it: h=1." in page_of(frame, "laptop", "table3")
    assert "so no difference to it: h=1." in at_the_end(frame)


def test_on_other_text_a_row_is_compared_with_the_base_of_that_text_and_else_with_nothing() -> None:
    def on(text: str, name: str, bleu: float, nll: float, **other: Any) -> Any:
        curves = {"train": {"step": [], "nll": []}, "dev": {"step": [20, 40], "nll": [nll, nll]}}
        corpus = {**run("base", 1).corpus, "sha256": text}
        return run(name, 1, bleu=bleu, corpus=corpus, curves=curves, **other)

    base, one_head = run("base").hyper, run("h=1").hyper
    runs = [
        on("28e5", "base", 60.0, 3.0, hyper=base), on("28e5", "h=1", 59.0, 3.5, hyper=one_head),
        on("m0re", "base, text x 2", 70.0, 2.0, hyper=base), on("m0re", "h=1, text x 2", 73.0, 2.25, hyper=one_head),
        on("0ther", "h=1, French", 90.0, 1.0, hyper=one_head),
    ]  # fmt: skip
    frame = table(runs)
    differences = dict(zip(frame["row"], frame["dev/bleu_to_base"].fillna(-99), strict=True))
    assert differences == {"base": 0, "h=1": -1, "base, text x 2": 0, "h=1, text x 2": 3, "h=1, French": -99}
    assert cell(frame, "BLEU (dev)", "Δ") == {
        "base": "", "h=1": "\N{MINUS SIGN}1.0", "base, text x 2": "", "h=1, text x 2": "+3.0", "h=1, French": "",
    }  # fmt: skip
    intervals = dict(zip(frame["row"], frame.attrs["bleu_to_base"], strict=True))
    assert {row: of for row, of in intervals.items() if of} == {"h=1": (-1, None), "h=1, text x 2": (3, None)}
    assert (
        'Differences on other text than the base\'s are to the base that was trained there: "base, text x 2".'
        in frame.attrs["notes"]
    )
    found = {row: (of[0].beside, of[0].gap) for row, of in compared([[one] for one in runs]).items()}
    assert found == {"h=1": ("base", 0.5), "h=1, text x 2": ("base, text x 2", 0.25)}


def test_curves_are_compared_over_the_same_seeds() -> None:
    def curve(row: str, seed: int, nll: float) -> Any:
        return run(row, seed, curves={"train": {"step": [], "nll": []}, "dev": {"step": [20, 40], "nll": [nll, nll]}})

    base = [curve("base", 1, 3.0), curve("base", 2, 1.0)]
    found = compared([base, [curve("h=1", 1, 3.5)]])
    assert [one.gap for one in found["h=1"]] == [0.5, 0.5]
    assert compared([base, [curve("h=1", 3, 3.5)]]) == {}
