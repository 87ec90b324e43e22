"""What is published is whole rows, from committed code and committed experiments, or nothing is written."""

import hashlib
import math
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kept_sentences import leave, with_scores
from paper_runs import PAPER_SETTINGS, paper_run
from pyarrow.parquet import ParquetFile

from repro.cli import commands, report
from repro.model.config import BASE
from repro.results import artifacts
from repro.results.frame import ResultSet, note_rows, noted_rows
from repro.results.measured import FILES, LAYER_COSTS_FOLDER, Measured
from repro.results.measured import load as load_measured
from repro.results.measured import save as save_measured
from repro.results.publish import keep_few_insides
from repro.results.record import Record, load, load_records, path, places
from repro.results.sentences import read_counts
from repro.runs.table import Paper, Row, Table, listed

CODE = {"commit": "12" * 20, "dirty": False, "why_dirty": None}
LAB = Table(name="lab", rows=[Row("x", lambda base: replace(base, n_heads=4), Paper(bleu=1.5))], title="")


@pytest.fixture
def with_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a committed experiment, in which the commands are typed."""
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "lab.py").write_bytes(b"ROWS = []\n")
    (tmp_path / "results" / "own").mkdir(parents=True)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "experiments")
    git(tmp_path, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "one")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project(with_pages: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same without pages, which take a second each time."""
    monkeypatch.setattr("repro.pages.build.build_all", lambda results: {})
    return with_pages


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


def run(row: str, seed: int, code: str = "ef", **stamp: Any) -> Record:
    one = paper_run(row=row, seed=seed) if row == "base" else paper_run(row, "lab", position=0, seed=seed)
    origin: Any = {**one.stamp, **CODE, "fingerprint": code, **stamp}
    name = hashlib.sha256(f"{row} {seed} {code}".encode()).hexdigest()[:16]
    one = replace(one, scale="lab", run=name, settings=PAPER_SETTINGS | {"claim": "nothing"}, stamp=origin)
    return with_scores(replace(one, corpus={**one.corpus, "name": "folder"}))


def own(*records: Record) -> None:
    """Leave records as a sweep does."""
    note_rows(Path("results/own/lab"), listed([LAB], BASE))
    leave(Path("results/own"), records)


def published() -> dict[str, str]:
    """The published records by their place, with the code they are of."""
    files = sorted(Path("results/lab").glob("*/*-seed*.json"))
    return {f"{file.parent.name}/{file.name}": load(file).stamp["fingerprint"] for file in files}


def published_files() -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in Path("results").rglob("*") if file.is_file()}


def refused(capsys: pytest.CaptureFixture[str], arguments: Sequence[str] = ("publish", "lab")) -> str:
    before = published_files()
    assert commands.main(arguments) == 2
    assert published_files() == before
    return capsys.readouterr().err


