"""Sentences in a row are the sentences of a padded batch, and give the same numbers."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model.samples import encoded
from torch import Tensor
from torch.nn.attention import varlen

from repro.data.batch import Batch, make_batch
from repro.model import attention, masks
from repro.model.attention import ScaledDotProduct
from repro.model.config import Hyper
from repro.model.loss import smoothed_cross_entropy
from repro.model.masks import Ragged, RaggedMask, pack
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer

V = 19
HYPER = Hyper(n_layers=2, d_model=12, d_ff=10, n_heads=3, d_k=2, d_v=5, dropout=0.0)
LENGTHS = [5, 1, 3, 7, 2], [2, 6, 4, 1, 3]


@pytest.fixture(autouse=True)
def _rounded_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "ROUND", 16)  # 18 and 16 tokens: with and without padding at the end


def batch(*, packed: bool, sentences: Sequence[int] = range(5)) -> Batch:
    """Five pairs, or some of them."""
    random = np.random.default_rng(0)
    sides = (encoded([random.integers(EOS + 1, V, n - 1) for n in lengths]) for lengths in LENGTHS)
    return make_batch(*sides, np.array(sentences, np.int64), n_update=sum(LENGTHS[1]), packed=packed)


@given(st.lists(st.integers(0, 9), max_size=9), st.integers(1, 40))
@settings(max_examples=200)
def test_what_is_packed_can_be_read_back(lengths: list[int], to: int) -> None:
    masks.ROUND = to
    ids = torch.arange(2, 2 + sum(lengths))
    found = pack(ids, torch.tensor(lengths, dtype=torch.int64))
    ends = found.ends.tolist()
    sentences = [found.ids[i:j].tolist() for i, j in itertools.pairwise(ends)]
    assert sentences[: len(lengths)] == [row.tolist() for row in ids.split(lengths)]
    assert found.numel() == ends[-1] == len(found.position)
    assert found.numel() % to == 0
    assert 0 < found.numel() < sum(lengths) + to + (not sum(lengths))
    assert found.ids[sum(lengths) :].eq(PAD).all()
    sizes = found.ends.diff()
    assert found.position.tolist() == [place for n in sizes.tolist() for place in range(n)]
    assert int(sizes.max()) <= found.longest
    assert found.ends.dtype == torch.int32  # the kernel's


def losses(model: Transformer, of: Batch) -> list[Tensor]:
    """Loss, nll and every gradient."""
    model.zero_grad()
    hidden = model.decode(of.decoder_in, model.encode(of.source), of.source)
    loss, nll = smoothed_cross_entropy(hidden.flatten(0, -2), model.embedding.weight, of.target.flatten(), 0.1)
    loss.backward()
    return [loss.detach(), nll, *(parameter.grad.clone() for parameter in model.parameters())]  # type: ignore[union-attr]


@pytest.mark.parametrize("learned", [False, True])
def test_packed_equals_padded(learned: bool) -> None:
    torch.manual_seed(0)
    model = Transformer(replace(HYPER, learned_positions=learned), V).double()
    padded, in_a_row = batch(packed=False), batch(packed=True)
    assert isinstance(in_a_row.source, Ragged)
    assert (in_a_row.source.numel(), in_a_row.target.numel()) == (32, 16)
    assert in_a_row.slots == 48
    assert len(in_a_row.source.ends) == len(in_a_row.target.ends)  # though one side needs sentences to fill up
    for expected, found in zip(losses(model, padded), losses(model, in_a_row), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_an_empty_share_is_padding_and_weighs_nothing() -> None:
    model = Transformer(HYPER, V).double()
    loss, _, *gradients = losses(model, batch(packed=True, sentences=[]))
    assert loss == 0
    assert not any(gradient.any() for gradient in gradients)


class Kernel:
    """Stands where the GPU's kernel stands, by the rules and the limits of FlashAttention, sentence by sentence."""

    def __init__(self) -> None:
        self.width = 0

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, ends_q: Tensor, ends_k: Tensor, max_q: int, max_k: int,
        *, scale: float, window_size: tuple[int, int],
    ) -> Tensor:  # fmt: skip
        assert q.shape[1:] == k.shape[1:] == v.shape[1:]
        assert window_size in ((-1, -1), (-1, 0))
        if q.shape[2] > 256 or q.shape[2] % 8:
            raise RuntimeError("FlashAttention forward only supports head dimension at most 256")
        self.width = q.shape[2]
        out = []
        for i in range(len(ends_q) - 1):
            queries, keys = slice(int(ends_q[i]), int(ends_q[i + 1])), slice(int(ends_k[i]), int(ends_k[i + 1]))
            assert queries.stop - queries.start <= max_q
            assert keys.stop - keys.start <= max_k
            scores = torch.einsum("qhe,khe->hqk", q[queries], k[keys]) * scale
            if window_size == (-1, 0):
                scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
            out.append(torch.einsum("hqk,khe->qhe", scores.softmax(-1), v[keys]))
        return torch.cat(out)


