"""What stands below the table at the end: sentences of the best run, the report, commands; all of it at 80 columns."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from figures.conftest import record

from repro.results.record import load
from repro.runs.closing import LONGEST, pages, translations


def run(folder: Path, pairs: list[tuple[str, str]], made: list[str]) -> Any:
    """What `translations` asks of a run."""
    folder.mkdir(parents=True)
    (folder / "dev.hyp").write_text("".join(f"{line}\n" for line in made), "utf-8")
    text = SimpleNamespace(pairs=lambda: iter(pairs))
    return SimpleNamespace(folder=folder, prepared=SimpleNamespace(dev=SimpleNamespace(text=[text])))


def test_the_best_run_translates_the_first_sentences_that_fit_a_line(tmp_path: Path) -> None:
    pairs = [(source, "?") for source in ("one", "x" * (LONGEST + 1), "two", "three", "four", "five")]
    made = ["eins", "zu lang", "z" * (LONGEST + 1), "", "vier", "fünf"]
    good, bad = run(tmp_path / "good", pairs, made), run(tmp_path / "bad", pairs, ["?"] * 6)
    worse, equal = (bad, record("h=8", 1, bleu=59.0)), (bad, record("h=1", 2, bleu=60.0))
    told = [*translations([equal, (good, record("h=4", 3, bleu=60.0)), worse])]
    assert told == [
        "\nThe best of them, h=4 seed 3, translates:",
        *("  one\n    eins", "  three\n    (nothing)", "  four\n    vier"),
    ]


def test_without_translations_there_is_nothing_to_show(tmp_path: Path) -> None:
    nothing: Any = SimpleNamespace(folder=tmp_path)
    assert list(translations([(nothing, record("h=1", 1))])) == []
    assert list(translations([])) == []
    assert pages(None, None) == ["No table yet."]


def test_the_first_command_ends_in_something_good(typed: tuple[Path, str]) -> None:
    folder, said = typed
    for done in map(load, folder.glob("runs/*/record.json")):
        assert re.search(rf"^{done.row} seed 1: run {done.run} on the processor, .+$", said, flags=re.MULTILINE)
        assert re.search(rf"^{done.row} seed 1: dev PPL .*, run {done.run}$", said, flags=re.MULTILINE)
    end = said[said.index("\n2 runs in ") :]
    order = [
        "\nThe best of them, ",
        "results/own/report.html",
        "results/own/smoke-4-steps/README.md",
        "What next:",
        " ui --table",
    ]
    assert [end.index(part) for part in order] == sorted(end.index(part) for part in order)
    assert (folder / "results/own/report.html").is_file()
    commands = [line for line in end.split("\n") if line.startswith("    ") and "python" in line]
    assert [line for line in end.split("\n") if len(line) > 80 and line not in commands] == []
