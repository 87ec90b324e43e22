"""The shared matrix and the positions."""

import math

import pytest
import torch

from repro.model.config import LEARNED_POSITIONS
from repro.model.embedding import LearnedPositions, SinusoidalPositions, TiedEmbedding, sinusoids
from repro.model.special_tokens import PAD

V, D = 997, 128


def test_embedding_by_hand() -> None:
    embedding = TiedEmbedding(3, 4)
    with torch.no_grad():
        embedding.weight.copy_(torch.tensor([[5.0] * 4, [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, -1.0]]))
    # times sqrt(4); the padding token is the zero vector
    assert embedding(torch.tensor([[1, 2, PAD]])).tolist() == [[[2, 4, 6, 8], [0, 0, 0, -2], [0, 0, 0, 0]]]
    # the softmax reads the same rows, that of the padding token too, unscaled and without a bias
    assert embedding.logits(torch.ones(4)).tolist() == [20, 10, -1]


def test_looking_up_padding_changes_no_weight() -> None:
    embedding = TiedEmbedding(3, 4)
    embedding(torch.tensor([PAD, 2])).sum().backward()
    assert embedding.weight.grad is not None
    assert embedding.weight.grad.tolist() == [[0.0] * 4, [0.0] * 4, [2.0] * 4]


@pytest.mark.parametrize("d_model", [64, 512])
def test_a_scaled_embedding_has_unit_variance(d_model: int) -> None:
    embedding = TiedEmbedding(V, d_model)
    assert embedding(torch.arange(1, V)).var().item() == pytest.approx(1, rel=0.03)
    assert embedding.weight.mean().item() == pytest.approx(0, abs=5 / d_model / math.sqrt(V))


def test_sinusoids_by_the_printed_formula() -> None:
    length, d_model = 300, 6
    expected = [
        [
            function(position / 10_000 ** (2 * i / d_model))
            for i in range(d_model // 2)
            for function in (math.sin, math.cos)
        ]
        for position in range(length)
    ]
    torch.testing.assert_close(sinusoids(length, d_model), torch.tensor(expected), rtol=0, atol=1e-7)


def test_a_shift_is_a_rotation_of_each_pair() -> None:
    # section 3.5: "for any fixed offset k, PE(pos + k) can be represented as a linear function of PE(pos)"
    d_model, shift = 8, 11
    table = sinusoids(100, d_model).double().view(100, d_model // 2, 2)  # [position, pair, sine and cosine]
    angle = shift / 10_000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    rotation = torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()], -1).view(-1, 2, 2)
    turned = torch.einsum("pij,npj->npi", rotation, table[:-shift])
    torch.testing.assert_close(turned, table[shift:], rtol=0, atol=1e-6)


def test_sinusoids_go_on_past_the_table_which_stays_as_it_was() -> None:
    positions = SinusoidalPositions(D)
    assert torch.equal(positions(250, 1_003), sinusoids(1_003, D)[250:])
    assert torch.equal(positions(0, 256), sinusoids(256, D))
    assert torch.equal(positions.double()(0, 1_000), sinusoids(1_000, D).double())
    assert positions(0, 1_000).dtype == torch.float64
    # DDP sends the first process's buffers to the others, whose sentences may have been shorter; no checkpoint has it
    assert {name: len(buffer) for name, buffer in positions.named_buffers()} == {"table": 256}
    assert positions.state_dict() == {}


def test_learned_positions() -> None:
    positions = LearnedPositions(D)
    assert positions.weight.shape == (LEARNED_POSITIONS, D)
    assert positions.weight.std().item() == pytest.approx(D**-0.5, rel=0.02)
    assert torch.equal(positions(3, LEARNED_POSITIONS), positions.weight[3:])


def test_learned_positions_end() -> None:
    with pytest.raises(ValueError, match=r"end at 512, but position 513 was asked for\. Use sinusoidal"):
        LearnedPositions(D)(0, LEARNED_POSITIONS + 1)
