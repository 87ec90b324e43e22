"""A table from one command: what it leaves, what it skips, and what it says to bad input."""

import hashlib
import json
import runpy
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from own_signals import places
from text_folders import own_text, text_folder

from repro.experiment import Paper, Row, main
from repro.model.config import BASE
from repro.model.cost import n_parameters
from repro.pages import build
from repro.results import record
from repro.results.frame import ResultSet
from repro.runs.options import Options, chosen_scale
from repro.runs.run_dir import planned, with_texts
from repro.runs.scales import SCALES
from repro.runs.table import BASE_ROW, Table

pytestmark = pytest.mark.usefixtures("own_signals")
ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "experiments" / "table3_A.py"


def table3_a() -> ModuleType:
    module = ModuleType("table3_A")
    exec(compile(SCRIPT.read_text("utf-8"), SCRIPT, "exec"), vars(module))
    return module


TABLE3_A = table3_a()
MADE = ["--rows", "base", "h=4"]


def inside(folder: Path, *more: str) -> list[str]:
    """The options that keep an experiment inside `folder`, at the smallest scale."""
    return ["--scale=smoke", *places(folder, *more)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Path:
    """Two rows of the table, trained, decoded and scored at smoke scale."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copy(template, folder / "mlflow.db")
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, inside(folder, *MADE))
    return folder


def records(folder: Path) -> list[record.Record]:
    return [record.load(path) for path in sorted((folder / "runs").glob("*/record.json"))]


# ---- what it leaves


def test_each_row_is_trained_scored_and_told(made: Path) -> None:
    printed = {row.name: row.paper.numbers for row in (BASE_ROW, *TABLE3_A.ROWS)}
    changes = {}
    for one in records(made):
        folder = made / "runs" / one.run
        assert (one.status, one.cost["steps"]) == ("finished", SCALES["smoke"].base.steps)
        assert "tok:13a" in (one.scores["test"]["bleu_signature"] or "")
        assert one.paper == printed[one.row]
        assert hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest() == one.tokenizer["sha256"]
        told = json.loads((folder / "run.json").read_text("utf-8"))["params"]
        counts = told["parameters_here"], told["parameters_at_paper_size"]
        assert counts == (one.params["here"], one.params["paper_size"])
        changes[one.row] = told["row_changes"], told["row_changes_at_paper_size"]
    assert changes.keys() == {"base", "h=4"}
    assert changes["h=4"] == ("h 8 -> 4, d_k 8 -> 16, d_v 8 -> 16", "h 8 -> 4, d_k 64 -> 128, d_v 64 -> 128")
    assert changes["base"][0] == "nothing"


def test_the_base_row_is_kept_apart_and_stands_in_the_table(made: Path) -> None:
    assert (made / "results/smoke/base/base-seed1.json").exists()
    assert len(list((made / "results/smoke/table3_A").glob("*.json"))) == 1
    inside = list((made / "results/smoke/table3_A").glob("*.inside.gz"))
    assert [len(inside), all(file.stat().st_size <= 100_000 for file in inside)] == [1, True]
    assert "base" in (made / "results/smoke/table3_A.md").read_text("utf-8")


def test_tables_made_again_from_the_records_are_the_same(made: Path) -> None:
    own = ResultSet.read_own(made / "results" / "smoke", made)
    for path, text in build.build_scale(own).items():
        assert path.read_text("utf-8") == text


# ---- what it skips


def test_finished_runs_are_skipped(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in (made / "runs").rglob("*")}
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, inside(made, *MADE))
    assert capsys.readouterr().out.count("finished before") == 2
    assert {path: path.stat().st_mtime_ns for path in (made / "runs").rglob("*")} == before


def on_own_text(folder: Path, *, words: int) -> list[str]:
    """The options that name a text of one's own, which is written."""
    text_folder(folder, **own_text(words=words))
    return ["--corpus=folder", f"--data-dir={folder}", "--steps=1", "--rows", "base"]


def test_two_texts_of_ones_own_never_share_a_table(tmp_path: Path) -> None:
    # the second one's records once took the place of the first one's; a vocabulary is part of the text
    every = "".join(f"{language}{i}\n" for language in ("en", "de") for i in range(11))
    vocabularies = {"one": None, "every": every, "all but one": every.removesuffix("de10\n"), "other": None}
    names = set()
    for text, vocabulary in vocabularies.items():
        options = Options.read(
            "lab", inside(tmp_path, *on_own_text(tmp_path / text, words=13 if text == "other" else 11))
        )
        if vocabulary:
            (tmp_path / text / "vocab").write_text(vocabulary, "utf-8")
        scale = chosen_scale(options)
        whole = planned([Table(name="lab", rows=(), title="")], scale, options)
        [run] = with_texts(whole, whole, scale, options, lambda said: None)
        assert vocabulary or run.scale.name == f"smoke-folder-1-steps-{run.corpus.sha256[:8]}"
        names.add(run.scale.name)
    assert len(names) == 4


def test_a_run_has_the_names_and_the_size_of_its_row_of_today(made: Path, tmp_path: Path) -> None:
    # What a run is called decides nothing: the same row in another table is the same run. And two rows may be one at a
    # scale, and not at paper size: N = 3 of 3 is all of smoke, and half of the paper's six.
    for folder in ("runs", "cache"):
        shutil.copytree(made / folder, tmp_path / folder)
    change = TABLE3_A.ROWS[1].change
    shallow = Row("shallow", lambda base: replace(change(base), n_layers=3), Paper(bleu=1.5))
    main("lab", [shallow], inside(tmp_path))
    [one] = [record.load(path) for path in (tmp_path / "results/smoke/lab").glob("*.json")]
    assert (one.table, one.row, one.position, one.paper["bleu"]) == ("lab", "shallow", 0, 1.5)
    assert "shallow" in (tmp_path / "results/smoke/lab.md").read_text("utf-8")
    [before] = [done for done in records(made) if done.run == one.run]
    assert one.params["here"] == before.params["here"]
    at_paper_size = {n_layers: n_parameters(replace(change(BASE), n_layers=n_layers), 40_960) for n_layers in (3, 6)}
    assert (one.params["paper_size"], before.params["paper_size"]) == (at_paper_size[3], at_paper_size[6])


# ---- bad input


def refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str], rows: list[Row] | None = None, code: int = 2
) -> str:
    """What the command says in one line before it ends."""
    with pytest.raises(SystemExit) as stopped:
        main(TABLE3_A.TABLE, rows or TABLE3_A.ROWS, arguments)
    said = capsys.readouterr().err
    assert (stopped.value.code, said.startswith("error: "), said.count("\n")) == (code, True, 1), said
    return said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rows", "bse"], "Unknown row 'bse' of table3_A; expected some of base, h=1, h=4, h=16, h=32; did you mean"),
        (["--scale", "labtop"], "expected one of smoke, laptop, captions, single_gpu, paper; did you mean laptop?"),
        (["--corpus", "europarl"], "Unknown corpus 'europarl'; expected one of grammar"),
        (["--steps", "-3"], "--steps must be at least 1, got -3."),
        (["--tracking-uri", "mysql://x"], "sqlite:///mlflow.db"),
        (["--sedes", "4"], "unrecognized arguments: --sedes 4; did you mean --seeds"),
        (["--hardware=h100"], "--hardware is of a forecast: expected --dry-run as well"),
        (["--price=nan", "--dry-run", "--hardware=h100"], "--price must be a number of at least 0"),
        (["--price=3", "--dry-run"], "--price is of one device of --hardware: expected --hardware as well"),
        (["--hardware=h101", "--dry-run"], "argument --hardware: invalid choice: 'h101'"),
    ],
)
def test_bad_options_are_named(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(inside(tmp_path, *options), capsys)


def test_a_folder_that_cannot_be_written_stops_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert "cannot be written to" in refused(inside(tmp_path, f"--results-dir={tmp_path / 'file'}"), capsys, code=74)
    assert not (tmp_path / "cache").exists()


def test_a_checkpoint_of_another_run(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(made / "cache", tmp_path / "cache")
    [base] = [one.run for one in records(made) if one.row == "base"]
    [other] = [one.run for one in records(made) if one.row == "h=4"]
    checkpoints = tmp_path / "runs" / base / "checkpoints"
    shutil.copytree(made / "runs" / other / "checkpoints", checkpoints)
    assert f"is a checkpoint of run {other}" in refused(inside(tmp_path, "--rows", "base"), capsys)
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


def test_a_dry_run_says_whether_the_text_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REPRO_DATA", raising=False)
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, inside(tmp_path, "--dry-run"))
    assert "Text: grammar en-de is generated when it is wanted." in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    here = on_own_text(tmp_path / "text", words=7)
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, ["--scale=smoke", "--dry-run", *here])
    assert f"Text: folder en-de is in {tmp_path / 'text'}." in capsys.readouterr().out
    (tmp_path / "text" / "dev.de").unlink()
    main(TABLE3_A.TABLE, TABLE3_A.ROWS, ["--scale=smoke", "--dry-run", *here])
    assert "Text: Corpus 'folder' (en-de) is not here: expected the files" in capsys.readouterr().out


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["run", "dry run"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--pair=fr-de"], "Corpus 'grammar' has no pair 'fr-de'"),
        (["--threads=1000000"], "processors that this process may use"),
        (
            ["--corpus=folder", "--data-dir=nowhere", "--pair=en-en"],
            "two different languages like 'en-de', got 'en-en'",
        ),
        (["--corpus=folder", "--data-dir=nowhere"], "looked in nowhere (no such folder)"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_done(
    options: list[str], said: str, dry: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(inside(tmp_path, *options, *dry), capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("results", "these are the published results; `"),
        ("../clone/results", "these are the published results; `"),
        ("results/own/smoke", "this is the folder of one scale. Name results/own."),
    ],
)
def test_the_published_folder_is_no_place_for_runs(
    folder: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # the run command of the README once changed 31 published files
    monkeypatch.setattr("repro.runs.options.PACKAGE", tmp_path / "clone" / "repro")
    here = tmp_path / "here"
    (tmp_path / "clone" / "results").mkdir(parents=True)
    (here / "results/own/smoke").mkdir(parents=True)
    (here / "results/own/smoke/rows.json").touch()
    monkeypatch.chdir(here)
    before = sorted(tmp_path.rglob("*"))
    options = [option for option in inside(here) if not option.startswith("--results-dir")]
    ended = refused([*options, f"--results-dir={folder}", "--steps=1", "--rows", "base"], capsys)
    assert ended.startswith(f"error: --results-dir {folder}: {said}")
    assert sorted(tmp_path.rglob("*")) == before


def test_what_table_1_cannot_keep_is_refused_before_it_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("repro.complexity.measure.measure_layers", lambda *_, **__: pytest.fail("it measured"))
    table1 = runpy.run_path(str(ROOT / "experiments" / "table1.py"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    for words, said in ((["--threads=99999"], "--threads 99999: expected 1 to "), (["--results-dir=results"], "these")):
        assert table1["main"](["--quick", *words]) == 2
        assert said in capsys.readouterr().err


def test_another_backend_translates_in_a_world_of_its_own(tmp_path: Path, template: Path) -> None:
    pytest.importorskip("ctranslate2")
    shutil.copy(template, tmp_path / "mlflow.db")
    main("table3_A", TABLE3_A.ROWS, inside(tmp_path, "--backend=ctranslate2", *on_own_text(tmp_path / "text", words=7)))
    [scale] = (tmp_path / "results").iterdir()
    assert scale.name.startswith("smoke-folder-1-steps-ctranslate2-")
    assert record.load(scale / "base" / "base-seed1.json").settings["engine"] == "ctranslate2"


def test_a_backend_that_is_not_there_is_missed_before_anything_is_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert "'.[fast]'" in refused(inside(tmp_path, "--rows=base", "--backend=ctranslate2"), capsys)
    assert not any(tmp_path.iterdir())
