"""What the paper prints of systems: Table 2 with its costs, Table 4; and the sentences of its figures.

The numbers of Table 3 stand in the experiment files, beside the rows they belong to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Pair = Literal["en-de", "en-fr"]
Training = Literal["WSJ only", "semi-supervised", "multi-task", "generative"]

TERA = 1e12
SECONDS_A_DAY = 86_400
SUSTAINED_TFLOPS = MappingProxyType({"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5})
"""Single-precision rate that the paper grants each kind of GPU, in 10^12 operations a second. Section 6.1, footnote."""

SECONDS_A_STEP = MappingProxyType({"Transformer (base model)": 0.4, "Transformer (big)": 1.0})  # section 5.2
PRINTED_STEPS = MappingProxyType({"Transformer (base model)": 100_000, "Transformer (big)": 300_000})  # section 5.2

N_REGULARISERS = 3  # kinds that section 5.4 announces
REGULARISERS = ("residual dropout", "label smoothing")  # those it describes, each under its own heading

FIGURE_SENTENCES = MappingProxyType(
    {
        "making": (
            "It is in this spirit that a majority of American governments have passed new laws since 2009 making the "
            "registration or voting process more difficult."
        ),
        "its": (
            "The Law will never be perfect, but its application should be just - this is what we are missing, in my "
            "opinion."
        ),
    }
)
"""The word each picture is about, and its sentence. Paper: figure 3; figures 4 and 5."""

MEMBERS = 8  # models in an ensemble: what the printed costs of Table 2 imply


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What a training ran on, and for how long."""

    n_gpus: int
    gpu: str  # a key of SUSTAINED_TFLOPS
    days: float
    fitted: bool = False  # chosen to give the printed cost, which it therefore cannot confirm


