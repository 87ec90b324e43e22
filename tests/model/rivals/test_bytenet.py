"""ByteNet: a column of the decoder stands on the same column of the encoder; beyond the source on zeros."""

import torch

from repro.model.config import Hyper
from repro.model.rivals.bytenet import ByteNet, ResidualBlock

HYPER = Hyper(n_layers=3, d_model=16, d_ff=64, n_heads=4, d_k=4, d_v=4, dropout=0.0)
SOURCE = torch.tensor([[5, 3, 7, 1], [4, 1, 0, 0]])


def test_a_block_by_its_equation() -> None:
    block, x = ResidualBlock(6, kernel=3, dilation=2, causal=True).double(), torch.randn(1, 7, 6).double()
    (norm, _), down, (narrow, _) = block.down
    (wide, _), up = block.up
    inner = narrow(down(norm(x).relu())).relu()
    padded = torch.cat([torch.zeros(1, 4, 3).double(), inner], dim=1)
    mixed = torch.stack(
        [block.mix.linear(torch.cat([padded[0, i], padded[0, i + 2], padded[0, i + 4]])) for i in range(7)]
    )
    torch.testing.assert_close(block(x)[0], x[0] + up(wide(mixed).relu()), rtol=0, atol=1e-13)


def test_dilations_double_and_begin_again() -> None:
    model = ByteNet(HYPER, 11)
    for side in (model.encoder, model.decoder):
        assert [block.mix.dilation for block in side] == [1, 2, 4, 8, 16, 1]  # type: ignore[union-attr]
    assert [block.mix.before for block in model.encoder] == [1, 2, 4, 8, 16, 1]  # type: ignore[union-attr]
    assert [block.mix.before for block in model.decoder] == [2, 4, 8, 16, 32, 2]  # type: ignore[union-attr]


def test_a_token_of_the_decoder_sees_its_own_column_and_none_beyond_the_source() -> None:
    model = ByteNet(HYPER, 11).double()
    decoder_in, z = torch.tensor([[0, 3, 5, 2, 6, 7]] * 2), torch.randn(2, 4, model.width).double()
    z[1, 2:] = 0
    model.decoder = torch.nn.ModuleList()
    found = model.decode(decoder_in, z, SOURCE)
    e, nothing = model.embedding(decoder_in), torch.zeros(model.width).double()
    for b in range(2):
        for t in range(6):
            u = z[b, t] if t < (4, 2)[b] else nothing
            expected = model.output(model.target_in(torch.cat([u, e[b, t]])))
            torch.testing.assert_close(found[b, t], expected, rtol=0, atol=1e-13)
