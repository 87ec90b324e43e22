"""What may stand in one cell, and what a reader is told of the rest."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from paper_runs import paper_run

from repro.results import comparable
from repro.results.frame import table
from repro.results.record import Record

Recipe = Callable[[Record], Record]


def stamped(name: str, value: object) -> Recipe:
    return lambda run: replace(run, stamp={**run.stamp, name: value})  # type: ignore[arg-type]


def other_settings(**settings: object) -> Recipe:
    return lambda run: replace(run, settings={**run.settings, **settings})


def split(seed: int, **settings: Any) -> Record:
    return other_settings(**settings)(paper_run(seed=seed))


def test_devices_and_turns_that_share_an_update_alike_are_one_kind() -> None:
    # one process in two turns and two in one have one id: as two kinds, seeds of one command fell out of their table
    turns, processes = split(1, devices=1, accumulate=2), split(2, devices=2, accumulate=1)
    assert comparable.differences(turns, processes) == []
    assert comparable.newest([turns, processes]) == ([turns, processes], [])
    more = split(3, devices=2, accumulate=2)
    assert comparable.differences(turns, more) == comparable.differences(processes, more) == ["parts of an update"]
    assert comparable.differences(split(1), split(2, devices=1, accumulate=1)) == [], (
        "a record that says nothing was made by one"
    )


RECIPES: dict[str, Recipe] = {  # by each name that `kind` gives: a record that differs in it alone
    "deciding code": stamped("fingerprint", "another"),
    "code of its system": stamped("system_fingerprint", "another"),
    "text": lambda run: replace(run, corpus={**run.corpus, "sha256": "another"}),
    "tokenizer": lambda run: replace(run, tokenizer={**run.tokenizer, "sha256": "another"}),
    "threads": stamped("n_threads", 7),
    "batch tokens": other_settings(batch_tokens=7),
    "fill": other_settings(fill="tokens"),
    "precision": other_settings(precision="bf16"),
    "engine": other_settings(engine="ctranslate2"),
    "beam": other_settings(beam=7),
    "alpha": other_settings(alpha=0.7),
    "offset": other_settings(offset=0),
    "extra length": other_settings(extra_length=7),
    "parts of an update": other_settings(devices=7),
    "system": lambda run: replace(run, system="another.System()"),
}


def test_whatever_makes_runs_unlike_keeps_them_out_of_one_mean() -> None:
    one, two = paper_run(seed=1), paper_run(seed=2)
    assert RECIPES.keys() == comparable.kind(one).keys() - one.hyper.keys()
    learned = {"learned_positions": lambda run: replace(run, hyper={**run.hyper, "learned_positions": True})}
    for name, recipe in (RECIPES | learned).items():
        other = recipe(two)
        assert comparable.differences(one, other) == comparable.differences(other, one) == [name]


def test_seeds_of_one_kind_have_a_mean_and_others_are_left_out_with_what_makes_them_again() -> None:
    one, two = paper_run(seed=1), paper_run(seed=2)
    assert comparable.differences(one, two) == []
    assert table([one, two])["n"].tolist() == [2]
    later = stamped("started", "z")(stamped("n_threads", 7)(two))
    assert comparable.newest([one, later]) == ([later], [one])
    with pytest.raises(ValueError, match="seeds 1 and 2 differ in threads, so they have no mean"):
        table([one, later])
    [said] = comparable.left_out([paper_run(seed=9), two])
    assert "The same command with --seeds 2,9 makes them again." in said


# Codes that count as one


CLASSES = [["a", "b", "c"], ["x", "y"]]


def test_a_class_has_one_name_and_a_stranger_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparable, "listed_classes", lambda: CLASSES)
    assert [comparable.code_name(one) for one in "abcxyz"] == ["a", "a", "a", "x", "x", "z"]
    assert comparable.equal_codes("c") == ["c", "a", "b"]
    assert comparable.equal_codes("z") == ["z"]


def test_the_list_is_well_formed() -> None:
    digests = [digest for one in comparable.listed_classes() for digest in one]
    assert len({*digests}) == len(digests)
    assert {len(digest) for digest in digests} == {64}
    listed = json.loads(comparable.EQUAL_CODE.read_bytes())
    assert comparable.EQUAL_CODE.read_text("utf-8") == json.dumps(listed, indent=1) + "\n"
    assert {len(commit) for one in listed["shown"] for commit in one["commits"]} == {40}


def test_records_of_equal_code_may_stand_in_one_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [stamped("fingerprint", code)(paper_run(seed=seed)) for seed, code in ((1, "a"), (2, "c"))]
    [said] = comparable.mixtures(records)
    assert "seeds 1 and 2 differ in deciding code" in said
    monkeypatch.setattr(comparable, "listed_classes", lambda: CLASSES)
    assert list(comparable.mixtures(records)) == []


# How reproducible runs were


def run(badge: str | None = "L1", *against: str, replayed: int = 2, **stamp: Any) -> Record:
    told: Any = {
        "badge": badge, "against": list(against), "order": "ab", "plan": "ab", "weights": None, "replayed": replayed,
        "repeated_lines": 0,
    }  # fmt: skip
    origin: Any = paper_run().stamp | {"device": "AMD EPYC", "instructions": "AVX2"} | stamp
    return paper_run(determinism=told, stamp=origin)


def test_each_badge_processor_and_reason_has_a_line() -> None:
    later = [run("L0", "the processor was another", replayed=0), run(instructions="AVX512"), run(None)]
    found = comparable.repeatable([run(), run(replayed=3), *later])
    of_l1 = "L1, one CPU process, the same to the bit on such a processor: "
    assert found[:3] == [
        "L0, read what the plan says, the same on every machine: 1 run; AMD EPYC, AVX2; "
        "what rules out a higher badge: the processor was another.",
        f"{of_l1}2 runs; AMD EPYC, AVX2; 5 micro-batches computed twice.",
        f"{of_l1}1 run; AMD EPYC, AVX512; 2 micro-batches computed twice.",
    ]
    assert found[3].startswith("No badge, since what was read is not what was planned: 1 run")
    old = paper_run(stamp=paper_run().stamp | {"device": "AMD EPYC"})
    said = "Not checked, from the time before badges: 2 runs; AMD EPYC, instructions not noted."
    assert comparable.repeatable([old, old]) == [said]


def test_processors_of_one_name_are_told_apart_by_their_model() -> None:
    found = comparable.repeatable([run(cpu="AMD EPYC", cpu_model=model) for model in ("family 25", "family 26", None)])
    assert ["family 25" in line for line in found] == [True, False, False]
    assert "; AMD EPYC (family 26), AVX2; " in found[1]
    assert "; AMD EPYC, AVX2; " in found[2]


def test_a_table_carries_its_lines() -> None:
    frame = table([], base=[run()])
    assert frame.attrs["repeatable"] == comparable.repeatable([run()])
    told = frame["row"].attrs["repeatable"]
    assert told is frame.attrs["repeatable"], "pandas would copy all that is told with each column"
    assert comparable.repeatable([]) == []
