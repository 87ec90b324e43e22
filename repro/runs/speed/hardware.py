"""How fast GPUs that are not here train the paper's models, by what others published; each number with its source.

A pair token is a target token together with a source token. Rates are of half precision (bfloat16 or float16) but for
the P100, and are those of others' programs. Where nothing is published for a model or a card, the rate is extrapolated,
and says so.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from repro.model.config import BASE, Hyper
from repro.model.cost import TextSizes, training_flops

BIG = replace(BASE, d_model=1024, d_ff=4096, n_heads=16)
SENTENCE = 28  # tokens, on average: WMT 2014
PAPER = "arXiv 1706.03762, section 5.2"
NVIDIA = "github.com/NVIDIA/DeepLearningExamples PyTorch/Translation/Transformer README, pytorch-22.06"
MPT = "github.com/mosaicml/llm-foundry scripts/train/benchmarking README: 760m, 2,048 long, 8 GPUs: 63,147 and 32,434"
H100_OF_A100 = 63_147 / 32_434  # tokens a second of the same program, both in bfloat16


@dataclass(frozen=True, kw_only=True)
class TrainingRate:
    """How fast a card trains a model."""

    pairs: float  # pair tokens per second and card
    hyper: Hyper
    vocabulary: int
    source: str
    extrapolated: bool = False

    @property
    def flops(self) -> float:
        """Operations per second and card, by this suite's arithmetic."""
        pair = TextSizes(sentences=1 / SENTENCE, source_tokens=1, target_tokens=1)
        return self.pairs * training_flops(self.hyper, self.vocabulary, pair)


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """A card, alone and several together."""

    name: str
    base: TrainingRate
    big: TrainingRate
    scaling: Mapping[int, float]  # cards -> the share of its speed that each keeps, updates growing with their number
    scaling_tokens: int  # of an update, for each card
    scaling_source: str
    translated: float  # target tokens per second of one card, big model
    translated_source: str
    note: str = ""

    def rate(self, hyper: Hyper) -> TrainingRate:
        """The one that a row is judged by: from the big model's width on the big one's."""
        return self.big if hyper.d_model >= BIG.d_model else self.base

    def efficiency(self, devices: int) -> float:
        """The share of its speed that each of so many cards keeps: of the next larger number that is published."""
        return self.scaling[min((n for n in self.scaling if n >= devices), default=max(self.scaling))]


def _as_the_paper(big: TrainingRate) -> TrainingRate:
    """Of the base model where only the big one's is published: the paper's two had 0.4 s and 1.0 s a step."""
    p100 = _P100_BASE.flops / _P100_BIG.flops
    base = TrainingRate(pairs=1.0, hyper=BASE, vocabulary=37_000, source="")
    return replace(
        base,
        pairs=big.flops * p100 / base.flops,
        source=f"the big model's operations a second times {p100:.2f}, as on the paper's own cards ({PAPER})",
        extrapolated=True,
    )


def _of_a100(name: str, why: str) -> Hardware:
    """A card that nobody published a translation model for."""
    big = replace(
        _A100_BIG,
        pairs=_A100_BIG.pairs * H100_OF_A100,
        source=f"{why} times {H100_OF_A100:.2f} ({MPT})",
        extrapolated=True,
    )
    return Hardware(
        name=name,
        base=_as_the_paper(big),
        big=big,
        scaling=A100.scaling,
        scaling_tokens=A100.scaling_tokens,
        scaling_source=f"taken from the A100's: {A100.scaling_source}",
        translated=A100.translated * H100_OF_A100,
        translated_source=f"the A100's times {H100_OF_A100:.2f}",
    )


# 25,000 pair tokens a step on 8 cards, in 0.4 s and 1.0 s
_P100_BASE = TrainingRate(pairs=25_000 / 0.4 / 8, hyper=BASE, vocabulary=37_000, source=PAPER)
_P100_BIG = TrainingRate(pairs=25_000 / 1.0 / 8, hyper=BIG, vocabulary=37_000, source=PAPER)
_V100_BIG = TrainingRate(pairs=32_942, hyper=BIG, vocabulary=33_708, source=f"{NVIDIA}, 1 V100 16 GB")
_A100_BIG = TrainingRate(pairs=82_059, hyper=BIG, vocabulary=33_708, source=f"{NVIDIA}, 1 A100 40 GB")

P100 = Hardware(
    name="p100",
    base=_P100_BASE,
    big=_P100_BIG,
    scaling={8: 1.0},  # the rates are of 8 cards as they are
    scaling_tokens=25_000 // 8,
    scaling_source=f"{PAPER}: the rates are of 8 cards together",
    translated=5_983 * _P100_BIG.pairs / _V100_BIG.pairs,
    translated_source=f"that of a V100 ({NVIDIA}, FP16), less as training is",
    note="The paper's own card, for comparison: this PyTorch has no kernels for it.",
)
A100 = Hardware(
    name="a100",
    base=_as_the_paper(_A100_BIG),
    big=_A100_BIG,
    scaling={1: 1.0, 4: 3.49 / 4, 8: 6.72 / 8},
    scaling_tokens=10_240,
    scaling_source=f"{NVIDIA}, weak scaling",
    translated=7_988,
    translated_source=f"{NVIDIA}, FP16",
)
H100 = _of_a100("h100", "the A100's")
H200 = _of_a100("h200", "taken as an H100, which has the same processor and less memory: the A100's")
CARDS = {card.name: card for card in (P100, A100, H100, H200)}


def card_of(name: str) -> Hardware:
    """The card of that name. Raises ValueError for one that is not in the table."""
    if name not in CARDS:
        raise ValueError(f"Unknown hardware {name!r}; expected one of {', '.join(CARDS)}.")
    return CARDS[name]


def check_price(price: float) -> float:
    """A price of an hour of one device. Raises ValueError for what is none."""
    if not (math.isfinite(price) and price >= 0):
        raise ValueError(f"--price must be a number of at least 0, money for an hour of one device, got {price}.")
    return price
