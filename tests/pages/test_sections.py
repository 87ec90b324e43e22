"""The page of a table of systems: rows that took other operations are named, parts stand where there are any."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from kept_sentences import ladder_run
from table_records import at_the_end, own, run, save

from repro.pages import sections
from repro.pages.build import build_scale, texts
from repro.render.page import Text, plain
from repro.results.frame import ResultSet
from repro.results.record import path


def frame(flops: dict[str, float]) -> pd.DataFrame:
    made = pd.DataFrame({"row": [*flops], "cost/flops": [*flops.values()]})
    made["table"] = ["base", *["ladder"] * (len(flops) - 1)]
    return made


def said(text: Text) -> str:
    return plain(text.words)


def test_rows_that_took_a_tenth_more_or_less_are_named() -> None:
    of = {"base": 2e12, "equal": 2.19e12, "more": 2.21e12, "less": 1.7e12, "not run": float("nan")}
    assert said(sections.unequal(frame(of))) == (
        "Operations of training differ from the base's by more than 10 % in: more (+10.5 %), less (-15.0 %). "
        + sections.ABOUT_OPERATIONS
    )
    assert "more than 10 % in no row. A row's own system" in said(
        sections.unequal(frame({"base": 2e12, "equal": 1.9e12}))
    )
    assert said(sections.unequal(frame({"base": float("nan"), "equal": 1.9e12}))) == ""
    assert sections.operations_column(frame(of)).texts == ["2.00e12", "2.19e12", "2.21e12", "1.70e12", ""]


def test_a_table_of_systems_shows_operations_and_parts(tmp_path: Path) -> None:
    for seed in (1, 3):
        ladder_run("One", seed, tmp_path)
    ladder_run("Other", 2, tmp_path, places=False)
    written = texts(build_scale(ResultSet.read(tmp_path / "lab")))
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
    assert "## By length" not in texts(build_scale(ResultSet.read(tmp_path / "lab")))[tmp_path / "lab" / "ladder.md"]


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
    page = texts(build_scale(ResultSet.read(tmp_path / "lab")))[tmp_path / "lab" / "ladder.md"]
    part = page.partition("## Dev loss along the training")[2].partition("##")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.split("\n") if line.startswith("|")]
    assert sorted(lines[2:]) == [
        ["One", "base", "17", "−0.500", "1.7e10", "−0.500"],
        ["Other", "base", "nowhere", "−1.750", "nowhere", "−1.750"],
        ["dear", "base", "nowhere", "+0.500", "", ""],
    ]


# Below the closing table: how far its numbers lie apart by chance


SPREAD = {"base": (60.0, 62.0, 64.4), "h=1": (50.0, 51.0, 56.3)}  # over seeds: 4.4 and 6.3 BLEU


def published(results: Path, spread: dict[str, tuple[float, ...]] = SPREAD, scale: float = 1) -> Path:
    found = [run(row, seed, bleu=bleu * scale) for row, of in spread.items() for seed, bleu in enumerate(of, start=4)]
    return save(results, found)


def shown(tmp_path: Path, seeds: int, one_head: float = 70.0, of_base: int = 0, **of: Any) -> str:
    mine = [run("h=1", seed, bleu=one_head) for seed in range(1, seeds + 1)]
    mine += [run("base", seed, bleu=70.0) for seed in range(1, (of_base or seeds) + 1)]
    if "h=4" in of.get("spread", {}):
        mine.append(run("h=4", 1, bleu=70.0))
    frame = own(save(tmp_path / "own", mine), published(tmp_path / "there", **of)).frame(["table3_A"])
    return " ".join(at_the_end(frame).split())


@pytest.mark.parametrize(("seeds", "is_told"), [(2, True), (3, False)])
def test_the_published_spread_stands_below_fewer_than_three_runs(tmp_path: Path, seeds: int, is_told: bool) -> None:
    told = "Single runs of these rows differ by 4 to 6 BLEU by chance; --seeds 9-13 narrows it."
    assert (told in shown(tmp_path, seeds)) == is_told


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
def test_a_difference_beyond_chance_is_said_by_the_published_spreads(
    tmp_path: Path, bleu: float, seeds: int, told: str
) -> None:
    text = shown(tmp_path, seeds, bleu)
    assert f"h=1: {told}. Single runs" in text
    colours = re.findall(r"\x1b\[(3\d)m([+−][\d.]+)\x1b\[0m", text)
    difference = f"{bleu - 70.0:+.1f}".replace("-", "−")
    assert colours == {"better": [("32", difference)], "worse": [("31", difference)]}.get(told.split()[0], [])


def test_more_seeds_of_the_base_alone_make_no_difference_surer(tmp_path: Path) -> None:
    assert "h=1: not told apart" in shown(tmp_path, 1, 70.0 - 17.3, of_base=9), "it is over the one that both have"


def test_all_rows_of_a_table_are_told_apart_together(tmp_path: Path) -> None:
    # of two t(2, 98.75 %) = 6.205 for 4.303: 25.1 and not 17.4 BLEU
    two = {**SPREAD, "h=4": (50.0, 51.0, 56.3)}
    assert "h=1, h=4: not told apart" in shown(tmp_path / "near", 1, 70.0 - 24.9, spread=two)
    assert "h=1: worse than the base beyond chance. h=4: not told apart" in shown(tmp_path, 1, 70.0 - 25.2, spread=two)


def test_rows_of_one_name_in_two_tables_are_told_apart_each(tmp_path: Path) -> None:
    def both(seed: int, parts: float, heads: float) -> list[Any]:
        tables = {"table3_A": heads, "lab_parts": parts}
        return [run("base", seed, bleu=50.0), *(run("h=1", seed, bleu=bleu, table=t) for t, bleu in tables.items())]

    there = [record for seed in (4, 5, 6) for record in both(seed, 50.0 + seed, 50.0 - seed)]
    results = own(save(tmp_path / "own", both(1, 95.0, 5.0)), save(tmp_path / "there", there))
    text = at_the_end(results.frame(["table3_A", "lab_parts", "base"]))
    assert re.findall(r"\x1b\[(3\d)m([+−][\d.]+)", text) in (
        [("31", "−45.0"), ("32", "+45.0")], [("32", "+45.0"), ("31", "−45.0")],
    )  # fmt: skip
    assert "h=1: better than the base beyond chance. h=1: worse than the base beyond chance." in " ".join(text.split())


def test_small_spreads_keep_a_decimal(tmp_path: Path) -> None:
    assert "differ by 0.4 to 0.6 BLEU by chance" in shown(tmp_path, 1, scale=0.1)


def test_nothing_is_said_where_nothing_is_published(tmp_path: Path) -> None:
    mine = save(tmp_path / "own", [run("base", 1), run("h=1", 1)])
    assert "by chance" not in at_the_end(own(mine, tmp_path / "nowhere").frame(["table3_A"]))
    once = published(tmp_path / "there", {"base": (60.0,), "h=1": (50.0,)})
    assert "by chance" not in at_the_end(own(mine, once).frame(["table3_A"]))