@dataclass(frozen=True, kw_only=True)
class System:
    """One line of Table 2: BLEU on newstest2014 and training cost in floating-point operations, as printed."""

    name: str
    kind: Literal["single", "ensemble", "ours"]
    bleu: Mapping[Pair, float] = field(default_factory=dict)
    flops: Mapping[Pair, float] = field(default_factory=dict)
    hardware: Mapping[Pair, Hardware] = field(default_factory=dict)
    members: str | None = None  # of an ensemble: the single system it is made of
    # printed for the same model elsewhere: section 6.1, NeurIPS version
    other_bleu: Mapping[Pair, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PrintedParser:
    """One line of Table 4: F1 on section 23 of the Wall Street Journal treebank."""

    name: str
    training: Training
    f1: float
    ours: bool = False


_BASE_MODEL = Hardware(n_gpus=8, gpu="P100", days=0.5)
_BIG_MODEL = Hardware(n_gpus=8, gpu="P100", days=3.5)

TABLE_2 = (
    System(name="ByteNet", kind="single", bleu={"en-de": 23.75}),
    System(name="Deep-Att + PosUnk", kind="single", bleu={"en-fr": 39.2}, flops={"en-fr": 1.0e20}),
    System(
        name="GNMT + RL",
        kind="single",
        bleu={"en-de": 24.6, "en-fr": 39.92},
        flops={"en-de": 2.3e19, "en-fr": 1.4e20},
        hardware={
            "en-de": Hardware(n_gpus=96, gpu="K80", days=1),
            "en-fr": Hardware(n_gpus=96, gpu="K80", days=6),
        },
    ),
    System(
        name="ConvS2S",
        kind="single",
        bleu={"en-de": 25.16, "en-fr": 40.46},
        flops={"en-de": 9.6e18, "en-fr": 1.5e20},
        hardware={  # not checked against its paper: these numbers give both printed costs
            "en-de": Hardware(n_gpus=1, gpu="M40", days=18.5, fitted=True),
            "en-fr": Hardware(n_gpus=8, gpu="M40", days=37, fitted=True),
        },
    ),
    System(
        name="MoE",
        kind="single",
        bleu={"en-de": 26.03, "en-fr": 40.56},
        flops={"en-de": 2.0e19, "en-fr": 1.2e20},
        hardware={
            "en-de": Hardware(n_gpus=64, gpu="K40", days=1),
            "en-fr": Hardware(n_gpus=64, gpu="K40", days=6),
        },
    ),
    System(
        name="Deep-Att + PosUnk Ensemble",
        kind="ensemble",
        members="Deep-Att + PosUnk",
        bleu={"en-fr": 40.4},
        flops={"en-fr": 8.0e20},
    ),
    System(
        name="GNMT + RL Ensemble",
        kind="ensemble",
        members="GNMT + RL",
        bleu={"en-de": 26.30, "en-fr": 41.16},
        flops={"en-de": 1.8e20, "en-fr": 1.1e21},
    ),
    System(
        name="ConvS2S Ensemble",
        kind="ensemble",
        members="ConvS2S",
        bleu={"en-de": 26.36, "en-fr": 41.29},
        flops={"en-de": 7.7e19, "en-fr": 1.2e21},
    ),
    System(
        name="Transformer (base model)",
        kind="ours",
        bleu={"en-de": 27.3, "en-fr": 38.1},
        flops={"en-de": 3.3e18, "en-fr": 3.3e18},
        hardware={"en-de": _BASE_MODEL, "en-fr": _BASE_MODEL},
    ),
    System(
        name="Transformer (big)",
        kind="ours",
        bleu={"en-de": 28.4, "en-fr": 41.8},
        other_bleu={"en-fr": 41.0},
        flops={"en-de": 2.3e19, "en-fr": 2.3e19},
        hardware={"en-de": _BIG_MODEL, "en-fr": _BIG_MODEL},
    ),
)
"""Newstest2014. The printed costs of the Transformers span both language columns."""

TABLE_4 = (
    PrintedParser(name="Vinyals & Kaiser et al. (2014)", training="WSJ only", f1=88.3),
    PrintedParser(name="Petrov et al. (2006)", training="WSJ only", f1=90.4),
    PrintedParser(name="Zhu et al. (2013)", training="WSJ only", f1=90.4),
    PrintedParser(name="Dyer et al. (2016)", training="WSJ only", f1=91.7),
    PrintedParser(name="Transformer (4 layers)", training="WSJ only", f1=91.3, ours=True),
    PrintedParser(name="Zhu et al. (2013)", training="semi-supervised", f1=91.3),
    PrintedParser(name="Huang & Harper (2009)", training="semi-supervised", f1=91.3),
    PrintedParser(name="McClosky et al. (2006)", training="semi-supervised", f1=92.1),
    PrintedParser(name="Vinyals & Kaiser et al. (2014)", training="semi-supervised", f1=92.1),
    PrintedParser(name="Transformer (4 layers)", training="semi-supervised", f1=92.7, ours=True),
    PrintedParser(name="Luong et al. (2015)", training="multi-task", f1=93.0),
    PrintedParser(name="Dyer et al. (2016)", training="generative", f1=93.3),
)


def printed_training_flops(hardware: Hardware) -> float:
    """Floating-point operations of a training: GPUs x days x seconds a day x sustained rate. Section 6.1, footnote."""
    if hardware.gpu not in SUSTAINED_TFLOPS:
        known = ", ".join(SUSTAINED_TFLOPS)
        raise ValueError(f"GPU: expected one of {known}, got {hardware.gpu!r}. The paper gives no rate for others.")
    return hardware.n_gpus * hardware.days * SECONDS_A_DAY * SUSTAINED_TFLOPS[hardware.gpu] * TERA


def system(name: str) -> System:
    """The line of Table 2 with this name; KeyError for one that it does not have."""
    return {line.name: line for line in TABLE_2}[name]


def parser(name: str, training: Training) -> PrintedParser:
    """The line of Table 4 with this name and training; KeyError for one that it does not have."""
    return {(line.name, line.training): line for line in TABLE_4}[name, training]


def computed_flops(line: System, pair: Pair) -> float | None:
    """The cost of a line of Table 2, computed again; None where the paper does not print what that takes.

    An ensemble costs 8 times the printed, rounded cost of its members: 8 x 2.3e19 is the 1.8e20 of GNMT's ensemble,
    where 96 K80 for a day, unrounded, would make it 1.9e20.
    """
    if line.members is not None:
        printed = system(line.members).flops.get(pair)
        return None if printed is None else MEMBERS * printed
    hardware = line.hardware.get(pair)
    return None if hardware is None else printed_training_flops(hardware)
