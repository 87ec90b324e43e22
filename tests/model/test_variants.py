"""What all systems must keep: causal, blind for padding, one in search and training, exact.

All are the variants of the lab, the systems of the ladder, the Transformer and the smallest system. Numbers are float64
unless rounding is what is looked at. The exceptions are known by name, and must be exceptions.
"""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from lab_systems import LADDER_SYSTEMS as LADDER
from lab_systems import NOT_CAUSAL, NOT_CAUSAL_IN_TRAINING, READ_ANEW, VARIANTS
from model.samples import Products, V, as_here, same, shifted, through_float32, tokens, with_vectors_drawn
from torch import Tensor, nn
from toy_system import Toy

from repro.model.ablations.codes import NoPositions
from repro.model.ablations.norms import PreNorm
from repro.model.ablations.parts import Nothing
from repro.model.ablations.scores import UnscaledDot
from repro.model.ablations.sharing import QueriesAreKeys
from repro.model.bfloat16 import without_gradients
from repro.model.build import build, gradient_norm, reads_ragged, sketched
from repro.model.config import LEARNED_POSITIONS, Hyper
from repro.model.cost import n_parameters
from repro.model.counted import counted_parameters
from repro.model.embedding import TiedEmbedding
from repro.model.loss import smoothed_cross_entropy
from repro.model.masks import pack, paired
from repro.model.protocol import MEMBERS, Plain, PlainState, refuse_incomplete
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer
from repro.runs.scales import SCALES

B, S, T = 3, 7, 5
HYPER = Hyper(n_layers=2, d_model=16, d_ff=11, n_heads=3, d_k=2, d_v=5, dropout=0.0)
OF_LADDER = Hyper(n_layers=2, d_model=16, d_ff=32, n_heads=4, d_k=4, d_v=4, dropout=0.0)
LAPTOP = SCALES["laptop"].base
SYSTEMS: dict[str, Any] = {"Transformer": None, "toy": Toy} | VARIANTS | LADDER
IN_KERNEL = {"Transformer", "K = Q", "identical heads", "none", "scalar", "one-hot", "fast sinusoids", "slow sinusoids"}
IN_KERNEL |= {"pre-norm", "no norm", "no residual", "no feed-forward"}
everywhere = pytest.mark.parametrize("name", SYSTEMS)
each_variant = pytest.mark.parametrize("name", VARIANTS)


def small(name: str) -> Any:
    """As it begins, in float32."""
    return build(SYSTEMS[name], OF_LADDER if name in LADDER else HYPER, V)


def made(name: str) -> Any:
    """In float64, biases and norms drawn too."""
    return with_vectors_drawn(small(name).double().eval())


def hidden(model: Any, source: Tensor, decoder_in: Tensor) -> Tensor:
    found: Tensor = model.decode(decoder_in, model.encode(source), source)
    return found


def other_from(t: int, decoder_in: Tensor) -> Tensor:
    """All tokens from t on are others."""
    other = decoder_in.clone()
    other[:, t:] = EOS + (other[:, t:] - EOS + 1) % (V - EOS)
    return other


@everywhere
@pytest.mark.parametrize("training", [False, True])
def test_the_past_alone_decides(name: str, training: bool) -> None:
    model, source, decoder_in = made(name).train(training), tokens(B, S), shifted(tokens(B, T))
    leaks = name in (NOT_CAUSAL_IN_TRAINING if training else NOT_CAUSAL)

    def read(ids: Tensor) -> Tensor:
        torch.manual_seed(5)  # what is drawn in training is drawn again
        return hidden(model, source, ids)

    expected = read(decoder_in)
    assert expected.shape == (B, T, HYPER.d_model)
    changes = [(read(other_from(t, decoder_in)) - expected).abs() for t in range(1, T)]
    before = max(change[:, :t].max().item() for t, change in enumerate(changes, start=1))
    assert before > 1e-6 if leaks else before < 1e-12
    assert all(change[:, t].any() for t, change in enumerate(changes, start=1))


@everywhere
@pytest.mark.parametrize("training", [False, True])
def test_padding_changes_nothing(name: str, training: bool) -> None:
    model, source, decoder_in = made(name).train(training and name != "hard, sampled"), tokens(B, S), tokens(B, T)
    source[1, 4:] = PAD
    decoder_in[:, 0] = PAD
    decoder_in[2, 3:] = PAD
    expected = hidden(model, source, decoder_in)
    wider = hidden(model, F.pad(source, (0, 3), value=PAD), F.pad(decoder_in, (0, 2), value=PAD))
    same(wider[:, :T][[0, 1]], expected[[0, 1]])
    same(wider[2, :3], expected[2, :3])
    if not (training and name == "batch norm"):  # whose sentences meet
        same(hidden(model, source[1:2, :4], decoder_in[1:2]), expected[1:2])
        same(hidden(model, source[2:], decoder_in[2:, :3]), expected[2:, :3])


