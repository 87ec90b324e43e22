"""`python -m repro report --tests`: the named tests are run, what came out is kept, and a failure is an exit code."""

from pathlib import Path
from typing import Any

import pytest
from report_records import fill
from typed import typed

from repro.claims import tested
from repro.claims.catalogue import LISTED
from repro.claims.tested import Ran, SuiteRun, named_tests, read_outcomes

Said = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

STAMP: Any = {"commit": "1" * 40, "dirty": False}


def all_with(outcome: Any) -> SuiteRun:
    """As if every named test had come out so."""
    return SuiteRun(tuple(Ran(test, outcome, 1) for test in named_tests(LISTED)), STAMP)


@pytest.mark.parametrize(("outcome", "code", "said"), [("passed", 0, "all passed"), ("failed", 1, "failed; tests/")])
def test_tests_are_run_kept_and_said(
    outcome: str, code: int, said: str, tmp_path: Path, monkeypatch: Patch, capsys: Said
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(tested, "run", lambda tests, root: asked.extend(tests) or all_with(outcome))
    assert said in typed(capsys, "report", "--tests", "--results", tmp_path, code=code)
    assert asked == named_tests(LISTED)
    assert read_outcomes(tmp_path) == all_with(outcome)


def test_what_cannot_be_run_is_said(tmp_path: Path, monkeypatch: Patch, capsys: Said) -> None:
    def run(tests: list[str], root: Path) -> SuiteRun:
        raise ValueError("pytest in /x: expected the named tests to be run, got exit code 4.")

    monkeypatch.setattr(tested, "run", run)
    assert "got exit code 4" in typed(capsys, "report", "--tests", "--results", tmp_path, code=2)
    # writing and not writing exclude each other
    refused = typed(capsys, "report", "--tests", "--check", "--results", tmp_path, code=2)
    assert "argument --check: not allowed with argument --tests" in refused


@pytest.mark.parametrize("word", [[], ["--check"], ["--html"]])
def test_results_without_records_are_named(word: list[str], tmp_path: Path, monkeypatch: Patch, capsys: Said) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    none = "results: expected records of finished runs, found none."
    assert f"{none} Run an experiment first." in typed(capsys, "report", *word, code=2)
    fill(Path("results", "own"))
    if word == ["--html"]:  # which are shown wherever they are
        assert typed(capsys, "report", *word) == "results/own/laptop/report.html\nresults/own/report.html\n"
    else:
        assert f"{none} Your own are in results/own: add --own." in typed(capsys, "report", *word, code=2)
