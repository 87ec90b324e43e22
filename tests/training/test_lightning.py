"""Our module with a Trainer of somebody else's: `docs/lightning.md`."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from training.tiny_run import BUDGET, HYPER, MICRO, V, same_arithmetic, text, train

from repro.data.batch import Batch
from repro.data.datamodule import TranslationData
from repro.decoding.translate import score_tokens
from repro.model.ablations.batch_norm import BatchNormalised
from repro.training import checkpoint
from repro.training.module import TranslationModule
from repro.training.schedule import rate

ROOT = Path(__file__).parents[2]
RUN = "0123456789abcdef"


def data(accumulate: int = 1) -> TranslationData:
    sides = text(67, seed=0), text(31, seed=1), text(23, seed=2)
    return TranslationData(*sides, budget=BUDGET, data_hash="data", seed=1, accumulate=accumulate)


def trainer(**options: Any) -> L.Trainer:
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    return L.Trainer(accelerator="cpu", devices=1, **quiet | options)


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


@pytest.mark.parametrize("options", [{}, {"accumulate_grad_batches": 2}, {"overfit_batches": 2}])
def test_training_batches_without_their_module_are_refused(options: dict[str, Any]) -> None:
    own = data()
    with pytest.raises(ValueError, match=r"expected the data module, .* trainer\.fit\(module, datamodule=data\)"):
        trainer(max_epochs=1, **options).fit(Noting(), own.train_dataloader(), own.val_dataloader())


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
    for split, n in (("train", 300), ("dev", 20), ("test", 17)):
        for language in ("en", "de"):
            lines = "".join(f"{language} {split} {i % 13} of {i}\n" for i in range(n))
            (tmp_path / "text" / f"{split}.{language}").write_text(lines, "utf-8")
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


@pytest.mark.filterwarnings("ignore:.*does not have many workers", "ignore:Be aware that when using `ckpt_path`")
@pytest.mark.parametrize("limit", [None, 4])
def test_it_goes_on_within_an_epoch_between_its_micro_batches(tmp_path: Path, limit: int | None) -> None:
    options = {"max_epochs": 2, "accumulate_grad_batches": 2} | (
        {} if limit is None else {"limit_train_batches": limit}
    )
    after_each = ModelCheckpoint(tmp_path, filename="{step}", every_n_train_steps=1, save_top_k=-1)
    whole, resumed = Noting(), Noting()
    trainer(enable_checkpointing=True, callbacks=[after_each], **options).fit(whole, data(2))
    trainer(**options).fit(resumed, data(2), ckpt_path=tmp_path / "step=1.ckpt", weights_only=True)
    assert resumed.rates == whole.rates[1:]
    for name, weight in resumed.state_dict().items():
        assert torch.equal(weight, whole.state_dict()[name]), name


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


def test_each_reading_of_dev_is_for_itself() -> None:
    module = TranslationModule(HYPER, V, seed=1)
    one = trainer()
    found = [one.validate(module, data(), verbose=False)[0]["dev/nll"] for _ in range(2)]
    expected = score_tokens(module.model, data().val_dataloader()).nll
    assert found == [pytest.approx(expected, rel=1e-5)] * 2
