"""Which precision makes a run faster here: bfloat16 where there are instructions for it, as on GPUs, else float32."""

import json
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from repro.results.places import PACKAGE
from repro.results.processor import processor
from repro.runs.options import Options
from repro.runs.speed.rates import Machine, this_machine

OF_BF16 = {"avx512_bf16", "avx_ne_convert", "amx_bf16", "bf16", "svebf16"}  # flags of x86, then of ARM
MEASURED = PACKAGE.parent / "benchmarks/records/gpu.json"


def slow_products(
    options: Options, machine: Machine | None = None, vectors: Collection[str] | None = None
) -> list[str]:
    """A line to say of runs that take longer by their precision; else none, and none of runs on other machines.

    Nor where the system does not tell what the processor can do (`vectors` is empty).
    """
    machine = machine or this_machine()
    vectors = processor().vectors if vectors is None else vectors
    if options.on != "here":
        return []
    if machine.device != machine.cpu:
        return [_in_fp32()] if options.products == "fp32" else []
    if options.products != "bf16" or not vectors or OF_BF16 & {*vectors}:
        return []
    return [
        f"--precision bf16: {machine.cpu} has no instructions for bfloat16, so it takes longer than fp32 here. "
        "Type --precision fp32, unless it is these digits that are wanted."
    ]


def _in_fp32() -> str:
    return (
        f"--precision fp32: on a GPU an update takes {measured_factor() or 'several times as long as in bfloat16'}. "
        "Type --precision bf16, unless it is these digits that are wanted."
    )


def measured_factor(record: Path = MEASURED) -> str | None:
    """How much longer an update of the base takes in float32, and on which card; None where no record is at hand."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        content = json.loads(record.read_bytes())
        of_base = {one["ways"]: one["milliseconds"] for one in content["steps"] if one["size"] == "base"}
        times = of_base["without bf16"] / of_base["all"]
        return f"{times:.1f} times as long as in bfloat16 (the base, {content['stamp']['device']})"
    return None
