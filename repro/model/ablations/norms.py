"""Alternatives to LayerNorm(x + f(x)) around a sub-layer. Paper: section 3.1."""

from collections.abc import Callable

from torch import Tensor, nn

from repro.model.layers import NORM_EPS, PostNorm

Function = Callable[[Tensor], Tensor]


class PreNorm(PostNorm):
    """x + f(LayerNorm(x)), and one norm after each stack (Xiong et al. 2020)."""

    @staticmethod
    def after_stack(d_model: int) -> nn.Module:
        return nn.LayerNorm(d_model, eps=NORM_EPS)

    @staticmethod
    def around(x: Tensor, sub_layer: Function, norm: nn.Module, dropout: Function) -> Tensor:
        return x + dropout(sub_layer(norm(x)))


class NoNorm(PostNorm):
    """x + f(x): residual sums without normalisation, which may grow from layer to layer."""

    @staticmethod
    def norm(d_model: int) -> nn.Module:
        return nn.Identity()


class NoResidual(PostNorm):
    """LayerNorm(f(x)): what a sub-layer does not pass on is lost."""

    @staticmethod
    def around(x: Tensor, sub_layer: Function, norm: nn.Module, dropout: Function) -> Tensor:
        made: Tensor = norm(dropout(sub_layer(x)))
        return made
