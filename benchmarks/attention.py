"""Attention on a CPU: two plain products against PyTorch's fused kernel, forward and backward.

Both sides take turns on the same tensors, so other work on the machine slows both alike. It prints medians over the
turns and their ratio. The result decides that `repro.model.attention.attention` uses the plain products on a CPU.

Run:  python benchmarks/attention.py            (about a minute)
"""

import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from command import new_parser, save, show
from torch import Tensor

from repro.model.attention import attention_weights
from repro.training import cpu_tuning

SIZES = (  # sentences, tokens, heads, width of one head
    (64, 8, 8, 8),
    (64, 28, 8, 16),
    (16, 100, 8, 16),
    (64, 28, 8, 64),
    (8, 256, 8, 64),
)


def plain(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(d_k) + bias) v, as two products."""
    return attention_weights(q, k, bias) @ v


def fused(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """The same by one call of PyTorch's fused kernel."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def seconds(side: Callable[..., Tensor], tensors: tuple[Tensor, ...], bias: Tensor) -> float:
    """Processor time of one forward and backward pass; other work on the machine affects it little."""
    started = time.process_time()
    side(*tensors, bias).sum().backward(retain_graph=True)
    return time.process_time() - started


def main() -> None:
    """Print a line for each size."""
    parser = new_parser(__doc__)
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    lines = []
    print("tuned:", ", ".join(cpu_tuning.tune(0)) or "nothing", f"; {options.threads} threads")
    for b, t, h, d in SIZES:
        torch.manual_seed(0)
        # laid out as the model's single projection leaves them: heads separated by strides, not copied
        qkv = torch.randn(b, t, 3 * h * d, requires_grad=True)
        q, k, v = (part.unflatten(-1, (h, d)).transpose(1, 2) for part in qkv.split(h * d, dim=-1))
        may_see = torch.arange(t) < torch.randint(max(1, t // 2), t + 1, (b, 1, 1, 1))
        bias = torch.where(may_see, 0.0, torch.finfo(torch.float32).min / 2)
        difference = (plain(q, k, v, bias) - fused(q, k, v, bias)).abs().max().item()
        turns: dict[str, list[float]] = {"plain": [], "fused": []}
        for i in range(options.turns + 3):
            for name, side in (("plain", plain), ("fused", fused)):
                took = seconds(side, (q, k, v), bias)
                if i >= 3:  # after the warm-up
                    turns[name].append(took)
        a, c = (1e3 * statistics.median(times) for times in turns.values())
        lines.append({"B, T, h, d_k": [b, t, h, d], "plain_ms": a, "fused_ms": c, "of_plain": c / a})
        lines[-1]["largest_difference"] = difference
    show(lines)
    save(options.json, {"threads": options.threads, "lines": lines})


if __name__ == "__main__":
    main()
