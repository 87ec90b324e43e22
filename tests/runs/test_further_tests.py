"""A run on other test sets: scored as its own, kept beside its record, made once, shown and published."""

import shutil
import signal
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from own_signals import own_signals, places
from paper_runs import paper_run
from text_folders import text_folder

from repro.corpora.catalogue import CORPORA, GrammarSizes, open_corpus
from repro.experiment import main
from repro.pages.tables import further_section
from repro.render.page import Table
from repro.results import artifacts
from repro.results.artifacts import Artifact, FurtherTest, inside_file, own_file, read_further, write_further
from repro.results.details import with_further
from repro.results.frame import table
from repro.results.record import Record, load, path
from repro.runs import outputs
from repro.runs.outputs import rescored
from repro.tracking.client import connect

SIDES = ("en", "de")
RUN = "00000000000000ab"


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    with own_signals():
        yield


def launch(folder: Path, *more: str) -> Record:
    """One update on the text in `folder`; its own results are there too."""
    options = ["--scale=smoke", "--corpus=folder", f"--data-dir={folder / 'text'}", "--vocab-size=300", "--steps=1"]
    main("t", [], [*options, *places(folder, *more)])
    [file] = folder.glob("results/*/base/base-seed1.json")
    return load(file)


def its_run(folder: Path) -> Any:
    """What the tracker of `launch` has of its run."""
    client = connect(f"sqlite:///{folder / 'mlflow.db'}")
    [run] = client.search_runs([one.experiment_id for one in client.search_experiments()])
    assert run.info.status == "FINISHED"
    return run


