"""Training of one run: split, stopped, killed or damaged, it ends in the same weights to the bit."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import lightning as L
import numpy as np
import pytest
import torch
from lightning.fabric.accelerators.mps import MPSAccelerator
from model.samples import NoneOfBfloat16
from torch import Tensor
from training.tiny_run import BUDGET, EACH, EVERY, HYPER, MICRO, RUN, Journal, V, bytes_of, digest, state, text, train

from repro.data.batch import DevBatches
from repro.data.batching import Plan, share
from repro.decoding.translate import score_tokens
from repro.model import bfloat16
from repro.training import callbacks, checkpoint, loop
from repro.training.callbacks import TrainingCost
from repro.training.checkpoint import averaged
from repro.training.loop import Every, Fitted
from repro.training.module import TranslationModule, rate
from repro.training.replay_check import planned_order

pytestmark = pytest.mark.filterwarnings("ignore:.*does not have many workers")


Made = tuple[str, Journal, Fitted]  # the digest of its last checkpoint, its lines, what training gave


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The run that nothing happens to: shuffled, three epochs, ragged, dropout, two micro-batches an update."""
    folder, journal = tmp_path_factory.mktemp("unbroken"), Journal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.filters", [("ignore", None, Warning, None, 0)])
        fitted = train(folder, journal)
    return digest(folder), journal, fitted


EPOCH = Plan(*(side.lengths for side in text(67, seed=0)), budget=BUDGET).updates_per_epoch


def test_the_run_is_a_hard_one(unbroken: Made) -> None:
    # what the tests below stand on: several epochs, whose ends are no multiples of a checkpoint
    _, journal, fitted = unbroken
    assert HYPER.steps / EPOCH > 2
    assert EPOCH % EVERY.checkpoint != 0
    assert set(journal) == {("train", i) for i in (5, 10, 15, 20)} | {("dev", i) for i in (6, 12, 18)}
    assert fitted.diverged is None
    assert journal["dev", 18]["nll"] < journal["dev", 6]["nll"]


def check_same(fitted: Fitted, last: str, journal: Journal, unbroken: Made) -> None:
    """A run has come to the same weights, lines and cost."""
    assert last == unbroken[0]
    assert journal == unbroken[1]
    assert replace(fitted.cost, seconds=0) == replace(unbroken[2].cost, seconds=0)


@pytest.fixture
def anew() -> Iterator[None]:
    """Lightning remembers whether there is a GPU of Apple's: nothing of a test is left to it, nor of those before."""
    MPSAccelerator.is_available.cache_clear()
    yield
    MPSAccelerator.is_available.cache_clear()


@pytest.mark.usefixtures("anew")
def test_a_gpu_of_apples_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # dev is summed in float64, which it lacks
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    monkeypatch.setattr("platform.processor", lambda: "arm")
    module, data = TranslationModule(HYPER, V, 1), mock.Mock(accumulate=1)
    with pytest.warns(match="GPU available but not used"):
        trainer = loop._trainer(module, data, EVERY, RUN, [], tmp_path, 1, "fp32", None)
    assert type(trainer.accelerator).__name__ == "CPUAccelerator"


def test_an_out_of_memory_error_on_dev_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = TranslationModule._losses

    def losses(self: TranslationModule, batch: Any, epsilon: float) -> Any:
        if not self.training and batch.step == 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(self, batch, epsilon)

    monkeypatch.setattr(TranslationModule, "_losses", losses)
    with pytest.raises(
        loop.OutOfMemory, match=r"^Out of memory while dev was read after step 6: a batch of .*--device-tokens \d"
    ):
        train(tmp_path)


# Numbers that are written down.


@pytest.fixture(scope="module")
def each(tmp_path_factory: pytest.TempPathFactory) -> Journal:
    """The first ten steps of the unbroken run, a line for each."""
    journal = Journal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.filters", [("ignore", None, Warning, None, 0)])
        train(tmp_path_factory.mktemp("each"), journal, every=EACH, stop_at=10)
    return journal


def test_the_rate_is_that_of_the_optimizer_step(each: Journal) -> None:
    # with two micro-batches an update: the schedule counts updates
    assert [each["train", i]["lr"] for i in range(1, 11)] == [
        rate(i, HYPER.d_model, HYPER.warmup) for i in range(1, 11)
    ]


