"""Label-smoothed cross-entropy of the next tokens, straight from the decoder's output. Paper: section 5.4.

N positions, D d_model, V vocabulary. As in the first public code, the gold token gets 1 - epsilon and each of the
V - 1 others epsilon / (V - 1), the padding token included. Positions whose target is padding do not count.
That code also subtracts a constant, the entropy of the smoothed target. Here it stays in: it changes no gradient.

In evaluation, correct predictions are counted beside the loss. A prediction is correct where the gold token has the
largest logit of its row; among equal logits the lowest id is the prediction.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from repro.model.compiled import program, why_not
from repro.model.special_tokens import PAD

# How many logits are made at once; measured with `benchmarks/train.py`.
AT_ONCE_BYTES = 2**24  # up to this size, all of them
CHUNK = 512  # rows at a time above it: each chunk adds to the gradient of the whole matrix, so few chunks are better
STRIP_BYTES = 2**20  # the softmax runs on strips of a chunk that fit into a core's own cache
GPU_CHUNK_BYTES = 2**29  # size of a chunk on a GPU: few chunks are fast, but their size sets the peak of memory
AS_IT_IS = 8  # without compilation a chunk is this many times smaller, as float32 copies of it are made


def smoothed_cross_entropy(hidden: Tensor, weight: Tensor, target: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Sums over the real targets: the smoothed loss (differentiable) and the unsmoothed one (not), in nats.

    hidden [..., D], weight [V, D] (the tied embedding), target int64 [...]. Divide both by the number of targets
    of the whole update, however it is split (`training/module.py`).
    """
    if not torch.is_grad_enabled():
        hidden, weight = hidden.detach(), weight.detach()  # else `forward` would compute a gradient that nobody uses
    loss, nll = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden.flatten(0, -2), weight, target.flatten(), epsilon
    )
    return loss, nll


@torch.no_grad()
def nll_and_correct(hidden: Tensor, weight: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Sums over the real targets: the unsmoothed loss in nats, and how many are predicted correctly (int64).

    Shapes as in `smoothed_cross_entropy`; the loss is bit for bit its unsmoothed one. Divided by the number of
    targets, the two are the logarithm of the perplexity and the accuracy. Paper: section 5.4.
    """
    n_correct = target.new_zeros(())
    rows, gold = hidden.detach().flatten(0, -2), target.flatten()
    _, nll, _, _ = _make(rows, weight.detach(), gold, _Asked(epsilon=0.0, needs_gradient=False, n_correct=n_correct))
    return nll, n_correct


class _LinearCrossEntropy(torch.autograd.Function):
    """Softmax matrix and loss in one function, which computes its gradient in the forward pass.

    The gradient with respect to the logits is p - q, known as soon as p is. It overwrites the logits and is multiplied
    on at once. So the [N, V] logits are never kept, and where they are many they never exist as a whole.
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
    """What to compute from the logits."""

    epsilon: float
    needs_gradient: bool
    n_correct: Tensor | None = None  # the number of correct predictions is added to it

    def smoothed(self, v: int) -> tuple[float, float]:
        """The smoothed target q in two numbers: what each token gets, and what the gold token gets on top."""
        spread = self.epsilon / (v - 1)
        return spread, 1 - self.epsilon - spread

    def count_correct(self, logits: Tensor, gold: Tensor) -> None:
        """Count the rows of logits [R, V] whose largest is at the gold token [R, 1], padding excepted.

        Call it before the logits become probabilities in place: two different logits may round to one probability.
        """
        if self.n_correct is None:
            return
        # PyTorch's argmax on a CPU is not vectorised and takes as long as two softmaxes; NumPy's is.
        by_numpy = logits.device.type == "cpu" and logits.dtype != torch.bfloat16
        best = torch.from_numpy(logits.numpy().argmax(1)) if by_numpy else logits.argmax(1)
        self.n_correct.add_(((best.unsqueeze(1) == gold) & (gold != PAD)).sum())


def _exact(rows: Tensor) -> torch.dtype:
    """The type in which sums and intermediate results are computed: float32, or float64 for float64 inputs."""
    return rows.dtype if rows.dtype == torch.float64 else torch.float32


def _make(hidden: Tensor, weight: Tensor, target: Tensor, asked: _Asked) -> Made:
    """Loss, negative log-likelihood and gradients for hidden [N, D], computed in the way that suits their size."""
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
    p = logits.sub_(top).exp_()  # overwrites the logits; not yet divided by the sum
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
    """The same in chunks, and in strips within a chunk. Few chunks mean few additions to the gradient of the matrix.

    Equal to `_at_once` up to rounding: sums are made in another order.
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
    chunk = max(1, -(-len(rows) // n_chunks))  # all equally large
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
            if narrow:  # products in the narrow type are up to twice as fast if no matrix as wide as V is transposed
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
    """The same in large chunks, padding included: counting the real targets would mean waiting for the GPU.

    Between the matrix products a chunk is read twice: once for its sums, once to turn it into the gradient in place.
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
        asked.count_correct(logits, gold.unsqueeze(1))  # one more pass, in evaluation only
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
    """log z, the gold logit and the sum of each row of logits, for evaluation."""
    x = logits.to(exact)
    return x.logsumexp(1), x.gather(1, gold[:, None]).squeeze(1), x.sum(1)


def _softmax_and_gradient(
    logits: Tensor, gold: Tensor, spread: float, gain: float, exact: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Overwrite logits [R, V] with p - q, zero at padding, for gold [R]; log z, the gold logit and the sum, each [R].

    Written to be compiled: one pass for the sums, one for p - q, with all intermediate [R, V] values in registers.
    """
    x = logits.to(exact)
    top = x.amax(1, keepdim=True)
    log_z = (x - top).exp().sum(1, keepdim=True).log() + top
    gold_logit, sum_logits = x.gather(1, gold[:, None]), x.sum(1)
    is_gold = torch.arange(x.shape[1], device=x.device) == gold[:, None]
    logits.copy_(((x - log_z).exp() - spread - gain * is_gold.to(exact)) * (gold != PAD)[:, None])
    return log_z.squeeze(1), gold_logit.squeeze(1), sum_logits
