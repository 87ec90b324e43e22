"""Attention over attention by hand, 2 document words and 3 query words."""

import math

import torch

from repro.model.ablations.over_attention import attention_over_attention


def test_by_hand() -> None:
    ln = math.log
    # M = D Q^T = [[ln 1, ln 2, ln 3], [ln 5, ln 2, ln 1]]
    document, query = torch.eye(2, dtype=torch.float64), torch.tensor([[ln(1), ln(5)], [ln(2), ln(2)], [ln(3), ln(1)]])
    # columns: (1, 5) / 6, (2, 2) / 4, (3, 1) / 4; rows: (1, 2, 3) / 6 and (5, 2, 1) / 8, whose mean is beta
    beta = [(1 / 6 + 5 / 8) / 2, (2 / 6 + 2 / 8) / 2, (3 / 6 + 1 / 8) / 2]
    first = beta[0] * 1 / 6 + beta[1] / 2 + beta[2] * 3 / 4
    found = attention_over_attention(document[None], query.double()[None])[0]
    torch.testing.assert_close(found, torch.tensor([first, 1 - first], dtype=torch.float64), rtol=0, atol=1e-7)
