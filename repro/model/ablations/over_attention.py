"""Attention over attention (Cui et al. 2017): a function, not a row, as it averages over all queries at once."""

from torch import Tensor


def attention_over_attention(document_BND: Tensor, query_BMD: Tensor) -> Tensor:
    """s = alpha beta, [B, N], which sums to one: how much each word of a document answers a query of M words.

    M = D Q^T; alpha is the softmax over document words, column by column; beta the mean over document words of the
    softmax over query words. A decoder that used it would see its own future.
    """
    match_BNM = document_BND @ query_BMD.transpose(-2, -1)
    alpha_BNM, beta_BM = match_BNM.softmax(dim=-2), match_BNM.softmax(dim=-1).mean(dim=-2)
    return (alpha_BNM @ beta_BM.unsqueeze(-1)).squeeze(-1)
