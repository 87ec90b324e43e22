"""`python -m repro report --tests`: the named tests are run, what came out is kept, and a failure is an exit code."""

from pathlib import Path
from typing import Any

import pytest
from report_records import fill

from repro.claims import tested
from repro.claims.catalogue import LISTED
from repro.claims.tested import Ran, SuiteRun, named_tests, read_outcomes
from repro.cli.commands import main

STAMP: Any = {"commit": "1" * 40, "dirty": False}


def all_with(outcome: Any) -> SuiteRun:
    """As if every named test had come out so."""
    return SuiteRun(tuple(Ran(test, outcome, 1) for test in named_tests(LISTED)), STAMP)


@pytest.mark.parametrize(("outcome", "code", "said"), [("passed", 0, "all passed"), ("failed", 1, "failed; tests/")])
def test_tests_are_run_kept_and_said(
    outcome: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[str] = []

    def run(tests: list[str], root: Path) -> SuiteRun:
        asked.extend(tests)
        return all_with(outcome)

    monkeypatch.setattr(tested, "run", run)
    (tmp_path / "results").mkdir()
    assert main(["report", "--tests", "--results", str(tmp_path / "results")]) == code
    assert asked == named_tests(LISTED)
    assert read_outcomes(tmp_path / "results") == all_with(outcome)
    assert said in capsys.readouterr().out


def test_what_cannot_be_run_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(tests: list[str], root: Path) -> SuiteRun:
        raise ValueError("pytest in /x: expected the named tests to be run, got exit code 4.")

    monkeypatch.setattr(tested, "run", run)
    assert main(["report", "--tests", "--results", str(tmp_path)]) == 2
    assert "got exit code 4" in capsys.readouterr().err


def test_writing_and_not_writing_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", "--tests", "--check", "--results", str(tmp_path)])
    assert ended.value.code == 2
    assert "--tests cannot be combined with --check" in capsys.readouterr().err


@pytest.mark.parametrize("word", [[], ["--check"], ["--html"]])
def test_results_without_records_are_named(
    word: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    assert main(["report", *word]) == 2
    assert "results: expected records of finished runs, found none. Run an experiment first." in capsys.readouterr().err
    fill(Path("results", "own"))
    if word == ["--html"]:  # which are shown wherever they are
        assert main(["report", *word]) == 0
        assert capsys.readouterr().out == "results/own/laptop/report.html\nresults/own/report.html\n"
        return
    assert main(["report", *word]) == 2
    assert "found none. Your own are in results/own: add --own." in capsys.readouterr().err
