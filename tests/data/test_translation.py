"""Processes and workers share the plan out, and training begins where it stopped."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning as L
import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from repro.data.batch import Batch
from repro.data.buckets import updates
from repro.data.translation import Translation
from repro.symbols import EOS, PAD

BUDGET = 60


class Side:
    """Sentences in memory, stored as `Store` does: unsigned 16 bits, one after the other."""

    def __init__(self, lengths: np.ndarray) -> None:
        self.lengths = lengths
        self.starts = np.cumsum(lengths) - lengths

    def gather(self, sentences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sentence i is made of its own number, plus 2."""
        ids = [[i + 2] * (self.lengths[i] - 1) + [EOS] for i in sentences]
        return np.concatenate(ids).astype(np.uint16), self.lengths[sentences]


def text(n: int, seed: int) -> tuple[Side, Side]:
    random = np.random.RandomState(seed)
    source = 2 + random.binomial(12, 0.3, n)
    return Side(source), Side(source + random.binomial(4, 0.5, n) - 1)


TRAIN, DEV = text(97, seed=0), text(31, seed=1)


def translation(accumulate: int = 1, workers: int = 0) -> Translation:
    return Translation(TRAIN, DEV, budget=BUDGET, data_hash="data", seed=1, accumulate=accumulate, workers=workers)


def of_process(rank: int = 0, world: int = 1, step: int = 0, accumulate: int = 1, workers: int = 0) -> Translation:
    """The data of one process of a training run; the trainer is played."""
    data = translation(accumulate, workers)
    data.trainer = SimpleNamespace(  # type: ignore[assignment]
        global_rank=rank,
        world_size=world,
        global_step=step,
        accumulate_grad_batches=accumulate,
        strategy=SimpleNamespace(root_device=torch.device("cpu")),
    )
    return data


def take(data: Translation, n: int) -> list[Batch]:
    return list(itertools.islice(data.train_dataloader(), n))


def seen(batch: Batch) -> list[int]:
    return [i for i in batch.sentence.tolist() if i >= 0]


def facts(batch: Batch) -> tuple[Any, ...]:
    """Everything a batch holds, comparable."""
    return tuple(v.tolist() if isinstance(v, torch.Tensor) else v for v in vars(batch).values())


def plan(start: int, n: int) -> list[tuple[int, list[int], int, int]]:
    sides = TRAIN[0].lengths, TRAIN[1].lengths
    stream = updates(*sides, budget=BUDGET, data_hash="data", seed=1, start=start)
    return [(u.step, sorted(u.sentences), u.source_tokens, u.target_tokens) for u in itertools.islice(stream, n)]


@pytest.mark.parametrize(("world", "accumulate"), [(1, 1), (2, 1), (1, 2), (4, 1), (2, 2), (3, 5)])
def test_all_processes_together_read_the_plan(world: int, accumulate: int) -> None:
    n = 40  # more than two epochs
    ranks = [take(of_process(rank, world, 3, accumulate), n * accumulate) for rank in range(world)]
    for i, (step, sentences, n_source, n_target) in enumerate(plan(start=3, n=n)):
        shares = [b for batches in ranks for b in batches[i * accumulate : (i + 1) * accumulate]]
        assert sorted(s for batch in shares for s in seen(batch)) == sentences
        assert sum(batch.n_source for batch in shares) == n_source
        assert sum(batch.n_target for batch in shares) == n_target
        assert {batch.n_update for batch in shares} == {n_target}
        assert {batch.step for batch in shares} == {step}
        assert [batch.micro for batch in shares] == list(range(accumulate)) * world


def test_two_processes_read_what_one_accumulates() -> None:
    one = take(of_process(accumulate=4), 4 * 20)
    two = [take(of_process(rank, world=2, accumulate=2), 2 * 20) for rank in range(2)]
    four = [take(of_process(rank, world=4), 20) for rank in range(4)]
    together = [seen(batch) for batch in one]
    # share number micro * world + rank
    assert [seen(two[rank][m]) for m in range(2 * 20) for rank in range(2)] == together
    assert [seen(four[rank][i]) for i in range(20) for rank in range(4)] == together


def test_a_share_without_sentences_is_still_a_batch() -> None:
    batches = take(of_process(rank=6, world=7, accumulate=2), 200)
    empty = [batch for batch in batches if not seen(batch)]
    assert empty
    for batch in empty:
        assert batch.target.tolist() == [[PAD]]
        assert batch.n_target == 0
        assert batch.n_update > 0


