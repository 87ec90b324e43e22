"""What may stand around a sub-layer instead of LayerNorm(x + f(x)). Paper: section 3.1."""

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
    """x + f(x): the sums of all layers, as large as they get."""

    @staticmethod
    def norm(d_model: int) -> nn.Module:
        return nn.Identity()


class NoResidual(PostNorm):
    """LayerNorm(f(x)): what a sub-layer does not hand on is lost."""

    @staticmethod
    def around(x: Tensor, sub_layer: Function, norm: nn.Module, dropout: Function) -> Tensor:
        made: Tensor = norm(dropout(sub_layer(x)))
        return made
