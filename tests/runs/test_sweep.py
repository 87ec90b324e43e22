"""Several tables as one: what is shown before the start, and what happens where two launches meet."""

import errno
import fcntl
import os
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest
from figures.conftest import record
from own_signals import places
from text_folders import own_text, text_folder

from repro.experiment import Paper, Row, main_of
from repro.model.cost import n_parameters
from repro.results.frame import ResultSet, noted_rows
from repro.results.places import experiment_files
from repro.results.record import Record, load
from repro.runs import sweep
from repro.runs.forecast import check_room, run_bytes, size
from repro.runs.options import Options, Seeds, chosen_scale
from repro.runs.progress import overview
from repro.runs.run_dir import RunDir, planned
from repro.runs.scales import SCALES
from repro.runs.sweep import LONGEST, translations, what_next
from repro.runs.table import Parsing, Translation
from repro.storage import atomic
from repro.storage.journal import Journal
from repro.tracking.client import Tracker

pytestmark = pytest.mark.usefixtures("not_looked_inside")
SCALE, EN_DE = SCALES["smoke"], Translation("en-de")


def run(row: str, seed: int, *, done: Any = None, in_hand: bool = False, step: int = 0) -> Any:
    """What `overview` asks of a run."""
    return SimpleNamespace(
        row=row,
        spec=SimpleNamespace(seed=seed, hyper=replace(SCALE.base, steps=40)),
        finished=lambda: done,
        folder="in hand" if in_hand else "",
        last_step=lambda: step,
        to_train=lambda: 1 - step / 40,
    )


def test_the_overview_tells_done_running_begun_and_missing_and_when_the_last_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("repro.runs.progress.is_training", bool)
    runs = [
        *(run("base", seed, done=True) for seed in (1, 2)),
        run("base", 3, in_hand=True),
        run("h=1", 1, done=True),
        run("h=1", 2, step=30),
        run("h=1", 3),
    ]
    # to come: a quarter of 80, and 80
    told = "Runs: 3 finished, 1 in another process, 1 begun, 1 to be begun; about 100 s to come."
    assert overview(runs, [80.0] * 6, measured=True) == told
    guessed = overview(runs, [80.0] * 6, measured=False, n_workers=2)
    assert guessed.endswith("; about 80 s to come with 2 at a time, guessed.")
    of_shard = overview(runs[:2], [80.0] * 2, measured=False, shard="1/3")
    assert of_shard == "Shard 1/3, only these runs of the sweep. Runs: 2 finished."


[BASE] = planned([], SCALE, Options(scale="smoke"))
ONE_RUN, TRAINING = run_bytes(BASE), run_bytes(BASE, in_training=True)


def unfinished(*, held: int = 0) -> Any:
    """What `check_room` asks of a run."""
    return SimpleNamespace(spec=BASE.spec, scale=BASE.scale, task=BASE.task, held=lambda: held)


def test_a_run_keeps_what_was_foretold() -> None:
    # twelve bytes a parameter, two checkpoints beside the one that is scored, in training beside the ten whose mean is;
    # the journal's lines: 4 + 2 + 1
    checkpoint = 12 * n_parameters(SCALE.base, 600) + 64_000
    assert 3 * checkpoint + 7 * 250 == ONE_RUN
    assert 12 * checkpoint + 7 * 250 == TRAINING


