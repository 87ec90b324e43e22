"""Which runs are measured for a picture, when, and what is said where they are gone."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from repro.figures import checkpoints, heads, trained
from repro.figures.checkpoints import Probe, dev_pairs, measured, runs_of_rows, told_runs, whose
from repro.results.places import experiment_files
from repro.results.record import Record
from repro.runs.load import experiment

Make = Callable[..., Record]
ROWS = ("ladder", "simple"), ("base", "base")


def place(runs: Path, record: Record) -> Record:
    """The folder of a finished run."""
    (runs / record.run).mkdir(exist_ok=True)
    (runs / record.run / "record.json").touch()
    return record


def chosen(records: list[Record], runs: Path) -> list[int]:
    """Numbers of the runs of both rows, by their places in `records`."""
    found = runs_of_rows(ROWS, lambda table: [one for one in records if one.table == table], runs)
    return [next(i for i, one in enumerate(records) if one is run) for run in found]


def test_the_lowest_seed_whose_checkpoints_are_here_and_a_base_of_the_same_text(a_record: Make, tmp_path: Path) -> None:
    def simple(seed: int, row: str = "simple", **other: Any) -> Record:
        return a_record(row, seed, table="ladder", run=f"{seed + 100:016x}", **other)

    elsewhere = {**a_record().tokenizer, "sha256": "0" * 64}
    records = [
        simple(5),
        simple(4),
        simple(3),  # whose folder is gone
        simple(2, dirty=True),
        simple(1, status="diverged"),
        simple(0, "simple, source reversed"),
        a_record("base", 4, tokenizer=elsewhere),
        a_record("base", 6),
        a_record("base", 7),
    ]
    for record in records:
        if record is not records[2]:
            place(tmp_path, record)
    assert chosen(records, tmp_path) == [1, 7]
    records.append(place(tmp_path, a_record("base", 4, run="f" * 16)))
    assert chosen(records, tmp_path) == [1, 9]  # of the same seed
    records.insert(0, place(tmp_path, a_record("base", 3, run="e" * 16)))
    assert chosen(records, tmp_path) == [2, 10]  # though that of 3 is lower
    assert chosen(records[:1], tmp_path) == []


def test_a_run_of_uncommitted_code_is_shown_alone_and_not_compared(a_record: Make, tmp_path: Path) -> None:
    runs = {
        "base": [a_record("base", 2), a_record("base", 1, dirty=True)],
        "ladder": [a_record("simple", 1, table="ladder")],
    }
    for record in (*runs["base"], *runs["ladder"]):
        place(tmp_path, record)
    assert runs_of_rows(ROWS[1:], runs.__getitem__, tmp_path) == runs["base"][1:]
    assert runs_of_rows(ROWS, runs.__getitem__, tmp_path) == [*runs["ladder"], runs["base"][0]]


def test_runs_are_measured_once_and_others_anew(a_record: Make, tmp_path: Path) -> None:
    file, seen = tmp_path / "numbers.json", []

    def measure(records: Sequence[Record], runs: Path, cache: Path) -> dict[str, Any]:
        assert (runs, cache) == (tmp_path / "runs", tmp_path / "cache")
        seen.append([one.seed for one in records])
        return {"runs": [*map(whose, records)], "numbers": [0.5] * len(seen)}

    def kept(records: list[Record]) -> Any:
        probe = Probe("numbers", "make it", measure, ())
        return measured(tmp_path, probe, records, tmp_path / "runs", tmp_path / "cache", scale="laptop")

    with pytest.raises(ValueError, match=r"no .*numbers.json, and no finished run .* Run `make it --scale laptop`\."):
        kept([])
    first, second = [a_record("base", 1)], [a_record("base", 2)]
    for records, times in ((first, 1), (first, 1), (second, 2), ([], 2)):
        found = kept(records)
        assert found["numbers"] == [0.5] * times
    assert seen == [[1], [2]]
    assert told_runs(found["runs"]).endswith(f": base seed 2, run {second[0].run}, commit 121212121212.")
    text = file.read_text("utf-8")
    for damaged, said in (
        (text.replace("0.5", "0.6"), "edited by hand"),
        (text.replace('"format": 1', '"format": 7'), "expected a measurement of format 1, got 7"),
        (text[:100], ""),
        ("[]", "expected a measurement of format 1, got"),
    ):
        file.write_text(damaged, "utf-8")
        with pytest.raises(ValueError, match=rf"numbers.json: {said}.* delete it and run `make it --scale laptop`"):
            kept(second)


def test_a_measurement_of_one_run_is_kept_as_well(a_record: Make, tmp_path: Path) -> None:
    first, second = (a_record("base", seed) for seed in (1, 2))
    probe = Probe("one", "make it", lambda of, runs, cache: {"run": of[0].run, "seed": of[0].seed}, ())
    for records, seed in (([first], 1), ([first], 1), ([], 1), ([second], 2)):
        found = measured(tmp_path, probe, records, tmp_path, tmp_path, scale="laptop")
        assert found["seed"] == seed


def test_text_that_is_not_here_is_named(a_record: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checkpoints, "at_hand", lambda record, cache: None)
    with pytest.raises(ValueError, match=r"text of run 0{15}1, grammar en-de, in .* Give the --cache-dir"):
        dev_pairs(a_record(), tmp_path)


def test_rows_that_are_measured_stand_in_their_experiment() -> None:
    rows = {row.name for row in experiment(experiment_files() / "ladder.py")["ROWS"]}
    wanted = (*trained.GRADIENTS.rows, (heads.TABLE, heads.ROW))
    of_table = {row for table, row in wanted if table == "ladder"}
    assert len(of_table) == 2
    assert of_table <= rows
