"""Defects of shards and of Slurm arrays, each with the tests that notice it."""

from faults.defect import Defect

ROWS, OF_ROWS = "repro/runs/table.py", "tests/runs/test_table.py::test_"
SWEEP, OF_SWEEP = "repro/runs/sweep.py", "tests/runs/test_sweep.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "shards are counted from nought",
        ROWS,
        "asked[i - 1 :: n]",
        "asked[i::n]",
        (f"{OF_ROWS}a_shard_is_every_nth_run_from_the_ith_on", f"{OF_ROWS}the_shards_of_a_sweep_hold_each_run_once"),
    ),
    Defect(
        "a shard beyond the last one is none at all",
        ROWS,
        "if not 1 <= i <= n:",
        "if not found:",
        (f"{OF_ROWS}what_is_no_shard_is_refused",),
    ),
    Defect(
        "a shard of one's own text names the folder after its own runs",
        SWEEP,
        "tasks = dict.fromkeys(cell.task for cell in self.whole)",
        "tasks = dict.fromkeys(cell.task for cell in self.cells)",
        (f"{OF_SWEEP}shards_make_the_sweep_and_say_which_they_are",),
    ),
)
