"""Our module with a Trainer of somebody else's: `docs/lightning.md`."""

import csv
import math
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from lightning.fabric.plugins.environments import SLURMEnvironment
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.trainer.connectors import signal_connector
from training.tiny_run import BUDGET, EACH, HYPER, MICRO, Journal, V, same_arithmetic, text, train

from repro.corpora.prepare import corpus_data
from repro.data.batch import Batch
from repro.data.datamodule import TranslationData
from repro.data.vocabulary import Subwords
from repro.decoding.translate import score_tokens, translate
from repro.model.ablations.batch_norm import BatchNormalised
from repro.model.ablations.scores import AdditiveScores
from repro.model.transformer import Transformer
from repro.training import checkpoint
from repro.training.module import TranslationModule, rate

ROOT = Path(__file__).parents[2]
RUN = "0123456789abcdef"


def data(accumulate: int = 1) -> TranslationData:
    sides = text(67, seed=0), text(31, seed=1), text(23, seed=2)
    return TranslationData(*sides, budget=BUDGET, data_hash="data", seed=1, accumulate=accumulate)


def trainer(**options: Any) -> L.Trainer:
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    return L.Trainer(accelerator="cpu", devices=1, **quiet | options)


EPOCH = len(data().train_dataloader())


class Noting(TranslationModule):
    """Notes the learning rate of each update."""

    def __init__(self) -> None:
        super().__init__(HYPER, V, seed=1)
        self.rates: list[float] = []

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        super().on_before_optimizer_step(optimizer)
        self.rates.append(optimizer.param_groups[0]["lr"])


