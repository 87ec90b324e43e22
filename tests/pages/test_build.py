"""Pages are a function of the records, in every format, on every processor."""

import csv
import io
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from paper_runs import that_counts
from table_records import FULL, at_the_end, laptop, own, run, save
from waiting import FLAGS

from repro.claims import tested
from repro.claims.catalogue import LISTED
from repro.claims.decisions import FIRST_SEED
from repro.claims.judge import LayerOutcomes
from repro.cli import report
from repro.pages import build, scale_data
from repro.pages.columns import sheet as sheet_of
from repro.pages.columns import tabled
from repro.render.page import Column, Table
from repro.results import artifacts
from repro.results import frame as frames
from repro.results.places import PUBLISHED
from repro.results.record import load

ROOT = Path(__file__).parents[2]


def test_the_files_are_a_function_of_the_records(tmp_path: Path) -> None:
    files = build.write_scale(laptop(save(tmp_path / "a")))
    assert {f"table3.{kind}" for kind in ("md", "tex", "csv")} <= {file.name for file in files}
    again = build.write_scale(laptop(save(tmp_path / "b", FULL[::-1])))
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]


def test_check_finds_a_missing_file_one_digit_and_line_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path)
    assert report.report(["--results", str(tmp_path), "--check"]) == 1
    assert not list(tmp_path.glob("*/*.md"))
    assert report.report(["--results", str(tmp_path)]) == 0
    capsys.readouterr()
    assert report.report(["--results", str(tmp_path), "--check"]) == 0
    assert capsys.readouterr().out == ""
    page, sheet = (tmp_path / "laptop" / f"table3.{kind}" for kind in ("md", "csv"))
    page.write_bytes(page.read_bytes().replace(b"62.0", b"62.9", 1))
    assert report.report(["--results", str(tmp_path), "--check"]) == 1
    assert re.search(r"^-.*62\.9.*\n\+.*62\.0", capsys.readouterr().out, re.MULTILINE)
    assert b"62.9" in page.read_bytes()
    assert report.report(["--results", str(tmp_path)]) == 0
    assert b"62.9" not in page.read_bytes()
    sheet.write_bytes(sheet.read_bytes().replace(b"\n", b"\r\n"))
    assert report.report(["--results", str(tmp_path), "--check"]) == 1


def test_an_edited_record_stops_the_tables_and_no_results_are_said(tmp_path: Path) -> None:
    file = save(tmp_path) / "laptop" / "base" / "base-seed1.json"
    file.write_bytes(file.read_bytes().replace(b"61.0", b"71.0"))
    with pytest.raises(ValueError, match=r"base-seed1\.json: edited by hand"):
        report.report(["--results", str(tmp_path)])
    assert not list(tmp_path.glob("*/*.md"))
    with pytest.raises(ValueError, match="nowhere: expected records of finished runs, found none"):
        report.report(["--results", str(tmp_path / "nowhere")])
    assert build.build_scale(frames.ResultSet.read(tmp_path / "nowhere")) == {}


def test_a_page_says_how_it_was_made(tmp_path: Path) -> None:
    build.write_scale(own(save(tmp_path), tmp_path / "nothing"))
    page = (tmp_path / "laptop/table3_A.md").read_text("utf-8")
    for said in (
        r"# Table 3 (A): heads at scale laptop",
        "Exploration: no run of this scale counts as evidence",
        "python experiments/table3_A.py --scale laptop",
        "python -m repro report",
        r"sacreBLEU: nrefs:1\|case:mixed\|tok:13a",
        "multi-bleu: tok:moses",
        "grammar en-de, 9 / 5 / 7 pairs, SHA-256 abababababab",
        "48 s training and 7 s decoding per run",
        "- tokens of an update: at most 512 of each side. Paper: about 25,000 source and 25,000 target tokens.",
        "[How to read the tables](../../../docs/usage.md#how-to-read-the-tables).",
    ):
        assert said in page
    assert "Base row: N 3, d<sub>model</sub> 128" in (tmp_path / "laptop/table3.md").read_text("utf-8")


def test_what_all_rows_share_stands_once_and_what_was_not_run_is_no_row() -> None:
    shown = [
        Column("", "row", ["base", "a", "b", "gone"]),
        Column("", "n", ["3", "3", "3", "0"]),
        Column("BLEU", "ours", ["1.0", "2.0", "3.0", "missing"]),
        Column("BLEU", "Δ", ["", "", "", ""]),
    ]
    made = tabled(shown, {1, 3})
    assert made == Table((shown[0]._replace(texts=["base", "a", "b"]), shown[2]._replace(texts=["1.0", "2.0", "3.0"])),
        frozenset({1}), ("In all rows: ", "n", " ", "3", "."))  # fmt: skip
    two = tabled([column._replace(texts=column.texts[:2]) for column in shown])
    assert [column.heading for column in two.columns] == ["row", "n", "ours", "Δ"], "of two rows they are no rule"


def test_every_sign_of_tables_is_explained() -> None:
    _, _, rest = (ROOT / "docs/usage.md").read_text("utf-8").partition("## How to read the tables\n")
    told = rest.partition("\n## ")[0].lower()
    signs = "a ± b,missing,exploratory,diverged,ours,yours,published,paper,multi-bleu,δ,(here ...),at paper size"
    for sign in (*signs.split(","), "verdict", "mean of last", "length", "decides", "rate factor"):
        assert f"**{sign}**" in told, sign


