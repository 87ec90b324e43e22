"""What tables show of runs that are scored by the mean of their last checkpoints as well."""

import csv
import io
import math
from typing import Any

from table_records import cell, columns, diverged, run

from repro.pages.columns import MEAN_OF_LAST, sheet
from repro.results import frame as frames
from repro.results.record import Record


def both(
    row: str, seed: int, bleu: float, mean: float, *, ppl: float = 1.5, length: float = 1.0, n: int = 10
) -> Record:
    """A run of a row, and by the mean of n checkpoints another BLEU, perplexity and length."""
    plain = run(row, seed, bleu=bleu)
    dev: Any = {**plain.scores["dev"], "nll": math.log(ppl), "ppl": ppl, "bleu": mean, "length": length}
    last_mean = {"steps": [*range(600 - n, 600)], "weights": "ab" * 32, "seconds": 1.5, "dev": dev, "test": {**dev}}
    return run(row, seed, bleu=bleu, last_mean=last_mean)


GROUP = f"{MEAN_OF_LAST} 10 (dev)"
RUNS = [
    *(both("base", seed, 60.0 + seed, 66.0 + seed, ppl=1.5, length=0.95) for seed in (1, 2, 3)),
    *(both("h=1", seed, 58.0 + seed, 67.5 + seed, ppl=1.75, length=0.9 + 0.01 * seed) for seed in (1, 2, 3)),
    both("h=4", 2, 61.0, 65.0, ppl=1.25),
]


def test_the_mean_of_checkpoints_has_columns_of_its_own() -> None:
    frame = frames.table(RUNS)
    assert cell(frame, "BLEU (dev)", "ours") == {"base": "62.0 ± 2.5", "h=1": "60.0 ± 2.5", "h=4": "61.0"}
    assert cell(frame, GROUP, "BLEU") == {"base": "68.0 ± 2.5", "h=1": "69.5 ± 2.5", "h=4": "65.0"}
    assert cell(frame, GROUP, "PPL") == {"base": "1.50 ± 0.00", "h=1": "1.75 ± 0.00", "h=4": "1.25"}
    assert cell(frame, GROUP, "length") == {"base": "0.950 ± 0.000", "h=1": "0.920 ± 0.025", "h=4": "1.000"}
    deltas = [column for column in columns(frame) if column.group == GROUP and str(column.heading) == "Δ"]
    assert [[str(one).replace("\N{MINUS SIGN}", "-") for one in column.texts] for column in deltas] == [
        ["", "+0.25", "-0.25"], ["", "+1.5", "-3.0"], ["", "-0.030", "+0.050"],
    ]  # fmt: skip
    [line] = [line for line in csv.DictReader(io.StringIO(sheet(frame))) if line["row"] == "h=1"]
    assert [line[f"last_mean_{name}"] for name in ("dev/bleu", "dev/bleu_to_base", "test/bleu")] == [
        "69.5",
        "1.5",
        "69.5",
    ]


def test_without_such_scores_there_are_no_such_columns() -> None:
    frame = frames.table([run("base"), run("h=1"), diverged("h=4", 1)])
    assert not [name for name in frame if "mean" in str(name)]
    assert not [column for column in columns(frame) if column.group.startswith(MEAN_OF_LAST)]


def test_a_row_with_a_seed_without_such_scores_has_no_mean() -> None:
    frame = frames.table([*RUNS[:3], both("h=1", 1, 59.0, 68.0), run("h=1", 2, bleu=60.0)])
    assert cell(frame, "BLEU (dev)", "ours")["h=1"] == "59.5 [59.0, 60.0]"
    assert cell(frame, GROUP, "BLEU") == {"base": "68.0 ± 2.5", "h=1": ""}
    assert frame.loc[frame["row"] == "h=1", "last_mean_dev/bleu_to_base"].isna().all()


def test_the_heading_says_how_many_checkpoints() -> None:
    assert cell(frames.table([*RUNS[:3], both("h=1", 1, 59.0, 68.0, n=4)]), f"{MEAN_OF_LAST} 4 to 10 (dev)", "BLEU")