def publish(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What the command says that publishes what is there."""
    capsys.readouterr()
    assert commands.main(["publish", "lab", *options]) == 0
    return capsys.readouterr().out


def test_records_rows_and_pages_stand_among_the_published_ones(
    with_pages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own(run("base", 1), run("x", 1), run("x", 2))
    said = publish(capsys)
    assert said.startswith("lab: new: base (seed 1)\nlab: new: x (seed 1, 2)\nnew: results/lab/")
    assert "\nnew: results/lab/README.md\n" in said
    assert published() == dict.fromkeys(["base/base-seed1.json", "lab/x-seed1.json", "lab/x-seed2.json"], "ef")
    assert noted_rows(Path("results/lab"))["lab", "x"].paper["bleu"] == 1.5
    assert "| x " in Path("results/lab/lab.md").read_text("utf-8")
    assert report.report(["--check"]) == 0
    assert publish(capsys).startswith("lab: nothing is new.\nThe pages under results are of these records.")


def test_seeds_of_the_same_code_join_some_of_other_code_are_refused_and_a_whole_row_of_it_takes_its_place(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seeds in ((1, 2), (2, 3)):
        own(*(run("x", seed) for seed in seeds))
        assert commands.main(["publish", "lab"]) == 0
    assert published() == {f"lab/x-seed{seed}.json": "ef" for seed in (1, 2, 3)}
    shutil.rmtree("results/own/lab/lab")
    own(run("x", 1, code="ab", n_threads=2))
    said = refused(capsys)
    assert "lab, row 'x', seed 1 differs from the published seed 2, 3 in deciding code, threads" in said
    assert "Run it with --seeds 2,3 and publish the row whole." in said
    own(*(run("x", seed, code="ab") for seed in (1, 2, 3)))
    assert commands.main(["publish", "lab", "--replace"]) == 0
    assert published() == {f"lab/x-seed{seed}.json": "ab" for seed in (1, 2, 3)}


def test_records_of_a_question_of_our_own_are_lines_of_one_file(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("repro.results.publish.is_exploration", lambda table: table == "lab")
    folder = Path("results/lab/lab")
    own(run("base", 1), run("x", 1), run("x", 2))
    further = {"more": artifacts.FurtherTest("ab", {"bleu": 1.5}, ["a b"])}
    artifacts.write_further(path(Path("results/own"), run("x", 2)), run("x", 2).run, further)
    assert commands.main(["publish", "lab"]) == 0
    assert [file.name for file in sorted(folder.iterdir())] == ["dev.parquet", "more.parquet", "records.jsonl"]
    kept = artifacts.read_further(path(Path("results"), run("x", 2)), run("x", 2).run)
    assert kept == {"more": further["more"]._replace(hypotheses=[])}, "its scores, which are shown"
    assert load_records(folder) == [run("x", 1), run("x", 2)]
    assert published().keys() == {"base/base-seed1.json"}
    assert publish(capsys).startswith("lab: nothing is new.\n")
    found = [read_counts(Path("results"), run("x", 1), split) for split in ("dev", "test")]
    assert [one is None for one in found] == [False, True]
    own(*(run("x", seed, code="ab") for seed in (1, 2, 10)))
    assert commands.main(["publish", "lab", "--replace"]) == 0
    assert load_records(folder) == [run("x", seed, code="ab") for seed in (1, 10, 2)]
    monkeypatch.setattr("repro.results.publish.is_of_trials", lambda table: table == "lab")
    assert commands.main(["publish", "lab"]) == 0
    assert [file.name for file in sorted(folder.iterdir())] == ["records.jsonl"], "of trials no sentences"
    file = folder / "records.jsonl"
    lines = file.read_bytes()
    file.write_bytes(lines.replace(b'"seed": 10', b'"seed": 11'))
    with pytest.raises(ValueError, match=r"x-seed11.json: edited by hand or damaged"):
        load_records(folder)
    file.write_bytes(lines[:-9])
    with pytest.raises(ValueError, match=r"records.jsonl: line 3 is no record"):
        load_records(folder)


UNCOMMITTED = "not committed: repro/model/config.py"
RENAMED = listed([replace(LAB, rows=[replace(LAB.rows[0], name="y")])], BASE)
OF_NOBODY = "lab: experiments/lab.py is not committed, so nobody else has its rows. Commit it."
SPOILT: dict[str, tuple[Callable[[], object], str]] = {
    "mixed": (lambda: own(run("x", 1, n_threads=2)), "lab, row 'x': seeds 1 and 2 differ in threads, so they have no"),
    "dirty": (
        lambda: own(run("x", 1, dirty=True, why_dirty=UNCOMMITTED)),
        f"lab, row 'x', seed 1 is of code that is in no commit ({UNCOMMITTED}). Commit it.",
    ),
    "changed": (lambda: Path("experiments/lab.py").write_bytes(b"ROWS = [1]"), OF_NOBODY),
    "new": (lambda: git(Path(), "rm", "-q", "--cached", "experiments/lab.py"), OF_NOBODY),
    "no git": (lambda: os.environ.update(PATH=""), OF_NOBODY),
    "renamed": (
        lambda: note_rows(Path("results/own/lab"), RENAMED),
        "lab, row 'x', seed 1: experiments/lab.py has no such row any more. Delete its record.",
    ),
    "no list of rows": (
        lambda: Path("results/own/lab/rows.json").unlink(),
        "row 'x', seed 1: rows.json beside the tables does not list those of lab. Type its command again",
    ),
    "no clone": (
        lambda: shutil.rmtree("experiments"),
        "lab: expected experiments/lab.py, which has its rows, found none. Publish in a clone, with --from.",
    ),
    "no translations": (
        lambda: artifacts.copy(Path("nowhere.json"), path(Path("results/own"), run("x", 2)), "another"),
        "lab, row 'x', seed 2: its translations of dev and test are missing.",
    ),
    "nothing": (lambda: shutil.rmtree("results/own/lab"), "results/own/lab: expected records to publish, found none"),
}


@pytest.mark.parametrize("why", SPOILT)
def test_what_is_not_whole_or_not_committed_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])  # which one of them changes
    own(run("base", 1), run("x", 1), run("x", 2))
    SPOILT[why][0]()
    told = refused(capsys)
    assert SPOILT[why][1] in told
    assert ("Delete its record" in told) == (why == "renamed")


def test_pages_of_ones_own_are_made_anew_with_their_marks(with_pages: Path) -> None:
    own(run("base", 1), run("x", 1))
    assert report.report(["--own"]) == 0
    page = Path("results/own/lab/lab.md")
    assert all(row in page.read_text("utf-8") for row in ("| base |", "| x    |"))
    (with_pages / "experiments" / "lab.py").write_bytes(b"ROWS = [1]\n")
    assert report.report(["--own", "--check"]) == 1
    assert report.report(["--own"]) == 0
    assert all(row in page.read_text("utf-8") for row in ("| base |", "| x \\* |")), "base is of no experiment file"
    assert not list(Path("results").glob("lab/*"))


# what is published already


def test_a_published_record_is_replaced_only_when_asked(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own(run("base", 4), run("x", 4))
    publish(capsys)
    other = run("base", 4, cpu="another", device="another", commit="34" * 20)
    own(replace(other, scores={**other.scores, "dev": {**other.scores["dev"], "ppl": 3.5, "nll": math.log(3.5)}}))
    change = f"lab: base, row 'base', seed 4: commit {'12' * 6} -> {'34' * 6}, processor"
    said = refused(capsys)
    assert change in said
    assert "dev ppl 1.50 -> 3.50" in said
    assert "Type the same with --replace if that is meant" in said
    assert "row 'x'" not in said  # which is as it was
    before = published_files()
    assert change in (said := publish(capsys, "--replace", "--dry-run"))
    assert said.endswith("Nothing was written: --dry-run.\n")
    assert published_files() == before
    assert change in (said := publish(capsys, "--replace"))
    assert "x-seed4" not in said
    assert load(Path("results/lab/base/base-seed4.json")).stamp["cpu"] == "another"


def test_each_verdict_that_changes_is_said(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def verdicts(result_set: ResultSet) -> dict[str, str]:
        codes = {record.stamp["fingerprint"] for record in result_set.everything}
        return {"C27a": "open" if "ab" in codes else "opposite sign", "C28": "open"}

    monkeypatch.setattr("repro.pages.build.verdicts_of", verdicts)
    own(run("x", 1))
    assert commands.main(["publish", "lab"]) == 0
    own(run("x", 1, code="ab"))
    assert "verdict of C27a: opposite sign -> open" in refused(capsys)
    said = publish(capsys, "--replace")
    assert ("lab: verdict of C27a: opposite sign -> open\n" in said, "C28" in said) == (True, False)


# the layers of Table 1


def measured(**stamp: Any) -> Measured:
    """The committed measurement, as if it were made so."""
    one = load_measured(Path(__file__).parents[2] / "results", Measured)
    assert one
    origin: Any = {**one.stamp, **CODE, **stamp}
    return replace(one, stamp=origin)


MINE, THEIRS, FILE = Path("results/own"), Path("results"), FILES[Measured][0]


def test_the_measurement_of_table_1_is_published_with_its_table_and_picture(
    with_pages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_measured(THEIRS, measured(python="another", commit="34" * 20))
    save_measured(MINE, measured())
    own(run("x", 1))
    change = f"table1: the measurement of commit {'34' * 6} -> {'12' * 6}"
    assert change in refused(capsys, ["publish", "table1"])
    assert commands.main(["publish", "table1", "--replace"]) == 0
    assert change in capsys.readouterr().out
    assert load_measured(THEIRS, Measured) == measured()
    there = {file.name for file in (THEIRS / LAYER_COSTS_FOLDER).iterdir()}
    assert there == {"measured.json", "table1.csv", "table1.md", "table1.tex"}
    assert not published()


def test_a_measurement_of_no_commit_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{MINE / FILE}: expected measurements to publish, found none." in refused(capsys, ["publish", "table1"])
    save_measured(MINE, measured(dirty=True, why_dirty="not committed: repro/complexity/measure.py"))
    said = refused(capsys, ["publish", "table1"])
    assert "is of code that is in no commit (not committed: repro/complexity/measure.py). Commit it." in said


# rows of programs


def test_rows_of_programs_stay_ones_own_and_stop_no_others(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_program = replace(run("x", 1), table="own", row="narrow", run="5" * 16)
    own(run("x", 1))
    leave(Path("results/own"), [of_program])
    told = "lab: 1 run of rows that a program gave to repro.run stay yours: put the rows into an experiment file"
    assert f"lab: new: x (seed 1)\n{told}" in publish(capsys)
    assert published() == {"lab/x-seed1.json": "ef"}
    shutil.rmtree("results/own/lab/lab")
    assert publish(capsys).startswith(told)


# translations


def test_translations_that_are_worth_something_else_on_their_text_are_refused(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own(run("x", 1), run("x", 2))
    asked = []

    def rescored(record: Record, results: Path, cache: Path) -> str | None:
        asked.append((record.seed, str(results), str(cache)))
        return "its translations of dev are worth less" if record.seed == 2 else None

    monkeypatch.setattr("repro.runs.outputs.rescored", rescored)
    said = refused(capsys, ["publish", "lab", "--cache-dir", "there"])
    assert "lab, row 'x', seed 2: its translations of dev are worth less. Delete the files beside" in said
    assert asked == [(1, "results/own", "there"), (2, "results/own", "there")]


def test_translations_may_be_older_than_their_keeping_and_stay_though_ones_own_are_gone(project: Path) -> None:
    mine, theirs = (path(Path(place), run("x", 1)) for place in ("results/own", "results"))
    own(run("x", 1))
    assert commands.main(["publish", "lab"]) == 0
    artifacts.copy(Path("nowhere.json"), mine, "another")
    assert commands.main(["publish", "lab"]) == 0
    assert artifacts.are_of(theirs, run("x", 1).run)
    artifacts.publish(Path("results/lab/lab"), Path("nowhere"), {})
    own(run("x", 2))
    artifacts.copy(Path("nowhere.json"), mine, "another")
    assert commands.main(["publish", "lab"]) == 0
    assert published().keys() == {"lab/x-seed1.json", "lab/x-seed2.json"}
    assert not artifacts.are_of(theirs, run("x", 1).run)


def test_the_published_files_are_what_publishing_writes(tmp_path: Path) -> None:
    published = Path(__file__).parents[2] / "results"
    for folder in ("captions-1500-steps/base", "laptop/table3_A", "laptop/table4_grid"):
        records = [load(place) for place in places(published / folder)]
        for one in records:
            artifacts.copy(path(published, one), path(tmp_path / "own", one), one.run)
        runs = {path(published, one).stem: one.run for one in records}
        artifacts.publish(tmp_path / folder, tmp_path / "own" / folder, runs)
        for file in (published / folder).glob("*.parquet"):
            # not byte by byte: the library writes its version into them
            again, kept = (ParquetFile(root / folder / file.name) for root in (tmp_path, published))
            assert again.read().equals(kept.read(), check_metadata=True), file
            ways = [of.metadata.row_group(0).to_dict()["columns"] for of in (again, kept)]
            assert [one["compression"] for one in ways[0]] == [one["compression"] for one in ways[1]]


def test_what_is_published_may_be_published_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of Table 3 no sentences of test stand there, and its generated text scores those of dev again."""
    published = Path(__file__).parents[2] / "results" / "laptop"
    shutil.copytree(published / "table3_E", tmp_path / "laptop" / "table3_E")
    shutil.copy(published / "rows.json", tmp_path / "laptop")
    there = ["--from", str(tmp_path), "--to", str(tmp_path / "other"), "--cache-dir", str(tmp_path / "cache")]
    assert commands.main(["publish", "laptop", *there, "--dry-run"]) == 0
    assert "new: learned positions (seed 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)" in capsys.readouterr().out


def test_what_stands_beside_a_published_record_is_renewed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own(run("base", 4), run("x", 4), run("x", 5))
    for one in (run("base", 4), run("x", 4)):
        inside = artifacts.packed_inside({"run": one.run, "sentences": []}, b"")
        artifacts.write_inside(path(Path("results/own"), one), inside)
    assert commands.main(["publish", "lab"]) == 0
    there = [file.name for file in Path("results/lab").glob("*/*.inside.gz")]
    assert there == ["base-seed4.inside.gz"], "of a row that no figure shows none is kept"
    place = path(Path("results/own"), run("x", 4))
    for number in (1.0, 2.0):
        further = {"further": artifacts.FurtherTest("ab", {"bleu": number}, ["a b"])}
        artifacts.write_further(place, run("x", 4).run, further)
        capsys.readouterr()
        assert commands.main(["publish", "lab"]) == 0
        assert capsys.readouterr().out.startswith("lab: nothing is new.\n")
        assert artifacts.read_further(path(Path("results"), run("x", 4)), run("x", 4).run) == further


def test_of_a_row_of_table_3_the_lowest_seed_shows_one_sentence(tmp_path: Path) -> None:
    for table, row in (("base", "base"), ("table3_A", "h=1"), ("lab", "x")):
        (tmp_path / table).mkdir()
        for seed in (4, 5, 6, 7, 8, 10):
            place = tmp_path / table / f"{row}-seed{seed}.json"
            place.touch()
            sentences = [{"attention": [{"kind": "encoder", "shape": [1, 1, 1, 2]}]}] * 2
            content = {"run": f"{seed}", "sentences": sentences}
            artifacts.write_inside(place, artifacts.packed_inside(content, bytes([1, 2, 3, 4])))
        keep_few_insides(tmp_path / table)
    places = [file.with_name(file.name.replace(".inside.gz", ".json")) for file in tmp_path.glob("*/*.gz")]
    kept = {place.stem: artifacts.read_inside(place) for place in places}
    assert {name: (len(content["sentences"]), [*weights]) for name, (content, weights) in kept.items()} == {
        **{f"base-seed{seed}": (2, [1, 2, 3, 4]) for seed in range(4, 9)}, "h=1-seed4": (1, [1, 2])
    }  # fmt: skip
