"""Who learned faster: over updates and over operations, beside the Transformer that made as many updates."""

from dataclasses import replace
from typing import Any

import pytest
from paper_runs import paper_run

from repro.results.curves import Band, bands, compared, crossings, rows_of, with_comparisons
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
