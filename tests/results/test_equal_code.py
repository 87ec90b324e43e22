"""Codes that count as one: the list, what follows of it, and the benchmark that writes it."""

import json
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

import pytest
from benchmark_files import opened
from paper_runs import paper_run

from repro.results import equal_code
from repro.results.equal_code import LIST, code_name, equal_codes, is_equal_code, listed_classes
from repro.results.kinds import differences, mixtures

CLASSES = [["a", "b", "c"], ["x", "y"]]


@cache
def bench() -> ModuleType:
    """benchmarks/equal_code.py, which writes the list."""
    return opened("equal_code")


def test_a_class_has_one_name_and_a_stranger_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_code, "listed_classes", lambda: CLASSES)
    assert [code_name(one) for one in "abcxyz"] == ["a", "a", "a", "x", "x", "z"]
    assert equal_codes("c") == ["c", "a", "b"]
    assert equal_codes("z") == ["z"]


def test_runs_are_of_equal_code_where_that_of_all_rows_and_that_of_their_task_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(equal_code, "listed_classes", lambda: CLASSES)
    run = {"code": "a", "task_code": "x"}
    assert is_equal_code({"code": "b", "task_code": "y"}, run)
    assert not is_equal_code({"code": "b", "task_code": "z"}, run)
    assert not is_equal_code({"code": "b"}, run)
    assert is_equal_code({"code": "c"}, {"code": "a"})


def test_the_list_is_well_formed() -> None:
    digests = [digest for one in listed_classes() for digest in one]
    assert len({*digests}) == len(digests)
    assert {len(digest) for digest in digests} == {64}
    listed = json.loads(LIST.read_bytes())
    assert LIST.read_text("utf-8") == json.dumps(listed, indent=1) + "\n"
    for one in listed["shown"]:
        assert one["run"].keys() == bench().SEED.keys()
        assert [len(commit) for commit in one["commits"]] == [40, 40]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [["b", "y"]]),
        (CLASSES, [["a", "b", "c", "x", "y"]]),  # two classes become one
        ([["x"], ["b", "y"]], [["x"], ["b", "y"]]),
        ([["y", "x"], ["b"]], [["b", "y", "x"]]),  # the first of the older's stays the first
    ],
)
def test_equal_digests_join_their_classes(before: list[list[str]], after: list[list[str]]) -> None:
    classes = [[*one] for one in before]
    bench().join(classes, "b", "y")
    assert classes == after


@pytest.mark.parametrize(
    ("stamp", "what"), [("fingerprint", "deciding code"), ("system_fingerprint", "code of its system")]
)
def test_records_of_equal_code_may_stand_in_one_cell(monkeypatch: pytest.MonkeyPatch, stamp: str, what: str) -> None:
    runs = [paper_run(seed=seed) for seed in (1, 2)]
    records = [
        replace(run, stamp={**run.stamp, stamp: code})  # type: ignore[typeddict-item]
        for run, code in zip(runs, "ac", strict=True)
    ]
    assert differences(*records) == [what]
    [said] = mixtures(records)
    assert f"seeds 1 and 2 differ in {what}" in said
    monkeypatch.setattr(equal_code, "listed_classes", lambda: CLASSES)
    assert differences(*records) == []
    assert list(mixtures(records)) == []
    assert stamp == "fingerprint" or differences(runs[0], records[0]) == [what]


def test_a_run_that_differs_is_seen() -> None:
    one: dict[str, Any] = {"fingerprint": "a", "scores": {"dev": {"nll": 1.0}}, "order": None, "weights": "w"}
    assert bench().unlike(one, {**one, "fingerprint": "b", "order": "o"}) == []
    assert bench().unlike(one, {**one, "scores": {"dev": {"nll": 1.0 + 2**-52}}}) == ["scores"]
    assert bench().unlike(one, {**one, "weights": "v"}) == ["weights"]


def test_a_score_that_came_later_is_compared_where_both_have_it() -> None:
    older: dict[str, Any] = {"scores": {"dev": {"nll": 1.0}, "test": {"nll": 2.0}}}
    newer: dict[str, Any] = {split: {**of, "accuracy": 0.5} for split, of in older["scores"].items()}
    assert bench().unlike(older, {"scores": newer}) == bench().unlike({"scores": newer}, older) == []
    wrong = {**newer, "test": {**newer["test"], "accuracy": 0.5 + 2**-53}}
    assert bench().unlike({"scores": newer}, {"scores": wrong}) == ["scores"]
    for lost in ({"accuracy": 0.5}, {"accuracy": 0.5, "nll": 1.5}, {"nll": 1.0, "bleu": 1.0}):  # no other may be absent
        assert bench().unlike(older, {"scores": {**newer, "dev": lost}}) == ["scores"], lost
        assert bench().unlike({"scores": {**newer, "dev": lost}}, older) == ["scores"], lost