class Two(Noting):
    """One optimizer for the embedding, one for the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch: Batch, batch_idx: int) -> None:  # type: ignore[override]
        self.manual_backward(super().training_step(batch, batch_idx))
        for optimizer in self.optimizers():  # type: ignore[union-attr]
            optimizer.step()
            optimizer.zero_grad()

    def configure_optimizers(self) -> Any:
        shared = [self.model.embedding.weight]
        rest = [p for p in self.parameters() if p is not shared[0]]
        return [torch.optim.Adam(some, lr=1.0, betas=(0.9, 0.98), eps=1e-9, fused=True) for some in (shared, rest)]


def test_training_batches_without_their_module_are_refused() -> None:
    own = data()
    with pytest.raises(ValueError, match=r"expected the data module, .* trainer\.fit\(module, datamodule=data\)"):
        trainer(max_epochs=1).fit(Noting(), own.train_dataloader(), own.val_dataloader())


def test_parts_of_updates_are_refused_where_the_model_needs_whole_ones() -> None:
    own = TranslationModule(HYPER, V, seed=1, system=BatchNormalised)
    with pytest.raises(ValueError, match="expected whole updates, got 2 parts of each"):
        trainer(max_epochs=1, accumulate_grad_batches=2).fit(own, datamodule=data(2))


@pytest.mark.parametrize(("cut", "accumulated", "said"), [(1, 2, "2 of 2, got its micro-batch 1"), (2, 1, "1 of 1, ")])
def test_a_stream_cut_otherwise_than_the_trainer_accumulates_is_refused(cut: int, accumulated: int, said: str) -> None:
    with pytest.raises(ValueError, match=f"expected its micro-batch {said}"):
        trainer(max_steps=3, accumulate_grad_batches=accumulated).fit(
            Noting(), data(cut).batches(0), data().val_dataloader()
        )
    trained = Noting()
    trainer(max_steps=3, accumulate_grad_batches=cut).fit(trained, data(cut).batches(0), data().val_dataloader())
    assert len(trained.rates) == 3


def test_the_example_of_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "lightning.md").read_text("utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    assert 0 < len([line for line in code.split("\n") if line]) <= 10
    (tmp_path / "text").mkdir()
    lines(tmp_path / "text")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("warnings.filters", [("ignore", None, Warning, None, 0)])
    made: dict[str, Any] = {}
    with same_arithmetic():
        exec(code, made)
    assert made["trainer"].current_epoch == 3
    assert made["trainer"].global_step == 3 * len(made["data"].train_dataloader()) > 0
    found = made["trainer"].callback_metrics["test/nll"].item()
    assert found == pytest.approx(score_tokens(made["model"].model, made["data"].test_dataloader()).nll, rel=1e-5)
    assert found < math.log(made["data"].vocab_size)  # it has learned something


@pytest.mark.filterwarnings("ignore:.*does not have many workers")
def test_it_comes_to_the_weights_of_a_run_of_ours(tmp_path: Path) -> None:
    steps = 17  # epochs end within
    train(tmp_path, steps=steps)
    ours = checkpoint.weights(checkpoint.path_of(tmp_path, steps), RUN)
    module = TranslationModule(replace(HYPER, steps=steps), V, seed=1)
    with same_arithmetic():
        trainer(max_steps=steps, accumulate_grad_batches=MICRO).fit(module, data(MICRO))
    for name, weight in module.model.state_dict().items():
        assert torch.equal(weight, ours[name]), name


class Broken(Exception):
    """Ends a training within a step."""


def broken() -> None:
    raise Broken


def breaking(moment: str, batch: int, how: Callable[[], None] = broken) -> Noting:
    """A module to which something happens at a moment of that micro-batch; it breaks, unless told otherwise."""

    class Module(Noting):
        began = 0

        def happen(self, *_: Any) -> None:
            if self.began == batch:
                how()

        def on_train_batch_start(self, given: Batch, batch_idx: int) -> None:
            super().on_train_batch_start(given, batch_idx)
            self.began += 1

        def training_step(self, given: Batch, batch_idx: int) -> Any:
            loss = super().training_step(given, batch_idx)
            if moment == "backward":
                loss.register_hook(self.happen)
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            optimizer = super().configure_optimizers()
            if moment == "update":
                optimizer.register_step_post_hook(self.happen)
            return optimizer

        def on_train_batch_end(self, *of: Any) -> None:
            super().on_train_batch_end(*of)
            if moment == "end":
                self.happen()

    return Module()


@pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`")
@pytest.mark.parametrize(
    ("moment", "accumulate", "batch", "options"),
    [
        ("backward", 1, 5, {"max_epochs": 2, "val_check_interval": 4}),
        ("update", 1, EPOCH, {"max_epochs": 2}),  # the last of an epoch
        ("end", 1, EPOCH, {"max_epochs": 2}),
        ("backward", 1, 3 + 1, {"max_epochs": 3, "limit_train_batches": 3}),  # the first of one
        ("end", 3, 5, {"max_steps": 4}),
        ("update", 3, 6, {"max_steps": 4}),
    ],
)
def test_what_is_saved_at_an_error_within_a_step_is_gone_on_from(
    tmp_path: Path, moment: str, accumulate: int, batch: int, options: dict[str, Any]
) -> None:
    """No more is lost than that update."""
    options = options | {"accumulate_grad_batches": accumulate}
    saving = ModelCheckpoint(tmp_path, save_on_exception=True, every_n_train_steps=100)
    whole, resumed, unbroken, going_on = Noting(), Noting(), trainer(**options), trainer(**options)
    unbroken.fit(whole, data(accumulate))
    with pytest.raises(Broken):
        trainer(**options, enable_checkpointing=True, callbacks=[saving]).fit(breaking(moment, batch), data(accumulate))
    [saved] = tmp_path.iterdir()
    going_on.fit(resumed, data(accumulate), ckpt_path=saved, weights_only=True)
    made = (batch - 1) // accumulate + (batch % accumulate == 0 and moment in ("update", "end"))
    assert resumed.rates == whole.rates[made:]
    same_end(going_on, unbroken)


@pytest.mark.filterwarnings("ignore:The `srun` command is available")
def test_it_goes_on_from_what_slurms_signal_saves_in_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"JOB_ID": "17", "JOB_NAME": "train", "NTASKS": "1", "NODELIST": "here", "PROCID": "0", "LOCALID": "0"}
    for name, value in (names | {"NODEID": "0", "NTASKS_PER_NODE": "1"}).items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setattr(signal_connector, "call", lambda command: broken())  # killed once it has asked to be requeued
    handler = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    options: dict[str, Any] = {"max_epochs": 2, "val_check_interval": 4}
    requeued = {"default_root_dir": tmp_path, "plugins": [SLURMEnvironment(requeue_signal=signal.SIGUSR1)]}
    whole, resumed, unbroken, going_on = Noting(), Noting(), trainer(**options), trainer(**options | requeued)
    unbroken.fit(whole, data(1))
    signalled = breaking("backward", 5, lambda: signal.raise_signal(signal.SIGUSR1))
    try:
        with pytest.raises(Broken):
            trainer(**options | requeued).fit(signalled, data(1))
        going_on.fit(resumed, data(1), ckpt_path="hpc")
    finally:
        signal.signal(signal.SIGUSR1, handler)
    assert resumed.rates == whole.rates[4:]
    same_end(going_on, unbroken)


def same_end(going_on: L.Trainer, unbroken: L.Trainer) -> None:
    """Counters, weights and moments are equal to the bit."""
    assert (going_on.global_step, going_on.fit_loop.epoch_loop._batches_that_stepped) == (
        unbroken.global_step,
        unbroken.fit_loop.epoch_loop._batches_that_stepped,
    )
    weights, expected = (one.lightning_module.state_dict() for one in (going_on, unbroken))
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    for mine, theirs in zip(*(one.optimizers[0].state.values() for one in (going_on, unbroken)), strict=True):
        assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("kind", [Noting, Two])
def test_the_rate_is_that_of_the_update_whatever_an_epoch_is(kind: type[Noting]) -> None:
    module = kind()
    trainer(max_epochs=3, limit_train_batches=4).fit(module, data())
    each = [rate(update, HYPER.d_model, HYPER.warmup) for update in range(1, 13)]
    assert module.rates == ([one for one in each for _ in range(2)] if kind is Two else each)


def test_a_run_of_ours_has_one_optimizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.tiny_run.TranslationModule", lambda *_: Two())
    with pytest.raises(ValueError, match=r"A run counts the steps of one optimizer, this module has 2\. Train it with"):
        train(tmp_path, accumulate=1)


def test_validating_testing_and_predicting_first_change_no_weight() -> None:
    long = text(67, seed=0), text(0, seed=1, lengths=[2, 300, 5]), text(0, seed=2, lengths=[3, 20])
    modules = [TranslationModule(HYPER, V, seed=1, system=BatchNormalised) for _ in range(2)]
    for module, looks in zip(modules, (True, False), strict=True):
        own = TranslationData(*long, budget=600, data_hash="data", seed=1)
        one = trainer(max_steps=3)
        if looks:
            one.validate(module, own, verbose=False)
            one.test(module, own, verbose=False)
            one.predict(module, own)
        one.fit(module, own)
    weights, expected = (module.state_dict() for module in modules)
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


def test_a_checkpoint_opens_without_arguments_or_says_what_to_pass(tmp_path: Path) -> None:
    changed = replace(HYPER, d_ff=13, learned_positions=True)
    for system in (None, partial(Transformer, mix=AdditiveScores)):
        module, one = TranslationModule(changed, V, seed=3, system=system), trainer(max_steps=2)
        one.fit(module, data())
        one.save_checkpoint(path := tmp_path / "one.ckpt")
        if system is not None:
            said = (
                r"the system .*\.Transformer\(mix=.*\.AdditiveScores\); .* load_from_checkpoint\(path, system=\.\.\.\)"
            )
            with pytest.raises(ValueError, match=said):
                TranslationModule.load_from_checkpoint(path)
        again = TranslationModule.load_from_checkpoint(path, **({} if system is None else {"system": system}))
        assert (again.hyper, again.vocab_size, again.seed) == (changed, V, 3)
        assert all(torch.equal(again.state_dict()[name], weight) for name, weight in module.state_dict().items())


def test_a_checkpoint_of_another_module_is_refused_by_name(tmp_path: Path) -> None:
    one = trainer(max_steps=2)
    one.fit(TranslationModule(HYPER, V, seed=1), data())
    one.save_checkpoint(path := tmp_path / "one.ckpt")
    other = TranslationModule(replace(HYPER, n_layers=1, warmup=8), V + 1, 2, BatchNormalised)
    said = (
        "The checkpoint is of another module: seed 1 there, 2 here; vocab_size 23 there, 24 here; system None there, "
        "'repro.model.ablations.batch_norm.BatchNormalised' here; n_layers 2 there, 1 here; warmup 7 there, 8 here. Go"
    )
    with pytest.raises(ValueError, match=said):
        trainer(max_steps=4).fit(other, data(), ckpt_path=path)
    longer = TranslationModule(replace(HYPER, steps=2 * HYPER.steps), V, seed=1)
    trainer(max_steps=3).fit(longer, data(), ckpt_path=path)


def lines(folder: Path) -> None:
    for split, n in (("train", 300), ("dev", 20), ("test", 17)):
        for language in ("en", "de"):
            written = "".join(f"{language} {split} {i % 13} of {i}\n" for i in range(n))
            (folder / f"{split}.{language}").write_text(written, "utf-8")


def test_predict_gives_translations_with_the_vocabulary_of_the_data(tmp_path: Path) -> None:
    lines(tmp_path)
    subwords = Subwords("bpe", 300)
    own = corpus_data("folder", "en-de", subwords, data_dir=tmp_path, cache=tmp_path, budget=400, seed=1)
    for begin, size in (("fit", own.vocab_size - 1), ("predict", 5_000)):
        said = f"The module is for a vocabulary of {size} tokens, the data have {own.vocab_size}"
        with pytest.raises(ValueError, match=said):
            getattr(trainer(max_steps=1), begin)(TranslationModule(HYPER, size, seed=1), own)
    module = TranslationModule(HYPER, own.vocab_size, seed=1)
    found = {i: text for part in trainer().predict(module, own) for i, text in part.items()}  # type: ignore[union-attr]
    assert own.test
    assert own.tokenizer
    expected = translate(module.model, own.test[0])
    assert [found[i] for i in range(17)] == [own.tokenizer.decode(ids) for ids in expected]
    assert len(found) == 17
    assert any(found.values())
    in_memory = data()
    small = TranslationModule(HYPER, V, seed=1)
    ids = {i: ids for part in trainer().predict(small, in_memory) for i, ids in part.items()}  # type: ignore[union-attr]
    assert [ids[i] for i in range(23)] == translate(small.model, in_memory.test[0])  # type: ignore[index]


@pytest.mark.filterwarnings("ignore:.*no learning rate schedulers")
def test_loggers_see_loss_and_rate_of_the_step(tmp_path: Path) -> None:
    one = trainer(
        logger=CSVLogger(tmp_path, name="", version=""),
        max_steps=5,
        accumulate_grad_batches=2,
        log_every_n_steps=1,
        callbacks=[LearningRateMonitor("step")],
    )
    with same_arithmetic():
        one.fit(TranslationModule(HYPER, V, seed=1), data(2))
    with (tmp_path / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    seen = {name: {int(row["step"]): float(row[name]) for row in rows if row.get(name)} for name in rows[0]}
    each = pytest.approx({update: rate(update + 1, HYPER.d_model, HYPER.warmup) for update in range(5)})
    assert seen["lr-Adam"] == each
    assert seen["train/lr"] == each
    losses = Journal()
    train(tmp_path / "run", losses, accumulate=2, steps=5, every=EACH)
    for name in ("loss", "nll"):
        assert seen[f"train/{name}"] == pytest.approx({i: losses["train", i + 1][name] for i in range(5)})
