"""A table from one command: what it leaves, what it skips, how it stops, and what it says to bad input."""

import hashlib
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from own_signals import own_signals
from waiting import until

from repro.experiment import Paper, Row, main
from repro.model.config import BASE, divide
from repro.model.cost import n_parameters
from repro.pages import build
from repro.results import record
from repro.results.frame import ResultSet
from repro.runs.options import Options, chosen_scale
from repro.runs.scales import SCALES
from repro.runs.session import Session
from repro.runs.table import BASE_ROW, Table, cells
from repro.runs.task import Translation
from repro.storage.journal import read as read_journal
from repro.tracking.client import connect

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "experiments" / "table3_A.py"


def table3_a() -> ModuleType:
    module = ModuleType("table3_A")
    exec(compile(SCRIPT.read_text("utf-8"), SCRIPT, "exec"), vars(module))
    return module


TABLE3_A = table3_a()


def places(folder: Path, *more: str) -> list[str]:
    """The options that keep an experiment inside `folder`."""
    return [
        "--scale=smoke",
        f"--results-dir={folder / 'results'}",
        f"--runs-dir={folder / 'runs'}",
        f"--cache-dir={folder / 'cache'}",
        f"--tracking-uri=sqlite:///{folder / 'mlflow.db'}",
        *more,
    ]


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    with own_signals():
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every row of the table, trained, decoded and scored at smoke scale."""
    folder = tmp_path_factory.mktemp("made")
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, places(folder))
    return folder


def records(folder: Path) -> list[record.Record]:
    return [record.load(path) for path in sorted((folder / "runs").glob("*/record.json"))]


# ---- what it leaves


def test_every_row_is_trained_and_scored(made: Path) -> None:
    done = records(made)
    assert sorted(one.row for one in done) == ["base", "h=1", "h=16", "h=32", "h=4"]
    for one in done:
        assert one.status == "finished"
        assert one.cost["steps"] == SCALES["smoke"].base.steps
        assert one.params["here"] > 0
        assert round(one.params["paper_size"] / 1e6) == 65  # heads change no parameter count
        assert "tok:13a" in (one.scores["test"]["bleu_signature"] or "")


def test_a_run_keeps_its_tokenizer(made: Path) -> None:
    for one in records(made):
        kept = (made / "runs" / one.run / "tokenizer.json").read_bytes()
        assert hashlib.sha256(kept).hexdigest() == one.tokenizer["sha256"]


def test_mlflow_is_told_of_a_row_what_it_changes_and_both_counts(made: Path) -> None:
    told = {}
    for one in records(made):
        run = json.loads((made / "runs" / one.run / "run.json").read_text("utf-8"))
        told[one.row] = run["params"]
    assert told["h=4"]["row_changes"] == "h 8 -> 4, d_k 8 -> 16, d_v 8 -> 16"
    assert told["h=4"]["row_changes_at_paper_size"] == "h 8 -> 4, d_k 64 -> 128, d_v 64 -> 128"
    assert told["base"]["row_changes"] == "nothing"
    for one in records(made):
        counts = told[one.row]["parameters_here"], told[one.row]["parameters_at_paper_size"]
        assert counts == (one.params["here"], one.params["paper_size"])


def test_losses_fall(made: Path) -> None:
    for path in (made / "runs").glob("*/journal.jsonl"):
        losses = [line["nll"] for line in read_journal(path) if line["kind"] == "train"]
        assert losses == sorted(losses, reverse=True)


def test_the_journal_ends_with_the_scores_of_both_splits(made: Path) -> None:
    for one in records(made):
        [final] = [line for line in read_journal(made / "runs" / one.run / "journal.jsonl") if line["kind"] == "final"]
        for split in ("dev", "test"):
            for name in ("nll", "ppl", "bleu", "bleu_published"):
                assert final[f"{split}_{name}"] == one.scores[split][name]  # type: ignore[literal-required]


def test_the_base_row_is_kept_apart_and_stands_in_the_table(made: Path) -> None:
    assert (made / "results/smoke/base/base-seed1.json").exists()
    assert len(list((made / "results/smoke/table3_A").glob("*.json"))) == 4
    inside = list((made / "results/smoke/table3_A").glob("*.inside.gz"))
    assert [len(inside), all(file.stat().st_size <= 100_000 for file in inside)] == [4, True]
    written = (made / "results/smoke/table3_A.md").read_text("utf-8")
    assert "base" in written


def test_tables_made_again_from_the_records_are_the_same(made: Path) -> None:
    own = ResultSet.read_own(made / "results" / "smoke", made)
    for path, text in build.texts(build.build_scale(own, build.judged_without_runs(own))).items():
        assert path.read_text("utf-8") == text


def test_a_record_states_the_papers_numbers_as_the_experiment_does(made: Path) -> None:
    printed = {row.name: row.paper for row in (BASE_ROW, *TABLE3_A.ROWS)}
    for one in records(made):
        assert one.paper == {
            "ppl": printed[one.row].ppl,
            "bleu": printed[one.row].bleu,
            "params": printed[one.row].params,
        }


def test_the_papers_numbers_are_those_of_the_facts() -> None:
    assert [(row.name, row.paper.ppl, row.paper.bleu) for row in (BASE_ROW, *TABLE3_A.ROWS)] == [
        ("base", 4.92, 25.8),
        ("h=1", 5.29, 24.9),
        ("h=4", 5.00, 25.5),
        ("h=16", 4.91, 25.8),
        ("h=32", 5.01, 25.4),
    ]


@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
def test_every_row_exists_at_every_scale(scale: object) -> None:
    base = scale.base  # type: ignore[attr-defined]
    assert (base.n_heads, base.n_layers % 3, base.d_model % 64, base.d_k % 4) == (8, 0, 0, 0)
    for row in TABLE3_A.ROWS:
        changed = row.change(base)
        assert changed.n_heads * changed.d_k == base.d_model  # constant computation
        assert changed.d_v == changed.d_k


# ---- what it skips


def test_finished_runs_are_skipped(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in (made / "runs").rglob("*")}
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, places(made))
    assert capsys.readouterr().out.count("finished before") == 5
    assert {path: path.stat().st_mtime_ns for path in (made / "runs").rglob("*")} == before


def test_what_mlflow_lacks_of_a_run_that_was_killed_after_its_record_comes_with_the_same_command(
    made: Path, tmp_path: Path
) -> None:
    shutil.copytree(made, tmp_path / "copy", copy_function=shutil.copy2)
    [folder] = [p.parent for p in (tmp_path / "copy/runs").glob("*/record.json") if record.load(p).row == "base"]
    [owner] = (folder / "attempts").glob("*/owner.json")
    assert owner.stat().st_mtime == 0, "it let go"
    client = connect(f"sqlite:///{tmp_path / 'copy/mlflow.db'}")
    [run] = [
        run
        for one in client.search_experiments()
        for run in client.search_runs([one.experiment_id])
        if run.data.tags.get("repro.runs.run") == folder.name
    ]
    for beat, expected in ((7, "FINISHED"), (0, "RUNNING")):  # where it let go nobody looks
        os.utime(owner, (beat, beat))
        client.update_run(run.info.run_id, status="RUNNING")
        main(TABLE3_A.TABLE, TABLE3_A.ROWS, places(tmp_path / "copy", "--rows=base"))
        assert client.get_run(run.info.run_id).info.status == expected
        assert owner.stat().st_mtime == 0


def test_a_published_record_alone_skips_nothing(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "results", tmp_path / "results")
    shutil.copytree(made / "cache", tmp_path / "cache")
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, places(tmp_path, "--rows", "base", "--steps=1"))
    assert len(records(tmp_path)) == 1


def test_an_edited_record_is_named(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(made, tmp_path / "copy")
    [path] = [p for p in (tmp_path / "copy/runs").glob("*/record.json") if record.load(p).row == "base"]
    content = json.loads(path.read_bytes())
    content["scores"]["dev"]["bleu"] = 99.9
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(TABLE3_A.TABLE, TABLE3_A.ROWS, places(tmp_path / "copy", "--rows", "base"))
    assert stopped.value.code == 2
    assert "edited by hand" in capsys.readouterr().err


def test_another_world_than_the_scales_own_keeps_its_records_apart(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "results", tmp_path / "results")
    shutil.copytree(made / "cache", tmp_path / "cache")
    before = {path: path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()}
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, places(tmp_path, "--rows", "h=4", "--steps=1", "--pair=en-fr"))
    assert {path: path.read_bytes() for path in before} == before
    assert (tmp_path / "results/smoke-en-fr-1-steps/table3_A/h=4-seed1.json").exists()


def own_text(folder: Path, *, words: int) -> list[str]:
    """A text of one's own, and the options that name it."""
    folder.mkdir()
    for name, n in {"train": 40, "dev": 5, "test": 7}.items():
        for language in ("en", "de"):
            lines = [" ".join(f"{language}{(i + j) % words}" for j in range(1 + i % 5)) for i in range(n)]
            (folder / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return ["--corpus=folder", f"--data-dir={folder}", "--vocab-size=270", "--steps=1", "--rows", "base"]


def test_two_texts_of_ones_own_never_share_a_table(tmp_path: Path) -> None:
    # the second one's records once took the place of the first one's
    for name, words in {"one": 11, "other": 13}.items():
        main(TABLE3_A.TABLE, TABLE3_A.ROWS, places(tmp_path, *own_text(tmp_path / name, words=words)))
    found = sorted((tmp_path / "results").iterdir())
    assert len(found) == 2
    for folder in found:
        [one] = [record.load(path) for path in folder.glob("base/*.json")]
        assert one.scale == folder.name == f"smoke-folder-1-steps-270-pieces-{one.corpus['sha256'][:8]}"


def test_two_vocabularies_of_one_text_never_share_a_table(tmp_path: Path) -> None:
    text = own_text(tmp_path / "text", words=11)
    options = Options.read("lab", places(tmp_path, *(word for word in text if not word.startswith("--vocab"))))
    scale, names = chosen_scale(options), []
    whole = cells(
        [Table(name="lab", rows=(), title="")], scale.base, seeds=[1], chosen=["base"], task=Translation("en-de")
    )
    every = "".join(f"{language}{i}\n" for language in ("en", "de") for i in range(11))
    for vocabulary in (None, every, every.removesuffix("de10\n")):
        if vocabulary:
            (tmp_path / "text" / "vocab").write_text(vocabulary, "utf-8")
        session = Session((), scale, options, whole)
        session.open_texts([Translation("en-de")], lambda said: None)
        names.append(session.scale.name)
    assert len({*names}) == 3


def test_a_run_goes_by_the_names_it_has_today(made: Path, tmp_path: Path) -> None:
    # what a run is called decides nothing: the same row in another table is the same run
    shutil.copytree(made / "runs", tmp_path / "runs")
    shutil.copytree(made / "cache", tmp_path / "cache")
    rows = [Row("one head", TABLE3_A.ROWS[0].change, Paper(bleu=1.5))]
    main("lab", rows, places(tmp_path))
    [one] = [record.load(path) for path in (tmp_path / "results/smoke/lab").glob("*.json")]
    assert (one.table, one.row, one.position, one.paper["bleu"]) == ("lab", "one head", 0, 1.5)
    assert one.run in {done.run for done in records(made)}
    assert "one head" in (tmp_path / "results/smoke/lab.md").read_text("utf-8")


def test_a_run_has_the_size_of_its_row_of_today(made: Path, tmp_path: Path) -> None:
    # two rows may be one at a scale, and not at paper size: N = 3 of 3 is all of smoke, and half of the paper's six
    for folder in ("runs", "cache"):
        shutil.copytree(made / folder, tmp_path / folder)
    change = TABLE3_A.ROWS[0].change
    main("lab", [Row("shallow", lambda base: replace(change(base), n_layers=3), Paper())], places(tmp_path))
    [one] = [record.load(path) for path in (tmp_path / "results/smoke/lab").glob("*.json")]
    [before] = [done for done in records(made) if done.run == one.run]
    assert one.params["here"] == before.params["here"]
    at_paper_size = {n_layers: n_parameters(replace(change(BASE), n_layers=n_layers), 40_960) for n_layers in (3, 6)}
    assert (one.params["paper_size"], before.params["paper_size"]) == (at_paper_size[3], at_paper_size[6])


# ---- how it stops


@pytest.mark.slow
def test_a_signal_stops_at_a_step_and_the_same_command_goes_on(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "cache", tmp_path / "cache")
    command = [sys.executable, str(SCRIPT), *places(tmp_path, "--rows", "base", "--steps=120")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)

    def written() -> list[Path]:
        return [path for path in tmp_path.glob("runs/*/journal.jsonl") if path.read_bytes().count(b"\n") >= 2]

    [journal] = until(written)
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM, printed
    [(done, steps)] = re.findall(r"stopped after step (\d+) of (\d+)", printed)
    assert 0 < int(done) < int(steps) == 120
    assert list((tmp_path / "runs").glob(f"*/checkpoints/step-*{done}.safetensors"))
    assert not list((tmp_path / "runs").glob("*/record.json"))

    again = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "base seed 1: dev PPL" in again.stdout
    [finished] = records(tmp_path)
    steps_written = [line["step"] for line in read_journal(journal) if line["kind"] == "train"]
    assert steps_written == sorted(set(steps_written))
    assert finished.cost["steps"] == 120


# ---- bad input

SHARED_OUT_UNEVENLY = Row(
    "h=3", lambda base: replace(base, n_heads=3, d_k=divide(base.d_model, 3)), Paper(ppl=1.0, bleu=1.0)
)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rows", "bse"], "expected some of base, h=1, h=4, h=16, h=32; did you mean base?"),
        (["--on", "slrum"], "expected here, slurm, ray or ray://HOST:PORT; did you mean slurm?"),
        (["--scale", "labtop"], "single_gpu, paper; did you mean laptop?"),
        (["--rows", "h=5"], "Unknown row 'h=5' of table3_A; expected some of base, h=1, h=4, h=16, h=32."),
        (["--scale", "giant"], "Unknown scale 'giant'; expected one of smoke, laptop"),
        (["--corpus", "europarl"], "Unknown corpus 'europarl'; expected one of grammar"),
        (["--pair", "en-it"], "'grammar' has no pair 'en-it'; expected one of en-de, en-fr"),
        (["--seeds", "0"], "--seeds: expected how many seeds, at least 1, or which, such as 4-11 or 1,3; got 0;"),
        (["--seeds", "5-4"], "at least 1, or which, such as 4-11 or 1,3; got 5-4;"),
        (["--seeds", "4-"], "at least 1, or which, such as 4-11 or 1,3; got 4-;"),
        (["--seeds=-3"], "at least 1, or which, such as 4-11 or 1,3; got -3;"),
        (["--on", "nowhere"], "--on nowhere: expected here, slurm, ray or ray://HOST:PORT."),
        (["--steps", "-3"], "--steps must be at least 1, got -3."),
        (["--tracking-uri", "mysql://x"], "sqlite:///mlflow.db"),
        (["--seed", "4-5"], "--seed: expected one seed, a number from 1 on, got 4-5; several are --seeds"),
        (["--results=x"], "--results is not an option; did you mean --results-dir?"),
        (["--sedes", "4"], "--sedes is not an option; did you mean --seeds?"),
    ],
)
def test_bad_options_are_named(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fails(places(tmp_path, *options), capsys) == (2, said)


def fails(
    arguments: list[str], capsys: pytest.CaptureFixture[str], rows: list[Row] | None = None
) -> tuple[object, str]:
    """The exit code and the part of the message before a test stops caring."""
    with pytest.raises(SystemExit) as stopped:
        main(TABLE3_A.TABLE, rows or TABLE3_A.ROWS, arguments)
    return stopped.value.code, _Said(capsys.readouterr().err)


class _Said(str):
    """Equal to any part of itself; one line, and no traceback."""

    def __eq__(self, part: object) -> bool:
        return "Traceback" not in self and self.startswith("error: ") and str(part) in str(self)

    __hash__ = str.__hash__


def test_a_width_that_does_not_divide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fails(places(tmp_path), capsys, [SHARED_OUT_UNEVENLY]) == (2, "64 cannot be divided evenly by 3.")


def test_a_folder_that_cannot_be_written_stops_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert fails(places(tmp_path, f"--results-dir={tmp_path / 'file'}"), capsys) == (74, "cannot be written to")
    assert not (tmp_path / "cache").exists()


def test_a_tracking_store_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_bytes(b"this is no database")
    assert fails(places(tmp_path, f"--tracking-uri=sqlite:///{tmp_path / 'text'}"), capsys) == (
        2,
        "is not a SQLite database",
    )
    assert (tmp_path / "text").read_bytes() == b"this is no database"


def test_text_that_is_missing_or_unequal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").mkdir()
    folder = ["--corpus=folder", f"--data-dir={tmp_path / 'text'}"]
    assert fails(places(tmp_path, *folder), capsys) == (2, "train.en")
    for name in ("train", "dev", "test"):
        (tmp_path / "text" / f"{name}.en").write_bytes(b"one\ntwo\n")
        (tmp_path / "text" / f"{name}.de").write_bytes(b"eins\n")
    assert fails(places(tmp_path, *folder), capsys) == (2, "train.en has 2 lines, ")


def test_a_checkpoint_of_another_run(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(made / "cache", tmp_path / "cache")
    [base] = [one.run for one in records(made) if one.row == "base"]
    [other] = [one.run for one in records(made) if one.row == "h=1"]
    checkpoints = tmp_path / "runs" / base / "checkpoints"
    shutil.copytree(made / "runs" / other / "checkpoints", checkpoints)
    assert fails(places(tmp_path, "--rows", "base"), capsys) == (2, f"is a checkpoint of run {other}")
    assert list(checkpoints.glob("step-*.safetensors"))  # nothing was deleted


# ---- at once


def test_help_and_dry_run_import_nothing_heavy(tmp_path: Path) -> None:
    for option in ("--help", "--dry-run"):
        program = (
            "import runpy, sys\n"
            f"sys.argv = [{str(SCRIPT)!r}, {option!r}, '--runs-dir', {str(tmp_path)!r}]\n"
            "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
            "except SystemExit as stopped: assert not stopped.code, stopped.code\n"
            "heavy = {'torch', 'lightning', 'mlflow', 'numpy', 'pandas', 'tokenizers'} & set(sys.modules)\n"
            "assert not heavy, heavy\n"
        )
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_a_dry_run_tells_parameters_and_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, ["--scale=paper", "--dry-run", f"--runs-dir={tmp_path}"])
    printed = capsys.readouterr().out
    assert printed.count("65.1M") == 5
    assert "100,000" in printed
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_says_whether_the_text_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REPRO_DATA", raising=False)
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, ["--scale=smoke", "--dry-run"])
    assert "Text: grammar en-de is generated when it is wanted." in capsys.readouterr().out
    here = own_text(tmp_path / "text", words=7)
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, ["--scale=smoke", "--dry-run", *here])
    assert f"Text: folder en-de is in {tmp_path / 'text'}." in capsys.readouterr().out
    (tmp_path / "text" / "dev.de").unlink()
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, ["--scale=smoke", "--dry-run", *here])
    assert "Text: Corpus 'folder' (en-de) is not here: expected the files" in capsys.readouterr().out


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["run", "dry run"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--pair=en-en"], "two different languages like 'en-de', got 'en-en'"),
        (["--pair=../x-y"], "like 'en-de', got '../x-y'"),
        (["--pair=en"], "like 'en-de', got 'en'"),
        (["--pair=fr-de"], "Corpus 'grammar' has no pair 'fr-de'"),
        (["--threads=1000000"], "processors that this process may use"),
        (["--corpus=folder", "--data-dir=nowhere", "--pair=en-en"], "two different languages"),
        (["--corpus=folder", "--data-dir=nowhere"], "looked in nowhere (no such folder)"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_done(
    options: list[str], said: str, dry: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fails(places(tmp_path, *options, *dry), capsys) == (2, said)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_record_of_ones_own_is_named_before_the_work_and_not_after_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "results" / "smoke" / "base" / "base-seed7.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"{}")
    assert fails(places(tmp_path), capsys) == (2, f"{damaged}: expected a record of format 2, got None")
    assert list((tmp_path / "runs").glob("*")) == []


def test_the_published_folder_is_no_place_for_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # the run command of the README once changed 31 published files
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    options = [option for option in places(tmp_path) if not option.startswith("--results-dir")]
    said = fails([*options, "--results-dir=results", "--steps=1", "--rows", "base"], capsys)
    assert said == (2, "error: --results-dir results: these are the published results; yours are added to them with `")
    said = fails([*options, "--results-dir=results/laptop", "--steps=1", "--rows", "base"], capsys)
    assert said == (2, "error: --results-dir results/laptop: these are the published results; yours are added to them")
    assert list((tmp_path / "results").iterdir()) == []
    (tmp_path / "results/own/smoke").mkdir(parents=True)
    (tmp_path / "results/own/smoke/rows.json").touch()
    said = fails([*options, "--results-dir=results/own/smoke", "--steps=1", "--rows", "base"], capsys)
    assert said == (
        2,
        "error: --results-dir results/own/smoke: expected a folder of results, got that of one scale, which",
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--threads=0"], 2, "error: --threads must be at least 1, got 0."),
        (["--threads=99999"], 2, "error: --threads 99999: expected at most the "),
        (["--results-dir=results"], 2, "error: --results-dir results: these are the published results; yours are"),
        (["--results-dir=file/x"], 74, "error: file cannot be written to: Not a directory ("),
    ],
)
def test_what_table_1_cannot_measure_or_keep_is_refused_before_it_measures(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr("repro.complexity.measure.measure_layers", lambda *_, **__: pytest.fail("it measured"))
    table1 = runpy.run_path(str(Path(__file__).parent.parent / "experiments" / "table1.py"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "file").touch()
    assert (table1["main"](["--quick", *words]), capsys.readouterr().err[: len(said)]) == (code, said)


def test_a_link_to_a_disk_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").symlink_to(tmp_path / "unmounted" / "runs")
    code, said = fails(places(tmp_path), capsys)
    assert code == 2
    assert said.startswith(f"error: {tmp_path / 'runs'} cannot be made: expected a folder at the other end of the link")


def test_the_published_folder_is_none_from_elsewhere_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("repro.runs.options.PACKAGE", tmp_path / "clone" / "repro")
    (tmp_path / "clone" / "results").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    options = [option for option in places(tmp_path) if not option.startswith("--results-dir")]
    code, said = fails([*options, "--results-dir=../clone/results", "--steps=1", "--rows", "base"], capsys)
    assert (code, said[:57]) == (2, "error: --results-dir ../clone/results: these are the publ")
    assert list((tmp_path / "clone" / "results").iterdir()) == []


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["run", "dry run"])
def test_rows_that_cannot_be_told_apart_are_refused_before_anything_is_done(
    dry: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = [Row("same", lambda base: base, Paper())]
    assert fails(places(tmp_path, *dry), capsys, same) == (2, "Row 'same' of table3_A is row 'base' of base again")
    assert fails(places(tmp_path, *dry), capsys, [TABLE3_A.ROWS[0]] * 2) == (2, "'h=1' more than once")
    assert list(tmp_path.iterdir()) == []


def test_divide_names_what_does_not_come_out_even() -> None:
    assert divide(BASE.d_model, 8) == 64
    with pytest.raises(ValueError, match="512 cannot be divided evenly by 7"):
        divide(BASE.d_model, 7)


def test_another_backend_translates_in_a_world_of_its_own(made: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    main("table3_A", TABLE3_A.ROWS, places(tmp_path, "--rows=base", "--backend=ctranslate2"))
    ours = record.load(made / "results" / "smoke" / "base" / "base-seed1.json")
    theirs = record.load(tmp_path / "results" / "smoke-ctranslate2" / "base" / "base-seed1.json")
    assert theirs.run != ours.run
    assert (ours.settings["engine"], theirs.settings["engine"]) == ("torch", "ctranslate2")
    assert theirs.curves == ours.curves  # the training is the same
    for split in ("dev", "test"):
        assert theirs.scores[split]["nll"] == pytest.approx(ours.scores[split]["nll"], abs=1e-4)  # type: ignore[literal-required]


def test_a_backend_that_is_not_there_is_missed_before_anything_is_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(SystemExit) as stopped:
        main("table3_A", TABLE3_A.ROWS, places(tmp_path, "--rows=base", "--backend=ctranslate2"))
    assert stopped.value.code == 2
    assert "'.[fast]'" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_an_experiment_whose_table_has_another_name_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "lab_mine.py"
    file.write_text('from repro.experiment import main\n\nTABLE = "mine"\nROWS = []\nmain(TABLE, ROWS)\n', "utf-8")
    ended = subprocess.run([sys.executable, file, "--dry-run"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(
        "error: lab_mine.py: expected TABLE = 'lab_mine', as the file is called, got 'mine'."
    )
