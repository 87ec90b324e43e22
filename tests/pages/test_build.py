"""Tables say what their records say: means by hand, the base first, and nothing left out in silence."""

import csv
import io
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from processor import FLAGS

from repro.cli import report
from repro.model.config import Hyper
from repro.pages import build, tables
from repro.pages.columns import HEADINGS, columns
from repro.pages.sheet import sheet as sheet_of
from repro.render.latex import latex
from repro.render.markdown import markdown
from repro.render.page import Heading, Table, Text, plain
from repro.render.terminal import terminal
from repro.results import frame as frames
from repro.results.record import PaperNumbers, Record, path

ROOT = Path(__file__).parents[2]
BASE = Hyper(n_layers=3, d_model=128, d_ff=512, d_k=16, d_v=16, steps=600, warmup=24)
PRINTED = {
    "base": PaperNumbers(ppl=4.92, bleu=25.8, params=65.0),
    "h=1": PaperNumbers(ppl=5.29, bleu=24.9, params=None),
    "h=4": PaperNumbers(ppl=5.00, bleu=25.5, params=None),
    "h=16": PaperNumbers(ppl=4.91, bleu=25.8, params=None),
}
EXPECTED = {
    ("base" if row == "base" else "table3_A", row): frames.Listed(position, paper)
    for position, (row, paper) in enumerate(PRINTED.items(), start=-1)
}
SIGNATURE = "nrefs:1|case:mixed|tok:13a"


