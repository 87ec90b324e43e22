"""Who learned faster: over updates and over operations, beside the Transformer that made as many updates."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from paper_runs import paper_run
from table_records import run as of_table

from repro.figures.forest import draw_text_sizes
from repro.results.details import Band, bands, compared, crossings, on_texts, rows_of, with_comparisons
from repro.results.frame import table
from repro.results.record import Record

BASE_CURVE = {10: 5.0, 20: 3.0, 40: 1.0}


def run(
    row: str = "base", seed: int = 1, dev: dict[int, float] = BASE_CURVE, flops: float = 4e9, **other: Any
) -> Record:
    """A record whose dev loss is `dev` by update, after 40 updates."""
    record = paper_run(row, "base" if row == "base" else "ladder", seed=seed, **other)
    curve: Any = {"step": [*dev], "nll": [*dev.values()]}
    cost: Any = {**record.cost, "steps": 40, "flops": flops}
    return replace(record, curves={"train": curve, "dev": curve}, cost=cost)


def band(*points: tuple[float, float]) -> Band:
    step, mean = zip(*points, strict=True)
    return Band("x", 1, step, mean, mean, mean)


def test_mean_and_range_by_hand() -> None:
    runs = [run("h=1", 1, {10: 4.0, 20: 2.0}), run("h=1", 2, {10: 5.0, 20: 2.5, 30: 1.0})]
    assert bands(runs, "dev") == [Band("h=1 (here 8)", 2, (10, 20), (4.5, 2.25), (4.0, 2.0), (5.0, 2.5))]


def test_base_comes_first_then_the_papers_order_without_diverged_and_uncommitted_runs() -> None:
    dirty = run("h=4")
    dirty = replace(dirty, stamp={**dirty.stamp, "dirty": True, "why_dirty": "not committed: x"})
    runs = [run("b", position=1), run("a", position=2), run("base"), run("c", position=0)]
    assert list(rows_of([*runs, run("h=1", 2, status="diverged"), dirty])) == ["base", "c", "b", "a"]


def test_over_operations_the_rival_that_costs_twice_is_behind_all_along() -> None:
    rival = run("ByteNet", dev={10: 4.0, 20: 4.0, 40: 4.0}, flops=8e9)
    one, other = bands([run(), rival], "dev", "FLOPs")
    assert one.step == (1e9, 2e9, 4e9)
    assert other.step == (2e9, 4e9, 8e9)
    assert crossings(*bands([run(), rival], "dev")) == (15.0,)
    assert crossings(one, other) == ()  # both are measured from 2e9 on, and there the base is ahead
    assert crossings(one, replace(one, mean=(6.0, 2.0, 2.0))) == pytest.approx([1.5e9, 3e9])


@pytest.mark.parametrize(
    ("gaps", "found"),
    [
        ((1.0, -3.0), (12.5,)),
        ((1.0, 0.0, -3.0), (20.0,)),  # not on the straight line from 10 to 30
        ((1.0, 0.0, 1.0), ()),  # they touch
        ((0.0, 1.0, -1.0), (25.0,)),
        ((0.0, 0.0), ()),
        ((1.0, -1.0, 1.0), (15.0, 25.0)),
    ],
)
def test_where_two_curves_cross(gaps: tuple[float, ...], found: tuple[float, ...]) -> None:
    steps = [10.0 * (i + 1) for i in range(len(gaps))]
    one, other = band(*((x, 2.0) for x in steps)), band(*((x, 2.0 - gap) for x, gap in zip(steps, gaps, strict=True)))
    assert crossings(one, other) == pytest.approx(found)
    assert crossings(other, one) == pytest.approx(found)


def longer(record: Record) -> Record:
    """The same with three times the updates in its row."""
    return replace(record, hyper={**record.hyper, "steps": 3 * record.hyper["steps"]})


def test_a_row_is_beside_the_transformer_with_as_many_updates_else_the_base() -> None:
    base, more = [run()], [longer(run("more", dev={10: 6.0, 20: 2.0, 80: 0.5}, flops=8e9))]
    rival = [longer(run("rival", dev={10: 4.0, 20: 2.5, 80: 0.25}, flops=8e9, system="SoftAlignment"))]
    equal = [run("equal", dev={10: 4.5}, system="ByteNet")]
    alone = [replace(longer(run("alone", dev={20: 3.5}, system="ConvS2S")), hyper={**run().hyper, "steps": 7})]
    found = compared([base, more, rival, equal, alone])
    assert {row: {one.beside for one in of} for row, of in found.items()} == {
        "more": {"base"}, "rival": {"more"}, "equal": {"base"}, "alone": {"base"},
    }  # fmt: skip
    over_updates, over_flops = found["rival"]
    assert (over_updates.over, over_updates.gap, over_updates.places()) == ("updates", -0.25, "18, 60")
    assert over_flops.places() == "3.6e9, 1.2e10"
    # the base ends at 40 updates and 4e9 FLOPs; the longer row is there after 20 updates
    assert [one.gap for one in found["more"]] == pytest.approx([1.5 - 1.0, 2.0 - 1.0])


def test_the_frame_says_it_of_each_row_that_has_a_curve() -> None:
    rival = run("rival", dev={10: 4.0, 20: 4.0, 40: 4.0}, flops=8e9, system="ByteNet")
    silent = run("silent", dev={}, system="ConvS2S")
    records = [run(), rival, silent]
    frame = with_comparisons(made := table(records), records)
    [line] = frame[frame["row"] == "rival"].to_dict("records")
    assert (line["along/beside"], line["along/updates/crossings"], line["along/FLOPs/crossings"]) == (
        "base", "15", "nowhere",
    )  # fmt: skip
    assert (line["along/updates/gap"], line["along/FLOPs/gap"]) == (3.0, 3.0)
    assert list(frame["along/beside"].notna()) == [False, True, False]
    assert frame.attrs == made.attrs
    assert "along/beside" not in with_comparisons(table([run(), silent]), [run(), silent])
    assert "along/beside" not in with_comparisons(table([rival]), [rival])


# On little text and on much: beside the base of the same text and seed, and of no other


def on(pairs: int, row: str, seed: int, bleu: float, *, is_base: bool, **other: Any) -> Record:
    """A run on so much text, whose name on more than 3,000 pairs is another."""
    like = of_table("base" if is_base else "h=1")
    name = row if pairs == 3_000 else f"{row}, text x {pairs // 3_000}"
    corpus = {**like.corpus, "n_train": pairs}
    return of_table(name, seed, bleu=bleu, ppl=100 / bleu, corpus=corpus, hyper=like.hyper, **other)


RUNS = [
    *(on(3_000, "base", seed, 50.0 + seed, is_base=True) for seed in (1, 2, 3, 4)),
    *(on(6_000, "base", seed, 60.0 + seed, is_base=True) for seed in (1, 2)),
    on(12_000, "base", 9, 70.0, is_base=True),
    *(on(6_000, "h=1", seed, 61.0 + seed, is_base=False) for seed in (1, 2)),
    *(on(3_000, "h=1", seed, 50.0 + seed + more, is_base=False) for seed, more in ((2, -2.0), (3, -3.0), (4, -4.0))),
    on(12_000, "h=1", 8, 90.0, is_base=False),  # whose seed the base has not
    on(24_000, "h=1", 1, 90.0, is_base=False),  # where there is no base
]


def test_each_row_stands_beside_the_base_of_its_text_and_seed() -> None:
    [(row, found)] = on_texts(RUNS).items()
    assert row == "h=1", "as it is called on the first text"
    assert [(one.pairs, one.n) for one in found] == [(3_000, 3), (6_000, 2)]
    mean, half = found[0].found["bleu"]
    assert (mean, half) == (-3.0, pytest.approx(4.303 / 3**0.5, abs=1e-3))
    assert found[1].found["bleu"] == (1.0, None)
    assert found[1].found["nll"][0] < 0 < found[0].found["nll"][0]
    assert [one.of_mean for one in found] == [None, None]


def test_by_the_mean_of_the_last_checkpoints_it_is_told_where_every_run_has_it() -> None:
    def scored(record: Record, bleu: float) -> Record:
        dev = {**record.scores["dev"], "bleu": bleu}
        of_mean: Any = {"steps": [1, 2], "weights": "ab" * 32, "seconds": 1.0, "dev": dev, "test": dev}
        return replace(record, last_mean=of_mean)

    [base, other], [row, second] = RUNS[4:6], RUNS[7:9]
    alike = [scored(base, 70.0), scored(other, 80.0), scored(row, 72.0), scored(second, 86.0)]
    assert [one.of_mean and one.of_mean["bleu"] for one in on_texts([*RUNS[:4], *alike])[row.row]] == [(4.0, None)]
    assert [one.of_mean for one in on_texts([*RUNS[:4], *alike[:3], second])[row.row]] == [None]


def test_other_languages_and_other_corpora_are_none_of_these_texts() -> None:
    french = on(6_000, "h=1", 1, 90.0, is_base=False, pair="en-fr")
    assert [one.pairs for one in on_texts([*RUNS[:4], french, *RUNS[9:12]])["h=1"]] == [3_000]
    assert on_texts(RUNS[4:]) == {}, "without the base"


def test_a_row_on_two_texts_is_drawn_with_its_numbers(tmp_path: Path) -> None:
    picture, numbers = draw_text_sizes(tmp_path, RUNS)
    lines = list(csv.reader(numbers.read_text("utf-8").splitlines()))
    ours = "the paper's weights"
    assert [line[:4] for line in lines[1:]] == [["h=1", ours, "3000", "3"], ["h=1", ours, "6000", "2"]]
    assert [line[6] for line in lines[1:]] == ["-3", "1"]
    assert picture.name == "text_sizes.svg"
    with pytest.raises(ValueError, match="`python experiments/lab_text.py`"):
        draw_text_sizes(tmp_path, RUNS[:4])
