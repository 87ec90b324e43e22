"""What keeps two records out of one cell, and what does not."""

from dataclasses import replace
from typing import Any

from paper_runs import paper_run

from repro.results.kinds import differences, newest
from repro.results.record import Record


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
