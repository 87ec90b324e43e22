"""What tests draw and compare: numbers, sentences, PyTorch's own layers around our weights, and narrow products."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from repro.data.shards import Encoded
from repro.model.attention import MultiHeadAttention
from repro.model.bfloat16 import ThroughFloat32, bfloat16_products
from repro.model.layers import DecoderLayer, EncoderLayer
from repro.model.special_tokens import EOS, PAD

V = 23  # ids of `tokens`


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def exactly(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def tokens(*shape: int, n: int = V) -> Tensor:
    """Random ids without padding."""
    return torch.randint(EOS, n, shape)


def shifted(target: Tensor) -> Tensor:
    """What the decoder reads: padding first, then all but the last token."""
    return F.pad(target[:, :-1], (1, 0), value=PAD)


def same(found: object, expected: object, atol: float = 1e-12) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=atol)


def drawn(layer: Any) -> Any:
    """The layer in float64, all parameters drawn: where biases are zero and norms one, a lost one goes unseen."""
    layer.double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


def with_vectors_drawn(model: Any) -> Any:
    """A whole model, biases and norms drawn too; matrices as they begin."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=float(name.endswith(("weight", "gain")) and "norm" in name), std=0.3)
    return model


def is_glorot(weight: Tensor, fan_in: int, fan_out: int, close: float = 0.03) -> bool:
    """Whether the numbers fill -b to b evenly, b = sqrt(6 / (fan_in + fan_out))."""
    bound = math.sqrt(6 / (fan_in + fan_out))
    spread = weight.std().item() * math.sqrt(3) / bound  # 1 for an even distribution
    return (1 - close) * bound < weight.abs().max().item() <= bound and abs(spread - 1) < close


def library_attention(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    library = nn.MultiheadAttention(ours.output.out_features, ours.n_heads, batch_first=True).double()
    library.in_proj_weight, library.in_proj_bias = ours.weight, ours.bias
    library.out_proj.weight, library.out_proj.bias = ours.output.weight, ours.output.bias
    return library


def library_layer(ours: EncoderLayer | DecoderLayer) -> nn.Module:
    """PyTorch's own layer, which holds our parameters. In training mode its fast path for inference stays out of it."""
    first, second = ours.feed_forward[0], ours.feed_forward[2]
    kind = nn.TransformerDecoderLayer if isinstance(ours, DecoderLayer) else nn.TransformerEncoderLayer
    sizes = first.in_features, ours.self_attention.n_heads, first.out_features
    layer = kind(*sizes, dropout=0.0, layer_norm_eps=1e-6, batch_first=True)
    layer.self_attn = library_attention(ours.self_attention)
    if isinstance(ours, DecoderLayer):
        layer.multihead_attn = library_attention(ours.cross_attention)
    layer.linear1, layer.linear2 = first, second
    for i, norm in enumerate(ours.norms, start=1):
        setattr(layer, f"norm{i}", norm)
    return layer


# Both ways in which products of bfloat16 are made


CPU = torch.device("cpu")
MADE_OF_PRODUCTS = {"linear", "matmul", "mv", "dot", "lstm", "gru", "conv1d", "conv2d"}  # seen whole in inference mode
Products = Callable[[], AbstractContextManager[None]]


class NoneOfBfloat16(TorchDispatchMode):
    """Refuses every product of bfloat16 that comes to PyTorch: what its own count of operations knows, and the LSTM."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func.overloadpacket
        if packet in flop_registry or "rnn" in packet.__name__ or packet.__name__ in MADE_OF_PRODUCTS:
            narrow = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor) and leaf.itemsize == 2]
            assert not narrow, f"{func} reads bfloat16"
        return func(*args, **kwargs)


@contextmanager
def through_float32() -> Iterator[None]:
    """As on a processor without bfloat16, whatever this one has."""
    with NoneOfBfloat16(), ThroughFloat32():
        yield


def as_here() -> AbstractContextManager[None]:
    """As on this processor."""
    return bfloat16_products(CPU)


both_ways = pytest.mark.parametrize("products", [as_here, through_float32])


# Sides of a text in memory


def encoded(sentences: Iterable[Sequence[int]]) -> Encoded:
    """These sentences, each with its end behind it, stored as text on disk is: 16 bits a token."""
    ended = [np.array([*sentence, EOS], np.uint16) for sentence in sentences]
    return Encoded(np.concatenate([np.empty(0, np.uint16), *ended]), np.cumsum([0, *map(len, ended)]))
