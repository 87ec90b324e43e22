"""How fast GPUs that are not here train the paper's models, by what others published; each number with its source.

A pair token is a target token together with a source token. Rates are of half precision (bfloat16 or float16) but for
the P100, and are those of others' programs. Where nothing is published for a model or a card, the rate is extrapolated,
and its source says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from repro.model.config import BASE, Hyper
from repro.model.cost import TextSizes, training_flops

BIG = replace(BASE, d_model=1024, d_ff=4096, n_heads=16)
VOCABULARY = 37_000  # "about 37000 tokens": section 5.1
SENTENCE = 28  # tokens, on average: WMT 2014
PAPER = "arXiv 1706.03762, section 5.2"
NVIDIA = "github.com/NVIDIA/DeepLearningExamples PyTorch/Translation/Transformer README, pytorch-22.06, 1 A100 40 GB"
MPT = "github.com/mosaicml/llm-foundry scripts/train/benchmarking README: 760m, 2,048 long, 8 GPUs: 63,147 and 32,434"


def pair_flops(hyper: Hyper, vocabulary: int = VOCABULARY) -> float:
    """Operations of training on a pair token, by this suite's arithmetic."""
    return training_flops(hyper, vocabulary, TextSizes(sentences=1 / SENTENCE, source_tokens=1, target_tokens=1))


@dataclass(frozen=True, kw_only=True)
class Card:
    """One card of a kind, and several together."""

    name: str
    base: float  # operations a second of the base model's training
    big: float
    source: str
    scaling: Mapping[int, float]  # cards -> the share of its speed that each keeps, updates growing with their number
    note: str = ""

    def rate(self, hyper: Hyper) -> float:
        """Operations a second in training a row: those of the big model from its width on, else those of the base."""
        return self.big if hyper.d_model >= BIG.d_model else self.base

    def efficiency(self, devices: int) -> float:
        """The share of its speed that each of so many cards keeps, as published for the next larger number."""
        return self.scaling[min((n for n in self.scaling if n >= devices), default=max(self.scaling))]


P100 = Card(
    name="p100",
    base=25_000 / 0.4 / 8 * pair_flops(BASE),  # 25,000 pair tokens a step on 8 cards, in 0.4 s and 1.0 s
    big=25_000 / 1.0 / 8 * pair_flops(BIG),
    source=f"{PAPER}, of 8 cards together, in float32",
    scaling={8: 1.0},  # the rates are of 8 cards as they are
    note="The paper's own card, for comparison: this PyTorch has no kernels for it.",
)
_BIG = 82_059 * pair_flops(BIG, 33_708)
A100 = Card(
    name="a100",
    base=_BIG * P100.base / P100.big,
    big=_BIG,
    source=f"big model {NVIDIA}; base model extrapolated: its operations a second times {P100.base / P100.big:.2f}, as "
    f"on the paper's own cards ({PAPER})",
    scaling={1: 1.0, 4: 3.49 / 4, 8: 6.72 / 8},
)


def _of_a100(name: str, why: str) -> Card:
    """A card without published rates of a translation model: from another program's tokens a second, in bfloat16."""
    factor = 63_147 / 32_434
    source = f"extrapolated: {why} times {factor:.2f} ({MPT}). The A100's: {A100.source}"
    return replace(A100, name=name, base=A100.base * factor, big=A100.big * factor, source=source)


H100 = _of_a100("h100", "the A100's")
H200 = _of_a100("h200", "taken as an H100, which has the same processor and less memory: the A100's")
CARDS = {card.name: card for card in (P100, A100, H100, H200)}