def run(row: str, seed: int = 1, *, bleu: float = 60.0, ppl: float = 2.0, dirty: bool = False, **other: Any) -> Record:
    """A record of `base`, or of a row `h=...`."""
    is_base = row == "base"
    hyper = BASE
    if found := re.fullmatch(r"h=(\d+)", row):
        n_heads = int(found[1])
        hyper = replace(BASE, n_heads=n_heads, d_k=128 // n_heads, d_v=128 // n_heads)
    dev: Any = {
        "nll": math.log(ppl),
        "ppl": float(ppl),
        "bleu": float(bleu),
        "bleu_signature": SIGNATURE,
        "bleu_published": bleu + 1,
        "bleu_published_signature": "tok:moses",
    }
    stamp: Any = {
        "fingerprint": "ef" * 32,
        "commit": "12" * 20,
        "dirty": dirty,
        "why_dirty": "not committed: repro/paper.py" if dirty else None,
        "python": "3.11.7",
        "platform": "Linux",
        "cpu": "a processor",
        "device": "a processor",
        "n_threads": 2,
        "versions": {"torch": "2.13.0"},
        "started": "2026-11-21T01:13:21+00:00",
        "mlflow_run": None,
    }
    content: dict[str, Any] = {
        "run": f"{seed:016x}",
        "table": "base" if is_base else "table3_A",
        "row": row,
        "position": -1 if is_base else list(PRINTED).index(row) - 1 if row in PRINTED else 0,
        "scale": "laptop",
        "seed": seed,
        "pair": "en-de",
        "corpus": {
            "name": "grammar",
            "sha256": "ab" * 32,
            "n_train": 9,
            "n_dev": 5,
            "n_test": 7,
            "dropped": {},
        },
        "tokenizer": {"sha256": "cd" * 32, "size": 1_009},
        "hyper": asdict(hyper),
        "settings": {
            "batch_tokens": 512,
            "precision": "fp32",
            "beam": 4,
            "alpha": 0.6,
            "extra_length": 50,
            "claim": "the sign of large effects",
        },
        "paper": PRINTED.get(row, PaperNumbers(ppl=None, bleu=None, params=None)),
        "params": {"here": 1_234_567, "paper_size": 65_111_040},
        "scores": {"dev": dev, "test": {**dev, "bleu": max(bleu - 1, 0.0), "bleu_published": bleu}},
        "curves": {"train": {"step": [20, 40], "nll": [4.5, 3.25]}, "dev": {"step": [40], "nll": [3.5]}},
        "cost": {
            "steps": 600,
            "source_tokens": 10**6,
            "target_tokens": 10**6,
            "train_seconds": 48.0,
            "decode_seconds": 7.0,
            "tokens_per_second": 40_000.0,
            "padding": 0.031,
            "flops": 1e14,
            "peak_memory_bytes": 10**8,
            "gpu_hours": 0.0,
        },
        "stamp": stamp,
        "status": "finished",
    }
    return Record(**{**content, **other})


def diverged(row: str, seed: int) -> Record:
    nothing: Any = dict.fromkeys(run("base").scores["dev"])
    return run(row, seed, scores={"dev": nothing, "test": nothing}, status="diverged")


def stamped(record: Record, **changes: Any) -> Record:
    stamp: Any = {**record.stamp, **changes}
    return replace(record, stamp=stamp)


FULL = [run(row, seed, bleu=60 + i + seed, ppl=2 - i / 10) for i, row in enumerate(PRINTED) for seed in (1, 2, 3)]


def save(results: Path, records: Sequence[Record] = FULL) -> Path:
    for record in records:
        record.save(path(results, record))
    return results


def laptop(results: Path) -> frames.ResultSet:
    """What is published at `laptop`."""
    return frames.ResultSet.read(results / "laptop")


def cell(frame: Any, group: str, heading: str, *, nth: int = 0) -> dict[str, str]:
    """The texts of a column, by row."""
    found = [column.texts for column in columns(frame) if column[:2] == (group, heading)]
    return dict(zip(frame["row"], map(plain, found[nth]), strict=True))


def page_of(frame: Any, scale: str, name: str) -> str:
    """The page of a table in Markdown."""
    return markdown(tables.page(frame, scale, name))


def latex_of(frame: Any, scale: str, name: str) -> str:
    """The page of a table in LaTeX."""
    return latex(tables.page(frame, scale, name))


def at_the_end(frame: Any) -> str:
    """What an experiment shows of a table at its end."""
    return terminal(tables.at_the_end(frame))


# Numbers


def test_the_interval_by_hand() -> None:
    # 61, 62, 63: standard deviation 1, and t(2 degrees of freedom, 97.5 %) is 0.95 / sqrt(0.04875)
    mean, half_width = frames.interval([61.0, 62.0, 63.0])
    assert mean == 62.0
    assert half_width == pytest.approx(0.95 / math.sqrt(0.04875) / math.sqrt(3), rel=1e-9)
    # 1, 2, 3, 4, 10: mean 4, variance 50 / 4, and t(4) is 2.776445
    assert frames.interval([1, 2, 3, 4, 10]) == (4.0, pytest.approx(2.776445 * math.sqrt(12.5 / 5), abs=1e-5))


def test_below_three_seeds_there_is_no_interval() -> None:
    assert frames.interval([60.0, 61.0]) == (60.5, None)
    assert frames.interval([60.0]) == (60.0, None)


def test_mean_and_interval_are_over_the_seeds_of_a_row() -> None:
    frame = frames.table(FULL).set_index("row")
    assert list(frame["n"]) == [3, 3, 3, 3]
    assert frame.loc["h=1", "dev/bleu"] == 63.0
    assert frame.loc["h=1", "dev/bleu_half_width"] == pytest.approx(2.484138, abs=1e-6)
    assert frame.loc["h=1", ["dev/bleu_min", "dev/bleu_max"]].tolist() == [62.0, 64.0]
    assert frame.loc["h=1", "test/bleu_published"] == 63.0
    assert frame.loc["h=4", "dev/bleu_to_base"] == 2.0
    assert frame.loc["h=4", "paper/bleu_to_base"] == pytest.approx(-0.3)
    assert frame.loc["h=4", "dev/ppl_to_base"] == pytest.approx(-0.2)


def test_what_a_reader_sees_of_three_two_and_one_seed() -> None:
    frame = frames.table([*FULL[:3], *FULL[3:5], FULL[6]])
    assert cell(frame, "BLEU (dev)", "ours") == {
        "base": "62.0 ± 2.5",
        "h=1": "62.5 [62.0, 63.0]",
        "h=4": "63.0",
    }
    assert cell(frame, "BLEU (dev)", "Δ") == {"base": "", "h=1": "+0.5", "h=4": "+1.0"}
    assert cell(frame, "BLEU (dev)", "Δ", nth=1) == {
        "base": "",
        "h=1": "\N{MINUS SIGN}0.9",
        "h=4": "\N{MINUS SIGN}0.3",
    }
    assert cell(frame, "PPL (dev)", "paper") == {"base": "4.92", "h=1": "5.29", "h=4": "5.00"}
    assert cell(frame, "BLEU (test)", "multi-bleu") == {
        "base": "62.0 ± 2.5",
        "h=1": "62.5 [62.0, 63.0]",
        "h=4": "63.0",
    }
    assert cell(frame, "parameters (M)", "here") == {"base": "1.23", "h=1": "1.23", "h=4": "1.23"}
    assert cell(frame, "parameters (M)", "at paper size") == {"base": "65.1", "h=1": "65.1", "h=4": "65.1"}
    assert cell(frame, "parameters (M)", "paper") == {"base": "65", "h=1": "", "h=4": ""}
    assert cell(frame, "", "n") == {"base": "3", "h=1": "2", "h=4": "1"}


def test_an_interval_never_reads_zero() -> None:
    frame = frames.table([run("base", seed, ppl=1.5 + seed / 2000) for seed in (1, 2, 3)])
    assert cell(frame, "PPL (dev)", "ours") == {"base": "1.501 ± 0.001"}
    frame = frames.table([run("base", seed) for seed in (1, 2, 3)])  # unless it is
    assert cell(frame, "PPL (dev)", "ours") == {"base": "2.00 ± 0.00"}


def test_a_row_that_learned_nothing_gives_the_others_no_decimals() -> None:
    lost = [run("h=1", seed, bleu=bleu) for seed, bleu in ((1, 0.001), (2, 0.002), (3, 0.003))]
    learned = [run("base", seed, bleu=60.0 + seed) for seed in (1, 2, 3)]
    assert cell(frames.table([*learned, *lost]), "BLEU (dev)", "ours") == {"base": "62.0 ± 2.5", "h=1": "0.0 ± 0.0"}


# Rows


def test_the_base_comes_first_and_the_rest_in_the_papers_order() -> None:
    assert list(frames.table(FULL[::-1])["row"]) == ["base", "h=1", "h=4", "h=16"]
    assert list(frames.table(FULL[3:][::-1], base=FULL[:3])["row"]) == ["base", "h=1", "h=4", "h=16"]
    early = [replace(record, table="a_table") for record in FULL[3:]]  # by its name before "base"
    assert list(frames.table(early, base=FULL[:3])["row"]) == ["base", "h=1", "h=4", "h=16"]


def test_the_base_in_full_and_of_others_what_they_change() -> None:
    wide = run("h=4", 1, hyper=asdict(replace(BASE, d_ff=1024, learned_positions=True)))
    frame = frames.table([run("base"), run("h=1"), wide])
    headings = [column.heading for column in columns(frame) if not column.group]
    assert headings == ["row", "d_ff", "h", "d_k", "d_v", "positions", "n"]
    assert cell(frame, "", "d_ff") == {"base": "512", "h=1": "", "h=4": "1,024"}
    assert cell(frame, "", "h") == {"base": "8", "h=1": "1", "h=4": ""}
    assert cell(frame, "", "positions") == {"base": "sinusoidal", "h=1": "", "h=4": "learned"}


def test_every_hyper_parameter_has_a_column() -> None:
    assert list(HEADINGS) == list(asdict(BASE))


def test_a_row_without_a_record_shows_with_n_0() -> None:
    frame = frames.table([run("base"), run("h=4")], rows=EXPECTED)
    assert list(frame["row"]) == ["base", "h=1", "h=4", "h=16"]
    assert list(frame["n"]) == [1, 0, 1, 0]
    assert cell(frame, "BLEU (dev)", "ours")["h=1"] == "missing"
    assert cell(frame, "BLEU (dev)", "paper")["h=1"] == "24.9"
    assert "No finished run to show: h=1, h=16." in frame.attrs["notes"]


def test_a_gap_between_records_shows_too() -> None:
    frame = frames.table([run("base"), run("h=1"), run("h=16")])
    assert list(frame["row"]) == ["base", "h=1", "(row 2)", "h=16"]
    assert frame["n"][2] == 0


def test_without_a_base_there_is_no_difference() -> None:
    frame = frames.table([run("h=1")])
    assert cell(frame, "BLEU (dev)", "Δ") == {"h=1": ""}
    assert "No record of the base row, so no difference to it." in frame.attrs["notes"]


def test_nothing_at_all_is_no_table() -> None:
    with pytest.raises(ValueError, match="expected records or the names of its rows"):
        frames.table([])


def test_names_alone_make_a_table_of_what_is_missing() -> None:
    frame = frames.table([], rows=EXPECTED)
    assert list(frame["n"]) == [0, 0, 0, 0]
    assert "24.9" in at_the_end(frame)


# What a reader is told


def test_uncommitted_code_stays_out_and_is_named() -> None:
    records = [*FULL[:5], run("h=1", 3, bleu=99.0, dirty=True)]
    frame = frames.table(records)
    assert list(frame["n"]) == [3, 2]
    assert frame["dev/bleu_max"][1] == 63.0
    assert frame.attrs["notes"][0] == "Run from uncommitted code, so left out: h=1 (seed 3)."


def own(results: Path, published: Path, *uncommitted: str) -> frames.ResultSet:
    """One's own results at `laptop`, with the rows there should be."""
    frames.note_rows(results / "laptop", EXPECTED)
    return frames.ResultSet.read_own(results / "laptop", published, uncommitted)


def test_ones_own_table_shows_and_marks_what_nobody_else_has(tmp_path: Path) -> None:
    # it was said to be missing, and that every run kept to the paper's recipe
    save(tmp_path, [run("base"), run("h=1", bleu=55.25, dirty=True), run("h=4", bleu=61.5)])
    result_set = own(tmp_path, tmp_path / "nothing")
    shown = build.console(result_set, ["table3_A"])
    assert re.search(r"h=1 †  .* 55\.2 ", shown)
    assert re.search(r"h=4  .* 61\.5 ", shown)
    note = "† Made by code that is in no commit (not committed: repro/paper.py): commit it and type the command"
    assert f"{note}\n  again. Finished runs are kept." in shown
    assert "left out" not in shown
    page = build.texts(build.build_scale(result_set))[tmp_path / "laptop/table3_A.md"]
    assert "| h=1 † |" in page
    assert f"- {note}" in page
    shown = build.console(own(tmp_path, tmp_path / "nothing", "table3_A"), ["table3_A"])
    assert "h=1 *†" in shown
    assert "h=4 *" in shown
    assert re.search(r"base  ", shown)
    assert "* Nobody else has these rows yet: commit table3_A.py and type the same command again." in shown
    assert "*" not in build.console(own(tmp_path, tmp_path / "nothing"), ["table3_A"])


def test_yours_stand_beside_the_published_and_the_papers(tmp_path: Path) -> None:
    save(tmp_path / "results")
    save(tmp_path / "own", [run("base", bleu=50.25), run("h=1", bleu=45.5)])
    result_set = own(tmp_path / "own", tmp_path / "results")
    frame = result_set.frame(["table3_A"])
    assert cell(frame, "BLEU (dev)", "yours") == {"base": "50.2", "h=1": "45.5", "h=4": "missing", "h=16": "missing"}
    assert cell(frame, "BLEU (dev)", "published")["h=1"] == "63.0 ± 2.5"
    assert cell(frame, "BLEU (dev)", "paper")["h=1"] == "24.9"
    assert cell(frame, "BLEU (dev)", "Δ")["h=1"] == "\N{MINUS SIGN}4.8"  # of yours to yours
    assert cell(frame, "", "n")["h=1"] == "1"
    assert "63.0 ± 2.5" in build.console(result_set, ["table3_A"])
    assert cell(result_set.published.frame(["table3_A"]), "BLEU (dev)", "ours")["h=1"] == "63.0 ± 2.5"  # type: ignore


def test_ones_own_cells_never_mix_what_is_no_repetition(tmp_path: Path) -> None:
    older = [run("base", seed, bleu=70.0) for seed in (1, 2, 3)]
    newer = [stamped(run("base", seed, bleu=60.0), started="2026-11-22T00:00:00+00:00") for seed in (1, 3)]
    other = [stamped(one, fingerprint="01" * 32) for one in newer]
    save(tmp_path, [*older, run("h=1", bleu=55.0)])
    save(tmp_path, other)  # takes the place of seeds 1 and 3
    result_set = own(tmp_path, tmp_path / "nothing")
    frame = result_set.frame(["table3_A"])
    assert cell(frame, "BLEU (dev)", "yours")["base"] == "60.0 [60.0, 60.0]"
    left = "Left out of base: seed 2, made before with other code or settings. The same command with --seeds 2 makes"
    assert [note for note in frame.attrs["notes"] if note.startswith(left)]  # type: ignore[union-attr]
    assert [record.seed for record in result_set.everything if record.row == "base"] == [1, 3]


def test_a_row_that_was_renamed_stands_in_ones_own_table_once(tmp_path: Path) -> None:
    save(tmp_path, [run("base"), run("h=1"), run("one head", position=0)])
    frames.note_rows(tmp_path / "laptop", {("base", "base"): EXPECTED["base", "base"]})
    frames.note_rows(tmp_path / "laptop", {("table3_A", "one head"): EXPECTED["table3_A", "h=1"]})
    frame = frames.ResultSet.read_own(tmp_path / "laptop", tmp_path / "nothing").frame(["table3_A"])
    assert frame is not None
    assert list(frame["row"]) == ["base", "one head"]
    assert "Left out: h=1 (seed 1), which table3_A.py has no more." in frame.attrs["notes"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda one: stamped(one, fingerprint="01" * 32), "deciding code"),
        (lambda one: stamped(one, n_threads=4), "threads"),
        (lambda one: replace(one, settings={**one.settings, "precision": "bf16"}), "precision"),
        (lambda one: replace(one, corpus={**one.corpus, "sha256": "00" * 32}), "text"),
        (lambda one: replace(one, hyper=one.hyper | {"warmup": 7}), "warmup"),
    ],
)
def test_a_published_cell_that_mixes_is_an_error(change: Any, named: str, tmp_path: Path) -> None:
    save(tmp_path, [run("base", 1), change(run("base", 2))])
    with pytest.raises(ValueError, match=f"base, row 'base': seeds 1 and 2 differ in {named}, so they have no mean"):
        laptop(tmp_path).frame(["base"])


