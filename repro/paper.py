"""What the paper prints of systems: Table 2 with its costs, Table 4; and the sentences of its figures (`paper.toml`).

The numbers of Table 3 stand in the experiment files, beside the rows they belong to.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

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

MEMBERS = 8  # models in an ensemble: what the printed costs of Table 2 imply


class Hardware(NamedTuple):
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


class PrintedParser(NamedTuple):
    """One line of Table 4: F1 on section 23 of the Wall Street Journal treebank."""

    name: str
    training: Training
    f1: float
    ours: bool = False


def _system(*, hardware: Mapping[Pair, Mapping[str, Any]] = MappingProxyType({}), **printed: Any) -> System:
    return System(hardware={pair: Hardware(**of) for pair, of in hardware.items()}, **printed)


_PRINTED = tomllib.loads(Path(__file__).with_name("paper.toml").read_bytes().decode())
FIGURE_SENTENCES: Mapping[str, str] = MappingProxyType(_PRINTED["figure_sentences"])
"""The word each picture is about, and its sentence. Paper: figure 3; figures 4 and 5."""
TABLE_2 = tuple(_system(**line) for line in _PRINTED["table_2"])
"""Newstest2014. The printed costs of the Transformers span both language columns."""
TABLE_4 = tuple(
    PrintedParser(name=name, training=training, f1=f1, ours=name.startswith("Transformer"))
    for training, lines in _PRINTED["table_4"].items()
    for name, f1 in lines.items()
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
