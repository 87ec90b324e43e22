"""Below the closing table: how far its numbers lie apart by chance, from what is published and nothing else."""

from pathlib import Path

import pytest
from table_records import at_the_end, own, run, save

SPREAD = {"base": (60.0, 62.0, 64.4), "h=1": (50.0, 51.0, 56.3)}  # over seeds: 4.4 and 6.3 BLEU


def published(results: Path, spread: dict[str, tuple[float, ...]] = SPREAD, scale: float = 1) -> Path:
    found = [run(row, seed, bleu=bleu * scale) for row, of in spread.items() for seed, bleu in enumerate(of, start=4)]
    return save(results, found)


def shown(tmp_path: Path, seeds: int, **of: float) -> str:
    mine = [run(row, seed, bleu=70.0) for row in ("base", "h=1") for seed in range(1, seeds + 1)]
    frame = own(save(tmp_path / "own", mine), published(tmp_path / "there", **of)).frame(["table3_A"])
    return " ".join(at_the_end(frame).split())


@pytest.mark.parametrize("seeds", [1, 2])
def test_the_published_spread_stands_below_few_runs(tmp_path: Path, seeds: int) -> None:
    told = "Single runs of these rows differ by 4 to 6 BLEU by chance; --seeds 9-11 narrows it."
    assert told in shown(tmp_path, seeds)


def test_three_runs_show_their_own(tmp_path: Path) -> None:
    assert "by chance" not in shown(tmp_path, 3)


def test_small_spreads_keep_a_decimal(tmp_path: Path) -> None:
    assert "differ by 0.4 to 0.6 BLEU by chance" in shown(tmp_path, 1, scale=0.1)


def test_nothing_is_said_where_nothing_is_published(tmp_path: Path) -> None:
    mine = save(tmp_path / "own", [run("base", 1), run("h=1", 1)])
    assert "by chance" not in at_the_end(own(mine, tmp_path / "nowhere").frame(["table3_A"]))
    once = published(tmp_path / "there", {"base": (60.0,), "h=1": (50.0,)})
    assert "by chance" not in at_the_end(own(mine, once).frame(["table3_A"]))
