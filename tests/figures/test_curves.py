"""The pictures of curves, and the numbers beside them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from repro.figures.curves import _plain_ticks, draw_curves, draw_over_operations
from repro.results.record import Record

Make = Callable[..., Record]


def test_a_table_without_a_run_to_show_says_so(a_record: Make, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="no finished run of committed code.*Run `python experiments/table3_A.py --scale laptop`"
    ):
        draw_curves(tmp_path, "table3_A", [a_record("base", dirty=True)])
    assert not list(tmp_path.iterdir())


def test_the_places_where_curves_cross_stand_beside_the_picture(a_record: Make, tmp_path: Path) -> None:
    # the rival's updates take twice the operations; over updates it is ahead until 15, over operations always behind
    base = a_record("base", dev={"step": [10, 20, 40], "nll": [5.0, 3.0, 1.0]}, flops=4e9)
    rival = a_record("ByteNet", dev={"step": [10, 20, 40], "nll": [4.0, 4.0, 4.0]}, flops=8e9)
    files = draw_over_operations(tmp_path, "ladder", [base, rival])
    assert [file.name for file in files] == ["operations_ladder.svg", "operations_ladder.csv", "crossings_ladder.csv"]
    assert files[2].read_text().split("\n")[1:] == ["ByteNet,base,updates,15,3", "ByteNet,base,FLOPs,nowhere,3", ""]


def test_nothing_beside_the_base_is_no_comparison(a_record: Make, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match="no finished runs of the base and of another row.*Run `python experiments/ladder.py --scale laptop`",
    ):
        draw_over_operations(tmp_path, "ladder", [a_record("base", dev={"step": [10], "nll": [5.0]})])


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (1.85, 4.7, ["2", "2.5", "3", "3.5", "4"]),
        (1.0, 5.2, ["1", "1.5", "2", "2.5", "3", "4", "5"]),
        (0.7, 9.5, ["0.7", "1", "1.5", "2", "3", "5", "7"]),
    ],
)
def test_an_axis_has_ticks_where_its_losses_are(low: float, high: float, shown: list[str]) -> None:
    axes = Figure().subplots()
    axes.set(yscale="log", ylim=(low, high))
    _plain_ticks(axes)
    ticks = [tick for tick in axes.yaxis.get_majorticklocs() if low <= tick <= high]
    assert [axes.yaxis.get_major_formatter()(tick) for tick in ticks] == shown