def test_where_no_run_is_shown_nothing_is_said_to_be_kept() -> None:
    assert "every run follows" not in page_of(frames.table([], rows=EXPECTED), "laptop", "table3_A")
    assert "No run to compare with it." in page_of(frames.table([], rows=EXPECTED), "laptop", "table3_A")


def test_diverged_runs_are_counted() -> None:
    frame = frames.table([*FULL[:5], diverged("h=1", 3)])
    assert cell(frame, "", "n") == {"base": "3", "h=1": "2 (1 diverged)"}
    assert "Diverged, so in no mean: h=1 (seed 3)." in frame.attrs["notes"]


def test_a_row_that_always_diverges_is_missing() -> None:
    frame = frames.table([*FULL[:3], diverged("h=1", 1)])
    assert cell(frame, "BLEU (dev)", "ours")["h=1"] == "missing"
    assert cell(frame, "", "n")["h=1"] == "0 (1 diverged)"


@pytest.mark.parametrize("seeds", [[1], [1, 2], [1, 2, 3]])
def test_without_a_published_protocol_its_cells_are_empty_and_a_note_says_why(seeds: list[int]) -> None:
    nothing = {"bleu_published": None, "bleu_published_signature": None}
    records = [
        replace(one, pair="en-es", scores={name: score | nothing for name, score in one.scores.items()})  # type: ignore
        for one in (run("h=1", seed, bleu=60 + seed) for seed in seeds)
    ]
    frame = frames.table(records, rows=EXPECTED)
    assert cell(frame, "BLEU (test)", "multi-bleu")["h=1"] == ""
    assert cell(frame, "BLEU (test)", "sacreBLEU")["h=1"].startswith("6")
    note = "No multi-bleu score, compounds split, of en-es: the authors' script knows no such target language."
    assert note in frame.attrs["notes"]
    assert not [note for note in frames.table([run("base")]).attrs["notes"] if "published" in note]


