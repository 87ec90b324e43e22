"""Codes that count as one: the list, what follows of it, and each entry run again under both codes."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from benchmark_files import opened
from paper_runs import paper_run

from repro.results import equal_code
from repro.results.equal_code import Code, EqualCode, Evidence, classes, code_name, equal_codes, listed_pairs
from repro.results.kinds import differences, mixtures
from repro.results.provenance import fingerprint

ROOT = Path(__file__).parents[2]
RUN = Evidence(scale="smoke", table="table3_A", row="base", seed=1)


def entry(one: str, other: str) -> EqualCode:
    return EqualCode(codes=[Code(fingerprint=one, commit="0"), Code(fingerprint=other, commit="1")], run=RUN)


LINE = [entry("a", "b"), entry("x", "y"), entry("b", "c")]


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ([], []),
        (LINE, [["a", "b", "c"], ["x", "y"]]),
        ([*LINE, entry("y", "b")], [["a", "b", "c", "x", "y"]]),  # two classes become one
        ([entry("b", "c"), entry("a", "b")], [["b", "c", "a"]]),  # the first that was listed stays the first
    ],
)
def test_equality_goes_from_entry_to_entry(entries: list[EqualCode], found: list[list[str]]) -> None:
    assert classes(entries) == found


def test_a_class_has_one_name_and_a_stranger_its_own() -> None:
    assert [code_name(one, LINE) for one in "abcxyz"] == ["a", "a", "a", "x", "x", "z"]
    assert equal_codes("c", LINE) == ["c", "a", "b"]
    assert equal_codes("z", LINE) == ["z"]


def test_the_list_is_well_formed() -> None:
    for one in listed_pairs():
        assert one.keys() - {"systems"} == EqualCode.__required_keys__
        assert one["run"].keys() == Evidence.__annotations__.keys()
        assert one["run"]["scale"] in ("smoke", "laptop")
        older, newer = one["codes"]
        assert older["fingerprint"] != newer["fingerprint"]
        for code in one["codes"]:
            assert code.keys() == Code.__annotations__.keys()
            assert (len(code["fingerprint"]), len(code["commit"])) == (64, 40)
    assert equal_code.LIST.read_text("utf-8") == json.dumps(listed_pairs(), indent=2) + "\n"


def test_records_of_equal_code_may_stand_in_one_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [paper_run(seed=seed) for seed in (1, 2)]
    records = [
        replace(run, stamp={**run.stamp, "fingerprint": code})  # type: ignore[typeddict-item]
        for run, code in zip(runs, "ac", strict=True)
    ]
    assert differences(*records) == ["deciding code"]
    [said] = mixtures(records)
    assert "seeds 1 and 2 differ in deciding code" in said
    monkeypatch.setattr(equal_code, "listed_classes", lambda: classes(LINE))
    assert differences(*records) == []
    assert list(mixtures(records)) == []


def test_the_code_of_a_system_counts_as_one_apart_from_that_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [{**entry("a", "b"), "systems": ["s", "t"]}]
    assert classes(entries) == [["a", "b"], ["s", "t"]]  # type: ignore[arg-type]
    runs = [paper_run(seed=seed) for seed in (1, 2)]
    records = [
        replace(run, stamp={**run.stamp, "system_fingerprint": code})  # type: ignore[typeddict-item]
        for run, code in zip(runs, "st", strict=True)
    ]
    assert differences(*records) == ["code of its system"]
    monkeypatch.setattr(equal_code, "listed_classes", lambda: classes(entries))  # type: ignore[arg-type]
    assert differences(*records) == []
    assert differences(runs[0], records[0]) == ["code of its system"]


# Each entry, run again


@cache
def bench() -> ModuleType:
    """benchmarks/equal_code.py, which wrote the entries."""
    return opened("equal_code")


@pytest.fixture(scope="module")
def outcome_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Code, Evidence], dict[str, Any]]:
    """What a seed comes to under a code; each is run once, that of this checkout where it lies."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}

    def of(code: Code, run: Evidence) -> dict[str, Any]:
        key = (code["fingerprint"], *map(str, run.values()))
        if key not in found:
            place, folder = ROOT, tmp_path_factory.mktemp("equal")
            if code["fingerprint"] != fingerprint():
                asked = ["git", "cat-file", "-e", f"{code['commit']}^{{commit}}"]
                if subprocess.run(asked, cwd=ROOT, capture_output=True).returncode:
                    pytest.skip(f"no git history with commit {code['commit'][:12]}: the checkout is shallow, or none")
                place = bench().unpack(code["commit"], folder / "code")
            found[key] = bench().outcome(place, run, folder / "work")
        return found[key]

    return of


# the newest entry of this code in CI, the others by `tox -e faults`: no entry becomes wrong by what is added after it
OF_TODAY = [one for one in listed_pairs() if fingerprint() in [code["fingerprint"] for code in one["codes"]]]
ENTRIES = [
    pytest.param(
        one,
        marks=[] if one in OF_TODAY[-1:] else pytest.mark.faults,
        id=f"{one['codes'][1]['commit'][:12]}, {one['run']['row']}",
    )
    for one in listed_pairs()
]


@pytest.mark.parametrize("one", ENTRIES)
def test_both_codes_give_the_same_run_to_the_last_digit(
    one: EqualCode, outcome_of: Callable[[Code, Evidence], dict[str, Any]]
) -> None:
    older, newer = (outcome_of(code, one["run"]) for code in one["codes"])
    assert [older["fingerprint"], newer["fingerprint"]] == [code["fingerprint"] for code in one["codes"]]
    assert one.get("systems") in (None, [older["system"], newer["system"]])
    assert bench().unlike(older, newer) == []
    for name in ("scores", "curves", "weights", "translations"):  # records did not always say the order
        assert older[name], "or nothing was compared"
        assert newer[name], "or nothing was compared"
    scored = older["scores"]["dev"].keys() & newer["scores"]["dev"].keys()
    assert {"nll", "ppl"} <= scored
    assert {"bleu", "f1"} & scored


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