@pytest.mark.parametrize(("d_k", "d_v", "width"), [(2, 5, 8), (16, 9, 16), (8, 8, 8)])
@pytest.mark.parametrize("causal", [False, True])
def test_the_kernel_is_asked_for_what_the_padded_way_computes(
    monkeypatch: pytest.MonkeyPatch, d_k: int, d_v: int, width: int, causal: bool
) -> None:
    kernel = Kernel()
    monkeypatch.setattr(varlen, "varlen_attn", kernel)
    monkeypatch.setattr(attention, "has_kernel", lambda q, d_v: True)
    ends = torch.tensor([0, 4, 5, 12], dtype=torch.int32)
    other = ends if causal else torch.tensor([0, 2, 8, 11], dtype=torch.int32)
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(3, int(n[-1]), d_k, generator=generator, dtype=torch.float64) for n in (ends, other))
    v = torch.randn(3, int(other[-1]), d_v, generator=generator, dtype=torch.float64)
    spans = RaggedMask(ends, other, 7, 7, causal)
    mixing = ScaledDotProduct(n_heads=3, d_k=d_k, d_v=d_v)
    found = attention.ragged_attention(mixing, q, k, v, spans)
    assert kernel.width == width
    monkeypatch.setattr(attention, "has_kernel", lambda q, d_v: False)
    torch.testing.assert_close(found, attention.ragged_attention(mixing, q, k, v, spans), rtol=1e-12, atol=1e-12)


class OnCard(Tensor):
    """Says that it lies on a card."""

    is_cuda = True  # type: ignore[assignment]


def on_card(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], *shape: int, dtype: torch.dtype) -> Tensor:
    """An empty tensor on a card of that compute capability, which this machine need not have."""
    properties = SimpleNamespace(major=capability[0], minor=capability[1])
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda device: properties)
    return torch.empty(shape, dtype=dtype).as_subclass(OnCard)


@pytest.mark.parametrize(
    ("capability", "d_k", "d_v", "dtype", "taken"),
    [
        ((9, 0), 64, 64, torch.bfloat16, True),
        ((8, 0), 256, 256, torch.bfloat16, True),
        ((12, 0), 8, 8, torch.float16, True),
        ((9, 0), 512, 512, torch.bfloat16, False),  # h=1 of Table 3 (A)
        ((9, 0), 64, 257, torch.bfloat16, False),
        ((7, 5), 64, 64, torch.float16, False),  # T4
        ((9, 0), 64, 64, torch.float32, False),
    ],
)
def test_the_kernel_takes_heads_up_to_256_wide_on_cards_from_8_0(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], d_k: int, d_v: int, dtype: torch.dtype, taken: bool
) -> None:
    assert attention.has_kernel(on_card(monkeypatch, capability, 3, 5, d_k, dtype=dtype), d_v) is taken


@pytest.mark.parametrize("d_k", [300, 2])
def test_a_head_that_the_kernel_refuses_goes_the_padded_way(monkeypatch: pytest.MonkeyPatch, d_k: int) -> None:
    monkeypatch.setattr(varlen, "varlen_attn", Kernel())
    own = attention.has_kernel
    card = on_card(monkeypatch, (9, 0), 1, dtype=torch.bfloat16)
    monkeypatch.setattr(attention, "has_kernel", lambda q, d_v: own(card.new_empty(q.shape).as_subclass(OnCard), d_v))
    model = Transformer(replace(HYPER, n_heads=1, d_k=d_k, d_v=300), V).double()
    for expected, found in zip(losses(model, batch(packed=False)), losses(model, batch(packed=True)), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
