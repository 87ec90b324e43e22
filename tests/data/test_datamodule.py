"""The data module: what each process reads; with somebody else's trainer, whole epochs, and training that goes on."""

import itertools
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import lightning as L
import pytest
import torch
from data.test_shards import written
from lightning.pytorch.callbacks import LambdaCallback, ModelCheckpoint
from model.samples import encoded
from training.tiny_run import text

from repro.corpora.catalogue import GrammarSizes
from repro.corpora.prepare import corpus_data
from repro.data import datamodule as module
from repro.data.batch import Batch
from repro.data.batching import Plan, by_tokens, share
from repro.data.datamodule import TranslationData
from repro.data.shards import Store
from repro.data.vocabulary import Subwords
from repro.model.config import Hyper
from repro.training.module import TranslationModule

BUDGET = 60


TRAIN, DEV = text(97, seed=0), text(31, seed=1)


def translation(accumulate: int = 1) -> TranslationData:
    return TranslationData(TRAIN, DEV, budget=BUDGET, data_hash="data", seed=1, accumulate=accumulate)


def dev_of(rank: int, world: int, accumulate: int = 1) -> list[Batch]:
    """The held-out text that one of several processes reads."""
    with mock.patch.object(module, "place", return_value=(rank, world)):
        return list(translation(accumulate).val_dataloader())


def seen(batch: Batch) -> list[int]:
    return [i for i in batch.sentence.tolist() if i >= 0]


def facts(batch: Batch) -> tuple[Any, ...]:
    """Everything a batch holds, comparable."""
    return tuple(v.tolist() if isinstance(v, torch.Tensor) else v for v in vars(batch).values())


