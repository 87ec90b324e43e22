"""This machine: its processors and memory, and its cards (GPUs): whether PyTorch can use them, and what is refused.

The driver's own command is asked which cards there are: PyTorch takes seconds to ask, and finds none where the driver
is too old for it.
"""

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import psutil

CGROUP = Path("/sys/fs/cgroup")
HIDE = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}  # no card for this process and those that it starts
OF_BF16 = (8, 0)  # compute capability from which a card has products of bfloat16, and FlashAttention a kernel
AMD = Path("/sys/class/kfd/kfd/topology/nodes")
OF_WSL = "/usr/lib/wsl/lib"  # where Windows keeps the driver's command, which is not on every PATH
NO_CARD = "No devices were found"  # says that command, and fails
PATIENCE = 60.0  # seconds for the answer of the driver, which may have to wake many cards


def processors() -> int:
    """How many processors this process may use: more threads than that wait for each other.

    The size of its CPU set, or the number that its control group grants, whichever is less.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, granted() or usable)


def granted(root: Path = CGROUP) -> int | None:
    """How many processors' time the control group of this process may use, rounded up; None if there is no limit."""
    try:
        quota, period = map(int, (root / "cpu.max").read_bytes().split())
    except (OSError, ValueError):  # no such file, or "max"
        return None
    return max(1, -(-quota // period))


def free_memory(cgroup: Path = CGROUP) -> int:
    """Bytes that new processes may take without pushing others out.

    Of this machine, or of the control group that this process is in, whichever leaves less; its file cache is free.
    """
    free = psutil.virtual_memory().available
    try:
        most, used = (int((cgroup / f"memory.{name}").read_bytes()) for name in ("max", "current"))
        lines = (cgroup / "memory.stat").read_bytes().split(b"\n")
    except (OSError, ValueError):  # no such file, or "max"
        return free
    cached = sum(int(line.split()[1]) for line in lines if line.startswith(b"inactive_file "))
    return min(free, max(0, most - used + cached))


# Cards ---------------------------------------------------------------------------------------------


def visible() -> dict[str, str]:
    """The cards that the environment leaves to this process, as CUDA_VISIBLE_DEVICES calls them, with their names."""
    said = os.environ.get("CUDA_VISIBLE_DEVICES")
    chosen = [one for one in map(str.strip, (said or "").split(",")) if one not in ("", "-1")]
    there = present() if said is None or chosen else ()  # a driver that is not wanted may be a broken one
    if said is None or not there:
        return {str(i): name for i, name in enumerate(there)}
    return {one: there[int(one)] if one.isdecimal() and int(one) < len(there) else there[0] for one in chosen}


@cache
def present() -> tuple[str, ...]:
    """The cards that NVIDIA's driver names, or else AMD's; raises ValueError where the driver's command fails.

    PyTorch takes seconds, and finds none for an old driver: it is asked where the driver is here without its command.
    """
    if (program := shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path=OF_WSL)) is None:
        return of_amd() or of_torch()
    words = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        if NO_CARD not in (said := str(error.stdout or error.stderr or "")):
            why = f"{error} {' '.join(said.split())}".rstrip(". ")
            raise ValueError(f"{why}. Repair the driver; a restart loads one that was updated. {TO_CPU}") from None
    return tuple(line for line in said.strip().split("\n") if line not in ("", NO_CARD))


def of_amd(nodes: Path = AMD) -> tuple[str, ...]:
    """AMD's cards. The processor is listed as a node, too, but without a number of a GPU."""
    numbers = [file.read_bytes().strip() for file in sorted(nodes.glob("*/gpu_id"))]
    return ("AMD GPU",) * sum(number not in (b"", b"0") for number in numbers)


def of_torch() -> tuple[str, ...]:
    """The cards that PyTorch finds, if the library it finds them by is here: a container may lack the command."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ()
    import torch

    return tuple(map(torch.cuda.get_device_name, range(torch.cuda.device_count())))


def refuse_cards(precision: Literal["fp32", "bf16"], processes: int = 1) -> None:
    """Raise ValueError where PyTorch cannot use this machine's cards as asked, or would take weeks on the processor."""
    there = visible()
    if not there:
        return
    if processes > len(there):
        got = f"{len(there)}: {', '.join(there.values())}"
        raise ValueError(f"--devices {processes}: expected a card for each process, got {got}. {TO_CPU}")
    import torch

    if not torch.cuda.is_available():
        raise ValueError(f"expected PyTorch to find {', '.join(there.values())}, got no GPU. {_why_not()} {TO_CPU}")
    if torch.version.hip is not None:
        return
    kernels = torch.cuda.get_arch_list()
    for i in range(torch.cuda.device_count()):
        card, has = torch.cuda.get_device_name(i), torch.cuda.get_device_capability(i)
        if not has_kernels(has, kernels):
            raise ValueError(
                f"{card} has compute capability {has[0]}.{has[1]}, for which PyTorch {torch.__version__} has no "
                f"kernels; it has {' '.join(kernels)}. Use a newer card. {TO_CPU}"
            )
        if precision == "bf16" and has < OF_BF16:
            raise ValueError(
                f"--precision bf16: expected a card of compute capability 8.0 or newer, as A100, RTX 30xx and later "
                f"are, got {card} with {has[0]}.{has[1]}. Type --precision fp32: another run, with a record of its own."
            )


TO_CPU = "To train on the processor all the same, type --device cpu."


def _why_not() -> str:
    import torch

    if torch.version.cuda is None and torch.version.hip is None:
        built = f"PyTorch {torch.__version__} was built without CUDA"
        return f"{built}. Install the same version from PyTorch's own index, for the driver's CUDA: docs/gpu.md."
    said = "it counts no device"
    try:
        torch.cuda.init()
    except Exception as error:
        said = str(error).partition("\n")[0]
    old = f"The driver may be too old for CUDA {torch.version.cuda}, which PyTorch {torch.__version__} was built for"
    return f"{old} ({said}). Update the driver, or install PyTorch for an older CUDA: docs/gpu.md."


def has_kernels(capability: tuple[int, int], kernels: Sequence[str]) -> bool:
    """Whether code for these architectures, such as sm_80 or compute_90, runs on a card of this compute capability.

    Machine code (sm) runs within its generation, on the same or a newer card; the intermediate (compute) on any newer.
    """
    named = [re.fullmatch(r"(sm|compute)_(\d+)(\d)[af]?", name) for name in kernels]
    made_for = [(found[1], (int(found[2]), int(found[3]))) for found in named if found]
    return any(of <= capability and (kind == "compute" or of[0] == capability[0]) for kind, of in made_for)
