"""Label-smoothed cross-entropy of the pieces that follow, straight from the decoder's output. Paper: section 5.4.

N positions, D d_model, V vocabulary. As in the first public code the gold piece gets 1 - epsilon and each of the
V - 1 others epsilon / (V - 1), the padding piece included; positions whose target is padding count for nothing.
The constant that code subtracts (the entropy of the smoothed target) is left in: it changes no gradient.
"""

from typing import Any

import torch
from torch import Tensor

from repro.symbols import PAD

CHUNK_BYTES = 2**24  # logits alive at once; small enough to stay near the processor's cache


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


class _LinearCrossEntropy(torch.autograd.Function):
    """Softmax matrix and loss in one, a few rows of logits at a time.

    The gradient with respect to the logits, p - q, is known as soon as p is: it is made in place of the logits and
    multiplied on, so the [N, V] logits never exist as a whole, forward or backward.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, target: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
        device = hidden.device.type
        exact = hidden.dtype if hidden.dtype == torch.float64 else torch.float32
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else exact
        needs_gradient = hidden.requires_grad or weight.requires_grad
        n, v = hidden.shape[0], weight.shape[0]
        spread = epsilon / (v - 1)
        gain = 1 - epsilon - spread  # q = spread everywhere, plus gain on the gold piece

        with torch.autocast(device, enabled=False):
            rows, matrix = hidden.detach().to(dtype), weight.detach().to(dtype)
            loss, nll = rows.new_zeros((), dtype=exact), rows.new_zeros((), dtype=exact)
            d_hidden = torch.empty_like(rows) if needs_gradient else None
            d_weight = torch.zeros_like(weight, dtype=exact) if needs_gradient else None
            chunk = max(1, CHUNK_BYTES // (exact.itemsize * v))
            for i in range(0, n, chunk):
                part = slice(i, min(i + chunk, n))
                gold = target[part].unsqueeze(1)
                real = (gold != PAD).to(exact)
                logits = (rows[part] @ matrix.T).to(exact)
                gold_logit, sum_logits = logits.gather(1, gold), logits.sum(1, keepdim=True)
                top = logits.amax(1, keepdim=True)
                p = logits.sub_(top).exp_()  # in place of the logits, not yet divided by their sum
                z = p.sum(1, keepdim=True)
                log_z = z.log() + top
                gold_nll = log_z - gold_logit
                nll += (real * gold_nll).sum()
                loss += (real * (gain * gold_nll + spread * (v * log_z - sum_logits))).sum()
                if d_hidden is not None and d_weight is not None:
                    d_logits = p.mul_(real / z).sub_(real * spread).scatter_add_(1, gold, -gain * real).to(dtype)
                    torch.mm(d_logits, matrix, out=d_hidden[part])
                    d_weight += d_logits.T @ rows[part]
        ctx.save_for_backward(d_hidden, d_weight)
        ctx.dtype = hidden.dtype
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        d_hidden, d_weight = ctx.saved_tensors
        return (d_hidden * d_outputs[0]).to(ctx.dtype), d_weight * d_outputs[0], None, None
