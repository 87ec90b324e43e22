"""Both ways in which products of bfloat16 are made, for tests of what is multiplied."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from repro.model.bfloat16 import ThroughFloat32, bfloat16_products

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