@pytest.mark.parametrize("name", sorted(IN_KERNEL))
def test_sentences_in_a_row_are_those_of_a_padded_batch(name: str) -> None:
    model, source, target = made(name), tokens(2, S), shifted(tokens(2, T))
    source[1, 4:] = PAD
    flat = torch.cat([source[0], source[1, :4]])
    ragged_source, ragged_in = paired(pack(flat, torch.tensor([S, 4])), pack(target.flatten(), torch.tensor([T, T])))
    found = model.decode(ragged_in, model.encode(ragged_source), ragged_source)
    same(found[: 2 * T], hidden(model, source, target).flatten(0, 1))


@everywhere
def test_a_row_of_padding_alone_gives_numbers(name: str) -> None:
    """It stands in for the share of a process that has no sentence."""
    model, nothing = made(name), torch.full((1, 1), PAD)
    assert hidden(model, nothing, nothing).isfinite().all()
    hidden(model.train(), nothing, nothing).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)


@everywhere
def test_a_state_follows_its_hypotheses_in_any_order(name: str) -> None:
    model, source = made(name), tokens(B, S)
    source[1, 4:] = PAD
    random = np.random.RandomState(0)
    with torch.no_grad():
        state, plain = model.start(source), PlainState.begun(model, source)
        assert isinstance(state, PlainState) == (name in {*READ_ANEW, "toy"})
        n, width = B, 1
        for step in range(6):
            ids = tokens(n * width)
            found, state = model.advance(ids, state)
            expected, plain = plain.advance(model, ids)
            same(found, expected)
            if step in (1, 3):  # sentences leave, and the others change places
                kept = torch.tensor(random.permutation(n)[: n - 1])
                state, plain, n = state.keep(kept), plain.keep(kept), n - 1
            parents = torch.tensor(random.randint(0, width, (n, 3)))  # some hypotheses double, others end
            rows = (torch.arange(n)[:, None] * width + parents).flatten()
            state, plain, width = state.reorder(rows), plain.reorder(rows), 3


@pytest.mark.parametrize("name", ["Transformer", "toy", "soft alignment", "ByteNet"])
def test_weights_laid_out_for_a_search_give_the_same(name: str) -> None:
    model, source, first = small(name).eval(), tokens(B, S), torch.full((B,), PAD)
    with torch.no_grad():
        expected, _ = model.advance(first, model.start(source))
        with model.prepacked(torch.float32):
            found, _ = model.advance(first, model.start(source))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    assert not any({"product", "forward"} & vars(part).keys() for part in model.modules()), "nothing of it is left"


@everywhere
def test_learning_begins_at_a_guess_and_reaches_every_number(name: str) -> None:
    n = 3_000
    model, source, target = build(SYSTEMS[name], LAPTOP, n), tokens(4, 16, n=n), tokens(4, 16, n=n)
    loss, nll = smoothed_cross_entropy(hidden(model, source, shifted(target)), model.embedding.weight, target, 0.1)
    is_a_guess = abs(nll.item() / target.numel() - math.log(n)) < 0.1 * math.log(n)
    assert is_a_guess == (name != "no norm"), f"{nll.item() / target.numel():.2f} nats a token"
    loss.backward()
    still = {of for of, parameter in model.named_parameters() if not parameter.grad.any()}
    assert still == set()
    d_queries = LAPTOP.n_heads * LAPTOP.d_k
    asked = {
        of: bool(part.weight.grad[: 2 * d_queries].any())
        for of, part in model.named_modules()
        if of.endswith("attention") and len(getattr(part, "weight", ())) == 2 * d_queries + LAPTOP.n_heads * LAPTOP.d_v
    }
    assert {*asked.values()} <= {name != "hard"}, "of plain hard attention no gradient reaches W^Q and W^K"


