"""A run in bfloat16 is warned of where the processor lacks it, and nowhere else."""

import pytest

from repro.runs.options import Options
from repro.runs.speed.bfloat16 import slow_bf16
from repro.runs.speed.rates import Machine

CPU = Machine("Old Processor", "Old Processor", "2.13.0")
GPU = Machine("Old Processor", "NVIDIA H100", "2.13.0")
BF16 = Options(precision="bf16")


def test_a_processor_without_bfloat16_is_named() -> None:
    [said] = slow_bf16(BF16, CPU, ["avx", "avx2", "avx512f", "avx512_vnni"])
    assert said.startswith("--precision bf16: Old Processor has no instructions for bfloat16")
    assert said.endswith("Leave it out, unless it is these digits that are wanted.")


@pytest.mark.parametrize(
    ("options", "machine", "vectors"),
    [
        (Options(), CPU, ["avx2"]),
        (Options(precision="bf16", on="slurm"), CPU, ["avx2"]),
        (BF16, GPU, ["avx2"]),
        (BF16, CPU, []),  # nobody knows
        (BF16, CPU, ["avx2", "avx512_bf16"]),
        (BF16, CPU, ["avx512f", "amx_bf16", "amx_tile"]),
        (BF16, CPU, ["asimd", "bf16"]),
    ],
)
def test_nothing_is_said_elsewhere(options: Options, machine: Machine, vectors: list[str]) -> None:
    assert slow_bf16(options, machine, vectors) == []