def test_repeated_text_is_noted_once_and_only_where_it_counts(tmp_path: Path) -> None:
    clean = {"dev_sources": 0.002, "dev_pairs": 0.001, "test_sources": 0.0, "test_pairs": 0.0, "same_sides": 0.0}

    def of(row: str, **shares: float) -> Record:
        one = run(row)
        return replace(one, corpus={**one.corpus, "repeats": {**clean, **shares}})  # type: ignore[typeddict-item]

    told = "grammar en-de: 9.1 % of the dev pairs and 12.5 % of the dev source sentences are in the training text."
    repeating = [of(row, dev_sources=0.125, dev_pairs=0.091) for row in ("base", "h=1")]
    assert [note for note in frames.table(repeating).attrs["notes"] if "training text" in note] == [told]
    for quiet in ([of("base"), of("h=1")], [run("base"), run("h=1")]):
        assert not [note for note in frames.table(quiet).attrs["notes"] if "training" in note]
    save(tmp_path, repeating)
    [page] = [
        text for path, text in build.texts(build.build_scale(laptop(tmp_path))).items() if path.name == "table3_A.md"
    ]
    assert f"- {told}" in page


def test_runs_that_share_everything_need_no_note() -> None:
    frame = frames.table(FULL)
    assert frame.attrs["notes"] == []
    assert frame.attrs["shared"]["commit", ""] == "12" * 6
    assert frame.attrs["shared"]["sacreBLEU", ""] == SIGNATURE