def test_a_line_sums_up_the_steps_since_the_line_before(unbroken: Made, each: Journal) -> None:
    _, few, _ = unbroken
    stream = Plan(*(side.lengths for side in text(67, seed=0)), budget=BUDGET, data_hash="data", seed=1).updates()
    tokens = [next(stream).target_tokens for _ in range(10)]
    for name in ("loss", "nll"):
        for last in (5, 10):
            steps = range(last - 4, last + 1)
            total = sum(tokens[i - 1] * each["train", i][name] for i in steps)
            assert few["train", last][name] == pytest.approx(total / sum(tokens[i - 1] for i in steps), rel=1e-5)


def test_dev_perplexity_is_that_of_the_weights(tmp_path: Path) -> None:
    journal = Journal()
    train(tmp_path, journal, steps=6, every=Every(log=6, validate=6, checkpoint=6), average=1)
    model = TranslationModule(replace(HYPER, steps=6), V, seed=9).model
    model.load_state_dict(averaged(tmp_path, RUN, range(6, 7)))
    batches = DevBatches(*text(31, seed=1), budget=BUDGET, rank=0, world=1)
    expected = score_tokens(model, [batches[i] for i in range(len(batches))]).nll
    assert journal["dev", 6]["nll"] == pytest.approx(expected, rel=1e-5)
    assert journal["dev", 6]["ppl"] == pytest.approx(np.exp(expected), rel=1e-5)


def test_bfloat16_keeps_float32_weights(tmp_path: Path) -> None:
    exact, rough = Journal(), Journal()
    train(tmp_path / "exact", exact, steps=4)
    train(tmp_path / "rough", rough, steps=4, precision="bf16")
    assert rough["train", 4]["nll"] == pytest.approx(exact["train", 4]["nll"], rel=0.02)
    assert {x.dtype for x in state(tmp_path / "rough") if x.dim() == 2} == {torch.float32}


def test_where_the_processor_has_no_bfloat16_products_go_through_float32(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bfloat16, "has_bfloat16", lambda: False)
    options: dict[str, Any] = {"steps": 4, "every": Every(log=4, validate=4, checkpoint=4)}
    journal, cut, exact = Journal(), Journal(), Journal()
    with NoneOfBfloat16():
        train(tmp_path / "narrow", journal, precision="bf16", **options)
        train_and_die(tmp_path / "cut", cut, 1, during="validation_step", precision="bf16", **options)
        train(tmp_path / "cut", cut, precision="bf16", **options)  # the validation alone
    assert cut == journal
    train(tmp_path / "exact", exact, **options)
    assert journal["dev", 4]["nll"] == pytest.approx(exact["dev", 4]["nll"], rel=0.02)
    assert journal["dev", 4] != exact["dev", 4]


# Checkpoints.


def test_kept_are_the_last_ten_of_those_that_the_row_averages_and_the_last_two(tmp_path: Path) -> None:
    present = []
    train(
        tmp_path,
        steps=13,
        average_every=1,
        every=Every(log=1, validate=100, checkpoint=2),
        watch=lambda module, kind, step: present.append(len(checkpoint.checkpoints(tmp_path))),
    )
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == [
        f"step-{step:09}.safetensors" for step in range(4, 14)
    ]
    assert present == [0, 0, 1, 1, 2, *range(2, 10)]


# A broken run ends where the unbroken one does: same order, same dropout, same moments, same rate.


class Dies(Exception):
    """Stands for the end of the process; what is on the disk is all that is left."""


def train_and_die(folder: Path, journal: Journal, after: int, during: str = "training_step", **options: Any) -> None:
    """Train in a process that dies when it has taken this many of its micro-batches."""
    step, left = getattr(TranslationModule, during), iter(range(after))

    def last(self: TranslationModule, *arguments: Any) -> Tensor | None:
        if next(left, None) is None:
            raise Dies
        return step(self, *arguments)

    with mock.patch.object(TranslationModule, during, last), pytest.raises(Dies):
        train(folder, journal, **options)


