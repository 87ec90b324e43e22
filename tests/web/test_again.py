"""The command that makes a record again, for worlds of today, of a text of one's own, and of older code."""

import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from paper_runs import paper_run

from repro.results.record import Record
from repro.runs.options import Options, Seeds
from repro.web.runs import again, is_of_today


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
    assert eval(call, names) == (
        "the row",
        {"scale": "laptop", "seed": 3, "corpus": "folder", "data_dir": "FOLDER"},
    )
    assert """Row("it's mine", ...)""" in told
