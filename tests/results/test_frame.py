"""Frames say what their records say: means by hand, the base first, and nothing left out in silence."""

import math
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import table_records
from table_records import EXPECTED, FULL, cell, diverged, laptop, own, run, save, stamped

from repro.pages import build
from repro.pages.columns import columns_of_dev
from repro.results import frame as frames
from repro.results.comparable import TIMES
from repro.results.details import compared
from repro.results.frame import common, difference_over_common, table
from repro.results.record import Record, load_records

# Numbers


def test_the_interval_by_hand() -> None:
    # 61, 62, 63: standard deviation 1, and t(2 degrees of freedom, 97.5 %) is 0.95 / sqrt(0.04875)
    mean, half_width = frames.interval([61.0, 62.0, 63.0])
    assert mean == 62.0
    assert half_width == pytest.approx(0.95 / math.sqrt(0.04875) / math.sqrt(3), rel=1e-9)
    # 1, 2, 3, 4, 10: mean 4, variance 50 / 4, and t(4) is 2.776445
    assert frames.interval([1, 2, 3, 4, 10]) == (4.0, pytest.approx(2.776445 * math.sqrt(12.5 / 5), abs=1e-5))


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


def test_three_seeds_show_an_interval_two_a_range_and_one_a_number() -> None:
    frame = frames.table([*FULL[:3], *FULL[3:5], FULL[6]])
    assert cell(frame, "BLEU (dev)", "ours") == {"base": "62.0 ± 2.5", "h=1": "62.5 [62.0, 63.0]", "h=4": "63.0"}
    assert cell(frame, "BLEU (dev)", "Δ") == {"base": "", "h=1": "+1.0", "h=4": "+2.0"}  # over common seeds
    assert cell(frame, "BLEU (dev)", "Δ", nth=1) == {"base": "", "h=1": "\N{MINUS SIGN}0.9", "h=4": "\N{MINUS SIGN}0.3"}
    assert cell(frame, "PPL (dev)", "paper") == {"base": "4.92", "h=1": "5.29", "h=4": "5.00"}
    assert cell(frame, "BLEU (test)", "multi-bleu") == {"base": "62.0 ± 2.5", "h=1": "62.5 [62.0, 63.0]", "h=4": "63.0"}
    sizes = [cell(frame, "parameters (M)", heading)["base"] for heading in ("here", "at paper size", "paper")]
    assert sizes == ["1.23", "65.1", "65"]
    assert cell(frame, "", "n") == {"base": "3", "h=1": "2", "h=4": "1"}


# Rows


def test_the_base_comes_first_and_the_rest_in_the_papers_order() -> None:
    assert list(frames.table(FULL[3:][::-1], base=FULL[:3])["row"]) == ["base", "h=1", "h=4", "h=16"]
    early = [replace(record, table="a_table") for record in FULL[3:]]  # by its name before "base"
    assert list(frames.table(early, base=FULL[:3])["row"]) == ["base", "h=1", "h=4", "h=16"]


def test_the_base_in_full_and_of_others_what_they_change() -> None:
    wide = run("h=4", 1, hyper=asdict(replace(table_records.BASE, d_ff=1024, learned_positions=True)))
    frame = frames.table([run("base"), run("h=1"), wide])
    headings = [column.heading for column in table_records.columns(frame) if not column.group]
    assert headings == ["row", "d_ff", "h", "d_k", "d_v", "positions", "n"]
    assert cell(frame, "", "d_ff") == {"base": "512", "h=1": "", "h=4": "1,024"}
    assert cell(frame, "", "h") == {"base": "8", "h=1": "1", "h=4": ""}
    assert cell(frame, "", "positions") == {"base": "sinusoidal", "h=1": "", "h=4": "learned"}


