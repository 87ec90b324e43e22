"""A small model whose sentences end and whose hypotheses are contested: that of `benchmarks/decode.py`."""

from typing import Any

import numpy as np
import pytest
import torch
from benchmark_files import opened

from repro.data.shards import Encoded
from repro.model.config import Hyper
from repro.model.special_tokens import EOS
from repro.model.transformer import Transformer

V = 210  # not a multiple of 32
HYPER = Hyper(n_layers=2, d_model=32, d_ff=64, n_heads=4, d_k=8, d_v=8)
N = 200

decode: Any = opened("decode")


@pytest.fixture(scope="session")
def model() -> Transformer:
    with torch.random.fork_rng():
        return decode.rambling(HYPER, V, length=10, spread=3, heard=3.0)


@pytest.fixture(scope="session")
def text() -> Encoded:
    """N sources of 1 to 15 tokens and their end."""
    random = np.random.default_rng(1)
    return decode.encoded([np.append(random.integers(2, V, n), EOS) for n in random.integers(1, 16, N)])