@pytest.mark.parametrize(
    ("other", "note"),
    [
        (
            stamped(run("h=1"), commit="34" * 20),
            "Runs differ in commit: 121212121212 (base); 343434343434 (h=1). The deciding code is the same.",
        ),
        (
            stamped(run("h=1"), commit="34" * 20, fingerprint="01" * 32),
            "Runs differ in commit: 121212121212 (base); 343434343434 (h=1).",
        ),
        (stamped(run("h=1"), device="H200"), "Runs differ in device: a processor (base); H200 (h=1)."),
        (
            stamped(run("h=1"), versions={"torch": "2.11.0"}),
            "Runs differ in torch: 2.13.0 (base); 2.11.0 (h=1).",
        ),
        (
            run("h=1", settings=run("h=1").settings | {"precision": "bf16"}),
            "Runs differ in precision: fp32 (base); bf16 (h=1).",
        ),
    ],
)
def test_what_rows_do_not_share_is_named(other: Record, note: str) -> None:
    assert note in frames.table([run("base"), other]).attrs["notes"]


def test_rows_that_differ_are_named_in_the_fewest_words() -> None:
    rows = ("base", "h=1", "h=4", "hard, sampled")
    devices = {"base": "H200", "h=1": "CPU", "h=4": "CPU", "hard, sampled": "CPU"}
    records = [stamped(run(row), device=devices[row]) for row in rows]
    [note] = frames.table(records).attrs["notes"]
    assert note == "Runs differ in device: H200 (base); CPU (all rows but base)."
    [note] = frames.table([stamped(run(row, seed=seed), device=f"{seed}") for row in rows for seed in (1, 2)]).attrs[
        "notes"
    ]
    assert note == "Runs differ in device: 1 (all rows); 2 (all rows)."
    devices |= {"h=1": "H200"}
    [note] = frames.table([stamped(run(row), device=devices[row]) for row in rows]).attrs["notes"]
    assert note == 'Runs differ in device: H200 (base, h=1); CPU ("hard, sampled", h=4).'
    [note] = frames.table([stamped(run("base", seed=seed), device=f"{seed}") for seed in (1, 2)]).attrs["notes"]
    assert note == "Runs differ in device: 1 (base); 2 (base)."


