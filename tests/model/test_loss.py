"""The loss against its definition, summed up token by token."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from model.samples import Products, both_ways, same
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from repro.model import loss
from repro.model.compiled import program
from repro.model.loss import nll_and_correct, smoothed_cross_entropy
from repro.model.special_tokens import PAD

B, T, D, V = 2, 7, 3, 11


def example() -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states, matrix and ragged targets, float64."""
    torch.manual_seed(0)
    hidden = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(V, D, dtype=torch.float64, requires_grad=True)
    target = torch.randint(1, V, (B, T))
    target[1, 3:] = PAD
    return hidden, weight, target


def by_definition(hidden: Tensor, weight: Tensor, target: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """- sum_v q(v) log p(v) with q spelt out: 1 - epsilon on the gold token, epsilon over the others."""
    loss, nll = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for h, gold in zip(hidden.flatten(0, -2), target.flatten(), strict=True):
        if gold == PAD:
            continue
        log_p = (weight @ h).log_softmax(0)
        q = torch.full((V,), epsilon / (V - 1), dtype=torch.float64)  # the padding token has its share too
        q[gold] = 1 - epsilon
        assert q.sum().item() == pytest.approx(1)
        loss, nll = loss - q @ log_p, nll - log_p[gold]
    return loss, nll


def gradients(value: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(value, inputs)


def in_chunks(monkeypatch: pytest.MonkeyPatch, chunk: int = 3, strip: int = 2) -> None:
    """Have logits made `chunk` rows at a time, and made probabilities `strip` rows at a time."""
    monkeypatch.setattr(loss, "AT_ONCE_BYTES", 0)
    monkeypatch.setattr(loss, "CHUNK", chunk)
    monkeypatch.setattr(loss, "STRIP_BYTES", -(-strip * V * 8 // torch.get_num_threads()))


Way = Callable[[pytest.MonkeyPatch], None]


def by_the_gpus_way(monkeypatch: pytest.MonkeyPatch, rows: int = 3) -> None:
    """Logits in chunks of a few rows, as on a GPU."""
    monkeypatch.setattr(loss, "GPU_CHUNK_BYTES", loss.AS_IT_IS * rows * V * 8)
    monkeypatch.setattr(loss, "_at_once", loss._on_gpu)


AT_ONCE = pytest.param(lambda _: None, id="at once")
CHUNKS = [  # rows of a chunk, of ten real ones; and of a strip
    pytest.param(partial(in_chunks, chunk=chunk, strip=strip), id=f"{chunk} {strip}")
    for chunk in (1, 3, 5, 100)
    for strip in (1, 2, 100)
]
GPU_CHUNKS = [pytest.param(partial(by_the_gpus_way, rows=rows), id=f"gpu {rows}") for rows in (1, 4, 100)]
each_way = pytest.mark.parametrize("way", [AT_ONCE, in_chunks, by_the_gpus_way])


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("way", [AT_ONCE, *CHUNKS, *GPU_CHUNKS])
def test_equals_its_definition(monkeypatch: pytest.MonkeyPatch, way: Way, epsilon: float) -> None:
    hidden, weight, target = example()
    larger = torch.cat([torch.ones_like(hidden), hidden]).detach().requires_grad_()
    part = larger[B:]  # its rows begin in the middle of the storage
    way(monkeypatch)
    found, expected = (
        smoothed_cross_entropy(part, weight, target, epsilon),
        by_definition(part, weight, target, epsilon),
    )
    same(found, expected)
    same(gradients(3 * found[0], larger, weight), gradients(3 * expected[0], larger, weight))


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_equals_the_librarys_with_its_other_spread(epsilon: float) -> None:
    # PyTorch spreads epsilon over all V tokens, the gold one included; the paper's code over the V - 1 others
    hidden, weight, target = example()
    found, _ = smoothed_cross_entropy(hidden, weight, target, epsilon)
    expected = F.cross_entropy(
        (hidden @ weight.T).flatten(0, 1),
        target.flatten(),
        ignore_index=PAD,
        reduction="sum",
        label_smoothing=epsilon * V / (V - 1),
    )
    same(found, expected)
    same(gradients(found, hidden, weight), gradients(expected, hidden, weight))


def test_the_gradient_of_the_states_alone_and_of_the_matrix_alone() -> None:
    hidden, weight, target = example()
    both = gradients(smoothed_cross_entropy(hidden, weight, target, 0.1)[0], hidden, weight)
    same(gradients(smoothed_cross_entropy(hidden, weight.detach(), target, 0.1)[0], hidden), both[:1])
    same(gradients(smoothed_cross_entropy(hidden.detach(), weight, target, 0.1)[0], weight), both[1:])


@pytest.mark.filterwarnings("ignore")  # the compiler's, about itself
@pytest.mark.parametrize("way", [
    pytest.param(partial(torch.compile, backend="aot_eager"), id="traced"),
    pytest.param(program, id="in C", marks=pytest.mark.slow),
])  # fmt: skip
def test_compiled_it_gives_the_same(way: Any) -> None:
    logits = torch.randn(5, V, dtype=torch.float64)
    gold = torch.tensor([2, PAD, V - 1, 3, 2])
    arguments = gold, 0.02, 0.88, torch.float64
    plain, compiled = logits.clone(), logits.clone()
    expected = loss._softmax_and_gradient(plain, *arguments)
    found = way(loss._softmax_and_gradient)(compiled, *arguments)
    torch.testing.assert_close((compiled, *found), (plain, *expected), rtol=1e-12, atol=1e-12)
    assert not torch.equal(compiled, logits)  # in place


def test_float32_is_as_exact_in_chunks_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    hidden, weight = torch.randn(300, 32, requires_grad=True), torch.randn(501, 32, requires_grad=True)
    target = torch.randint(PAD, 501, (300,))
    fine = [x.detach().double().requires_grad_() for x in (hidden, weight)]
    exact, _ = smoothed_cross_entropy(fine[0], fine[1], target, 0.1)
    slopes, errors = gradients(exact, *fine), []
    for chunked in (False, True):
        if chunked:
            in_chunks(monkeypatch, chunk=32, strip=7)
        found, _ = smoothed_cross_entropy(hidden, weight, target, 0.1)
        assert found.item() == pytest.approx(exact.item(), rel=1e-6)
        pairs = zip(gradients(found, hidden, weight), slopes, strict=True)
        errors.append(max(((a - b).norm() / b.norm()).item() for a, b in pairs))
    assert errors[1] < 2 * errors[0] < 2e-6


def test_the_logits_never_exist_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, weight, target = example()
    in_chunks(monkeypatch)
    sizes = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            result = func(*args, **(kwargs or {}))
            sizes.append(result.numel() if isinstance(result, Tensor) else 0)
            return result

    with Watch():
        loss._LinearCrossEntropy.forward(
            torch.autograd.function.FunctionCtx(), hidden.flatten(0, 1), weight, target.flatten(), 0.1
        )
    assert 3 * V <= max(sizes) < B * T * V / 2


@each_way
def test_padding_weighs_nothing_and_gets_no_gradient(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    hidden, weight, target = example()
    way(monkeypatch)
    (d_hidden,) = gradients(smoothed_cross_entropy(hidden, weight, target, 0.1)[0], hidden)
    assert torch.equal(d_hidden.any(-1), target != PAD)
    found, nll = smoothed_cross_entropy(hidden, weight, torch.full_like(target, PAD), 0.1)
    assert (found.item(), nll.item()) == (0, 0)
    assert not any(g.any() for g in gradients(found, hidden, weight))


@pytest.mark.parametrize(("way", "rows"), [(lambda _: None, B * T), (in_chunks, B * T - 4)])
def test_where_no_gradient_is_wanted_the_logits_are_made_once(
    monkeypatch: pytest.MonkeyPatch, way: Way, rows: int
) -> None:
    hidden, weight, target = example()
    expected = tuple(x.detach() for x in smoothed_cross_entropy(hidden, weight, target, 0.1))
    way(monkeypatch)
    for quiet in (torch.no_grad, torch.inference_mode):
        with quiet(), FlopCounterMode(display=False) as counter:
            same(smoothed_cross_entropy(hidden, weight, target, 0.1), expected)
        assert counter.get_total_flops() == 2 * rows * D * V
    with FlopCounterMode(display=False) as counter:
        nll, n = nll_and_correct(hidden, weight, target)  # which never has one
    assert counter.get_total_flops() == 2 * rows * D * V
    assert not nll.requires_grad
    assert not n.requires_grad


def test_the_unsmoothed_loss_is_for_the_eye_only() -> None:
    hidden, weight, target = example()
    _, nll = smoothed_cross_entropy(hidden, weight, target, 0.1)
    assert not nll.requires_grad
    same(nll, smoothed_cross_entropy(hidden, weight, target, 0.0)[0].detach())


@both_ways
@each_way
def test_bfloat16_products_stay_close(monkeypatch: pytest.MonkeyPatch, way: Way, products: Products) -> None:
    hidden, weight, target = example()
    exact, exact_nll = smoothed_cross_entropy(hidden, weight, target, 0.1)
    way(monkeypatch)
    h, w = hidden.detach().float().requires_grad_(), weight.detach().float().requires_grad_()
    with products(), torch.autocast("cpu", torch.bfloat16):
        found, nll = smoothed_cross_entropy(h.bfloat16(), w, target, 0.1)
    assert found.dtype == nll.dtype == torch.float32
    assert found.item() == pytest.approx(exact.item(), rel=0.01)
    assert nll.item() == pytest.approx(exact_nll.item(), rel=0.01)
    for rough, fine in zip(gradients(found, h, w), gradients(exact, hidden, weight), strict=True):
        assert rough.dtype == torch.float32  # master weights get a float32 gradient
        assert (rough - fine).norm() < 0.02 * fine.norm()


@each_way
def test_large_logits_stay_finite(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    way(monkeypatch)
    hidden, weight = torch.full((1, 1), 1e4, requires_grad=True), torch.arange(V).float().unsqueeze(1)
    found, nll = smoothed_cross_entropy(hidden, weight, torch.tensor([1]), 0.1)
    (slope,) = gradients(found, hidden)
    assert torch.stack([found.detach(), nll, slope.squeeze()]).isfinite().all()


def test_the_smoothed_perplexity_has_a_floor() -> None:
    # the best model of a smoothed target is the smoothed target: its loss is the entropy of q, and
    # exp(entropy) = 3.96 at 37,000 tokens, so the paper's 4.67 to 6.11 cannot be smoothed ones
    v, epsilon = 37_000, 0.1
    q = torch.full((v, 1), epsilon / (v - 1), dtype=torch.float64)
    q[7] = 1 - epsilon
    hidden = torch.ones(1, 1, dtype=torch.float64)
    found, nll = smoothed_cross_entropy(hidden, q.log(), torch.tensor([7]), epsilon)
    assert found.exp().item() == pytest.approx(3.96, abs=0.005)
    assert nll.exp().item() == pytest.approx(1 / 0.9)


# Correct predictions: the targets that the model would have chosen.


def rows_of(*logits: list[float]) -> tuple[Tensor, Tensor]:
    """Hidden states and a matrix that make these logits, each to the last digit."""
    return torch.eye(len(logits)), torch.tensor(logits).T.contiguous()


@each_way
def test_correct_predictions_by_hand(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    way(monkeypatch)
    a_bit_more = 0.25 + 2**-25  # the next number of float32
    cases = [  # logits of tokens 0 (padding), 1, 2, 3; the target; whether it is correct
        ([0.0, 1.0, 3.0, 2.0], 2, True),
        ([0.0, 1.0, 3.0, 2.0], 3, False),
        ([9.0, 1.0, 3.0, 2.0], 2, False),  # padding is a token like another of what may be chosen,
        ([9.0, 1.0, 3.0, 2.0], PAD, False),  # and no target
        ([0.0, 3.0, 1.0, 3.0], 1, True),  # of two that are as probable the lowest id is chosen
        ([0.0, 3.0, 1.0, 3.0], 3, False),
        ([-5.0, -4.0, -3.0, -2.0], 3, True),
        ([0.0, 0.25, 0.0, a_bit_more], 3, True),  # the same probability after rounding, and not the same logit
        ([0.0, 0.25, 0.0, a_bit_more], 1, False),
    ]
    hidden, weight = rows_of(*(logits for logits, _, _ in cases))
    assert torch.equal(hidden @ weight.T, torch.tensor([logits for logits, _, _ in cases]))
    for row, (_, gold, correct) in enumerate(cases):
        _, n = nll_and_correct(hidden[row : row + 1], weight, torch.tensor([gold]))
        assert n.item() == correct, cases[row]
    _, n = nll_and_correct(hidden, weight, torch.tensor([gold for _, gold, _ in cases]))
    assert (n.item(), n.dtype) == (4, torch.int64)


@each_way
def test_correct_predictions_under_bfloat16_are_what_its_logits_say(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    hidden, weight, target = example()
    way(monkeypatch)
    h, w = hidden.detach().float(), weight.detach().float()
    with torch.autocast("cpu", torch.bfloat16):
        nll, n = nll_and_correct(h, w, target)
        assert torch.equal(nll, smoothed_cross_entropy(h, w, target, 0.1)[1])
    logits = (h.bfloat16() @ w.bfloat16().T).flatten(0, 1).float().tolist()
    expected = [row.index(max(row)) for row in logits]
    assert n.item() == sum(a == b != PAD for a, b in zip(expected, target.flatten().tolist(), strict=True)) > 0
