"""What every system must keep: the past alone decides, padding changes nothing, a search sees what training saw."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from toy_system import Toy

from repro.model.attention import Mixing, ScaledDotProduct, SelfAttention
from repro.model.build import build, reads_ragged, sketched
from repro.model.config import Hyper
from repro.model.embedding import SinusoidalPositions, TiedEmbedding
from repro.model.layers import NORM_EPS, FeedForward, PostNorm
from repro.model.loss import smoothed_cross_entropy
from repro.model.protocol import MEMBERS, Plain, PlainState, refuse_incomplete
from repro.model.ragged import pack, paired
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer

B, S, T, V = 3, 7, 5, 23
HYPER = Hyper(n_layers=2, d_model=14, d_ff=11, n_heads=3, d_k=2, d_v=5, dropout=0.0)


class Unscaled(Mixing):
    """softmax(q k^T)."""

    def weights(self, q_BHQE: Tensor, k_BHKE: Tensor, bias: Tensor | None) -> Tensor:
        scores = q_BHQE @ k_BHKE.transpose(-2, -1)
        return (scores if bias is None else scores + bias).softmax(-1)


class PreNorm(PostNorm):
    """x + Dropout(Sublayer(LayerNorm(x))), and a norm after each stack."""

    @staticmethod
    def after_stack(d_model: int) -> nn.Module:
        return nn.LayerNorm(d_model, eps=NORM_EPS)

    @staticmethod
    def around(
        x: Tensor, sub_layer: Callable[[Tensor], Tensor], norm: nn.Module, dropout: Callable[[Tensor], Tensor]
    ) -> Tensor:
        return x + dropout(sub_layer(norm(x)))


class NoPositions(nn.Module):
    """Zero, wherever a token stands."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    def forward(self, start: int, stop: int) -> Tensor:
        return torch.zeros(stop - start, self.d_model)


class Gated(FeedForward):
    """The network's output, halved."""

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = super().forward(x)
        return made / 2


class PlainTransformer(Transformer):
    """The Transformer with the plain state: the oracle of its own caches."""

    def start(self, source: Tensor) -> Any:
        return PlainState.begun(self, source)  # type: ignore[arg-type]

    def advance(self, ids: Tensor, cache: Any) -> Any:
        return cache.advance(self, ids)


class HalvedValues(SelfAttention):
    """Self-attention to half of each value."""

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(x)
        return q, k, v / 2


VARIANTS = {
    "unscaled": partial(Transformer, mix=Unscaled),
    "unscaled to the source": partial(Transformer, mix_source=Unscaled),
    "halved values": partial(Transformer, self_attention=HalvedValues),
    "pre-norm": partial(Transformer, around=PreNorm),
    "no positions": partial(Transformer, positions=NoPositions),
    "gated": partial(Transformer, feed_forward=Gated),
}
SYSTEMS: dict[str, Any] = {"Transformer": None, "toy": Toy, "deep toy": partial(Toy, depth=3), **VARIANTS}
everywhere = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)


def made(system: Any) -> Any:
    """In float64, biases and norms drawn too."""
    model = build(system, HYPER, V).double().eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=float(name.endswith("weight") and "norm" in name), std=0.3)
    return model


def tokens(*shape: int) -> Tensor:
    return torch.randint(EOS, V, shape)


def shifted(target: Tensor) -> Tensor:
    return F.pad(target[:, :-1], (1, 0), value=PAD)


def hidden(model: Any, source: Tensor, decoder_in: Tensor) -> Tensor:
    found: Tensor = model.decode(decoder_in, model.encode(source), source)
    return found


def same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@everywhere
def test_the_past_alone_decides(system: Any) -> None:
    model, source, decoder_in = made(system), tokens(B, S), shifted(tokens(B, T))
    expected = hidden(model, source, decoder_in)
    assert expected.shape == (B, T, HYPER.d_model)
    for t in range(1, T):
        other = decoder_in.clone()
        other[:, t:] = EOS + (other[:, t:] - EOS + 1) % (V - EOS)
        found = hidden(model, source, other)
        same(found[:, :t], expected[:, :t])
        assert (found[:, t] != expected[:, t]).any()


@everywhere
def test_padding_changes_nothing(system: Any) -> None:
    model, source, decoder_in = made(system), tokens(B, S), shifted(tokens(B, T))
    source[1, 4:] = PAD
    expected = hidden(model, source, decoder_in)
    same(hidden(model, source[1:2, :4], decoder_in[1:2]), expected[1:2])
    same(hidden(model, F.pad(source, (0, 3), value=PAD), F.pad(decoder_in, (0, 2), value=PAD))[:, :T], expected)