def test_another_corpus_is_named() -> None:
    corpus: Any = {**run("h=1").corpus, "sha256": "01" * 32}
    notes = frames.table([run("base"), run("h=1", corpus=corpus)]).attrs["notes"]
    assert [note for note in notes if note.startswith("Runs differ in corpus: grammar en-de")]


# Records that cannot make a table


def test_two_records_of_one_seed_are_refused() -> None:
    with pytest.raises(ValueError, match="runs 0000000000000001 and 00000000000000ff have seed 1"):
        frames.table([run("base"), run("base", run="00000000000000ff")])


def test_two_files_of_one_seed_are_both_named(tmp_path: Path) -> None:
    folder = save(tmp_path) / "laptop" / "table3_A"
    shutil.copy(folder / "h=1-seed1.json", folder / "h=1-seed9.json")
    with pytest.raises(ValueError, match="both hold seed 1 of row 'h=1'") as error:
        frames.load_records(folder)
    assert f"{folder / 'h=1-seed1.json'} and {folder / 'h=1-seed9.json'}" in str(error.value)


def test_every_file_at_fault_is_named(tmp_path: Path) -> None:
    folder = save(tmp_path) / "laptop" / "table3_A"
    edited, moved = folder / "h=1-seed2.json", folder / "h=2-seed1.json"
    edited.write_bytes(edited.read_bytes().replace(b"63.0", b"73.0"))
    (folder / "h=4-seed1.json").rename(moved)
    with pytest.raises(ValueError, match="edited by hand or damaged") as error:
        frames.load_records(folder)
    assert [line.split(":")[0].split(" ")[0] for line in str(error.value).split("\n")] == [
        str(edited),
        str(moved),
    ]
    assert f"belongs at {folder / 'h=4-seed1.json'}" in str(error.value)


def test_a_folder_that_is_not_there_holds_no_records(tmp_path: Path) -> None:
    assert frames.load_records(tmp_path / "laptop" / "base") == []


def test_seeds_of_different_models_have_no_mean() -> None:
    other = run("h=1", 2, hyper=asdict(replace(BASE, n_heads=1, d_k=128, d_v=128, steps=300)))
    with pytest.raises(ValueError, match="row 'h=1': seeds 1 and 2 differ in steps, so they have no mean"):
        frames.table([run("h=1", 1), other])


def test_two_scales_are_two_tables() -> None:
    with pytest.raises(ValueError, match="expected scale laptop, got smoke"):
        frames.table([run("base"), run("h=1", scale="smoke")])


# Files


def test_the_files_are_a_function_of_the_records(tmp_path: Path) -> None:
    files = build.write_scale(laptop(save(tmp_path / "a")))
    names = {f"{table}.{kind}" for table in ("table3", "table3_A") for kind in ("md", "tex", "csv")}
    assert names <= {file.name for file in files}
    again = build.write_scale(laptop(save(tmp_path / "b", FULL[::-1])))
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]


