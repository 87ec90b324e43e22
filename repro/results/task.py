"""What a record says about its task: which scores a run has, and how the paper searched for its outputs.

Tables need nothing else about a task, so a record can still be read when the code of its task is gone.
Paper: sections 5.1, 6.1 and 6.3.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from repro.decoding.search import PAPER_SEARCH
from repro.decoding.search import Named as Named

SPLITS: tuple[Literal["dev"], Literal["test"]] = ("dev", "test")
# For each split, the name in score columns of a run's other weights, the mean of its last checkpoints
LAST_MEAN = {"last_mean_dev": "dev", "last_mean_test": "test"}
# Scores of every task: nats per token, unsmoothed; exp(nll); the share of tokens that the model finds most probable.
OF_TOKENS = ("nll", "ppl", "accuracy")
LENGTH = "length"  # of translations by the mean of the last checkpoints, see `LastMean`
LATER_SCORES = frozenset({"accuracy"})  # older records lack them, and some backends give no value


class Scores(TypedDict):
    """The scores of dev, by which choices are made, and of test, read once after all choices."""

    dev: Named
    test: Named


class TaskFacts(TypedDict):
    """A task in words."""

    name: str  # the value that it was, such as "repro.runs.task.Translation(pair='en-de')"
    # The scores besides those of tokens. A finished run has the first. The others may be undefined, in both splits
    # alike: the authors' script does not score translations into Chinese.
    scores: list[str]
    search: dict[str, int | float]  # the paper's for it


TRANSLATION = TaskFacts(name="translation", scores=["bleu", "bleu_published"], search=PAPER_SEARCH.settings)


def signature_of(name: str) -> str:
    """The key under which the signature of a score is stored."""
    return f"{name}_signature"


def keys(names: Sequence[str]) -> list[str]:
    """The keys of these scores and of their signatures."""
    return [key for name in names for key in (name, signature_of(name))]


def fields(names: Sequence[str]) -> dict[str, Any]:
    """The keys and types by which a record stores these scores."""
    return {key: (float if key in names else str) | None for key in keys(names)}


def of_split(task: TaskFacts) -> dict[str, Any]:
    """The keys and types by which a record stores one split."""
    return dict.fromkeys(OF_TOKENS, float | None) | fields(task["scores"])


def without_value(task: TaskFacts) -> Named:
    """The scores of one split of a diverged run, all without a value."""
    return dict.fromkeys(of_split(task))


def is_whole(scores: Scores, task: TaskFacts) -> bool:
    """Whether a finished run's scores are complete; undefined ones are so in both splits and have no signature."""
    dev, test = ({key for key, value in scores[split].items() if value is None} for split in SPLITS)
    undefined = [name for name in task["scores"][1:] if name in dev]
    alike = scores["dev"].keys() == scores["test"].keys() and dev == test
    return alike and dev - LATER_SCORES == {*keys(undefined)}


def number(named: Named, name: str) -> float | None:
    """A score of a split; None where it has no value or there is no such score."""
    value = named.get(name)
    return None if value is None or isinstance(value, str) else value


def signature(named: Named, name: str) -> str | None:
    """The signature of a score, which says how it was computed; None where there is none."""
    value = named.get(signature_of(name))
    return value if isinstance(value, str) else None
