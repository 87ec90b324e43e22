"""The seams of the Transformer take what is handed over; what lacks a member of a system is refused by name."""

from functools import partial
from typing import Any

import pytest
import torch
from model.samples import V, shifted, tokens
from model.test_variants import HYPER, B, S, T, hidden
from torch import Tensor, nn
from toy_system import Toy

from repro.model.ablations.codes import NoPositions
from repro.model.ablations.norms import PreNorm
from repro.model.ablations.scores import UnscaledDot
from repro.model.attention import ScaledDotProduct, SelfAttention
from repro.model.build import build, sketched
from repro.model.embedding import SinusoidalPositions, TiedEmbedding
from repro.model.layers import FeedForward, PostNorm
from repro.model.protocol import MEMBERS, Plain, refuse_incomplete
from repro.model.transformer import Transformer


class HalvedValues(SelfAttention):
    """Self-attention to half of each value."""

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(x)
        return q, k, v / 2


class Gated(FeedForward):
    """The network's output, halved."""

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = super().forward(x)
        return made / 2


SEAMS = {
    "mix": UnscaledDot,
    "mix_source": UnscaledDot,
    "self_attention": HalvedValues,
    "around": PreNorm,
    "positions": NoPositions,
    "feed_forward": Gated,
}
PAPER = {
    "mix": ScaledDotProduct,
    "mix_source": ScaledDotProduct,
    "self_attention": SelfAttention,
    "around": PostNorm,
    "positions": SinusoidalPositions,
    "feed_forward": FeedForward,
}


def transformer(**parts: Any) -> Any:
    """In float64, with the same first weights whatever its parts are."""
    torch.manual_seed(3)
    return build(partial(Transformer, **parts), HYPER, V).double().eval()


@pytest.mark.parametrize("seam", SEAMS)
def test_what_is_handed_over_is_used_and_the_default_is_the_papers(seam: str) -> None:
    source, decoder_in = tokens(B, S), shifted(tokens(B, T))
    other, plain, paper = (transformer(**parts) for parts in ({seam: SEAMS[seam]}, {}, {seam: PAPER[seam]}))
    assert not torch.allclose(hidden(other, source, decoder_in), hidden(plain, source, decoder_in))
    assert torch.equal(hidden(paper, source, decoder_in), hidden(plain, source, decoder_in))
    assert paper.state_dict().keys() == plain.state_dict().keys()


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
