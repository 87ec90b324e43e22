"""What training has cost: the seconds of its steps and nothing else, by a clock that the test plays."""

from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning as L
import pytest
from training.tiny_run import BUDGET, MICRO, Journal, text, train

from repro.data.batching import plan_of, share
from repro.training import callbacks
from repro.training.callbacks import TrainingCost
from repro.training.loop import Every
from repro.training.module import TranslationModule

pytestmark = pytest.mark.filterwarnings("ignore:.*does not have many workers")

STEPS, STOP = 12, 7
SOURCE, TARGET = (side.lengths for side in text(67, seed=0))
PLAN = list(islice(plan_of(SOURCE, TARGET, budget=BUDGET, data_hash="data", seed=1).updates(), STEPS))


class Whole(Journal):
    """A journal that keeps the tokens per second, too."""

    def append(self, kind: str, step: int, **numbers: float) -> None:
        self[kind, step] = numbers


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A micro-batch takes one second, a batch of dev a hundred, a checkpoint ten thousand; nothing else takes any."""
    clock = SimpleNamespace(now=1e6, monotonic=lambda: clock.now)
    monkeypatch.setattr(callbacks, "time", clock)

    def takes(of: type, name: str, seconds: float) -> None:
        made = getattr(of, name)

        def slowly(self: Any, *arguments: Any, **named: Any) -> Any:
            clock.now += seconds
            return made(self, *arguments, **named)

        monkeypatch.setattr(of, name, slowly)

    takes(TranslationModule, "training_step", 1.0)
    takes(TranslationModule, "validation_step", 100.0)
    takes(L.Trainer, "save_checkpoint", 10_000.0)
    return clock


def slots(first: int, last: int) -> int:
    """Places of the micro-batches of these updates, by their longest sentences; an empty one has one place a side."""
    parts = [share(update.sentences, part, MICRO) for update in PLAN[first:last] for part in range(MICRO)]
    return sum(len(part) * int(SOURCE[part].max() + TARGET[part].max()) if len(part) else 2 for part in parts)


def tokens(first: int, last: int) -> int:
    return sum(int(SOURCE[one.sentences].sum() + TARGET[one.sentences].sum()) for one in PLAN[first:last])


def test_seconds_are_those_of_steps_and_places_those_of_micro_batches(tmp_path: Path, clock: SimpleNamespace) -> None:
    # two validations, checkpoints at 4, 6, 7, 8 and 12, and a stop in between
    options: dict[str, Any] = {"steps": STEPS, "every": Every(log=5, validate=6, checkpoint=4), "average": 1}
    journal = Whole()
    first = train(tmp_path, journal, stop_at=STOP, **options)
    assert (first.cost.seconds, first.cost.slots) == (MICRO * STOP, slots(0, STOP))
    clock.now += 1e9
    last = train(tmp_path, journal, **options)
    assert (last.cost.seconds, last.cost.slots) == (MICRO * STEPS, slots(0, STEPS))
    assert last.cost.tokens_per_second == tokens(0, STEPS) / (MICRO * STEPS)
    for begin, end in ((0, 5), (5, 10), (10, 12)):
        line = journal["train", end]
        assert line["tokens_per_second"] == tokens(begin, end) / (MICRO * (end - begin))
        assert line["padding"] == pytest.approx(1 - tokens(begin, end) / slots(begin, end), rel=1e-12)


def test_a_cost_of_nothing_has_rate_zero() -> None:
    assert (TrainingCost().tokens_per_second, TrainingCost().padding) == (0.0, 0.0)
    cost = TrainingCost(source_tokens=3, target_tokens=5, slots=10, seconds=2.0)
    assert cost.tokens_per_second == 4.0
    assert cost.padding == pytest.approx(0.2)