def test_check_finds_no_difference_then_one_digit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path)
    assert report.main(["--results", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.split()) >= 6
    assert report.main(["--results", str(tmp_path), "--check"]) == 0
    assert capsys.readouterr().out == ""
    page = tmp_path / "laptop" / "table3_A.md"
    page.write_bytes(page.read_bytes().replace(b"62.0", b"62.9", 1))
    assert report.main(["--results", str(tmp_path), "--check"]) == 1
    assert re.search(r"^-.*62\.9.*\n\+.*62\.0", capsys.readouterr().out, re.MULTILINE)
    assert b"62.9" in page.read_bytes()
    assert report.main(["--results", str(tmp_path)]) == 0
    assert b"62.9" not in page.read_bytes()


def test_check_misses_no_file_and_no_line_end(tmp_path: Path) -> None:
    save(tmp_path)
    assert report.main(["--results", str(tmp_path), "--check"]) == 1
    assert not list(tmp_path.glob("*/*.md"))
    report.main(["--results", str(tmp_path)])
    sheet = tmp_path / "laptop" / "table3_A.csv"
    sheet.write_bytes(sheet.read_bytes().replace(b"\n", b"\r\n"))
    assert report.main(["--results", str(tmp_path), "--check"]) == 1


def test_an_edited_record_stops_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = save(tmp_path) / "laptop" / "base" / "base-seed1.json"
    file.write_bytes(file.read_bytes().replace(b"61.0", b"71.0"))
    with pytest.raises(SystemExit) as stop:
        report.main(["--results", str(tmp_path)])
    assert stop.value.code == 1
    assert "base-seed1.json: edited by hand" in capsys.readouterr().err
    assert not list(tmp_path.glob("*/*.md"))


def test_no_results_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        report.main(["--results", str(tmp_path / "nowhere")])
    assert "expected a folder of records, found none" in capsys.readouterr().err
    assert build.build_scale(frames.ResultSet.read(tmp_path / "laptop")) == {}


def test_a_page_says_how_it_was_made(tmp_path: Path) -> None:
    page = build.write_scale(laptop(save(tmp_path)))[0].read_bytes().decode()
    for said in (
        "# table3_A at scale laptop",
        "shows the sign of large effects",
        "python experiments/table3_A.py --scale laptop",
        "python -m repro report",
        "95 % t-interval",
        r"sacreBLEU: nrefs:1\|case:mixed\|tok:13a",
        "multi-bleu: tok:moses",
        "grammar en-de, 9 / 5 / 7 pairs, SHA-256 abababababab",
        "48 s training and 7 s decoding per run",
        "Base row: N 3, d<sub>model</sub> 128",
    ):
        assert said in page


def test_the_sheet_has_every_digit_that_all_processors_share(tmp_path: Path) -> None:
    import pandas as pd

    sheet = build.write_scale(laptop(save(tmp_path)))[2]
    frame = pd.read_csv(sheet).set_index("row")
    half_width = 0.95 / math.sqrt(0.04875) / math.sqrt(3)
    assert frame.loc["h=1", "dev/bleu_half_width"] == pytest.approx(half_width, rel=1e-8)
    assert "2.48413771," in sheet.read_text("utf-8")  # 2.484137711...: a processor may differ beyond these nine
    assert frame.loc["h=16", ["n", "n_heads", "d_k", "seeds"]].tolist() == [3, 16, 8, "1 2 3"]
    assert frame.loc["base", "paper/params"] == 65


def test_a_table_in_the_terminal() -> None:
    lines = at_the_end(frames.table(FULL[:6])).split("\n")
    assert lines[2].split() == ["row", "n", "ours", "paper", "ours", "Δ", "paper", "Δ"]
    assert lines[3].split() == ["base", "3", "2.00", "±", "0.00", "4.92", "62.0", "±", "2.5", "25.8"]
    assert len(lines[2]) == len(lines[4])
    assert lines[2].index("paper") + 1 == lines[3].index("4.92") == lines[4].index("5.29")
    assert max(map(len, lines)) <= 80


def test_every_sign_is_explained_under_its_table(tmp_path: Path) -> None:
    save(tmp_path, [*FULL, diverged("h=16", 4)])
    save(tmp_path / "own", [run("base"), run("h=1", dirty=True)])
    mine = own(tmp_path / "own", tmp_path, "table3_A")
    signs = {"±": "a ± b", "Δ": "Δ", "†": "† mark", "yours": "yours", "multi-bleu": "multi-bleu", "missing": "missing"}
    signs |= {"diverged)": "diverged"}
    seen = set()
    for result_set in (laptop(tmp_path), mine):
        for name, document in build.build_scale(result_set).items():
            assert max(line.count(" | ") for line in markdown(document.page).split("\n") if line[:1] == "|") <= 9
            shown: list[str] = []
            after: list[str] = []
            for block in (*document.page.blocks, Heading("end")):
                if isinstance(block, Table):
                    texts = [text for column in block.columns for text in (column.heading, *column.texts)]
                    shown += map(plain, texts)
                elif isinstance(block, Heading):
                    said = " ".join(after)
                    for sign, word in signs.items():
                        if any(sign in text for text in shown) and name.name != "claims":
                            assert word in said, (name, sign)
                            seen.add(sign)
                    shown, after = [], []
                if isinstance(block, Text):
                    after.append(plain(block.words))
    assert seen == {*signs}


# Names are data


def rendered_rows(page: str) -> Iterator[str]:
    """The texts of the first column, as a reader of Markdown sees them."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(page)
    for i, token in enumerate(tokens):
        if token.type == "td_open" and tokens[i - 1].type == "tr_open":
            content = tokens[i + 1]
            assert {child.type for child in content.children or []} <= {"text", "text_special"}
            yield "".join(child.content for child in content.children or [])


@settings(max_examples=20)
@given(name=st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=30))
@example("<script>alert(1)</script>")
@example("a|b")
@example("_h_ *h* `h` [h](http://x) ![h](x) ~~h~~ $h$ \\ &amp; # {h}")
@example("h\\")
@example("\\|")
def test_a_name_in_markdown_is_text(name: str) -> None:
    frame = frames.table([run("base"), run(name)])
    assert list(rendered_rows(page_of(frame, "laptop", "table3_A"))) == ["base", name] * 3


@pytest.mark.parametrize("name", ["=cmd()", "+1", "-1+1", "@SUM(A1)", "\t=1", " =1", "a-b", "1", '=a,"b"\n'])
def test_a_name_in_a_sheet_is_no_formula(name: str) -> None:
    base, cell = sheet_rows(sheet_of(frames.table([run("base"), run(name)])))
    assert base == "base"
    assert cell in (name, f"'{name}")
    assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t"))


def sheet_rows(sheet: str) -> list[str]:
    return [line["row"] for line in csv.DictReader(io.StringIO(sheet))]


def test_numbers_in_a_sheet_stay_numbers() -> None:
    assert "'" not in sheet_of(frames.table([run("base"), run("h=1", bleu=3.0)]))


def test_a_line_break_in_a_name_breaks_no_line() -> None:
    frame = frames.table([run("base"), run("a\n\\end{tabular}\r\u2028\\bad"), run("b\nc", dirty=True)])
    assert list(rendered_rows(page_of(frame, "laptop", "t")))[1] == "a \\end{tabular}  \\bad"
    tex = latex_of(frame, "laptop", "t").split("\n")
    assert [line for line in tex if line.startswith(("\\end", "\\bad", "c"))] == ["\\end{tabular}"] * 3
    assert "\nc" not in at_the_end(frame)


def test_latex_escapes() -> None:
    name = '50% & $5 #1 d_k {x} ~^\\ <a|b> [c] * " ±é☃'
    tex = latex_of(frames.table([run("base"), run(name)]), "laptop", "table3_A")
    assert (
        r"50\% \& \$5 \#1 d\_k \{x\} \textasciitilde{}\textasciicircum{}\textbackslash{} "
        r"\textless{}a\textbar{}b\textgreater{} {[}c{]} {*} '' $\pm$U+00E9U+2603"
    ) in tex


@pytest.mark.parametrize("package", ["\\usepackage{booktabs}", ""])
def test_latex_compiles(package: str, tmp_path: Path) -> None:
    if not shutil.which("pdflatex"):
        pytest.skip("needs pdflatex, which is absent.")
    records = [*FULL, run('[x] % & \\ ☃ " <|>', position=3), run("h=4", 9, dirty=True)]
    (tmp_path / "table.tex").write_bytes(latex_of(frames.table(records), "laptop", "table3_A").encode())
    article = (
        rf"\documentclass{{article}}{package}\begin{{document}}\begin{{table}}\centering\footnotesize"
        r"\setlength{\tabcolsep}{3pt}\input{table}\caption{Heads.}\end{table}\end{document}"
    )
    (tmp_path / "article.tex").write_bytes(article.encode())
    if package and subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True).returncode:
        pytest.skip("needs booktabs.sty, which is absent.")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "article.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2000:]


def loaded(code: str, *arguments: str) -> set[str]:
    """The heavy modules that a fresh process has imported after `code`."""
    heavy = "{'torch', 'lightning', 'mlflow', 'pandas', 'scipy', 'numpy'}"
    command = [
        sys.executable,
        "-c",
        f"import sys; {code}; print(*({heavy} & sys.modules.keys()))",
        *arguments,
    ]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, check=True)
    return set(done.stdout.decode().split("\n")[-2].split())


def test_importing_it_is_light() -> None:
    assert loaded("import repro.pages.build") <= {"numpy", "scipy"}


def test_tables_need_neither_torch_nor_the_tracker(tmp_path: Path) -> None:
    made = loaded("from repro.cli.report import main; main(['--results', sys.argv[1]])", str(save(tmp_path)))
    assert made == {"numpy", "pandas", "scipy"}


def test_a_document_quotes_what_the_experiment_shows_to_somebody_who_runs_one_seed(tmp_path: Path) -> None:
    result_set = laptop(save(tmp_path))
    document = "before\n<!-- closing table: laptop table3_A seed 2 -->\n| old |\n<!-- end -->\nafter\n"
    renewed = build.quote(document, {"laptop": result_set})
    [h1] = [line for line in renewed.split("\n") if line.startswith("| h=1 ")]
    shown = [text.strip() for text in h1.split("|")[2:-1]]
    shown = [text.replace("\N{NO-BREAK SPACE}", " ") for text in shown]
    assert shown == ["1", "1.90", "1.90 ± 0.00", "5.29", "63.0", "+1.0", "63.0 ± 2.5", "24.9", "\N{MINUS SIGN}0.9"]
    assert renewed.startswith("before\n<!-- closing table: laptop table3_A seed 2 -->\n| row ")
    assert renewed.endswith("that of the base row.\n<!-- end -->\nafter\n")
    assert build.quote(renewed, {"laptop": result_set}) == renewed
    assert "| old |" not in build.quote(document, {})


# Other processors


def core_types() -> list[str]:
    """Kernels of OpenBLAS that this processor can run, the oldest first; elsewhere than on x86 the names do nothing."""
    newer = {"Haswell": {"avx2", "fma"}, "Zen": {"avx2", "fma"}, "SkylakeX": {"avx512f", "avx512dq", "avx512bw"}}
    return ["Prescott", "Nehalem", *(name for name, needs in newer.items() if needs <= FLAGS)]


@pytest.mark.parametrize("core_type", core_types())
def test_what_is_published_is_the_same_on_every_processor(core_type: str) -> None:
    # half-widths of exact laws were written with all digits of their rounding noise
    command = [sys.executable, "-m", "repro", "report", "--check"]
    environment = os.environ | {"OPENBLAS_CORETYPE": core_type, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (0, "", "")