def test_validations_that_were_cut_off_are_made_up_for(tmp_path: Path) -> None:
    # one in the middle of training and the very last: the checkpoint of the step is there, the line is not; at the
    # first of them it is there for the validation alone
    options: dict[str, Any] = {"steps": 12, "every": Every(log=1, validate=6, checkpoint=4)}
    whole, journal = Journal(), Journal()
    train(tmp_path / "whole", whole, **options)
    n_batches = len(DevBatches(*text(31, seed=1), budget=BUDGET // MICRO, rank=0, world=1))
    assert n_batches > 1
    for step, done in ((6, 1), (12, n_batches + 1)):
        train_and_die(tmp_path / "broken", journal, done, during="validation_step", **options)
        assert checkpoint.checkpoints(tmp_path / "broken")[-1] == checkpoint.path_of(tmp_path / "broken", step)
        assert ("dev", step) not in journal
    train(tmp_path / "broken", journal, **options)
    assert journal == whole
    assert digest(tmp_path / "broken") == digest(tmp_path / "whole")


def test_stopped_again_and_again_it_writes_the_lines_of_the_unbroken_run(unbroken: Made, tmp_path: Path) -> None:
    journal, few = Journal(), replace(EVERY, checkpoint=100)  # no checkpoint but those of the stops
    for stop in (1, 2, 4, 6, 7, EPOCH, EPOCH + 1, 13, HYPER.steps - 1):
        fitted = train(tmp_path, journal, every=few, stop_at=stop)
        assert fitted.cost.steps == stop
        assert checkpoint.checkpoints(tmp_path)[-1] == checkpoint.path_of(tmp_path, stop)
    check_same(train(tmp_path, journal, every=few), digest(tmp_path), journal, unbroken)


@pytest.mark.parametrize(
    "lives",
    [
        # before the first checkpoint, right after one, at the end of an epoch, later
        ((2 * 1, 0), (2 * 4, 4), (2 * (EPOCH - 4), 8), (2 * 5, 12)),
        # between two micro-batches, also of the last update of an epoch and of the run
        ((2 * 3 + 1, 2), (2 * (EPOCH - 3) + 1, 8), (2 * 10 + 1, 18), (2 * 1 + 1, 18)),
    ],
    ids=["between updates", "within updates"],
)
def test_killed_again_and_again_it_writes_the_lines_of_the_unbroken_run(
    unbroken: Made, tmp_path: Path, lives: tuple[tuple[int, int], ...]
) -> None:
    journal = Journal()
    for micro_batches, newest in lives:
        train_and_die(tmp_path, journal, micro_batches)
        assert max(map(checkpoint.step_of, checkpoint.checkpoints(tmp_path)), default=0) == newest
    check_same(train(tmp_path, journal), digest(tmp_path), journal, unbroken)


def test_a_finished_run_is_left_as_it_is(tmp_path: Path) -> None:
    first = train(tmp_path, steps=8)
    before, journal = bytes_of(tmp_path), Journal()
    again = train(tmp_path, journal, steps=8)
    assert again == first
    assert journal == {}
    assert bytes_of(tmp_path) == before


def test_validation_changes_nothing(unbroken: Made, tmp_path: Path) -> None:
    train(tmp_path, every=replace(EVERY, validate=1))
    assert digest(tmp_path) == unbroken[0]


@pytest.mark.parametrize("n_damaged", [1, None], ids=["the newest", "all: training begins anew"])
def test_damaged_checkpoints_are_passed_over(
    unbroken: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str], n_damaged: int | None
) -> None:
    journal = Journal()
    train_and_die(tmp_path, journal, 2 * 9)
    damaged = {path: path.read_bytes()[:-1] + b"?" for path in checkpoint.checkpoints(tmp_path)[::-1][:n_damaged]}
    for path, content in damaged.items():
        path.write_bytes(content)
    (tmp_path / ".step-000000012.safetensors.7.partial").write_bytes(b"half")
    train(tmp_path, journal)
    shown = capsys.readouterr().out
    for path, content in damaged.items():
        assert f"Warning: {path} is damaged" in shown
        assert path.with_suffix(".damaged").read_bytes() == content  # kept aside
    assert "Going on from the checkpoint before it." in shown
    assert (digest(tmp_path), journal) == unbroken[:2]
    assert not list(tmp_path.glob(".*"))


def test_a_journal_that_lost_lines_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options: dict[str, Any] = {"steps": 4, "every": EACH, "average": 1}
    journal = Journal()
    train(tmp_path / "whole", journal, stop_at=3, **options)
    shutil.copytree(tmp_path / "whole", tmp_path / "lost")
    train(tmp_path / "whole", journal, **options)
    assert "Warning" not in capsys.readouterr().out
    train(tmp_path / "lost", Journal(), **options)
    assert "the journal has 0 lines, and had 3 when the checkpoint after step 3 was written" in capsys.readouterr().out


def test_lines_are_on_the_disk_before_the_checkpoint_that_counts_them(tmp_path: Path) -> None:
    class Synced(Journal):
        lines = 0

        def sync(self) -> None:
            self.lines = len(self)

    journal, seen, save = Synced(), [], checkpoint.save
    with mock.patch.object(loop, "save", lambda *of: (seen.append((len(journal), journal.lines)), save(*of))[1]):
        train(tmp_path, journal, steps=6, every=EACH)  # checkpoints after 3, 4 and 6, the line of dev after the last
    assert seen == [(3, 3), (4, 4), (6, 6)]
    assert journal.lines == len(journal) == 7


def test_the_reproducibility_report_covers_all_attempts(unbroken: Made, tmp_path: Path) -> None:
    for micro_batches in (2 * 5 + 1, 2 * 6):
        train_and_die(tmp_path, Journal(), micro_batches)
    report = train(tmp_path, Journal()).reproducibility
    assert report == replace(unbroken[2].reproducibility, replayed=3)
    assert (report.followed, report.replayed, report.unequal) == (MICRO * HYPER.steps, 3, 0)
    plan = Plan(*(side.lengths for side in text(67, seed=0)), budget=BUDGET, data_hash="data", seed=1).updates()
    assert report.order == planned_order(islice(plan, HYPER.steps), MICRO)


def test_a_step_that_is_not_the_same_twice_is_seen(tmp_path: Path) -> None:
    with mock.patch.object(TranslationModule, "draw_anew"):  # dropout draws on and on
        report = train(tmp_path, steps=4, average=1).reproducibility
    assert (report.replayed, report.unequal) == (1, 1)


# What training has cost: the seconds of its steps and nothing else, by a clock that the test plays


FEW_STEPS, STOP = 12, 7
SOURCE, TARGET = (side.lengths for side in text(67, seed=0))
PLAN = list(islice(Plan(SOURCE, TARGET, budget=BUDGET, data_hash="data", seed=1).updates(), FEW_STEPS))


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


def real_tokens(first: int, last: int) -> int:
    return sum(int(SOURCE[one.sentences].sum() + TARGET[one.sentences].sum()) for one in PLAN[first:last])


def test_seconds_are_those_of_steps_and_places_those_of_micro_batches(tmp_path: Path, clock: SimpleNamespace) -> None:
    # two validations, checkpoints at 4, 6, 7, 8 and 12, and a stop in between
    options: dict[str, Any] = {"steps": FEW_STEPS, "every": Every(log=5, validate=6, checkpoint=4), "average": 1}
    journal = Whole()
    first = train(tmp_path, journal, stop_at=STOP, **options)
    assert (first.cost.seconds, first.cost.slots) == (MICRO * STOP, slots(0, STOP))
    clock.now += 1e9
    last = train(tmp_path, journal, **options)
    assert (last.cost.seconds, last.cost.slots) == (MICRO * FEW_STEPS, slots(0, FEW_STEPS))
    assert last.cost.tokens_per_second == real_tokens(0, FEW_STEPS) / (MICRO * FEW_STEPS)
    for begin, end in ((0, 5), (5, 10), (10, 12)):
        line = journal["train", end]
        assert line["tokens_per_second"] == real_tokens(begin, end) / (MICRO * (end - begin))
        assert line["padding"] == pytest.approx(1 - real_tokens(begin, end) / slots(begin, end), rel=1e-12)


def test_a_cost_of_nothing_has_rate_zero() -> None:
    assert (TrainingCost().tokens_per_second, TrainingCost().padding) == (0.0, 0.0)
