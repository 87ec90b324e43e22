"""The processor's model and vector units, on which the last digits of a sum depend; its name alone says too little."""

import platform
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

CPUINFO = Path("/proc/cpuinfo")
MODEL = {"vendor_id": "", "cpu family": "family ", "model": "model ", "stepping": "stepping "}  # of x86
MODEL_OF_ARM = {"CPU implementer": "implementer ", "CPU variant": "variant ", "CPU part": "part "}
OF_VECTORS = r"sse4\w*|avx\w*|fma\w*|f16c|amx\w*|asimd\w*|sve\w*|bf16|i8mm"  # by which a library picks its products


class Processor(NamedTuple):
    """The first processor of a machine."""

    name: str  # as the system reports it, if it does
    model: str | None  # rented machines often share a name; None where the system does not report it
    vectors: tuple[str, ...]  # the flags of its vector units, sorted; empty where the system does not report them


@cache
def processor(cpuinfo: Path = CPUINFO) -> Processor:
    """The processor of this machine, as Linux describes it in `cpuinfo`, else only its name."""
    text = cpuinfo.read_bytes().decode("ascii", "replace") if cpuinfo.exists() else ""
    lines = (line.partition(":") for line in text.partition("\n\n")[0].split("\n"))
    told = {key.strip(): value.strip() for key, _, value in lines}
    named = (
        ", ".join(word + told[key] for key, word in keys.items())
        for keys in (MODEL, MODEL_OF_ARM)
        if keys.keys() <= told.keys()
    )
    flags = told.get("flags", told.get("Features", "")).split()
    return Processor(
        name=told.get("model name") or platform.processor() or platform.machine(),
        model=next(named, None),
        vectors=tuple(sorted(flag for flag in flags if re.fullmatch(OF_VECTORS, flag))),
    )
