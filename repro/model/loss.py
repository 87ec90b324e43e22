"""Label-smoothed cross-entropy of the tokens that follow, straight from the decoder's output. Paper: section 5.4.

N positions, D d_model, V vocabulary. As in the first public code the gold token gets 1 - epsilon and each of the
V - 1 others epsilon / (V - 1), the padding token included; positions whose target is padding count for nothing.
The constant that code subtracts (the entropy of the smoothed target) is left in: it changes no gradient.

Of text that is only read, correct predictions are counted beside the loss: a target is predicted correctly
where its logit is the largest of its row, of equals the one with the lowest id.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from repro.model.compiled import program, why_not
from repro.model.special_tokens import PAD

# How many logits are made at once; measured with `benchmarks/train.py`.
AT_ONCE_BYTES = 2**24  # all of them up to this size
CHUNK = 512  # else so many rows at a time: each chunk adds to the gradient of the whole matrix, so few are better
STRIP_BYTES = 2**20  # of a chunk as many become probabilities at once as a core's own cache holds
GPU_CHUNK_BYTES = 2**29  # on a GPU a chunk is as large as this; few are fast, and they are the peak of its memory
AS_IT_IS = 8  # times less where it is not compiled, since there are copies of it in float32 in between


def smoothed_cross_entropy(hidden: Tensor, weight: Tensor, target: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Sums over the real targets: the smoothed loss (differentiable) and the unsmoothed one (not), in nats.

    hidden [..., D], weight [V, D] (the tied embedding), target int64 [...]. Divide both by the number of targets
    of the whole update, however it is split (`training/module.py`).
    """
    if not torch.is_grad_enabled():
        hidden, weight = hidden.detach(), weight.detach()  # or the gradient is made, and nobody asks for it
    loss, nll = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden.flatten(0, -2), weight, target.flatten(), epsilon
    )
    return loss, nll