def test_a_row_without_a_record_shows_with_n_0_and_what_it_would_be() -> None:
    row = EXPECTED["table3_A", "h=1"]._replace(here={**asdict(table_records.BASE), "n_heads": 1, "d_k": 128})
    frame = frames.table([run("base"), run("h=4")], rows=EXPECTED | {("table3_A", "h=1"): row})
    assert list(frame["row"]) == ["base", "h=1", "h=4", "h=16"]
    assert list(frame["n"]) == [1, 0, 1, 0]
    assert cell(frame, "BLEU (dev)", "ours")["h=1"] == "missing"
    assert cell(frame, "BLEU (dev)", "paper")["h=1"] == "24.9"
    assert "No finished run to show: h=1, h=16." in frame.attrs["notes"]
    [line] = frame[frame["row"] == "h=1"].to_dict("records")
    assert (line["n_heads"], line["d_k"], line["d_model"]) == (1, 128, 128)
    assert math.isnan(line["params/here"]), "nobody has counted them"


def test_without_a_base_there_is_no_difference_to_it_and_with_nothing_at_all_no_table() -> None:
    frame = frames.table([run("h=1"), run("h=16")])
    assert set(cell(frame, "BLEU (dev)", "Δ").values()) == {""}
    assert "No record of the base row, so no difference to it." in frame.attrs["notes"]
    with pytest.raises(ValueError, match="expected records or the names of its rows"):
        frames.table([])
    assert "24.9" in table_records.at_the_end(frames.table([], rows=EXPECTED))


# What a reader is told


def test_ones_own_table_shows_and_marks_what_nobody_else_has(tmp_path: Path) -> None:
    save(tmp_path, [run("base"), run("h=1", bleu=55.25, dirty=True), run("h=4", bleu=61.5)])
    result_set = own(tmp_path, tmp_path / "nothing")
    shown = build.console(result_set, ["table3_A"])
    assert re.search(r"h=1 †  .* 55\.2 ", shown)
    assert re.search(r"h=4  .* 61\.5 ", shown)
    note = "† Made by code that is in no commit (not committed: repro/paper.py): commit it and type the command"
    assert f"{note} again. Finished runs are kept." in " ".join(shown.split())
    assert "left out" not in shown
    pages = build.build_scale(result_set)
    assert "| h=1 † |" in pages[tmp_path / "laptop/table3_A.md"]
    assert f"- {note}" in pages[tmp_path / "laptop/table3.md"]
    shown = " ".join(build.console(own(tmp_path, tmp_path / "nothing", "table3_A"), ["table3_A"]).split())
    said = "* Nobody else has these rows yet: commit table3_A.py and type the same command again."
    assert all(text in shown for text in ("h=1 *†", "h=4 *", said))


def test_yours_stand_beside_the_published_and_the_papers(tmp_path: Path) -> None:
    save(tmp_path / "results", FULL[:9])  # without h=16
    save(tmp_path / "own", [run("base", bleu=50.25), run("h=1", bleu=45.5)])
    result_set = own(tmp_path / "own", tmp_path / "results")
    frame = result_set.frame(["table3_A"])
    assert cell(frame, "BLEU (dev)", "yours") == {"base": "50.2", "h=1": "45.5", "h=4": "missing", "h=16": "missing"}
    published = cell(frame, "BLEU (dev)", "published")
    assert published == {"base": "62.0 ± 2.5", "h=1": "63.0 ± 2.5", "h=4": "64.0 ± 2.5", "h=16": ""}
    assert cell(frame, "BLEU (test)", "published")["h=1"] == "62.0 ± 2.5"
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
    left = "Left out of base: seed 2, made before with other code or settings. The same command with --seed 2 makes"
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


