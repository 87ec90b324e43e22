"""The page of a table of systems: rows that took other operations are named, parts stand where there are any."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kept_sentences import ladder_run
from table_records import at_the_end, own, run, save

from repro.pages.build import build_scale, texts
from repro.results.frame import ResultSet
from repro.results.record import path


def made(results: Path) -> dict[Path, str]:
    """One's own pages, which are whole whatever their runs settle."""
    return texts(build_scale(ResultSet.read_own(results / "lab", results / "nowhere")))


def test_a_table_of_systems_shows_operations_and_parts(tmp_path: Path) -> None:
    for seed in (1, 3):
        ladder_run("One", seed, tmp_path)
    ladder_run("Other", 2, tmp_path, places=False)
    written = made(tmp_path)
    page, sheet = (written[tmp_path / "lab" / f"ladder.{kind}"] for kind in ("md", "csv"))
    assert "## By length" in page
    heads = [line.strip("|").split("|")[1:] for line in page.split("\n") if "shortest" in line or "kept (%)" in line]
    assert [word.strip().rpartition("<br>")[2] for head in heads for word in head] == [
        "shortest", "middle", "longest", "first", "second", "last", "kept (%)",
    ]  # fmt: skip
    assert "FLOPs" in page
    assert "dev/bleu/longest" in sheet.partition("\n")[0]
    assert "Runs differ in deciding code" not in page


def test_without_counts_there_is_no_such_part(tmp_path: Path) -> None:
    ladder_run("Other", 2, tmp_path, places=False)
    assert "## By length" not in made(tmp_path)[tmp_path / "lab" / "ladder.md"]


def test_a_table_of_systems_says_where_curves_cross(tmp_path: Path) -> None:
    curves: Any = {
        "One": {10: 3.0, 20: 2.5},
        "Other": {10: 1.5, 20: 1.25},
        "silent": {},
        "dear": {10: 2.5, 20: 3.5},
        "base": {10: 2.0, 20: 3.0},
    }
    for row, dev in curves.items():
        found = ladder_run(row, 1, tmp_path)
        (path(tmp_path, found)).unlink()
        of = {"table": "base", "system": None} if row == "base" else {}
        curve = {"step": [*dev], "nll": [*dev.values()]}
        cost = {**found.cost, "steps": 20, "flops": 9e12 if row == "dear" else 2e10}
        changed: Any = {**of, "curves": {"train": curve, "dev": curve}, "cost": cost}
        replace(found, **changed).save(path(tmp_path, replace(found, **changed)))
    page = made(tmp_path)[tmp_path / "lab" / "ladder.md"]
    part = page.partition("## Dev loss along the training")[2].partition("##")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.split("\n") if line.startswith("|")]
    assert sorted(lines[2:]) == [
        ["One", "17", "−0.500", "1.7e10", "−0.500"],
        ["Other", "nowhere", "−1.750", "nowhere", "−1.750"],
        ["dear", "nowhere", "+0.500", "", ""],
    ]


# Below the closing table: how far its numbers lie apart by chance


SPREAD = {"base": (60.0, 62.0, 64.4), "h=1": (50.0, 51.0, 56.3)}  # over seeds: 4.4 and 6.3 BLEU


def published(results: Path, spread: dict[str, tuple[float, ...]] = SPREAD, scale: float = 1) -> Path:
    found = [run(row, seed, bleu=bleu * scale) for row, of in spread.items() for seed, bleu in enumerate(of, start=4)]
    return save(results, found)


def shown(
    tmp_path: Path, seeds: int, scale: float = 1, bleu: float = 70.0, spread: dict[str, tuple[float, ...]] = SPREAD
) -> str:
    """The end of an experiment: base 70 BLEU and all other rows of `spread` as given, over so many seeds."""
    mine = [run(row, seed, bleu=70.0 if row == "base" else bleu) for row in spread for seed in range(1, seeds + 1)]
    there = published(tmp_path / "there", spread, scale)
    return " ".join(at_the_end(own(save(tmp_path / "own", mine), there).frame(["table3_A"])).split())


@pytest.mark.parametrize(
    ("seeds", "scale", "told"),
    [(2, 1, "4 to 6 BLEU by chance; --seeds 9-13 narrows it."), (3, 1, None), (1, 0.1, "0.4 to 0.6 BLEU by chance")],
)
def test_the_published_spread_stands_below_fewer_than_three_runs(
    tmp_path: Path, seeds: int, scale: float, told: str | None
) -> None:
    text = shown(tmp_path, seeds, scale)
    assert f"Single runs of these rows differ by {told}" in text if told else "by chance" not in text


@pytest.mark.parametrize(
    ("bleu", "seeds", "told"),
    [  # t(2, 97.5 %) sqrt(2.203^2 + 3.387^2), the deviations of the three published runs of each, is 17.4; of two 12.3
        (70.0 - 17.3, 1, "not told apart from the base by so few runs"),
        (70.0 - 17.5, 1, "worse than the base beyond chance"),
        (70.0 + 17.5, 1, "better than the base beyond chance"),
        (70.0 - 12.2, 2, "not told apart from the base by so few runs"),
        (70.0 - 12.4, 2, "worse than the base beyond chance"),
    ],
)
def test_a_difference_beyond_chance_is_said_and_coloured(tmp_path: Path, bleu: float, seeds: int, told: str) -> None:
    text = shown(tmp_path, seeds, bleu=bleu)
    assert f"h=1: {told}. Single runs" in text
    colours = re.findall(r"\x1b\[(3\d)m([+−][\d.]+)\x1b\[0m", text)
    difference = f"{bleu - 70.0:+.1f}".replace("-", "−")
    assert colours == {"better": [("32", difference)], "worse": [("31", difference)]}.get(told.split()[0], [])


def test_all_rows_of_a_table_are_told_apart_together(tmp_path: Path) -> None:
    # of two t(2, 98.75 %) = 6.205 for 4.303: 25.1 and not 17.4 BLEU
    two = {**SPREAD, "h=4": (50.0, 51.0, 56.3)}
    assert "h=1, h=4: not told apart" in shown(tmp_path / "near", 1, bleu=70.0 - 24.9, spread=two)
    assert "h=1, h=4: worse than the base" in shown(tmp_path, 1, bleu=70.0 - 25.2, spread=two)


def test_nothing_is_said_where_nothing_is_published(tmp_path: Path) -> None:
    mine = save(tmp_path / "own", [run("base", 1), run("h=1", 1)])
    assert "by chance" not in at_the_end(own(mine, tmp_path / "nowhere").frame(["table3_A"]))
    once = published(tmp_path / "there", {"base": (60.0,), "h=1": (50.0,)})
    assert "by chance" not in at_the_end(own(mine, once).frame(["table3_A"]))
