"""The page of a table of systems: rows that took other operations are named, parts stand where there are any."""

from pathlib import Path

import pandas as pd
from kept_sentences import ladder_run

from repro.pages import by_length
from repro.pages.build import build_scale, texts
from repro.render.page import Text, plain
from repro.results.frame import ResultSet


def frame(flops: dict[str, float]) -> pd.DataFrame:
    made = pd.DataFrame({"row": [*flops], "cost/flops": [*flops.values()]})
    made["table"] = ["base", *["ladder"] * (len(flops) - 1)]
    return made


def said(text: Text) -> str:
    return plain(text.words)


def test_rows_that_took_a_tenth_more_or_less_are_named() -> None:
    of = {"base": 2e12, "equal": 2.19e12, "more": 2.21e12, "less": 1.7e12, "not run": float("nan")}
    assert said(by_length.unequal(frame(of))) == (
        "Operations of training differ from the base's by more than 10 % in: more (+10.5 %), less (-15.0 %). "
        + by_length.ABOUT_OPERATIONS
    )
    assert "more than 10 % in no row. Operations of a row's own" in said(
        by_length.unequal(frame({"base": 2e12, "equal": 1.9e12}))
    )
    assert said(by_length.unequal(frame({"base": float("nan"), "equal": 1.9e12}))) == ""
    assert by_length.operations_column(frame(of)).texts == ["2.00e12", "2.19e12", "2.21e12", "1.70e12", ""]


def test_a_table_of_systems_shows_operations_and_parts(tmp_path: Path) -> None:
    for seed in (1, 3):
        ladder_run("One", seed, tmp_path)
    ladder_run("Other", 2, tmp_path, places=False)
    written = texts(build_scale(ResultSet.read(tmp_path / "lab")))
    page, sheet = (written[tmp_path / "lab" / f"ladder.{kind}"] for kind in ("md", "csv"))
    assert "## By length" in page
    [head] = [line for line in page.split("\n") if "shortest" in line]
    assert [word.strip().rpartition("<br>")[2] for word in head.strip("|").split("|")][1:] == [
        "shortest", "middle", "longest", "first", "second", "last",
    ]  # fmt: skip
    assert "FLOPs" in page
    assert "dev/bleu/longest" in sheet.partition("\n")[0]
    assert "Runs differ in deciding code" not in page


def test_without_counts_there_is_no_such_part(tmp_path: Path) -> None:
    ladder_run("Other", 2, tmp_path, places=False)
    assert "## By length" not in texts(build_scale(ResultSet.read(tmp_path / "lab")))[tmp_path / "lab" / "ladder.md"]
