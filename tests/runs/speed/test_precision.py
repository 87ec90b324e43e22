"""A run in bfloat16 is warned of where the processor lacks it, one in float32 on a GPU."""

import json
from pathlib import Path

import pytest

from repro.runs.options import Options
from repro.runs.speed.rates import Machine, measured_factor, slow_products

CPU = Machine("Old Processor", "Old Processor", "2.13.0")
GPU = Machine("Old Processor", "NVIDIA H100", "2.13.0")
BF16 = Options(precision="bf16")


def test_a_processor_without_bfloat16_is_named() -> None:
    [said] = slow_products(BF16, CPU, ["avx", "avx2", "avx512f", "avx512_vnni"])
    assert said.startswith("--precision bf16: Old Processor has no instructions for bfloat16")
    assert said.endswith("Type --precision fp32, unless it is these digits that are wanted.")


def test_bfloat16_is_what_large_scales_have() -> None:
    [said] = slow_products(Options(scale="single_gpu"), CPU, ["avx2"])
    assert "Type --precision fp32" in said


def test_what_float32_costs_on_a_gpu_is_said_as_it_was_measured(tmp_path: Path) -> None:
    for options in (Options(), Options(scale="paper", precision="fp32")):
        [said] = slow_products(options, GPU, [])
        assert said.startswith(
            "--precision fp32: on a GPU an update takes 5.0 times as long as in bfloat16 (the base, "
        )
    assert measured_factor(tmp_path / "none.json") is None
    lines = [{"size": "base", "ways": ways, "milliseconds": ms} for ways, ms in (("all", 20), ("without bf16", 50))]
    (tmp_path / "gpu.json").write_text(json.dumps({"steps": lines, "stamp": {"device": "A card"}}))
    assert measured_factor(tmp_path / "gpu.json") == "2.5 times as long as in bfloat16 (the base, A card)"
    (tmp_path / "gpu.json").write_text(json.dumps({"steps": {"failed": "memory"}}))
    assert measured_factor(tmp_path / "gpu.json") is None


@pytest.mark.parametrize(
    ("options", "machine", "vectors"),
    [
        (Options(), CPU, ["avx2"]),
        (Options(precision="bf16", on="slurm"), CPU, ["avx2"]),
        (BF16, GPU, ["avx2"]),
        (Options(scale="paper"), GPU, []),  # bfloat16 is its own
        (Options(on="ray"), GPU, []),
        (Options(scale="single_gpu", precision="fp32"), CPU, ["avx2"]),
        (BF16, CPU, []),  # nobody knows
        (BF16, CPU, ["avx2", "avx512_bf16"]),
        (BF16, CPU, ["avx512f", "amx_bf16", "amx_tile"]),
        (BF16, CPU, ["asimd", "bf16"]),
    ],
)
def test_nothing_is_said_elsewhere(options: Options, machine: Machine, vectors: list[str]) -> None:
    assert slow_products(options, machine, vectors) == []
