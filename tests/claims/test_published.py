"""Verdicts of before stand with the runs that they are of, and are void, in words, without one of them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claims.test_judge import of, some

from repro.claims.claim import B0, H1
from repro.claims.evidence import FILE, NOTHING_PUBLISHED, read_published
from repro.claims.judge import evidence_of, judge
from repro.results.frame import ResultSet
from repro.results.record import Record

ROOT = Path(__file__).parents[2]


def older(row: str, bleu: float) -> list[Record]:
    """Runs with seeds 4 to 8."""
    shown: Any = [
        {**(one.determinism or {}), "order": f"older {one.seed}", "weights": f"older {one.run}"}
        for one in some(row, bleu)
    ]
    return [
        replace(one, seed=one.seed - 5, claims="a" * 16, run=one.run[::-1], determinism=of)
        for one, of in zip(some(row, bleu), shown, strict=True)
    ]


@pytest.fixture
def runs() -> list[Record]:
    return [*older(B0, 25.8), *older(H1, 14.9)]


def note(folder: Path, runs: list[Record], verdict: str = "undetermined") -> None:
    ids: dict[str, dict[str, str]] = {}
    for run in runs:
        ids.setdefault(f"{run.table}/{run.row}", {})[str(run.seed)] = run.run
    content = {"runs": ids, "verdicts": {"C28b": {"verdict": verdict, "reason": "as it was"}}}
    (folder / FILE).write_text(json.dumps(content))


def test_they_stand_and_the_analysis_of_today_is_exploration_beside_them(tmp_path: Path, runs: list[Record]) -> None:
    note(tmp_path, runs)
    published = read_published(tmp_path, runs)
    one = of(judge(evidence_of(runs, published=published), published=published), "C28b")
    assert (one.verdict, one.reason, one.explored) == ("undetermined", "as it was", "reproduced")
    assert one.found[1].value == pytest.approx(10.9, abs=0.1)


def test_fresh_seeds_take_their_place(tmp_path: Path, runs: list[Record]) -> None:
    note(tmp_path, runs, "contradicted")
    published = read_published(tmp_path, runs)
    records = [*runs, *some(B0, 25.8), *some(H1, 14.9)]
    one = of(judge(evidence_of(records, published=published), published=published), "C28b")
    assert (one.verdict, one.explored) == ("reproduced", None)


def test_without_one_of_their_runs_they_are_void(tmp_path: Path, runs: list[Record]) -> None:
    note(tmp_path, runs)
    published = read_published(tmp_path, runs[1:])
    assert published.void == f"The verdicts in {FILE} are void: run {runs[0].run} is missing (seed 4 of base/base)"
    one = of(judge(evidence_of(runs[1:], published=published), published=published), "C28b")
    assert (one.verdict, one.reason) == ("not judged", published.void)


def test_a_fresh_run_may_take_the_place_of_one_of_the_base_whose_seed_is_judged_anew(
    tmp_path: Path, runs: list[Record]
) -> None:
    old = replace(some(B0, 25.8)[0], claims="a" * 16, run="f" * 16)
    note(tmp_path, [*runs, old])
    fresh = some(B0, 25.8)
    assert read_published(tmp_path, runs).void
    published = read_published(tmp_path, [*runs, *fresh])
    assert not published.void
    again = replace(fresh[0], run=old.run)  # made again under the list of today, from code that was not changed
    evidence = evidence_of([*runs, again, *fresh[1:]], published=published)
    assert [one.seed for one in evidence.fresh] == [9, 10, 11, 12, 13]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert read_published(tmp_path, ()) == NOTHING_PUBLISHED
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(
        ValueError, match=rf"{FILE}: expected verdicts and the runs they are of, got KeyError\('runs'\)"
    ):
        read_published(tmp_path, ())


@pytest.mark.parametrize(("scale", "n"), [("laptop", 37), ("captions-bf16", 24)])
def test_those_of_the_repository_hold(scale: str, n: int) -> None:
    found = ResultSet.read(ROOT / "results" / scale)
    published = read_published(found.folder, found.everything)
    assert (published.void, len(published.verdicts)) == ("", n)
