"""One row as a LightningModule; the trainer is played."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from model.samples import encoded
from torch import Tensor
from toy_system import Toy

from repro.data.batch import Batch, make_batch
from repro.model.config import Hyper
from repro.model.loss import smoothed_cross_entropy
from repro.training.module import NonFinite, TranslationModule, random_seed

V = 23
HYPER = Hyper(n_layers=2, d_model=14, d_ff=11, n_heads=3, d_k=2, d_v=5, dropout=0.0, warmup=7)
LENGTHS = (5, 1, 3, 2, 7)


class Played(SimpleNamespace):
    """As much of a trainer as the module asks for."""

    world_size, accumulate_grad_batches, global_step, global_rank = 1, 1, 0, 0

    @property
    def fit_loop(self) -> SimpleNamespace:
        return SimpleNamespace(total_batch_idx=(self.global_step + 1) * self.accumulate_grad_batches - 1)


def module(hyper: Hyper = HYPER, seed: int = 1, system: Any = None, **trainer: int) -> TranslationModule:
    made = TranslationModule(hyper, V, seed, system).double()
    made._trainer = Played(**trainer)  # type: ignore[assignment]
    made.log = lambda *_: None  # type: ignore[assignment, method-assign, misc]
    return made


TEXT = encoded([np.random.default_rng(n).integers(2, V, n - 1) for n in LENGTHS])


def batch(sentences: list[int], *, n_update: int = sum(LENGTHS), **of: Any) -> Batch:
    """These of five sentences of random tokens, the same on both sides."""
    return make_batch(TEXT, TEXT, np.array(sentences, np.int64), n_update=n_update, **of)


def gradient(made: TranslationModule, shares: list[Batch]) -> list[Tensor]:
    """What reaches the optimizer: Lightning divides by the micro-batches, DDP by the processes."""
    parts = made.trainer.world_size * made.trainer.accumulate_grad_batches
    made.zero_grad()
    for share in shares:
        (made.training_step(share, 0) / parts).backward()
    return [p.grad.clone() for p in made.parameters() if p.grad is not None]


@pytest.mark.parametrize(("world", "micro"), [(2, 3), (7, 1)])
def test_an_update_gives_one_gradient_however_it_is_split(world: int, micro: int) -> None:
    whole = gradient(module(), [batch([0, 1, 2, 3, 4])])
    made = module(world_size=world, accumulate_grad_batches=micro)
    # ragged: shares of 1 to 17 tokens; of seven, two hold none
    shares = [batch(list(range(5))[part :: world * micro]) for part in range(world * micro)]
    assert len({share.n_target for share in shares}) > 1
    torch.testing.assert_close(gradient(made, shares), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_the_loss_is_smoothed_as_the_row_says_and_dev_never(epsilon: float) -> None:
    made, one = module(replace(HYPER, label_smoothing=epsilon)), batch([0, 3], n_update=11)  # of which 7 are here
    hidden = made.model.decode(one.decoder_in, made.model.encode(one.source), one.source)
    both = smoothed_cross_entropy(hidden, made.model.embedding.weight, one.target, epsilon)
    loss, nll = (summed.item() for summed in both)
    assert made.training_step(one, 0).item() == pytest.approx(loss / 11)
    assert made.train_loss.compute().item() == pytest.approx(loss / 7)
    assert made.train_nll.compute().item() == pytest.approx(nll / 7)
    made.validation_step(one, 0)
    assert made.dev_nll.compute().item() == pytest.approx(nll / 7)


def test_logged_values_are_means_over_tokens_not_over_batches() -> None:
    together, apart = module(), module()
    together.training_step(batch([0, 1, 2, 3, 4]), 0)
    for i in range(5):
        apart.training_step(batch([i]), 0)
    apart.training_step(batch([]), 0)  # an empty share weighs nothing
    with torch.no_grad():
        for sentences in ([0], [1, 2], [], [3, 4]):
            apart.validation_step(batch(sentences), 0)
    loss, nll = (mean.compute().item() for mean in (together.train_loss, together.train_nll))
    for mean, expected in ((apart.train_loss, loss), (apart.train_nll, nll), (apart.dev_nll, nll)):
        assert mean.compute().item() == pytest.approx(expected)


def test_an_update_without_a_token_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Update 42 has no target token to learn from. Its sentences: \[-1\]"):
        module(global_step=41).training_step(batch([], n_update=0, step=41), 0)


def test_every_part_of_a_gradient_is_checked() -> None:
    made, optimizer = module(), module().configure_optimizers()
    gradient(made, [batch([0, 1])])
    made.on_train_batch_start(batch([0, 1]), 0)
    made.on_before_optimizer_step(optimizer)
    for parameter in made.parameters():
        assert parameter.grad is not None
        for value in (math.nan, math.inf, -math.inf, 1e200):  # the square of the last is none, and so is Adam's moment
            kept = parameter.grad.view(-1)[-1].item()
            parameter.grad.view(-1)[-1] = value
            with pytest.raises(NonFinite, match=r"norm of the gradient is (nan|inf) at step 1; .*sentences 0, 1"):
                made.on_before_optimizer_step(optimizer)
            parameter.grad.view(-1)[-1] = kept
    made.on_before_optimizer_step(optimizer)


class Cut(Toy):
    """A system whose gradient is cut."""

    gradient_norm = 0.5


@pytest.mark.parametrize(
    ("system", "longest", "times"), [(None, math.inf, 1e3), (Toy, math.inf, 1e3), (Cut, 0.5, 1e3), (Cut, 0.5, 1e-3)]
)
def test_a_gradient_is_cut_where_its_system_says_so_and_keeps_its_direction(
    system: Any, longest: float, times: float
) -> None:
    made = module(system=system)
    optimizer = made.configure_optimizers()
    whole = torch.cat([times * part.flatten() for part in gradient(made, [batch([0, 1])])])
    for parameter in made.parameters():
        parameter.grad.mul_(times)  # type: ignore[union-attr]
    made.on_train_batch_start(batch([0, 1]), 0)
    made.on_before_optimizer_step(optimizer)
    found = torch.cat([parameter.grad.flatten() for parameter in made.parameters()])  # type: ignore[union-attr]
    torch.testing.assert_close(found, whole * min(1.0, longest / whole.norm().item()), rtol=1e-12, atol=0)
    if whole.norm() <= longest:
        assert torch.equal(found, whole)  # to the bit


@pytest.mark.parametrize("then", ["the next step", "a checkpoint"])
def test_a_late_check_prevents_the_update_and_names_the_step(monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    # as on a GPU: the optimizer is told on the device, the error comes when somebody looks
    monkeypatch.setattr(TranslationModule, "defers_check", True)
    made = module()
    optimizer = made.configure_optimizers()
    gradient(made, [batch([0, 1])])
    made.on_train_batch_start(batch([0, 1]), 0)
    made.on_before_optimizer_step(optimizer)
    optimizer.step()
    before = [parameter.detach().clone() for parameter in made.parameters()]
    moments = [optimizer.state[parameter]["exp_avg_sq"].clone() for parameter in made.parameters()]
    made.trainer.global_step = 1
    made.on_train_batch_start(batch([2], step=1), 0)
    made.model.embedding.weight.grad[3, 2] = math.inf  # type: ignore[index]
    made.on_before_optimizer_step(optimizer)
    optimizer.step()
    for parameter, kept, moment in zip(made.parameters(), before, moments, strict=True):
        assert torch.equal(parameter, kept)
        assert torch.equal(optimizer.state[parameter]["exp_avg_sq"], moment)
    made.trainer.global_step = 2
    made.on_train_batch_start(batch([3], step=2), 0)
    with pytest.raises(NonFinite, match=r"norm of the gradient is (nan|inf) at step 2; .*sentences 2"):
        made.on_before_optimizer_step(optimizer) if then == "the next step" else made.check_parameters()


def test_a_parameter_that_is_no_number_stops_before_the_checkpoint() -> None:
    made = module(global_step=41)
    made.on_train_batch_start(batch([0, 1], step=41), 0)
    made.trainer.accumulate_grad_batches = 2
    made.on_train_batch_start(batch([], micro=1, step=41), 1)
    made.check_parameters()
    with torch.no_grad():
        made.model.embedding.weight[3, 2] = math.inf
    said = r"norm of the parameters is inf after step 41; no checkpoint was written\. Seed 1, sentences 0, 1\."
    with pytest.raises(NonFinite, match=said):
        made.check_parameters()
    made.trainer.accumulate_grad_batches = 1
    made.on_train_batch_start(replace(batch([0], step=42), sentence=torch.arange(14)), 0)
    with pytest.raises(NonFinite, match=r"sentences 0, 1, .*, 10, 11 and 2 more\."):
        made.check_parameters()


@pytest.mark.parametrize(
    ("step", "change", "expected"),
    [
        (1, {}, 1.746_928_107_4e-7),
        (4_000, {"lr_factor": 0.5}, 3.493_856_214_8e-4),
        (1, {"warms_up": False}, 6.987_712_429_7e-4),  # the peak from the first step on
    ],
)
def test_the_rate_of_an_optimizer_step(step: int, change: dict[str, Any], expected: float) -> None:
    # section 5.3 at d_model = 512; the first step is number 1
    made = module(replace(HYPER, d_model=512, warmup=4_000, **change), global_step=step - 1)
    optimizer = made.configure_optimizers()
    gradient(made, [batch([0], step=step - 1)])
    made.on_before_optimizer_step(optimizer)
    assert [group["lr"] for group in optimizer.param_groups] == [pytest.approx(expected, rel=1e-9)]


def test_adam_has_the_papers_constants() -> None:
    optimizer = module().configure_optimizers()
    assert isinstance(optimizer, torch.optim.Adam)
    (group,) = optimizer.param_groups
    assert (group["betas"], group["eps"], group["weight_decay"], group["amsgrad"]) == ((0.9, 0.98), 1e-9, 0, False)
    assert len(group["params"]) == len(list(module().parameters()))


def test_the_seed_of_a_share_is_the_same_on_every_machine() -> None:
    # written down once: a change changes the dropout of every run
    assert random_seed(seed=1, step=2, share=3) == 5_338_250_718_792_807_630
    seeds = {random_seed(*numbers) for numbers in itertools.product(range(7), range(-1, 7), range(7))}
    assert len(seeds) == 7 * 8 * 7
    assert len({random_seed(1, 11, 1), random_seed(11, 1, 1), random_seed(1, 1, 11)}) == 3
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_first_weights_are_a_function_of_the_seed() -> None:
    def weights(seed: int) -> Tensor:
        torch.rand(3)  # whatever was drawn before
        return torch.cat([p.flatten() for p in TranslationModule(HYPER, V, seed).parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_dropout_is_a_function_of_seed_step_and_share() -> None:
    hyper = replace(HYPER, dropout=0.5)

    def loss(*, seed: int = 1, micro: int = 0, step: int = 0, **trainer: int) -> float:
        made = module(hyper, global_step=step, accumulate_grad_batches=micro + 1, **trainer)  # it is the last of them
        one = batch([0, 4], micro=micro, step=step)
        made.seed = seed
        torch.rand(3)  # whatever was drawn before: by validation, or by a step that is not repeated
        made.on_train_batch_start(one, 0)
        made.training_step(one, 0)
        return made.train_loss.compute().item()

    first = loss()
    assert loss() == first
    others = [loss(seed=2), loss(step=1), loss(micro=1), loss(micro=2)]
    assert len({first, *others}) == 5
    # share number micro * world + rank: two processes draw what one process that accumulates draws
    assert loss(world_size=2, global_rank=1) == loss(micro=1)
    assert loss(world_size=2, micro=1) == loss(micro=2)


def test_sentences_in_a_row_give_the_same_gradient() -> None:
    made, shares = module(), ([0, 3], [1, 2, 4])
    padded, packed = ([batch(share, n_update=8, packed=how) for share in shares] for how in (False, True))
    expected = gradient(made, padded)
    torch.testing.assert_close(gradient(made, packed), expected, rtol=1e-11, atol=1e-11)
