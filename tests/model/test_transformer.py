"""The whole model: what it may see, what it costs at first, and that a search sees what training saw."""

import copy
import itertools
from dataclasses import replace

import pytest
import torch
from model.samples import V, library_layer, same, shifted, tokens, with_vectors_drawn
from torch import Tensor, nn

from repro.model.attention import MultiHeadAttention
from repro.model.config import Hyper
from repro.model.embedding import Dropout, sinusoids
from repro.model.kv_cache import Cache
from repro.model.masks import pack, paired
from repro.model.special_tokens import PAD
from repro.model.transformer import Transformer

B, S, T = 2, 7, 5
TINY = Hyper(n_layers=3, d_model=14, d_ff=11, n_heads=3, d_k=2, d_v=5, dropout=0.0)


def model(hyper: Hyper = TINY) -> Transformer:
    """In float64, to be compared to the last digits."""
    made: Transformer = with_vectors_drawn(Transformer(hyper, V).double().eval())
    return made


def test_both_stacks_equal_the_librarys() -> None:
    ours = model(replace(TINY, n_heads=7, d_k=2, d_v=2))
    source, decoder_in = tokens(B, S), shifted(tokens(B, T))
    source[1, 4:] = PAD

    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(14, 7), 0, enable_nested_tensor=False)
    encoder.layers = nn.ModuleList(library_layer(layer) for layer in ours.encoder)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(14, 7), 0)
    decoder.layers = nn.ModuleList(library_layer(layer) for layer in ours.decoder)
    # without a final norm
    padding, future = source == PAD, torch.ones(T, T, dtype=torch.bool).triu(1)
    memory = encoder(ours.embedding(source) + ours.source_positions(0, S), src_key_padding_mask=padding)
    hidden = decoder(
        ours.embedding(decoder_in) + ours.target_positions(0, T),
        memory,
        tgt_mask=future,
        memory_key_padding_mask=padding,
    )
    same(ours.encode(source), memory)
    same(ours.decode(decoder_in, ours.encode(source), source), hidden)
    logits, expected = ours(source, decoder_in), hidden @ ours.embedding.weight.T
    same(logits, expected)
    gradients = (torch.autograd.grad(x.square().sum(), [*ours.parameters()]) for x in (logits, expected))
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("learned_positions", [False, True])
def test_no_logit_sees_a_later_piece(learned_positions: bool) -> None:
    ours = model(replace(TINY, learned_positions=learned_positions))
    source, decoder_in = tokens(B, S), tokens(B, T)
    logits = ours(source, decoder_in)
    for i in range(T):
        other = decoder_in.clone()
        other[:, i:] = 1 + other[:, i:] % (V - 1)  # every token from i on is another one
        changed = ours(source, other)
        assert torch.equal(changed[:, :i], logits[:, :i])
        assert (changed[:, i:] != logits[:, i:]).all()


def test_every_logit_sees_the_whole_source_and_all_before() -> None:
    ours, source, decoder_in = model(), tokens(B, S), tokens(B, T)
    logits = ours(source, decoder_in)
    for i in range(S):
        other = source.clone()
        other[:, i] = 1 + other[:, i] % (V - 1)
        assert (ours(other, decoder_in) != logits).all()


def test_the_first_weights_differ_from_layer_to_layer() -> None:
    ours = Transformer(TINY, V)
    pairs = itertools.combinations([p for p in ours.parameters() if p.dim() == 2], 2)
    assert not any(a.shape == b.shape and torch.equal(a, b) for a, b in pairs)


def test_one_matrix_is_embedding_and_softmax() -> None:
    names = [name for name, p in Transformer(TINY, V).named_parameters() if p.shape[0] == V]
    assert names == ["embedding.weight"]


@pytest.mark.parametrize("p", [0.1, 0.4])
def test_dropout_is_where_the_paper_prints_it(p: float) -> None:
    # on each sub-layer's output and on both sums of embedding and position; nowhere else (section 5.4)
    ours, calls = Transformer(replace(TINY, dropout=p), V), []
    for module in ours.modules():
        assert not isinstance(module, nn.Dropout)
        if isinstance(module, Dropout):
            assert module.p == p
            module.register_forward_hook(lambda module, inputs, output: calls.append(output.shape))
    ours(tokens(B, S), tokens(B, T))
    assert calls == [(B, S, 14)] * (1 + 3 * 2) + [(B, T, 14)] * (1 + 3 * 3)


def test_dropout_of_weights_is_of_every_attention_and_has_a_rate_of_its_own() -> None:
    parts = dict(Transformer(replace(TINY, dropout=0.1, attention_dropout=0.3), V).named_modules())
    rates = {name: part.p for name, part in parts.items() if isinstance(part, Dropout)}
    attentions = [f"encoder.{i}.self_attention" for i in range(3)]
    attentions += [f"decoder.{i}.{kind}_attention" for i in range(3) for kind in ("self", "cross")]
    assert {name for name, rate in rates.items() if rate == 0.3} == {f"{name}.dropout" for name in attentions}
    assert {rate for rate in rates.values() if rate != 0.3} == {0.1}