def in_mlflow(folder: Path) -> dict[str, float]:
    """Its scores on other test sets."""
    return {key: value for key, value in its_run(folder).data.metrics.items() if key.startswith("further/")}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run on text with a test set of five pairs, and with these five again under another name; what it said."""
    known = replace(CORPORA["folder"], further={"again": ("again",), "absent": ("absent",)})
    sizes = GrammarSizes(n_train=80, n_dev=5, n_test=5)
    folder = tmp_path_factory.mktemp("first")
    corpus = open_corpus("grammar", "en-de", data_dir=None, cache=folder / "cache", sizes=sizes)
    parts = {"train": corpus.train[0], "dev": corpus.dev, "test": corpus.test, "again": corpus.test}
    text_folder(folder / "text", **{name: [*part.pairs()] for name, part in parts.items()})
    with pytest.MonkeyPatch.context() as patch, own_signals():
        patch.setitem(CORPORA, "folder", known)
        with open(folder / "said", "w") as said, redirect_stdout(said):
            launch(folder)
        yield folder


@pytest.fixture
def record(first: Path, tmp_path: Path) -> Record:
    """The same in a folder of its own."""
    shutil.copytree(first, tmp_path, dirs_exist_ok=True)
    [file] = tmp_path.glob("results/*/base/base-seed1.json")
    return load(file)


def test_the_same_text_under_another_name_scores_the_same(record: Record, tmp_path: Path) -> None:
    tests = read_further(path(tmp_path / "results", record), record.run)
    assert tests.keys() == {"again"}
    assert tests["again"].scores == record.scores["test"]
    of_test = (tmp_path / "runs" / record.run / "test.hyp").read_text("utf-8")
    assert tests["again"].hypotheses == of_test.split("\n")[:-1]
    shown = (tmp_path / "results" / record.scale / "table3.md").read_text("utf-8")
    [line] = [line for line in shown.split("## Other test sets")[1].splitlines() if line.startswith("| base")]
    bleu = [record.scores["test"][name] for name in ("bleu", "bleu_published")]
    assert [cell.strip() for cell in line.split("|")[2:-1]] == ["1", *(f"{value:.1f}" for value in bleu)]
    assert "t  base seed 1, again  5/5" in (tmp_path / "said").read_text()
    scores = {f"further/again/{name}": value for name, value in tests["again"].scores.items()}
    assert in_mlflow(tmp_path) == {key: value for key, value in scores.items() if isinstance(value, float)}
    assert "further/again/bleu" in in_mlflow(tmp_path)


def test_another_test_set_is_scored_once_and_again_where_its_text_changed(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: list[list[str]] = []
    text, scored = tmp_path / "text", outputs._scored
    monkeypatch.setattr(outputs, "_scored", lambda run, by, of, go: again.append([*of]) or scored(run, by, of, go))
    file = own_file(path(tmp_path / "results", record), "again")
    first = file.read_bytes()
    file.write_bytes(first[:-9])
    launch(tmp_path)
    assert (file.read_bytes(), again) == (first, []), "the folder of the run has it"
    for name in ("again", "absent"):  # the one is another text now, the other is new
        for side in SIDES:
            (text / f"{name}.{side}").write_bytes((text / f"dev.{side}").read_bytes())
    ended = its_run(tmp_path).info.end_time
    launch(tmp_path)
    assert again == [["again", "absent"]]
    assert its_run(tmp_path).info.end_time == ended, "it took no longer for what came of it later"
    tests = read_further(path(tmp_path / "results", record), record.run)
    assert tests["again"].scores == tests["absent"].scores == record.scores["dev"]
    nll = record.scores["dev"]["nll"]
    assert [in_mlflow(tmp_path)[f"further/{name}/nll"] for name in ("again", "absent")] == [nll, nll]


def test_a_damaged_checkpoint_of_a_finished_run_is_named_and_stops_nothing(
    record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, folder = path(tmp_path / "results", record), tmp_path / "runs" / record.run
    files = [own_file(place, "again"), inside_file(place)]
    for file in (*files, own_file(folder / "record.json", "again"), inside_file(folder / "record.json")):
        file.unlink()
    for checkpoint in (folder / "checkpoints").iterdir():
        checkpoint.write_bytes(checkpoint.read_bytes()[:-9])
    capsys.readouterr()
    assert launch(tmp_path) == record
    said = capsys.readouterr()
    told = f"Its checkpoints in {folder / 'checkpoints'} cannot be read, so nothing "
    assert (said.out + said.err).count(told) == 1, "and not once for each of what is left out"
    assert not any(file.exists() for file in files)


def test_a_run_that_is_stopped_at_another_test_set_has_its_record_and_goes_on_later(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(first / "text", tmp_path / "text")
    scored = outputs._scored

    def stopped(*of: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return scored(*of)

    monkeypatch.setattr(outputs, "_scored", stopped)
    with pytest.raises(SystemExit):
        launch(tmp_path)
    [file] = tmp_path.glob("runs/*/record.json")
    assert not own_file(file, "again").exists()
    monkeypatch.setattr(outputs, "_scored", scored)
    record = launch(tmp_path)
    assert record == replace(load(file), **{"stamp": record.stamp})
    assert read_further(path(tmp_path / "results", record), record.run).keys() == {"again"}


def test_translations_that_do_not_score_what_their_file_says_are_found(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = open_corpus("folder", "en-de", data_dir=tmp_path / "text", cache=tmp_path / "cache")
    monkeypatch.setattr(outputs, "at_hand", lambda record, cache: corpus)
    place = path(tmp_path / "results", record)
    assert rescored(record, tmp_path / "results", tmp_path / "cache") is None
    right = read_further(place, record.run)["again"]
    references = [target for _, target in corpus.test.pairs()]
    write_further(place, record.run, {"again": right._replace(hypotheses=references)})
    found = rescored(record, tmp_path / "results", tmp_path / "cache")
    assert found
    assert found.startswith("its translations of again score bleu 100.0000, but their file says 0.")
    write_further(place, record.run, {"again": right._replace(hypotheses=references[:-1])})
    found = rescored(record, tmp_path / "results", tmp_path / "cache")
    assert found == "again has 4 translations of 5 sentences"


# ---- the file


def a_test(bleu: float | None) -> FurtherTest:
    scores: Any = {"nll": 1.0, "bleu": bleu, "bleu_signature": "s", "bleu_published": None}
    return FurtherTest("ef" * 32, scores, ["a", "b"])


def test_what_is_not_of_the_run_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "x-seed1.json"
    artifacts.write(place, "again", Artifact({"run": "00000000000000cd"}, {"hypothesis": ["a"]}))
    with pytest.raises(ValueError, match="expected again of run 00000000000000ab, got that of run"):
        read_further(place, RUN)


# ---- the table


def test_a_mean_is_over_the_seeds_that_have_it_and_says_how_many(tmp_path: Path) -> None:
    base = [paper_run(seed=seed, run=f"{seed:016x}") for seed in (1, 2, 3)]
    other = [paper_run("h=1", "table3_A", seed=1, run="f" * 16)]
    without = [paper_run("h=16", "table3_A", seed=1, run="e" * 16)]
    for record, bleu in zip(base[:2], (20.0, 30.0), strict=True):
        write_further(path(tmp_path, record), record.run, {"x": a_test(bleu)})
    write_further(path(tmp_path, other[0]), other[0].run, {"x": a_test(7.0), "y": a_test(None)})
    everything = [*base, *without, *other]
    frame = with_further(table(everything), everything, tmp_path)
    of = dict(zip(frame["row"], frame.to_dict("records"), strict=True))
    assert [of[row]["further/x/n"] for row in ("base", "h=1")] == [2, 1]
    assert [of[row]["further/x/bleu"] for row in ("base", "h=1")] == [25.0, 7.0]
    assert [of[row]["further/x/bleu_min"] for row in ("base", "h=1")] == [20.0, 7.0]
    _, shown, *_ = further_section(frame, [1, 2])
    assert isinstance(shown, Table)
    assert shown.ruled == {1}, "below the base, and not below the last row"
    columns = {(column.group, column.heading): list(column.texts) for column in shown.columns}
    assert columns["", "row"] == ["base", "h=1 (here 8)"], "rows that were not scored stay away"
    assert columns["x", "n"] == ["2", "1"]
    assert columns["x", "sacreBLEU"] == ["25.0 [20.0, 30.0]", "7.0"]
    assert columns["y", "n"] == ["", "1"]
    assert columns["y", "sacreBLEU"] == ["", ""]