@everywhere
def test_a_search_sees_what_training_saw(system: Any) -> None:
    model, source = made(system), tokens(B, S)
    source[1, 4:] = PAD
    rows = torch.tensor([0, 0, 1, 1, 2, 2])
    begun, more = shifted(tokens(2 * B, 3)), tokens(4, 2)
    order = torch.tensor([1, 0, 3, 3, 4, 5])  # hypotheses change places, and one takes another's
    with torch.no_grad():
        states = [model.start(source), PlainState.begun(model, source)]
        steps: list[list[Tensor]] = [[], []]
        for which, state in enumerate(states):
            advance = model.advance if which == 0 else lambda ids, state: state.advance(model, ids)
            state = state.reorder(rows)
            for ids in begun.T:
                found, state = advance(ids, state)
                steps[which].append(found)
            state = state.reorder(order).keep(torch.tensor([2, 0]))  # sentence 1 is done
            for ids in more.T:
                found, state = advance(ids, state)
                steps[which].append(found)
        for one, other in zip(*steps, strict=True):
            same(one, other)
        whole = torch.cat([begun[order][[4, 5, 0, 1]], more], dim=1)
        same(torch.stack(steps[0][3:], dim=1), hidden(model, source[[2, 2, 0, 0]], whole)[:, 3:])


@everywhere
def test_gradients_reach_all_and_begin_at_a_guess(system: Any) -> None:
    model, source, target = build(system, HYPER, V), tokens(B, S), tokens(B, T)
    loss, _ = smoothed_cross_entropy(hidden(model, source, shifted(target)), model.embedding.weight, target, 0.1)
    loss.backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@everywhere
def test_prepacked_weights_give_the_same(system: Any) -> None:
    model, source = build(system, HYPER, V).eval(), tokens(B, S)
    with torch.no_grad():
        expected, _ = model.advance(tokens(B) * 0, model.start(source))
        with model.prepacked(torch.float32):
            found, _ = model.advance(tokens(B) * 0, model.start(source))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@everywhere
def test_ragged_batches_are_read_by_those_that_say_so(system: Any) -> None:
    toys = (Toy, SYSTEMS["deep toy"])
    assert reads_ragged(system) == (system not in (*toys, *map(SYSTEMS.get, ("unscaled", "unscaled to the source")))), (
        "the kernel knows the paper's alone"
    )
    if system in toys or system is SYSTEMS["no positions"]:
        return
    model, source, target = made(system), tokens(2, S), shifted(tokens(2, T))
    source[1, 4:] = PAD
    flat = torch.cat([source[0], source[1, :4]])
    ragged_source, ragged_in = paired(pack(flat, torch.tensor([S, 4])), pack(target.flatten(), torch.tensor([T, T])))
    expected = hidden(model, source, target).flatten(0, 1)
    same(model.decode(ragged_in, model.encode(ragged_source), ragged_source)[: 2 * T], expected)


@pytest.mark.parametrize("name", VARIANTS)
def test_what_is_handed_over_is_used_and_the_default_is_the_papers(name: str) -> None:
    plain, source, decoder_in = made(None), tokens(B, S), shifted(tokens(B, T))
    other = made(VARIANTS[name])
    other.load_state_dict(plain.state_dict(), strict=False)
    assert not torch.allclose(hidden(other, source, decoder_in), hidden(plain, source, decoder_in))
    assert (plain.in_ctranslate2, other.in_ctranslate2) == (True, False)


def test_the_parts_of_the_paper_handed_over_change_no_bit() -> None:
    torch.manual_seed(3)
    plain = Transformer(HYPER, V)
    torch.manual_seed(3)
    parts = {"mix": ScaledDotProduct, "mix_source": ScaledDotProduct, "around": PostNorm}
    parts |= {"positions": SinusoidalPositions, "self_attention": SelfAttention, "feed_forward": FeedForward}
    other = Transformer(HYPER, V, **parts)  # type: ignore[arg-type]
    source, decoder_in = tokens(B, S), shifted(tokens(B, T))
    assert torch.equal(hidden(plain, source, decoder_in), hidden(other, source, decoder_in))
    assert plain.state_dict().keys() == other.state_dict().keys()


def test_no_positions_leave_the_order_of_the_source_out() -> None:
    model, source, decoder_in = made(VARIANTS["no positions"]), tokens(B, S), shifted(tokens(B, T))
    same(hidden(model, source.flip(1), decoder_in), hidden(model, source, decoder_in))


def test_pre_norm_is_the_sum_and_its_norm() -> None:
    model, source = made(VARIANTS["pre-norm"]), tokens(B, S)
    x = model.embedding(source) + model.source_positions(0, S)
    for layer in model.encoder:
        x = x + layer.self_attention(layer.norms[0](x))
        x = x + layer.feed_forward(layer.norms[1](x))
    same(model.encode(source), model.encoder_end(x))


@pytest.mark.parametrize("missing", MEMBERS)
def test_what_lacks_a_member_is_refused_by_name(missing: str) -> None:
    class Complete(nn.Module):
        pass

    model = Complete()
    for name in MEMBERS:
        if name != missing:
            object.__setattr__(model, name, TiedEmbedding(V, 4) if name == "embedding" else lambda: None)
    with pytest.raises(ValueError, match=rf"^Complete lacks {missing}: expected a system with embedding, encode"):
        refuse_incomplete(model)


def test_a_plain_system_still_needs_its_own_three() -> None:
    with pytest.raises(ValueError, match=r"^Plain lacks embedding, encode, decode: "):
        refuse_incomplete(Plain())


def test_a_sketch_takes_no_memory() -> None:
    assert {parameter.device.type for parameter in sketched(Toy, HYPER, 10**9).parameters()} == {"meta"}