@pytest.mark.parametrize("in_a_row", [False, True])
def test_dropout_falls_on_the_sum_of_embedding_and_position_of_both_stacks(in_a_row: bool) -> None:
    # section 5.4: "to the sums of the embeddings and the positional encodings in both ... stacks"
    ours = Transformer(replace(TINY, dropout=0.5), V).double()
    ours.encoder, ours.decoder = nn.ModuleList(), nn.ModuleList()  # what comes out is what a stack reads
    source, decoder_in = tokens(1, S), tokens(1, T)
    for ids, read in ((source, ours.encode), (decoder_in, lambda ids: ours.decode(ids, torch.zeros(()), ids))):
        expected = (ours.embedding(ids) + sinusoids(ids.shape[1], 14))[0]
        given = pack(ids[0], torch.tensor([ids.shape[1]])) if in_a_row else ids
        found = read(given).view(-1, 14)[: ids.shape[1]]
        assert 20 < (found == 0).sum() < found.numel() - 20, "half of the numbers are dropped, each by itself"
        torch.testing.assert_close(found, torch.where(found == 0, 0.0, 2 * expected), rtol=0, atol=1e-6)


def test_attention_maps() -> None:
    ours, source, decoder_in = model(), tokens(B, S), shifted(tokens(B, T))
    source[1, 4:] = PAD
    maps = ours.attention_maps(source, decoder_in)
    shapes = {f"encoder.{i}.self_attention": (B, 3, S, S) for i in range(3)}
    shapes |= {f"decoder.{i}.self_attention": (B, 3, T, T) for i in range(3)}
    shapes |= {f"decoder.{i}.cross_attention": (B, 3, T, S) for i in range(3)}
    assert {name: tuple(weights.shape) for name, weights in maps.items()} == shapes
    for name, weights in maps.items():
        same(weights.sum(-1), torch.ones(weights.shape[:-1], dtype=torch.float64))
        assert not torch.equal(weights[:, 0], weights[:, 1]), "the heads are not averaged"
        if weights.shape[-1] == S:
            assert not weights[1, :, :, 4:].any(), "padding is looked at"
        if name.startswith("decoder") and name.endswith("self_attention"):
            assert not weights.triu(1).any(), "the future is looked at"


def test_attention_maps_leave_no_trace() -> None:
    ours, source, decoder_in = model(), tokens(B, S), tokens(B, T)
    ours.attention_maps(source, decoder_in)
    with pytest.raises(IndexError):
        ours.attention_maps(source, torch.full_like(decoder_in, V))  # no such token
    assert all(m.recorded is None for m in ours.modules() if isinstance(m, MultiHeadAttention))


# A search reads one token at a time; what it computes must be what training computed.


def written(ours: Transformer, cache: Cache, decoder_in: Tensor) -> tuple[Tensor, Cache]:
    """Log-probabilities [R, T, V] of one step after the other, and the cache behind them."""
    steps = []
    for ids in decoder_in.T:
        log_prob, cache = ours.step(ids, cache)
        steps.append(log_prob)
    return torch.stack(steps, dim=1), cache


def in_one_pass(ours: Transformer, source: Tensor, decoder_in: Tensor) -> Tensor:
    return ours(source, decoder_in).log_softmax(-1)


@pytest.mark.parametrize("learned_positions", [False, True])
def test_step_by_step_equals_one_pass(learned_positions: bool) -> None:
    ours = model(replace(TINY, learned_positions=learned_positions))
    source, decoder_in = tokens(B, S), shifted(tokens(B, T))
    source[1, 4:] = PAD
    expected = in_one_pass(ours, source, decoder_in)
    same(written(ours, ours.start(source), decoder_in)[0], expected)
    if not learned_positions:  # past the end of the table
        ours.target_positions.table = ours.target_positions.table[:2]
        same(written(ours, ours.start(source), decoder_in)[0], expected)


def test_after_sentences_have_left_no_other_cache_of_the_search_goes_on() -> None:
    """All of them read the keys and values of one source, which were moved."""
    ours, source = model(), tokens(3, S)
    start = ours.start(source)
    others = [ours.step(tokens(3), start)[1] for _ in range(2)]
    _, cache = ours.step(tokens(3), start)
    kept = cache.keep(torch.tensor([2, 1]))
    for given_up in (start, *others, cache):
        with pytest.raises(ValueError, match=r"^expected the cache that the last `keep` of this search gave"):
            ours.step(tokens(3), given_up)
    _, kept = ours.step(tokens(2), kept)
    kept.keep(torch.tensor([1]))
    with pytest.raises(ValueError, match="got one of before"):
        kept.keep(torch.tensor([0]))


def test_a_second_step_from_one_cache_leaves_the_first_as_it_was() -> None:
    ours, source, read = model(), tokens(B, S), shifted(tokens(B, 3))
    _, cache = written(ours, ours.start(source), read[:, :1])  # whose slots have room
    _, one = ours.step(read[:, 1], cache)
    ours.step(tokens(B), cache)
    found, _ = ours.step(read[:, 2], one)
    same(found, in_one_pass(ours, source, read)[:, 2])


@pytest.mark.filterwarnings("ignore")  # the compiler's, about itself
@pytest.mark.parametrize("in_a_row", [False, True])
def test_compiled_layers_equal_plain_ones(in_a_row: bool) -> None:
    plain = model(replace(TINY, n_layers=1))
    compiled = copy.deepcopy(plain)
    compiled.compile_layers(backend="aot_eager")  # the whole way but the code generator, which takes a minute
    assert compiled.state_dict().keys() == plain.state_dict().keys()
    source, decoder_in = tokens(B, S), shifted(tokens(B, T))
    if in_a_row:  # two sentences of unequal length: who sees whom matters
        source, decoder_in = paired(
            *(pack(ids.flatten()[:9], torch.tensor(n)) for ids, n in ((source, [6, 3]), (decoder_in, [2, 7])))
        )
    found = []
    for made in (plain, compiled):
        hidden = made.decode(decoder_in, made.encode(source), source)
        hidden.square().sum().backward()
        found.append([hidden, *(parameter.grad for parameter in made.parameters())])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(theirs, ours, rtol=1e-12, atol=1e-12)
