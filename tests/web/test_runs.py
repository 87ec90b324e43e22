"""What is said of a run: its numbers, and the command that makes it again, in worlds of today and of older code."""

import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from paper_runs import paper_run
from report_records import scored, unjudged_of

from repro.results.record import Record
from repro.runs.options import Options, Seeds
from repro.web.runs import again, is_of_today, runs_section


def of(scale: str) -> Record:
    return replace(paper_run("h=1", "table3_A", seed=4), scale=scale)


def typed(record: Record) -> Options:
    """The options of the command as somebody's shell and the experiment read it."""
    python, file, *words = shlex.split(again(record)[-1])
    assert (python, file) == ("python", "experiments/table3_A.py")
    return Options.read("table3_A", words)


@pytest.mark.parametrize(
    ("scale", "options"),
    [
        ("laptop", Options()),
        ("captions-bf16", Options(scale="captions", precision="bf16")),
        ("laptop-en-fr-900-steps", Options(pair="en-fr", steps=900)),
        (
            "captions-folder-en-zh-Hans-by-tokens-0123abcd",
            Options(scale="captions", corpus="folder", data_dir=Path("FOLDER"), pair="en-zh-Hans", batch_by="tokens"),
        ),
    ],
)
def test_the_options_are_those_of_the_name(scale: str, options: Options) -> None:
    assert is_of_today(of(scale))
    assert typed(of(scale)) == replace(options, rows=("h=1",), seeds=Seeds((4,)))


@pytest.mark.parametrize("scale", ["laptop-20000-pairs", "laptop-9999-threads"])
def test_a_scale_that_no_option_makes_is_named_alone(scale: str) -> None:
    assert not is_of_today(of(scale))
    assert typed(of(scale)) == Options(rows=("h=1",), seeds=Seeds((4,)))


def test_a_row_of_a_program_is_run_again_by_its_program() -> None:
    """No experiment file has it."""
    run = replace(of("laptop-folder-0123abcd"), table="own", row="it's mine", seed=3)
    said = again(run)[-1]
    call, _, told = said.partition("  # ")
    names = {"repro": SimpleNamespace(run=lambda row, **options: (row, options)), "row": "the row"}
    assert eval(call, names) == ("the row", {"scale": "laptop", "seed": 3, "corpus": "folder", "data_dir": "FOLDER"})
    assert """Row("it's mine", ...)""" in told


@pytest.mark.parametrize("badge", ["L1", None])
def test_a_run_has_the_decimals_of_the_tables_its_cost_and_what_its_badge_is(tmp_path: Path, badge: str | None) -> None:
    one = scored("base", "base", 1, 61.23456)
    looked_at = {"against": [], "replayed": 0, "order": "", "plan": "", "repeated_lines": 0, "weights": ""}
    cost: Any = one.cost | {"decode_seconds": 1208.6}
    section = runs_section(
        unjudged_of([replace(one, cost=cost, determinism=looked_at | {"badge": badge})], tmp_path / "results")
    )
    badges = "made again: L1, one CPU process, the same to the bit on such a processor."
    assert [words in section.body for words in ("badge says", badges)] == [badge == "L1"] * 2
    (run,) = section.data["runs"].values()
    assert ["decode seconds", "1,209"] in run["cost"]
    shown = {name: (dev, test) for name, dev, test, _ in run["scores"]}
    assert shown["sacreBLEU"] == ("61.2", "61.2")
    assert all(value == f"{float(value):.2f}" for value in shown["ppl"])
    assert {len(value.partition(".")[2]) for name, both in shown.items() if name != "ppl" for value in both} <= {1, 3}
