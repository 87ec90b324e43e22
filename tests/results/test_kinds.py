"""What keeps two records out of one cell, and what does not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from paper_runs import paper_run

from repro.results.frame import table
from repro.results.kinds import differences, kind, left_out, newest
from repro.results.record import Record

Recipe = Callable[[Record], Record]


def split(seed: int, **settings: Any) -> Record:
    run = paper_run(seed=seed)
    return replace(run, settings={**run.settings, **settings})


def test_who_takes_the_parts_of_an_update_is_no_matter() -> None:
    # one process in two turns and two in one have one id: as two kinds, seeds of one command fell out of their table
    turns, processes = split(1, devices=1, accumulate=2), split(2, devices=2, accumulate=1)
    assert differences(turns, processes) == []
    assert newest([turns, processes]) == ([turns, processes], [])
    more = split(3, devices=2, accumulate=2)
    assert differences(turns, more) == differences(processes, more) == ["parts of an update"]


def test_a_record_that_does_not_say_how_an_update_was_shared_was_made_by_one() -> None:
    older = split(1)
    assert not {"devices", "accumulate"} & older.settings.keys()
    assert differences(older, split(2, devices=1, accumulate=1)) == []
    assert differences(older, split(2, devices=2, accumulate=1)) == ["parts of an update"]


def stamped(name: str, value: object) -> Recipe:
    def recipe(run: Record) -> Record:
        stamp: Any = {**run.stamp, name: value}
        return replace(run, stamp=stamp)

    return recipe


def other_settings(name: str, value: object) -> Recipe:
    return lambda run: replace(run, settings={**run.settings, name: value})


RECIPES: dict[str, Recipe] = {  # by each name that `kind` gives: a record that differs in it alone
    "deciding code": stamped("fingerprint", "another"),
    "code of its system": stamped("system_fingerprint", "another"),
    "text": lambda run: replace(run, corpus={**run.corpus, "sha256": "another"}),
    "tokenizer": lambda run: replace(run, tokenizer={**run.tokenizer, "sha256": "another"}),
    "threads": stamped("n_threads", 7),
    "batch tokens": other_settings("batch_tokens", 7),
    "fill": other_settings("fill", "tokens"),
    "precision": other_settings("precision", "bf16"),
    "engine": other_settings("engine", "ctranslate2"),
    "beam": other_settings("beam", 7),
    "alpha": other_settings("alpha", 0.7),
    "offset": other_settings("offset", 0),
    "extra length": other_settings("extra_length", 7),
    "parts of an update": other_settings("devices", 7),
    "system": lambda run: replace(run, system="another.System()"),
}


def other_hyper(name: str) -> Recipe:
    """Of a hyper-parameter: whatever it is, another value."""

    def recipe(run: Record) -> Record:
        value = run.hyper[name]
        other = not value if isinstance(value, bool) else (value or 0) + 1
        return replace(run, hyper={**run.hyper, name: other})

    return recipe


@pytest.mark.parametrize("name", [*kind(paper_run())])
def test_whatever_makes_runs_unlike_keeps_them_out_of_one_mean(name: str) -> None:
    recipe = other_hyper(name) if name in paper_run().hyper else RECIPES.get(name)
    assert recipe, f"{name!r} keeps records out of one cell, and no recipe here makes two that differ in it: write one"
    one, other = paper_run(seed=1), recipe(paper_run(seed=2))
    assert differences(one, other) == differences(other, one) == [name]
    later = replace(other, stamp={**other.stamp, "started": "z"})
    assert newest([one, later]) == ([later], [one])
    with pytest.raises(ValueError, match=f"seeds 1 and 2 differ in {name}, so they have no mean"):
        table([one, other])


def test_every_recipe_is_of_a_name() -> None:
    assert RECIPES.keys() == kind(paper_run()).keys() - paper_run().hyper.keys()


def test_seeds_of_one_kind_have_a_mean() -> None:
    assert differences(paper_run(seed=1), paper_run(seed=2)) == []
    assert table([paper_run(seed=1), paper_run(seed=2)])["n"].tolist() == [2]


@pytest.mark.parametrize(
    ("seeds", "again"), [((4,), "--seed 4"), ((4, 5), "--seeds 4,5"), ((9, 2, 4), "--seeds 2,4,9")], ids=str
)
def test_what_is_left_out_is_made_again_by_its_own_seeds(seeds: tuple[int, ...], again: str) -> None:
    [said] = left_out(paper_run(seed=seed) for seed in seeds)
    assert f"The same command with {again} makes them again." in said