@everywhere
def test_a_checkpoint_holds_all_that_a_step_of_training_changes(name: str) -> None:
    """Its numbers are drawn by the one seeded generator; so what stops goes on as if it had not."""
    hyper = replace(OF_LADDER if name in LADDER else HYPER, dropout=0.3)
    source, decoder_in = tokens(B, S), shifted(tokens(B, T))
    steps = []
    for _ in range(2):
        torch.manual_seed(7)
        model = build(SYSTEMS[name], hyper, V).train()
        hidden(model, source, decoder_in).square().sum().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad.sign()
        steps.append(hidden(model.eval(), source, decoder_in))
    assert torch.equal(*steps)
    other = build(SYSTEMS[name], hyper, V).eval()
    other.load_state_dict(model.state_dict())
    assert torch.equal(hidden(other, source, decoder_in), steps[0])


@pytest.mark.parametrize(
    ("name", "products"),
    [(name, through_float32) for name in SYSTEMS]
    + [(name, as_here) for name in ("Transformer", "hard, sampled", "soft alignment", "ByteNet")],
)
def test_bfloat16_gives_numbers(name: str, products: Products) -> None:
    model, source, target = small(name), tokens(B, S), tokens(B, T)
    with products():
        with torch.autocast("cpu", torch.bfloat16):
            found = hidden(model, source, shifted(target))
            loss, _ = smoothed_cross_entropy(found, model.embedding.weight, target, 0.1)
        loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    with products(), torch.autocast("cpu", torch.bfloat16), without_gradients():
        step, _ = model.eval().advance(torch.zeros(B, dtype=torch.int64), model.start(source))
        whole = hidden(model, source, shifted(target))[:, 0]
    if name not in NOT_CAUSAL:
        torch.testing.assert_close(step.float(), whole.float(), rtol=0, atol=0.1 if name in LADDER else 0.3)


LONGEST_GRADIENT = {name: 1.0 for name in LADDER if not name.startswith(("ByteNet", "encoder:", "decoder:"))}


@everywhere
def test_what_is_known_of_its_class(name: str) -> None:
    model = small(name)
    assert model.in_ctranslate2 == (name == "Transformer")
    assert model.needs_whole_updates == (name == "batch norm")
    assert reads_ragged(SYSTEMS[name]) == (name in IN_KERNEL), "the kernel knows the paper's attention alone"
    assert gradient_norm(SYSTEMS[name]) == LONGEST_GRADIENT.get(name), "recurrent systems and ConvS2S are cut"


D, H, D_K, D_V, N, D_FF = (getattr(LAPTOP, of) for of in ("d_model", "n_heads", "d_k", "d_v", "n_layers", "d_ff"))
FEED_FORWARD = 2 * D * D_FF + D_FF + D
MORE_PARAMETERS = {  # than the base has, at laptop; 0 of all others
    **dict.fromkeys(("additive", "additive, h=1"), 3 * N * H * D_K),
    "bilinear": 3 * N * H * D_K**2,
    "K = Q": -2 * N * (D + 1) * H * D_K,
    "static": 2 * N * 2 * H * D_K * (LEARNED_POSITIONS - (D + 1)),
    "relative": 2 * N * 17 * (D_K + D_V),
    "relative, clip 2": 2 * N * 5 * (D_K + D_V),
    "relative, sinusoids": 2 * N * 17 * (D_K + D_V),
    "pre-norm": 2 * 2 * D,
    "no norm": -N * (2 + 3) * 2 * D,
    "no feed-forward": -2 * N * (FEED_FORWARD + 2 * D),
}


@each_variant
def test_its_parameters_are_those_of_the_arithmetic(name: str) -> None:
    assert counted_parameters(VARIANTS[name], LAPTOP, 0) == n_parameters(LAPTOP, 0) + MORE_PARAMETERS.get(name, 0)


# The seams of the Transformer take what is handed over; what lacks a member of a system is refused by name


SEAMS = {
    "mix": UnscaledDot,
    "mix_source": UnscaledDot,
    "self_attention": QueriesAreKeys,
    "around": PreNorm,
    "positions": NoPositions,
    "feed_forward": Nothing,
}


@pytest.mark.parametrize("seam", SEAMS)
def test_what_is_handed_over_is_used(seam: str) -> None:
    source, decoder_in = tokens(B, S), shifted(tokens(B, T))
    found = []
    for parts in ({seam: SEAMS[seam]}, {}):
        torch.manual_seed(3)
        found.append(hidden(build(partial(Transformer, **parts), HYPER, V).eval(), source, decoder_in))
    assert not torch.allclose(*found)


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
    with pytest.raises(ValueError, match=r"^Plain lacks embedding, encode, decode: "):
        refuse_incomplete(Plain())


def test_a_sketch_takes_no_memory() -> None:
    assert {parameter.device.type for parameter in sketched(Toy, HYPER, 10**9).parameters()} == {"meta"}