@pytest.mark.parametrize(("world", "accumulate"), [(1, 1), (3, 1), (2, 4)])
@pytest.mark.parametrize("start", [0, 40])
def test_all_processes_together_read_the_plan(
    world: int, accumulate: int, start: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sentences = [[[2 + i] * (n - 1) + [1] for i, n in enumerate(side.lengths)] for side in TRAIN]
    shards = written(tmp_path_factory.mktemp("train"), *sentences, (0, 40, 41, 97))
    stored = Store(shards, "source"), Store(shards, "target")
    n, parts, ranks = 25, world * accumulate, []
    data = TranslationData(stored, DEV, budget=BUDGET, data_hash="data", seed=1, accumulate=accumulate)
    for rank in range(world):
        with mock.patch.object(module, "place", return_value=(rank, world)):
            ranks.append([*itertools.islice(data.batches(start), n * accumulate)])
    for i, update in enumerate(itertools.islice(translation().plan.updates(start), n)):
        shares = [ranks[part % world][i * accumulate + part // world] for part in range(parts)]
        assert [seen(one) for one in shares] == [share(update.sentences, p, parts).tolist() for p in range(parts)]
        assert {(one.step, one.n_update) for one in shares} == {(update.step, update.target_tokens)}
        assert sum(one.n_target for one in shares) == update.target_tokens
        assert sum(one.n_source for one in shares) == TRAIN[0].lengths[update.sentences].sum()
        for one in shares:
            assert [row[0] for row in one.source.tolist() if row[0] > 1] == [
                i + 2 for i in seen(one) if TRAIN[0].lengths[i] > 1
            ]


@pytest.mark.parametrize("world", [1, 4, 9])
def test_dev_holds_each_sentence_once_over_all_processes(world: int) -> None:
    ranks = [dev_of(rank, world) for rank in range(world)]
    assert len({len(batches) for batches in ranks}) == 1  # or one process would wait for the others for ever
    assert sorted(i for batches in ranks for batch in batches for i in seen(batch)) == list(range(31))
    assert sum(batch.n_target for batches in ranks for batch in batches) == DEV[1].lengths.sum()


@pytest.mark.parametrize(("world", "accumulate"), [(2, 1), (1, 4)])
def test_dev_fits_where_training_fits(world: int, accumulate: int) -> None:
    largest = max(max(batch.source.numel(), batch.target.numel()) for batch in dev_of(0, world, accumulate))
    assert largest <= BUDGET / world / accumulate + max(DEV[1].lengths)


def test_a_dev_sentence_may_be_longer_than_the_budget() -> None:
    # dev is read whole, whatever the budget of training is
    data = translation()
    data.dev = encoded([[5] * 2, [5] * BUDGET]), encoded([[5] * 2, [5]])
    assert sorted(i for batch in data.val_dataloader() for i in seen(batch)) == [0, 1]


# With a trainer of somebody else's.

EPOCH = Plan(TRAIN[0].lengths, TRAIN[1].lengths, budget=BUDGET).updates_per_epoch
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*does not have many workers", "ignore:Checkpoint directory .* not empty", "ignore:The dirpath has changed"
)


class Witness(L.LightningModule):
    """A model that only notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.trained: list[tuple[Any, ...]] = []
        self.held_out: list[int] = []

    def training_step(self, batch: Batch, batch_idx: int) -> torch.Tensor:
        assert batch.micro == batch_idx % self.trainer.accumulate_grad_batches
        self.trained.append(facts(batch))
        return self.weight * batch.n_target

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        self.held_out += seen(batch)

    test_step = validation_step

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trainer(folder: Path, **options: Any) -> L.Trainer:
    """Of somebody else: what is not asked for is as Lightning has it. A checkpoint after each step."""
    after_each = ModelCheckpoint(
        folder, filename="{step}", every_n_train_steps=1, save_top_k=-1, enable_version_counter=False
    )
    defaults = {"accelerator": "cpu", "devices": 1, "callbacks": [after_each], "default_root_dir": folder}
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return L.Trainer(**defaults | quiet | options)


def fit(folder: Path, data: Any = None, resume: Path | None = None, **options: Any) -> Witness:
    witness = Witness()
    trainer(folder, **options).fit(witness, data or translation(), ckpt_path=resume, weights_only=True)
    return witness


def planned(epoch: int, n: int = EPOCH) -> list[int]:
    """The sentences of the first updates of an epoch."""
    sides = TRAIN[0].lengths, TRAIN[1].lengths
    stream = Plan(*sides, budget=BUDGET, data_hash="data", seed=1).updates(epoch * EPOCH)
    return [i for update in itertools.islice(stream, n) for i in sorted(update.sentences)]


def sentences(trained: list[tuple[Any, ...]]) -> list[int]:
    """Of all batches, in the order of the plan's own lists."""
    return [i for batch in trained for i in sorted(batch[0])]


@pytest.mark.parametrize("asked_again", [0, 1])  # for its loaders, after so many epochs
def test_epochs_end_and_each_has_its_own_order(tmp_path: Path, asked_again: int) -> None:
    data, beside = translation(), list[list[int]]()

    def reads(trainer: L.Trainer, *_: Any) -> None:
        if trainer.global_step in (2, EPOCH):  # a loader of its own
            beside.append(sorted(i for batch in data.train_dataloader() for i in seen(batch)))

    options: Any = {"callbacks": [LambdaCallback(on_train_batch_end=reads)], "max_epochs": 3}
    witness = fit(tmp_path, data, reload_dataloaders_every_n_epochs=asked_again, **options)
    assert beside == [list(range(97))] * 2
    assert len(witness.trained) == 3 * EPOCH == 3 * len(translation().train_dataloader())
    epochs = [sentences(witness.trained[i * EPOCH : (i + 1) * EPOCH]) for i in range(3)]
    assert epochs == [planned(0), planned(1), planned(2)]
    assert all(sorted(epoch) == list(range(97)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert sorted(witness.held_out[-3 * 31 :]) == sorted(3 * [*range(31)])
    assert 0 < len(witness.held_out[: -3 * 31]) < 31  # two batches, before training


def test_a_prepared_corpus_gives_its_splits_and_its_tokenizer(tmp_path: Path) -> None:
    sizes = GrammarSizes(n_train=30, n_dev=5, n_test=6)
    data = corpus_data("grammar", "en-de", Subwords("bpe", 300), cache=tmp_path, sizes=sizes, budget=200, seed=1)
    assert data.vocab_size == 300
    loaders: list[Any] = [data.train_dataloader(), data.val_dataloader(), data.test_dataloader()]
    assert [sum(len(seen(batch)) for batch in loader) for loader in loaders] == [30, 5, 6]
    with pytest.raises(AttributeError, match="expected TranslationData"):
        assert translation().vocab_size


@pytest.mark.parametrize("wrong", [{"accumulate": 0}, {"budget": "256"}])
def test_a_number_that_cannot_be_is_named(wrong: dict[str, Any]) -> None:
    [(name, value)] = wrong.items()
    with pytest.raises(ValueError, match=f"^{name}: expected a whole number from [01] on, got {value!r}"):
        TranslationData(TRAIN, DEV, data_hash="data", **{"budget": 200, "seed": 1} | wrong)


def test_without_a_trainer_each_iteration_is_the_next_epoch() -> None:
    loader = translation(accumulate=2).train_dataloader()
    assert len(loader) == 2 * EPOCH
    for epoch in range(3):
        batches = list(itertools.islice(loader, 2 * EPOCH + 1))
        assert len(batches) == 2 * EPOCH  # and no more came
        assert {batch.step // EPOCH for batch in batches} == {epoch}
        assert sorted(i for batch in batches for i in seen(batch)) == list(range(97))
    assert next(iter(translation().train_dataloader())).step == 0


@pytest.mark.parametrize(
    ("limits", "accumulate"), [({"max_steps": 2 * EPOCH + 3}, 2), ({"max_epochs": 3, "limit_train_batches": 5}, 1)]
)
def test_a_checkpoint_of_lightnings_is_gone_on_from_exactly(
    tmp_path: Path, limits: dict[str, Any], accumulate: int
) -> None:
    options = limits | {"accumulate_grad_batches": accumulate}
    unbroken = fit(tmp_path, translation(accumulate), **options)
    n = len(unbroken.trained) // accumulate
    once = limits.get("limit_train_batches", EPOCH)
    for k in (1, once - 1, once, once + 1, n - 1):
        resumed = fit(tmp_path / "again", translation(accumulate), tmp_path / f"step={k}.ckpt", **options)
        assert resumed.trained == unbroken.trained[accumulate * k :], k
        assert torch.equal(resumed.weight, unbroken.weight)


@pytest.fixture(scope="module")
def two_epochs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint after each step of two epochs."""
    folder = tmp_path_factory.mktemp("two epochs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(folder, max_epochs=2)
    return folder


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data_hash": "other"}, "data_hash 'data' there, 'other' here"),
        ({"batch_by": by_tokens}, "fill 'by_slots' there, 'by_tokens' here"),
        ({"accumulate": 2}, "accumulate 1 there, 2 here"),
        ({"seed": 2, "budget": 61}, "seed 1 there, 2 here; budget 60 there, 61 here"),
    ],
)
def test_another_order_is_refused_by_name(two_epochs: Path, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    options = {"budget": BUDGET, "data_hash": "data", "seed": 1} | change
    resume = two_epochs / "step=2.ckpt"
    with pytest.raises(ValueError, match=f"The checkpoint is of other data: {said}. Go on with those"):
        fit(tmp_path, TranslationData(TRAIN, DEV, **options), resume=resume, max_steps=4)
    witness = Witness()
    trainer(tmp_path).validate(witness, TranslationData(TRAIN, DEV, **options), ckpt_path=resume, verbose=False)
    assert sorted(witness.held_out) == list(range(31))


@pytest.mark.parametrize(
    ("options", "accumulate", "said"),
    [
        ({"accumulate_grad_batches": 3}, 2, "into 2 micro-batches, the trainer accumulates 3"),
        ({"limit_train_batches": 5, "accumulate_grad_batches": 2}, 2, "a multiple of 2"),
        ({"overfit_batches": 2}, 1, "overfit_batches asks for the same batches in every epoch"),
    ],
)
def test_settings_that_would_train_something_else_are_refused_by_name(
    tmp_path: Path, options: dict[str, Any], accumulate: int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        fit(tmp_path, translation(accumulate), max_epochs=1, **options)


def test_batches_without_their_module_do_not_go_on_within_an_epoch(two_epochs: Path, tmp_path: Path) -> None:
    loaders, resume = (translation().train_dataloader(), translation().val_dataloader()), two_epochs / "step=3.ckpt"
    with pytest.raises(ValueError, match="These batches alone cannot go on within an epoch; expected the data module"):
        trainer(tmp_path, max_steps=5).fit(Witness(), *loaders, ckpt_path=resume, weights_only=True)


def test_an_epoch_that_a_limit_has_ended_is_gone_on_from_with_that_limit_alone(
    two_epochs: Path, tmp_path: Path
) -> None:
    for done in (4, EPOCH + 4):  # where the checkpoint was written the limit ends, and not the epoch
        with pytest.raises(ValueError, match=f"after batch 4 of epoch {done // EPOCH}, the trainer would go on"):
            fit(tmp_path, resume=two_epochs / f"step={done}.ckpt", max_epochs=3, limit_train_batches=4)
    fit(tmp_path, max_epochs=1, limit_train_batches=4)
    resume = tmp_path / "step=4.ckpt"
    assert sentences(fit(tmp_path / "a", resume=resume, max_epochs=2, limit_train_batches=4).trained) == planned(1, 4)
    with pytest.raises(ValueError, match="go on after batch 4 of epoch 1"):  # which would leave them out
        fit(tmp_path / "b", resume=resume, max_epochs=2)


def test_a_checkpoint_with_nothing_left_to_train_leaves_the_next_fit_alone(two_epochs: Path, tmp_path: Path) -> None:
    data = translation()
    assert not fit(tmp_path / "none", data, resume=two_epochs / f"step={2 * EPOCH}.ckpt", max_epochs=2).trained
    assert sentences(fit(tmp_path / "next", data, max_epochs=1).trained) == planned(0)


def test_test_text_is_read_once(tmp_path: Path) -> None:
    witness = Witness()
    data = TranslationData(TRAIN, DEV, text(23, seed=2), budget=BUDGET, data_hash="data", seed=1)
    trainer(tmp_path).test(witness, data, verbose=False)
    assert sorted(witness.held_out) == list(range(23))
    with pytest.raises(ValueError, match="There is no test text here: expected a third pair of sides"):
        trainer(tmp_path).test(Witness(), translation(), verbose=False)


@pytest.mark.slow
def test_two_processes_with_lightnings_own_settings_read_each_sentence_once(tmp_path: Path) -> None:
    places = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": ""}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path)],
        env=environment, cwd=Path(__file__).parents[2], capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    ranks = [json.loads((tmp_path / f"{rank}.json").read_bytes()) for rank in range(2)]
    for name, n in (("trained", 97), ("validated", 31), ("tested", 23)):
        assert sorted(ranks[0][name] + ranks[1][name]) == list(range(n)), name
        assert min(len(rank[name]) for rank in ranks) > n // 4, name
    [alone] = trainer(tmp_path).validate(tiny(), translation(), verbose=False)
    assert [rank["dev/nll"] for rank in ranks] == [pytest.approx(alone["dev/nll"], rel=1e-6)] * 2


def tiny() -> TranslationModule:
    return TranslationModule(Hyper(n_layers=1, d_model=14, d_ff=11, n_heads=3, d_k=2, d_v=5), 101, seed=1)


def main(folder: Path) -> None:
    """Train and evaluate in two processes as somebody would who knows nothing of the plan."""
    data = TranslationData(TRAIN, DEV, text(23, seed=2), budget=BUDGET, data_hash="data", seed=1)
    two, witness = trainer(folder, devices=2, strategy="ddp", max_epochs=1, num_sanity_val_steps=0), Witness()
    two.fit(witness, data)
    trained = [i for batch in witness.trained for i in batch[0] if i >= 0]
    found: dict[str, Any] = {"trained": trained, "validated": witness.held_out}
    witness.held_out = []
    two.test(witness, data, verbose=False)
    found |= {"tested": witness.held_out} | two.validate(tiny(), data, verbose=False)[0]
    (folder / f"{two.global_rank}.json").write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
