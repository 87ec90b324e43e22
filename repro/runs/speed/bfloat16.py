"""Whether bfloat16 makes a run faster here: on a processor without instructions for it it takes longer than float32."""

from collections.abc import Collection

from repro.results.processor import processor
from repro.runs.options import Options
from repro.runs.speed.rates import Machine, this_machine

OF_BF16 = {"avx512_bf16", "avx_ne_convert", "amx_bf16", "bf16", "svebf16"}  # flags of x86, then of ARM


def slow_bf16(options: Options, machine: Machine | None = None, vectors: Collection[str] | None = None) -> list[str]:
    """A line to say of runs in bfloat16 on this processor, if it lacks it; else none.

    None of runs on a GPU or on other machines, nor where the system does not tell what the processor can do (`vectors`
    is empty).
    """
    machine = machine or this_machine()
    vectors = processor().vectors if vectors is None else vectors
    is_here = options.on == "here" and machine.device == machine.cpu
    if options.precision != "bf16" or not is_here or not vectors or OF_BF16 & {*vectors}:
        return []
    return [
        f"--precision bf16: {machine.cpu} has no instructions for bfloat16, so it takes longer than fp32 here. "
        "Leave it out, unless it is these digits that are wanted."
    ]
