"""Convolutions by hand, against PyTorch's own, and how far they reach."""

from math import exp
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from model.samples import exactly

from repro.model.rivals.convolution import SequenceConvolution


def of_ones(**options: Any) -> SequenceConvolution:
    convolution = SequenceConvolution(1, 1, **options).double()
    convolution.linear.weight.data.fill_(1)
    convolution.linear.bias.data.zero_()
    return convolution


def test_a_gated_block_by_hand() -> None:
    """a sigmoid(b), where a and b see the token before, the token and the token after."""
    convolution = SequenceConvolution(1, 2, kernel=3, causal=False).double()
    convolution.linear.weight.data = exactly([[2, 3, 5], [0.7, 1.1, 1.3]])
    convolution.linear.bias.data = exactly([0.1, 0.2])
    x = [0.5, -1.0, 0.25]
    found = F.glu(convolution(exactly([[[value] for value in x]])))[0, :, 0]
    seen = [(0.0, x[0], x[1]), (x[0], x[1], x[2]), (x[1], x[2], 0.0)]
    expected = [(2 * p + 3 * q + 5 * r + 0.1) / (1 + exp(-(0.7 * p + 1.1 * q + 1.3 * r + 0.2))) for p, q, r in seen]
    assert found.tolist() == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("kernel", "dilation"), [(3, 1), (5, 2)])
def test_it_is_pytorchs_convolution(kernel: int, dilation: int, causal: bool) -> None:
    convolution, x = (
        SequenceConvolution(2, 7, kernel=kernel, dilation=dilation, causal=causal).double(),
        torch.randn(3, 11, 2),
    )
    x = x.double()
    reach = (kernel - 1) * dilation
    padded = F.pad(x, (0, 0, *((reach, 0) if causal else (reach // 2, reach // 2)))).transpose(1, 2)
    weight = convolution.linear.weight.view(7, kernel, 2).transpose(1, 2)
    expected = F.conv1d(padded, weight, convolution.linear.bias, dilation=dilation).transpose(1, 2)
    torch.testing.assert_close(convolution(x), expected, rtol=0, atol=1e-14)


def test_a_kernel_of_an_even_number_needs_an_end() -> None:
    assert SequenceConvolution(1, 1, kernel=4, causal=True).before == 3
    with pytest.raises(ValueError, match=r"^A kernel of 4 has no centre: expected an odd one .* Choose 3 or 5\.$"):
        SequenceConvolution(1, 1, kernel=4, causal=False)


def test_dilation_doubled_reaches_exponentially() -> None:
    """Five layers of kernel 3 with dilations 1 to 16 see 2 * 31 tokens back; ten without dilation would see 20."""
    x = torch.zeros(1, 80, 1).double()
    x[0, 5] = 1
    for dilation in (1, 2, 4, 8, 16):
        x = of_ones(kernel=3, dilation=dilation, causal=True)(x)
    assert x[0, :, 0].nonzero().flatten().tolist() == list(range(5, 5 + 62 + 1))