def test_two_sweeps_that_note_their_rows_at_once_keep_those_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reads the list and adds its own rows: without a lock the rows of the first writer would be lost."""
    read, both_have_read = frames.noted_rows, threading.Barrier(2, timeout=0.5)

    def slowly(folder: Path) -> Any:
        found = read(folder)
        with suppress(threading.BrokenBarrierError):  # as one waits for the other's lock
            both_have_read.wait()
        return found

    monkeypatch.setattr(frames, "noted_rows", slowly)
    keys = [("base", "base"), ("table3_A", "h=1")]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda key: frames.note_rows(tmp_path / "laptop", {key: EXPECTED[key]}), keys))
    assert sorted(read(tmp_path / "laptop")) == keys


def test_diverged_runs_are_counted_and_uncommitted_code_stays_out_and_is_named() -> None:
    frame = frames.table([*FULL[:5], run("h=1", 3, bleu=99.0, dirty=True)])
    assert (list(frame["n"]), frame["dev/bleu_max"][1]) == ([3, 2], 63.0)
    assert frame.attrs["notes"][0] == "Run from uncommitted code, so left out: h=1 (seed 3)."
    broken = replace(diverged("h=1", 3), cost=FULL[0].cost | {"train_seconds": 1e9})
    frame = frames.table([*FULL[:5], broken, diverged("h=4", 1)])
    assert frame["cost/train_seconds"].nunique() == 1, "nor in a mean of seconds"
    assert cell(frame, "", "n") == {"base": "3", "h=1": "2 (1 diverged)", "h=4": "0 (1 diverged)"}
    assert cell(frame, "BLEU (dev)", "ours")["h=4"] == "missing"
    assert "Diverged, so in no mean: h=1 (seed 3), h=4 (seed 1)." in frame.attrs["notes"]


def test_without_a_published_protocol_its_cells_are_empty_and_a_note_says_why() -> None:
    nothing: Any = {"bleu_published": None, "bleu_published_signature": None}
    one = run("h=1", 1)
    scores: Any = {name: score | nothing for name, score in one.scores.items()}
    frame = frames.table([replace(one, pair="en-es", scores=scores)])
    assert cell(frame, "BLEU (test)", "multi-bleu")["h=1"] == ""
    note = "No multi-bleu score, compounds split, of en-es: the authors' script knows no such target language."
    assert note in frame.attrs["notes"]


def test_repeated_text_is_noted_once_and_only_where_it_counts() -> None:
    clean = {"dev_sources": 0.002, "dev_pairs": 0.001, "test_sources": 0.0, "test_pairs": 0.0, "same_sides": 0.0}

    def of(row: str, **shares: float) -> Record:
        one = run(row)
        return replace(one, corpus={**one.corpus, "repeats": {**clean, **shares}})  # type: ignore[typeddict-item]

    told = "grammar en-de: 9.1 % of the dev pairs and 12.5 % of the dev source sentences are in the training text."
    repeating = [of(row, dev_sources=0.125, dev_pairs=0.091) for row in ("base", "h=1")]
    assert [note for note in frames.table(repeating).attrs["notes"] if "training text" in note] == [told]
    assert not [note for note in frames.table([of("base"), of("h=1")]).attrs["notes"] if "training" in note]


def test_what_rows_do_not_share_is_named_and_nothing_else() -> None:
    frame = frames.table(FULL)
    assert frame.attrs["notes"] == []
    assert frame.attrs["shared"]["commit", ""] == "12" * 6
    assert frame.attrs["shared"]["sacreBLEU", ""] == table_records.SIGNATURE
    bf16, commit, corpus = run("h=1").settings | {"precision": "bf16"}, "34" * 20, run("h=1").corpus
    commits = "Runs differ in commit: 121212121212 (base); 343434343434 (h=1)."
    for other, note in (
        (stamped(run("h=1"), commit=commit), f"{commits} The deciding code is the same."),
        (stamped(run("h=1"), commit=commit, fingerprint="01" * 32), commits),
        (stamped(run("h=1"), device="H200"), f"Runs differ in device: a processor (base); H200 (h=1).{TIMES}"),
        (stamped(run("h=1"), versions={"torch": "2.11.0"}), "Runs differ in torch: 2.13.0 (base); 2.11.0 (h=1)."),
        (run("h=1", settings=bf16), "Runs differ in precision: fp32 (base); bf16 (h=1)."),
        (run("h=1", corpus=dict(corpus, sha256="01" * 32)), "Runs differ in corpus: grammar en-de, 9 / 5 / 7 pairs"),
    ):
        notes = frames.table([run("base"), other]).attrs["notes"]
        assert [one for one in notes if one.startswith(note)], note


def test_rows_that_differ_are_named_in_the_fewest_words() -> None:
    rows = ("base", "h=1", "h=4", "hard, sampled")
    for n, said in (
        (1, "H200 (base); CPU (all rows but base)"),
        (2, 'H200 (base, h=1); CPU ("hard, sampled", h=4)'),
    ):
        runs = [stamped(run(row), device="H200" if i < n else "CPU") for i, row in enumerate(rows)]
        assert frames.table(runs).attrs["notes"] == [f"Runs differ in device: {said}.{TIMES}"]
    seeds = [stamped(run(row, seed=seed), device=f"{seed}") for row in rows for seed in (1, 2)]
    assert frames.table(seeds).attrs["notes"] == [f"Runs differ in device: 1 (all rows); 2 (all rows).{TIMES}"]


# Records that cannot make a table


def test_two_records_of_one_seed_and_two_scales_are_refused() -> None:
    with pytest.raises(ValueError, match="runs 0000000000000001 and 00000000000000ff have seed 1"):
        frames.table([run("base"), run("base", run="00000000000000ff")])
    with pytest.raises(ValueError, match="expected records of one scale, got laptop, smoke"):
        frames.table([run("base"), run("h=1", scale="smoke")])


def test_every_file_at_fault_is_named(tmp_path: Path) -> None:
    folder = save(tmp_path) / "laptop" / "table3_A"
    edited, moved = folder / "h=1-seed2.json", folder / "h=2-seed1.json"
    edited.write_bytes(edited.read_bytes().replace(b"63.0", b"73.0"))
    (folder / "h=4-seed1.json").rename(moved)
    with pytest.raises(ValueError, match="edited by hand or damaged") as error:
        load_records(folder)
    assert [line.split(":")[0].split(" ")[0] for line in str(error.value).split("\n")] == [str(edited), str(moved)]
    assert f"belongs at {folder / 'h=4-seed1.json'}" in str(error.value)


def test_neither_the_folder_of_a_scale_nor_that_of_figures_is_a_table(tmp_path: Path) -> None:
    for file in ("h/a.json", "smoke/a.json", "figures/a.json", f"smoke/{frames.ROWS_FILE}"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    assert frames.record_folders(tmp_path) == [tmp_path / "h"]


def test_a_row_that_another_table_has_with_the_same_seeds_is_told_to_be_one_sample(tmp_path: Path) -> None:
    def other(row: str, seed: int, **changed: Any) -> Record:
        return replace(run(row, seed), table="lab", row=f"{row} again", **changed)

    lines = [run("base"), run("h=1"), run("h=4"), run("h=16"), other("h=1", 1), other("h=4", 2)]
    save(tmp_path, [*lines, other("h=16", 1, system="an.Other"), other("base", 1)])
    found = laptop(tmp_path)
    said = "One sample and not two, since another table has the same model, text and seeds: "

    def notes(*tables: str) -> list[str]:
        frame = found.frame(tables)
        assert frame is not None
        return [note for note in frame.attrs["notes"] if note.startswith("One sample")]

    assert notes("table3_A") == [f"{said}h=1 (h=1 again of lab)."], "h=4 has another seed there, h=16 another system"
    assert notes("lab") == [f"{said}base again (base of base); h=1 again (h=1 of table3_A)."]
    assert notes("table3_A", "lab") == [f"{said}base again (base of base)."], "nothing of tables that stand in this one"


# Differences between runs of the same seeds


def frame_of(tmp_path: Path, base: dict[int, float], row: dict[int, float]) -> Any:
    """A table of base and h=1, with these BLEU by seed."""
    by_row = {"base": base, "h=1": row}
    save(tmp_path, [run(name, seed, bleu=bleu) for name, of in by_row.items() for seed, bleu in of.items()])
    return laptop(tmp_path).frame(["table3_A"])


def test_differences_are_over_common_seeds_whatever_other_seeds_a_row_has(tmp_path: Path) -> None:
    assert common({1: "a", 3: "c", 2: "b"}, {3: "z", 2: "y", 5: "x"}) == [("b", "y"), ("c", "z")]
    assert difference_over_common({1: 7.0, 2: 5.0}, {2: 3.0, 4: 100.0}) == 2.0
    assert difference_over_common({1: 7.0}, {2: 3.0}) is None
    few = frame_of(tmp_path / "few", {1: 60.0}, {1: 58.7})
    more = frame_of(tmp_path / "more", {1: 60.0, 2: 40.0}, {1: 58.7})
    for frame in (few, more):
        assert cell(frame, "BLEU (dev)", "Δ")["h=1"] == "−1.3"
    assert not any("over the seeds" in note for note in few.attrs["notes"])
    assert "Differences to the base are over the seeds that both have: 1 (h=1)." in more.attrs["notes"]
    none = frame_of(tmp_path / "none", {1: 60.0, 2: 61.0}, {3: 50.0, 4: 51.0})
    assert math.isnan(none["dev/bleu_to_base"][1])
    assert len([column for column in columns_of_dev(none) if column[:2] == ("BLEU (dev)", "Δ")]) == 1  # the paper's
    assert "No seed in common with the base, so no difference to it: h=1." in none.attrs["notes"]
    assert "so no difference to it: h=1." in table_records.at_the_end(none)


def test_on_other_text_a_row_is_compared_with_the_base_of_that_text_and_else_with_nothing() -> None:
    def on(text: str, name: str, bleu: float, nll: float, **other: Any) -> Any:
        curves = {"train": {"step": [], "nll": []}, "dev": {"step": [20, 40], "nll": [nll, nll]}}
        corpus = {**run("base", 1).corpus, "sha256": text}
        return run(name, 1, bleu=bleu, corpus=corpus, curves=curves, **other)

    base, one_head = run("base").hyper, run("h=1").hyper
    runs = [
        on("28e5", "base", 60.0, 3.0, hyper=base), on("28e5", "h=1", 59.0, 3.5, hyper=one_head),
        on("m0re", "base, text x 2", 70.0, 2.0, hyper=base), on("m0re", "h=1, text x 2", 73.0, 2.25, hyper=one_head),
        on("0ther", "h=1, French", 90.0, 1.0, hyper=one_head),
    ]  # fmt: skip
    frame = table(runs)
    differences = dict(zip(frame["row"], frame["dev/bleu_to_base"].fillna(-99), strict=True))
    assert differences == {"base": 0, "h=1": -1, "base, text x 2": 0, "h=1, text x 2": 3, "h=1, French": -99}
    assert cell(frame, "BLEU (dev)", "Δ") == {
        "base": "", "h=1": "\N{MINUS SIGN}1.0", "base, text x 2": "", "h=1, text x 2": "+3.0", "h=1, French": "",
    }  # fmt: skip
    intervals = dict(zip(frame["row"], frame.attrs["bleu_to_base"], strict=True))
    assert {row: of for row, of in intervals.items() if of} == {"h=1": (-1, None), "h=1, text x 2": (3, None)}
    said = 'Differences on other text than the base\'s are to the base that was trained there: "base, text x 2".'
    assert said in frame.attrs["notes"]
    along = compared([[one] for one in runs])
    found = {row: (of["along/beside"], of["along/updates/gap"]) for row, of in along.items()}
    assert found == {"h=1": ("base", 0.5), "h=1, text x 2": ("base, text x 2", 0.25)}