@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # more workers than this machine has cores
@pytest.mark.parametrize("workers", [1, 3])
def test_workers_change_nothing(workers: int) -> None:
    expected = take(of_process(rank=1, world=2, step=5, accumulate=2), 60)
    found = take(of_process(rank=1, world=2, step=5, accumulate=2, workers=workers), 60)
    assert [facts(batch) for batch in found] == [facts(batch) for batch in expected]


def test_an_epoch_holds_each_sentence_once() -> None:
    n = next(i for i in itertools.count() if sum(len(s) for _, s, _, _ in plan(0, i)) == 97)
    for epoch in range(3):
        batches = take(of_process(step=epoch * n), n)
        assert sorted(i for batch in batches for i in seen(batch)) == list(range(97))


@pytest.mark.parametrize("world", [1, 2, 4, 9])
def test_dev_holds_each_sentence_once_over_all_processes(world: int) -> None:
    ranks = [list(of_process(rank, world).val_dataloader()) for rank in range(world)]
    assert len({len(batches) for batches in ranks}) == 1  # or one process would wait for the others for ever
    assert sorted(i for batches in ranks for batch in batches for i in seen(batch)) == list(range(31))
    assert sum(batch.n_target for batches in ranks for batch in batches) == DEV[1].lengths.sum()


def test_dev_fits_where_training_fits() -> None:
    for world, accumulate in [(1, 1), (2, 1), (1, 4), (2, 2)]:
        largest = {
            name: max(max(batch.source.numel(), batch.target.numel()) for batch in batches)
            for name, batches in [
                ("train", take(of_process(0, world, accumulate=accumulate), 100)),
                ("dev", list(of_process(0, world, accumulate=accumulate).val_dataloader())),
            ]
        }
        assert largest["dev"] <= BUDGET / world / accumulate + max(DEV[1].lengths), (world, accumulate)


def test_a_dev_sentence_may_be_longer_than_the_budget() -> None:
    # dev is read whole, whatever the budget of training is
    data = of_process()
    data.dev = Side(np.array([3, BUDGET + 1])), Side(np.array([3, 2]))
    assert sorted(i for batch in data.val_dataloader() for i in seen(batch)) == [0, 1]


def test_plan_and_trainer_must_agree() -> None:
    data = of_process(accumulate=2)
    data.trainer.accumulate_grad_batches = 3  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="into 2 micro-batches, the trainer accumulates 3"):
        data.train_dataloader()


class Witness(L.LightningModule):
    """A model that only notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.trained: list[tuple[Any, ...]] = []
        self.validated: list[int] = []

    def training_step(self, batch: Batch, batch_idx: int) -> torch.Tensor:
        assert batch.step == self.trainer.global_step  # the loader never runs ahead of the optimizer
        assert batch.micro == batch_idx % self.trainer.accumulate_grad_batches
        self.trained.append(facts(batch))
        return self.weight * batch.n_target

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        self.validated += seen(batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(folder: Path, steps: int, workers: int = 0, resume: Path | None = None) -> Witness:
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_steps=steps,
        accumulate_grad_batches=2,
        use_distributed_sampler=False,
        val_check_interval=6,  # counts micro-batches
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        callbacks=[
            ModelCheckpoint(
                folder,
                filename="{step}",
                every_n_train_steps=1,
                save_top_k=-1,
                enable_version_counter=False,
            )
        ],
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    witness = Witness()
    trainer.fit(witness, datamodule=translation(accumulate=2, workers=workers), ckpt_path=resume)
    return witness


@pytest.mark.filterwarnings("ignore:.*does not have many workers", "ignore:Checkpoint directory .* not empty")
def test_lightning_trains_by_the_plan_and_resumes_in_it(tmp_path: Path) -> None:
    steps = 27  # more than two epochs
    unbroken = fit(tmp_path, steps)
    assert len(unbroken.trained) == 2 * steps
    assert sorted(unbroken.validated) == sorted(list(range(31)) * (steps // 3))

    for k, workers in [(1, 0), (3, 0), (14, 2)]:  # 3: validation is due at the very update that was saved
        resumed = fit(tmp_path, steps, workers, resume=tmp_path / f"step={k}.ckpt")
        assert resumed.trained == unbroken.trained[2 * k :]
        assert torch.equal(resumed.weight, unbroken.weight)
