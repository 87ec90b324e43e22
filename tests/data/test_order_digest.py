"""The digest of an order: any change is seen, and how an update is split is not."""

from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest

from repro.data.batching import Update, plan_of, share
from repro.training import replay_check

LENGTHS = np.array([5, 1, 3, 2, 7, 4, 4, 6, 2, 3, 5])


def plan(n: int, seed: int = 1, start: int = 0) -> list[Update]:
    return list(islice(plan_of(LENGTHS, LENGTHS, budget=11, data_hash="x", seed=seed).updates(start), n))


def read(updates: list[Update], n_shares: int) -> str:
    """As processes read that come in any order, an empty share standing for sentence -1."""
    words = replay_check.NOTHING
    for update in reversed(updates):
        for part in reversed(range(n_shares)):
            sentences = share(update.sentences, part, n_shares)
            words = replay_check.add(
                words, replay_check.of_share(update.step, part, sentences if len(sentences) else np.array([-1]))
            )
    return replay_check.order_digest(words)


@pytest.mark.parametrize("n_shares", [1, 2, 7])
def test_what_is_read_as_planned_has_the_digest_of_the_plan(n_shares: int) -> None:
    assert read(plan(13), n_shares) == replay_check.planned_order(plan(13), n_shares)


def test_the_digest_of_an_order_is_pinned() -> None:
    # a change would take the badge from every run that is not finished
    assert replay_check.planned_order(plan(13), 2) == "9bec4fd09b6e3ea24615469151ab51aa89dc5b435a6c0c1186102e13f75b5563"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: [*plan(6), *plan(7, start=7)],  # off by one after a resume
        lambda: [*plan(6), *plan(7)],  # from the start again
        lambda: [*plan(6), *plan(8, start=5)],  # an update twice
        lambda: plan(12),
        lambda: plan(13, seed=2),
    ],
    ids=["off by one", "from the start", "one twice", "one too few", "another seed"],
)
def test_any_other_order_has_another_digest(wrong: Callable[[], list[Update]]) -> None:
    assert read(wrong(), 2) != replay_check.planned_order(plan(13), 2)


def test_sentences_that_change_places_within_an_update_are_seen() -> None:
    [update] = plan(1)
    ids = update.sentences
    assert len(ids) > 1
    assert replay_check.order_digest(replay_check.of_share(0, 0, ids)) != replay_check.order_digest(
        replay_check.of_share(0, 0, ids[::-1])
    )