def test_needed_is_what_runs_keep_and_the_largest_in_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for runs, needed in (
        ([unfinished()] * 2, ONE_RUN + TRAINING),
        ([unfinished(held=ONE_RUN // 3)], TRAINING - ONE_RUN // 3),
        ([unfinished(held=5 * ONE_RUN)], ONE_RUN),  # another version's checkpoints lie there too
    ):
        monkeypatch.setattr(atomic, "free", lambda folder, needed=needed: needed)
        said = check_room(runs, tmp_path)
        assert said == f"Disk: {size(needed)} needed in {tmp_path}, {size(needed)} free."
        monkeypatch.setattr(atomic, "free", lambda folder, needed=needed: needed - 1)
        with pytest.raises(atomic.DiskError, match=rf"{size(needed)} needed in .* free: .* --runs-dir") as refused:
            check_room(runs, tmp_path)
        assert refused.value.errno == errno.ENOSPC


def experiment(name: str, *rows: str) -> ModuleType:
    """Rows that differ from the base at no cost."""
    module, by = ModuleType(name, f"Table {name}."), {row: sum(f"{name} {row}".encode()) for row in rows}
    made = [Row(row, lambda base, n=n: replace(base, warmup=base.warmup + n), Paper(bleu=1.0)) for row, n in by.items()]
    vars(module).update(__file__=f"{name}.py", TABLE=name, ROWS=made)
    return module


def launch(folder: Path, *experiments: ModuleType, rows: list[str]) -> None:
    main_of(*experiments, argv=["--scale=smoke", "--steps=1", *places(folder, "--rows", *rows)])


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a launch of the base alone."""
    folder = tmp_path_factory.mktemp("launched")
    launch(folder, experiment("table_x"), rows=["base"])
    return folder


def test_rows_are_noted_with_the_first_record(launched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed sweep leaves can be published, and nobody is told to delete it."""
    monkeypatch.setattr(sweep.Sweep, "_close", lambda *_: None)  # as if it were killed

    shutil.copytree(launched / "cache", tmp_path / "cache")
    launch(tmp_path, experiment("table_x", "x"), rows=["x"])
    [record] = map(load, (tmp_path / "results").glob("*/table_x/*.json"))
    assert (record.table, record.row) in noted_rows(tmp_path / "results" / record.scale)


def test_a_run_that_another_process_makes_is_skipped_and_the_rest_is_made(
    launched: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = experiment("table_x", "x"), experiment("table_y", "wide", "y")
    other.ROWS[0] = Row("wide", lambda base: replace(base, d_ff=2 * base.d_ff), Paper(ppl=2.0))
    shutil.copytree(launched, tmp_path, dirs_exist_ok=True)
    [base] = (tmp_path / "runs").iterdir()
    (base / "record.json").unlink()
    monkeypatch.setattr("repro.runs.run.Journal", lambda path, **rest: Journal(path, patience=0.1, **rest))
    capsys.readouterr()
    with Journal(base / "journal.jsonl"), pytest.raises(SystemExit) as left:
        launch(tmp_path, one, other, rows=["base", "wide"])
    assert left.value.code == sweep.BUSY
    said = capsys.readouterr().out
    assert "base seed 1 is skipped. " in said
    assert "has a writer" in said
    assert "Left to other processes: base seed 1." in said
    [made] = [load(path) for path in (tmp_path / "runs").glob("*/record.json")]
    assert (made.table, made.row, made.position) == ("table_y", "wide", 0)
    # both tables' rows are noted, so that the page misses those without a run
    assert set(noted_rows(tmp_path / "results/smoke-1-steps")) == {
        ("base", "base"), ("table_x", "x"), ("table_y", "wide"), ("table_y", "y"),
    }  # fmt: skip
    assert "missing" in (tmp_path / "results/smoke-1-steps/table_y.md").read_text("utf-8")


def test_a_run_that_another_process_ended_meanwhile_is_not_made_twice(
    launched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(launched, tmp_path, dirs_exist_ok=True)
    [base] = (tmp_path / "runs").iterdir()
    before = (base / "journal.jsonl").read_bytes()
    truth, asked = RunDir.finished, []

    def finished(self: RunDir) -> Record | None:
        """Not yet when the overview, the room and the sweep look; done when its journal is free."""
        asked.append(self)
        return truth(self) if len(asked) > 3 else None

    monkeypatch.setattr(RunDir, "finished", finished)
    launch(tmp_path, experiment("table_x"), rows=["base"])
    assert len(asked) == 4
    assert (base / "journal.jsonl").read_bytes() == before


class LateMirror:
    """Knows MLflow's name for the run only when it is closed, and notes what was safe by then."""

    safe: ClassVar[list[tuple[str, bool]]] = []

    def __init__(self, _: Tracker, folder: Path) -> None:
        self.folder = folder
        self.run_id: str | None = None

    def close(self, status: str) -> None:
        self.safe.append((status, (self.folder / "record.json").exists()))
        self.run_id = "f00d"


def test_records_are_safe_before_mlflow_is_waited_for_and_views_are_made_once(
    launched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(launched / "cache", tmp_path / "cache")
    one, other = experiment("table_x"), experiment("table_y", "wide")
    other.ROWS[0] = Row("wide", lambda base: replace(base, d_ff=2 * base.d_ff), Paper(ppl=2.0))
    views: list[list[str]] = []
    monkeypatch.setattr("repro.runs.run.Mirror", LateMirror)
    monkeypatch.setattr(LateMirror, "safe", [])
    monkeypatch.setattr(sweep, "install_views", lambda _, asked: views.append(sorted(view.table for view in asked)))
    write_scale, in_turn_of = sweep.write_scale, []

    def written(mine: ResultSet) -> list[Path]:
        """As always, after a look whether another sweep of the folder could have its turn meanwhile."""
        handle = os.open(mine.folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            in_turn_of.append(mine.scale)
        finally:
            os.close(handle)
        return write_scale(mine)

    monkeypatch.setattr(sweep, "write_scale", written)
    launch(tmp_path, one, other, rows=["base", "wide"])
    assert in_turn_of == ["smoke-1-steps"], "pages are read and written in one turn"
    assert LateMirror.safe == [("FINISHED", True)] * 2
    records = [load(path) for path in tmp_path.glob("runs/*/record.json")]
    assert [done.stamp["mlflow_run"] for done in records] == ["f00d"] * 2
    assert views == [["table_x", "table_y"]]


def test_what_next_keeps_the_settings_and_the_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    # every option that was typed and that decides a run or says where things are, written for a shell
    monkeypatch.setattr("repro.runs.command.python", lambda: "python")
    options = Options.read("all_tables", [
        "--results-dir=my results", "--runs-dir", "r", "--cache-dir=c", "--tracking-uri=sqlite:///my runs.db",
        "--scale=smoke", "--steps=1", "--vocab-size=700", "--clean", "length_ratio", "fairseq",
        "--batch-by=tokens", "--rows", "base", "two words", "--seeds=1", "--fork", "--traceback", "--shard=1/1",
    ])  # fmt: skip
    after = what_next("all_tables", "table_x", chosen_scale(options).name, options.typed, EN_DE, is_file=True)
    shown, used, more = (shlex.split(line.partition("\n")[2]) for line in after[1:])
    assert used == ["python", "-m", "repro", "translate", "best", "FILE", "--runs-dir", "r"]
    assert shown == [
        "python", "-m", "repro", "ui", "--table", "table_x", "--scale",
        "smoke-1-steps-700-pieces-by-tokens-clean-length_ratio-fairseq", "--tracking-uri", "sqlite:///my runs.db",
    ]  # fmt: skip
    assert more == [
        "python", os.path.relpath(experiment_files() / "all_tables.py"),
        "--scale", "smoke", "--rows", "base", "two words", "--steps", "1",
        "--vocab-size", "700", "--clean", "length_ratio", "fairseq", "--batch-by", "tokens", "--tracking-uri",
        "sqlite:///my runs.db", "--results-dir", "my results", "--runs-dir", "r", "--cache-dir", "c",
        "--seeds", "9-13",
    ]  # fmt: skip


@pytest.mark.parametrize(("seeds", "more"), [("1", "9-13"), ("1,3", "9-13"), ("9-13", "9-15"), ("14-14", "9-16")])
def test_what_next_are_seeds_that_count_as_evidence_and_the_best_run(seeds: str, more: str) -> None:
    typed = {"seeds": Seeds.read(seeds)} if seeds != "1" else {}
    _, used, said = what_next("table4", "table4", "smoke", typed, Parsing(), is_file=True)[1:]
    assert said.endswith(f"--seeds {more}")
    assert "those from 9 on count as evidence" in said
    assert "repro parse best FILE" in used


def test_shards_make_the_sweep_and_say_which_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # the folder of records is called after the text of the sweep, and a shard may have none of that text's runs
    for pair in ("en-de", "en-fr"):
        text_folder(tmp_path, pair, **own_text(pair, words=11))
    table = experiment("table_x", "french")
    table.ROWS[0] = replace(table.ROWS[0], task=Translation("en-fr"))
    own = ["base", "french", "--corpus=folder", f"--data-dir={tmp_path}", "--vocab-size=270"]
    launch(tmp_path, table, rows=[*own, "--shard=2/2"])
    said = capsys.readouterr().out
    assert re.match(r"all_tables at scale smoke-\S+, shard 2/2: 1 run, en-fr, seed 1\n", said)
    assert "Shard 2/2, only these runs of the sweep. Runs: 1 to be begun; about " in said
    assert "\n1 run of shard 2/2 (the tables show every record that is there) in " in said
    assert "--shard" not in said.partition("What next:")[2]
    [folder] = (tmp_path / "results").iterdir()
    assert "missing" in (folder / "table_x.md").read_text("utf-8")
    launch(tmp_path, table, rows=[*own, "--shard=1/2"])
    assert "finished before" not in capsys.readouterr().out
    assert sorted(load(path).row for path in tmp_path.glob("runs/*/record.json")) == ["base", "french"]
    assert [*(tmp_path / "results").iterdir()] == [folder]
    assert sorted(path.parent.name for path in folder.glob("*/*.json")) == ["base", "table_x"]
    assert "missing" not in (folder / "table_x.md").read_text("utf-8")


def test_a_shard_beyond_the_last_run_has_nothing_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launch(tmp_path, experiment("table_x", "x"), rows=["base", "x", "--shard=3/3"])
    said = capsys.readouterr().out
    assert said == "all_tables at scale smoke-1-steps, shard 3/3: nothing to do, as the sweep has only 2 runs.\n"
    assert list(tmp_path.iterdir()) == []


# ---- below the table


def translated(folder: Path, pairs: list[tuple[str, str]], made: list[str]) -> Any:
    """What `translations` asks of a run."""
    folder.mkdir(parents=True)
    (folder / "dev.hyp").write_text("".join(f"{line}\n" for line in made), "utf-8")
    text = SimpleNamespace(pairs=lambda: iter(pairs))
    return SimpleNamespace(folder=folder, prepared=SimpleNamespace(dev=SimpleNamespace(text=[text])))


def test_the_best_run_translates_the_first_sentences_that_fit_a_line(tmp_path: Path) -> None:
    pairs = [(source, "?") for source in ("one", "x" * (LONGEST + 1), "two", "three", "four", "five")]
    made = ["eins", "zu lang", "z" * (LONGEST + 1), "", "vier", "fünf"]
    good, bad = translated(tmp_path / "good", pairs, made), translated(tmp_path / "bad", pairs, ["?"] * 6)
    worse, equal = (bad, record("h=8", 1, bleu=59.0)), (bad, record("h=1", 2, bleu=60.0))
    told = [*translations([equal, (good, record("h=4", 3, bleu=60.0)), worse])]
    assert told == [
        "\nThe best of them, h=4 seed 3, translates:",
        *("  one\n    eins", "  three\n    (nothing)", "  four\n    vier"),
    ]
    nothing: Any = SimpleNamespace(folder=tmp_path)
    assert list(translations([(nothing, record("h=1", 1))])) == []


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