def test_a_table_in_the_terminal() -> None:
    lines = at_the_end(frames.table(FULL[:6])).split("\n")
    assert lines[2].split() == ["row", "n", "ours", "paper", "ours", "Δ", "paper", "Δ"]
    assert lines[3].split() == ["base", "3", "2.00", "±", "0.00", "4.92", "62.0", "±", "2.5", "25.8"]
    assert len(lines[2]) == len(lines[4])
    assert lines[2].index("paper") + 1 == lines[3].index("4.92") == lines[4].index("5.29")
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", ["=cmd()", "-1+1", "\t=1", " =1", "a-b", '=a,"b"\n'])
def test_a_name_in_a_sheet_is_no_formula_and_numbers_stay_numbers(name: str) -> None:
    sheet = sheet_of(frames.table([run("base"), run(name, bleu=3.0)]))
    base, line = csv.DictReader(io.StringIO(sheet))
    assert (base["row"], line["dev/bleu_to_base"]) == ("base", "-57")
    assert line["row"] in (name, f"'{name}")
    assert not line["row"].lstrip(" ").startswith(("=", "+", "-", "@", "\t"))


# One's own


def test_own_pages_use_published_measurements_and_own_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def verdicts(results: Path, *, own: bool) -> LayerOutcomes:
        return scale_data.judged_without_runs(frames.ResultSet(folder=results / "laptop", tables={}, rows={}, own=own))

    monkeypatch.setattr(scale_data, "PUBLISHED", ROOT / "results")
    published = verdicts(ROOT / "results", own=False)
    measured, settled = "C21", next(one for one in LISTED if one.tests)
    assert published[measured][0] == published[settled.id][0] == "holds here"
    assert verdicts(tmp_path, own=True) == published
    assert measured not in (elsewhere := verdicts(tmp_path, own=False))
    assert elsewhere[settled.id][0] == "not judged"
    failed = tuple(tested.Ran(test, "failed", 1) for test in settled.tests)
    tested.write_outcomes(tmp_path, tested.SuiteRun(failed, tested.read_outcomes(ROOT / "results").stamp))
    assert verdicts(tmp_path, own=True)[settled.id][1].startswith("failed: ")
    assert verdicts(tmp_path, own=True)[measured] == published[measured]


def test_printed_numbers_are_judged_alike_at_every_scale(tmp_path: Path) -> None:
    save(tmp_path, [run("base")])
    only_base = frames.ResultSet.read(tmp_path / "laptop")
    of_print = {"C28a": "consistent", "C30d": "consistent"}  # 25.8 less 24.9 is 0.9; N=8 has 25.5, N=2 23.7
    alone, beside = (scale_data.judged_without_runs(replace(only_base, own=own)) for own in (False, True))
    assert not of_print.keys() & alone.keys(), "nobody noted what the paper prints for h=1"
    assert {id: beside[id][0] for id in of_print} == of_print
    published = scale_data.judged_without_runs(frames.ResultSet.read(ROOT / "results" / "captions-4000-steps"))
    assert {id: published[id] for id in of_print} == {id: beside[id] for id in of_print}


def test_own_pages_show_published_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "own", [that_counts(run("base", seed=FIRST_SEED)), run("h=1")])
    monkeypatch.setattr(build, "PUBLISHED", save(tmp_path / "published"))
    monkeypatch.setattr(build, "is_committed", lambda file: file == Path("experiments/table4.py"))
    [found] = build.read_results(tmp_path / "own", own=True)
    assert found.uncommitted == {"table3_A"}, "the base row has no file of its own"
    assert found.published is not None
    made, theirs = (build.build_all(tmp_path / "own", own=own) for own in (True, False))
    for page in (tmp_path / f"own/laptop/{name}.md" for name in ("claims", "statements")):
        assert ("(../../../docs/claims.md)" in made[page], "(../../docs/claims.md)" in theirs[page]) == (True, True)
    monkeypatch.setattr(build, "is_committed", lambda file: None)  # no git to ask
    assert not build.read_results(tmp_path / "own", own=True)[0].uncommitted


def test_tables_with_columns_of_their_own_come_last_at_the_end(tmp_path: Path) -> None:
    save(tmp_path, [run("base"), run("h=1"), run("base en-de", table="table2")])
    shown = build.console(own(tmp_path, tmp_path / "nothing"), ["table2", "table3_A"])
    assert 0 < shown.index("h=1 ") < shown.index("base en-de")


# Other processors


def core_types() -> list[str]:
    """Kernels of OpenBLAS that this processor can run; elsewhere than on x86 the names do nothing.

    The oldest is not among them: `tox -e tables` makes all pages with it.
    """
    newer = {"Haswell": {"avx2", "fma"}, "Zen": {"avx2", "fma"}, "SkylakeX": {"avx512f", "avx512dq", "avx512bw"}}
    return ["Nehalem", *(name for name, needs in newer.items() if needs <= FLAGS)]


@pytest.mark.slow  # half a minute each
@pytest.mark.parametrize("core_type", core_types())
def test_what_is_published_is_the_same_on_every_processor(core_type: str) -> None:
    # half-widths of exact laws were written with all digits of their rounding noise
    command = [sys.executable, "-m", "repro", "report", "--check"]
    environment = os.environ | {"OPENBLAS_CORETYPE": core_type, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (0, "", "")


def test_pages_of_a_first_own_run_are_built_without_a_warning(tmp_path: Path) -> None:
    """The end of the first command: pandas warned its user of a frame with a hundred columns."""
    mine, there = tmp_path / "laptop", PUBLISHED / "laptop"
    for file in [*there.glob("base/*-seed4.json"), *there.glob("lab_text/*-seed4.json")]:
        place = mine / file.relative_to(there)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
        artifacts.copy(file, place, load(file).run)
    shutil.copy(there / "rows.json", mine)
    assert build.build_scale(frames.ResultSet.read_own(mine, PUBLISHED, []))
