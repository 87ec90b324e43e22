"""Parameters and floating-point operations of a row, by arithmetic alone. Paper: tables 2 and 3.

Nothing here builds a model, so `--dry-run` answers at once; a test compares the arithmetic with the modules.
"""

from dataclasses import dataclass
from typing import Any

from repro.model.config import LEARNED_POSITIONS, Hyper

PAPER_VOCABULARY = 40_960
"""Rows of the shared matrix behind the printed parameter counts.

The paper says "about 37000"; with the constant of its first public code, and biases on the projections, ten of the
eleven printed counts come out exactly (`docs/paper_map.md`). The big model's 213 million does not (218.3).
"""


def n_parameters(hyper: Hyper, vocab_size: int, system: Any = None) -> int:
    """The number of parameters, biases and norms included; for a row's own system, counted from the module."""
    if system is not None:
        from repro.model import counted

        return counted.counted_parameters(system, hyper, vocab_size)
    d, heads = hyper.d_model, hyper.n_heads
    projections = heads * (2 * hyper.d_k + hyper.d_v)
    attention = (d + 1) * projections + (heads * hyper.d_v + 1) * d
    feed_forward = (d + 1) * hyper.d_ff + (hyper.d_ff + 1) * d
    norm = 2 * d
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    positions = 2 * LEARNED_POSITIONS * d if hyper.learned_positions else 0
    return vocab_size * d + hyper.n_layers * (encoder + decoder) + positions


@dataclass(frozen=True, kw_only=True)
class TextSizes:
    """The size of a text: sentences, and tokens of both sides with end symbols."""

    sentences: float
    source_tokens: float
    target_tokens: float


def training_flops(hyper: Hyper, vocab_size: int, text: TextSizes, system: Any = None) -> float:
    """Multiplications and additions of training on `text`: forward, and twice that for backward.

    Only matrix products over real tokens count, and the causal half of the decoder's self-attention. All sentences
    are assumed to have average length. For a row's own system, the operations on one such sentence are counted.
    """
    if system is not None:
        from repro.model import counted

        return counted.counted_flops(system, hyper, vocab_size, text.sentences, text.source_tokens, text.target_tokens)
    d, heads = hyper.d_model, hyper.n_heads
    source_length, target_length = text.source_tokens / text.sentences, text.target_tokens / text.sentences
    keys_values, queries = d * heads * (hyper.d_k + hyper.d_v), d * heads * hyper.d_k
    output, feed_forward = heads * hyper.d_v * d, 2 * d * hyper.d_ff
    one_key = heads * (hyper.d_k + hyper.d_v)  # score and weighted sum of one query with one key

    a_source_token = hyper.n_layers * (
        keys_values + queries + output + feed_forward + source_length * one_key  # encoder layer
        + keys_values  # for the decoder's attention to the source
    )  # fmt: skip
    a_target_token = vocab_size * d + hyper.n_layers * (
        keys_values + queries + output + target_length / 2 * one_key  # self-attention
        + queries + output + source_length * one_key  # attention to the source
        + feed_forward
    )  # fmt: skip
    return 3 * 2 * (text.source_tokens * a_source_token + text.target_tokens * a_target_token)
