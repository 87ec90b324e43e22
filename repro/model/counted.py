"""Parameters and operations of a row's own system, counted from its module.

The module is made on the `meta` device, where tensors have shapes but no numbers, so it costs neither memory nor time.
Only there does PyTorch count the operations of its recurrent layers (on a CPU it says 0).
"""

from functools import cache
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from repro.model.build import sketched
from repro.model.config import Hyper

_sketched_once = cache(sketched)  # a system may search for its width, which takes longer than counting


@cache
def counted_parameters(system: Any, hyper: Hyper, vocab_size: int) -> int:
    """The number of parameters of the model."""
    return sum(parameter.numel() for parameter in _sketched_once(system, hyper, vocab_size).parameters())


@cache
def counted_flops(
    system: Any, hyper: Hyper, vocab_size: int, sentences: float, source_tokens: float, target_tokens: float
) -> float:
    """Multiplications and additions of training on this much text: forward, and twice that for backward.

    Only matrix products are counted, for a sentence of average length.
    """
    lengths = (source_tokens / sentences, target_tokens / sentences)
    model = _sketched_once(system, hyper, vocab_size).eval()
    model.requires_grad_(False)  # else it looks for gradients of a table
    source, decoder_in = (torch.ones(1, max(1, round(n)), dtype=torch.int64, device="meta") for n in lengths)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.embedding.logits(model.decode(decoder_in, model.encode(source), source))
    return 3.0 * sentences * counter.get_total_flops()
