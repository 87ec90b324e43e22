"""What the processor under the tests can do: libraries choose other products by it."""

import platform
from pathlib import Path

import pytest

CPUINFO = Path("/proc/cpuinfo")
FLAGS = frozenset(CPUINFO.read_bytes().decode("ascii", "replace").split()) if CPUINFO.exists() else frozenset()

# without these instructions the sum of two 8-bit products is cut off at 16 bits (microsoft/onnxruntime#6004)
exact_8_bits = pytest.mark.skipif(
    platform.machine() in ("x86_64", "AMD64") and not {"avx512_vnni", "avx_vnni"} & FLAGS,
    reason="8-bit products of this processor saturate: it has no VNNI.",
)