@torch.no_grad()
def nll_and_correct(hidden: Tensor, weight: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Sums over the real targets: the unsmoothed loss in nats, and how many are predicted correctly (int64).

    Shapes are those of `smoothed_cross_entropy`, whose unsmoothed loss this is to the bit. Divided by the number of
    targets: the logarithm of the perplexity, and the accuracy. Paper: section 5.4.
    """
    n_correct = target.new_zeros(())
    rows, gold = hidden.detach().flatten(0, -2), target.flatten()
    _, nll, _, _ = _make(rows, weight.detach(), gold, _Asked(epsilon=0.0, needs_gradient=False, n_correct=n_correct))
    return nll, n_correct


class _LinearCrossEntropy(torch.autograd.Function):
    """Softmax matrix and loss in one.

    The gradient with respect to the logits, p - q, is known as soon as p is: it is made in place of the logits and
    multiplied on, so the [N, V] logits are never kept, and where they are many they never exist as a whole.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, target: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
        asked = _Asked(epsilon=epsilon, needs_gradient=hidden.requires_grad or weight.requires_grad)
        loss, nll, d_hidden, d_weight = _make(hidden.detach(), weight.detach(), target, asked)
        ctx.save_for_backward(d_hidden, d_weight)
        ctx.dtype = hidden.dtype
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        d_hidden, d_weight = ctx.saved_tensors
        return (d_hidden * d_outputs[0]).to(ctx.dtype), d_weight * d_outputs[0], None, None


Made = tuple[Tensor, Tensor, Tensor | None, Tensor | None]  # loss, nll, gradients of hidden and weight


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What is made of the logits."""

    epsilon: float
    needs_gradient: bool
    n_correct: Tensor | None = None  # correct predictions are added to it

    def smoothed(self, v: int) -> tuple[float, float]:
        """The smoothed target q in two numbers: one that each token gets, one that the gold token gets besides."""
        spread = self.epsilon / (v - 1)
        return spread, 1 - self.epsilon - spread

    def count_correct(self, logits: Tensor, gold: Tensor) -> None:
        """Count the rows of logits [R, V] that are largest at their gold token [R, 1], where that is no padding.

        Before the logits turn into probabilities, in place: two of them that differ may round to one probability.
        """
        if self.n_correct is None:
            return
        # On a CPU PyTorch looks at one number after another, which takes as long as two softmaxes; NumPy at a vector.
        by_numpy = logits.device.type == "cpu" and logits.dtype != torch.bfloat16
        best = torch.from_numpy(logits.numpy().argmax(1)) if by_numpy else logits.argmax(1)
        self.n_correct.add_(((best.unsqueeze(1) == gold) & (gold != PAD)).sum())


def _exact(rows: Tensor) -> torch.dtype:
    """The type of sums, and of what is made of logits in between."""
    return rows.dtype if rows.dtype == torch.float64 else torch.float32


def _make(hidden: Tensor, weight: Tensor, target: Tensor, asked: _Asked) -> Made:
    """Both sums for hidden [N, D], in the way that suits their size."""
    device = hidden.device.type
    exact = _exact(hidden)
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else exact
    n_logits = hidden.shape[0] * weight.shape[0]
    make = _on_gpu if hidden.is_cuda else _at_once if n_logits * exact.itemsize <= AT_ONCE_BYTES else _in_chunks
    with torch.autocast(device, enabled=False):
        return make(hidden.to(dtype), weight.to(dtype), target, asked)


def _at_once(rows: Tensor, matrix: Tensor, target: Tensor, asked: _Asked) -> Made:
    """All logits in one chunk."""
    v, exact = matrix.shape[0], _exact(rows)
    spread, gain = asked.smoothed(v)
    gold = target.unsqueeze(1)
    real = (gold != PAD).to(exact)
    logits = (rows @ matrix.T).to(exact)
    gold_logit, sum_logits = logits.gather(1, gold), logits.sum(1, keepdim=True)
    top = logits.amax(1, keepdim=True)
    asked.count_correct(logits, gold)
    p = logits.sub_(top).exp_()  # in place of the logits, not yet divided by their sum
    z = p.sum(1, keepdim=True)
    log_z = z.log() + top
    gold_nll = log_z - gold_logit
    nll = (real * gold_nll).sum()
    loss = (real * (gain * gold_nll + spread * (v * log_z - sum_logits))).sum()
    if not asked.needs_gradient:
        return loss, nll, None, None
    d_logits = p.mul_(real / z).sub_(real * spread).scatter_add_(1, gold, -gain * real).to(rows.dtype)
    return loss, nll, d_logits @ matrix, (d_logits.T @ rows).to(exact)


def _in_chunks(rows: Tensor, matrix: Tensor, target: Tensor, asked: _Asked) -> Made:
    """The same by chunks, few so that the gradient of the matrix is seldom added to, and in strips within them.

    Equal to `_at_once` up to the rounding of sums that are made in another order.
    """
    n, v, exact = rows.shape[0], matrix.shape[0], _exact(rows)
    spread, gain = asked.smoothed(v)
    kept = (target != PAD).nonzero().squeeze(1)
    rows, gold = rows[kept], target[kept].unsqueeze(1)
    gold_logit, sum_logits, log_z = rows.new_empty(3, len(rows), 1, dtype=exact).unbind()
    d_rows = torch.empty_like(rows)
    d_weight: Tensor | None = None
    narrow = rows.dtype != exact

    n_chunks = max(1, -(-len(rows) // CHUNK))
    chunk = max(1, -(-len(rows) // n_chunks))  # all alike
    strip = max(1, torch.get_num_threads() * STRIP_BYTES // (v * exact.itemsize))
    memory, widened = rows.new_empty(chunk, v), rows.new_empty(strip if narrow else 0, v, dtype=exact)
    for i in range(0, len(rows), chunk):
        part = slice(i, min(i + chunk, len(rows)))
        logits = torch.mm(rows[part], matrix.T, out=memory[: part.stop - i])
        for j in range(i, part.stop, strip):
            few = slice(j, min(j + strip, part.stop))
            here = logits[few.start - i : few.stop - i]
            p = widened[: len(here)].copy_(here) if narrow else here
            torch.gather(p, 1, gold[few], out=gold_logit[few])
            torch.sum(p, 1, keepdim=True, out=sum_logits[few])
            top = p.amax(1, keepdim=True)
            asked.count_correct(p, gold[few])
            torch.softmax(p, 1, out=p)
            torch.sub(top, p.amax(1, keepdim=True).log_(), out=log_z[few])  # the largest p is 1 / z
            if asked.needs_gradient:
                p.sub_(spread).scatter_add_(1, gold[few], torch.full_like(top, -gain))
                if narrow:
                    here.copy_(p)
        if asked.needs_gradient:
            torch.mm(logits, matrix, out=d_rows[part])
            if narrow:  # its products are up to twice as fast if nothing as wide as V has to be turned round
                made = (rows[part].T.contiguous() @ logits).T
                d_weight = made.to(exact) if d_weight is None else d_weight.add_(made)
            else:
                d_weight = logits.T @ rows[part] if d_weight is None else d_weight.addmm_(logits.T, rows[part])

    gold_nll = log_z - gold_logit
    nll = gold_nll.sum()
    loss = (gain * gold_nll + spread * (v * log_z - sum_logits)).sum()
    if not asked.needs_gradient:
        return loss, nll, None, None
    d_hidden = rows.new_zeros(n, rows.shape[1]).index_copy_(0, kept, d_rows)
    d_weight = matrix.new_zeros(matrix.shape, dtype=exact) if d_weight is None else d_weight.contiguous()
    return loss, nll, d_hidden, d_weight


def _on_gpu(rows: Tensor, matrix: Tensor, target: Tensor, asked: _Asked) -> Made:
    """The same by large chunks, padding included: to ask how much is real is to wait for the answer.

    Between its products a chunk is read once for its sums and once to turn it into the gradient, in place.
    """
    v, exact = matrix.shape[0], _exact(rows)
    spread, gain = asked.smoothed(v)
    loss, nll = rows.new_zeros(2, dtype=exact).unbind()
    d_hidden, d_weight = torch.empty_like(rows), matrix.new_zeros(matrix.shape, dtype=exact)
    is_compiled = rows.is_cuda and asked.needs_gradient and why_not() is None
    softmax = _softmax_and_gradient if asked.needs_gradient else _softmax
    if is_compiled:
        softmax = program(_softmax_and_gradient)
    chunk_bytes = GPU_CHUNK_BYTES if is_compiled else GPU_CHUNK_BYTES // AS_IT_IS
    chunk = max(1, chunk_bytes // (v * rows.itemsize))
    for begin in range(0, len(rows), chunk):
        part, gold = rows[begin : begin + chunk], target[begin : begin + chunk]
        logits = part @ matrix.T
        asked.count_correct(logits, gold.unsqueeze(1))  # a pass more, of what is only read
        log_z, gold_logit, sum_logits = softmax(logits, gold, spread, gain, exact)
        real = (gold != PAD).to(exact)
        gold_nll = log_z - gold_logit
        nll = nll + (real * gold_nll).sum()
        loss = loss + (real * (gain * gold_nll + spread * (v * log_z - sum_logits))).sum()
        if asked.needs_gradient:
            torch.mm(logits, matrix, out=d_hidden[begin : begin + len(part)])
            d_weight += (logits.T @ part).to(exact)
    return (loss, nll, d_hidden, d_weight) if asked.needs_gradient else (loss, nll, None, None)


def _softmax(
    logits: Tensor, gold: Tensor, spread: float, gain: float, exact: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """log z, the gold logit and the sum of each row, for what is only read."""
    x = logits.to(exact)
    return x.logsumexp(1), x.gather(1, gold[:, None]).squeeze(1), x.sum(1)


def _softmax_and_gradient(
    logits: Tensor, gold: Tensor, spread: float, gain: float, exact: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Turn logits [R, V] into p - q, zero at padding, for gold [R]; log z, the gold logit and the sum, each [R].

    Written to be compiled: one pass for the sums, one for p - q, whatever there is of [R, V] in between in registers.
    """
    x = logits.to(exact)
    top = x.amax(1, keepdim=True)
    log_z = (x - top).exp().sum(1, keepdim=True).log() + top
    gold_logit, sum_logits = x.gather(1, gold[:, None]), x.sum(1)
    is_gold = torch.arange(x.shape[1], device=x.device) == gold[:, None]
    logits.copy_(((x - log_z).exp() - spread - gain * is_gold.to(exact)) * (gold != PAD)[:, None])
    return log_z.squeeze(1), gold_logit.squeeze(1), sum_logits
