"""What a GPU runs as compiled programs: layers where they train, and the loss where it has a gradient.

Dynamo keeps a few programs for a function, then runs it as it is for the rest of the process and says so in a log only.
So a run begins with none; and what is only read is not compiled: batches of dev are padded, nearly each with a shape of
its own, and would use the programs up.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn


def compile_training(layer: nn.Module, backend: str = "inductor") -> None:
    """Have a layer compiled at its next call in training; in evaluation it is called as it is."""
    plain = layer._call_impl
    program = torch.compile(plain, backend=backend)

    def call(*args: Any, **kwargs: Any) -> Any:
        return (program if layer.training else plain)(*args, **kwargs)

    layer._compiled_call_impl = call


@cache
def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function compiled at its next call; always the same one, so that its programs are kept."""
    return torch.compile(function)


@cache
def why_not(device: str = "cuda") -> str | None:
    """Why nothing can be compiled here, in the compiler's words; None where a small program was. Asked once.

    It builds a part of itself in C when it is first used, so it lacks a compiler or Python's headers in slim images.
    """
    try:
        torch.compile(_doubled)(torch.ones(8, device=device))
    except Exception as error:  # whatever it is, the same work is done without it, and the caller says so
        lines = str(error).strip().split("\n")
        return f"{type(error).__name__}: {lines[0]}"
    return None


def _doubled(x: Tensor) -> Tensor:
    return 2 * x


def begin_run() -> None:
    """Forget all programs, so that a run has its own whatever was done before in this process."""
    from torch._dynamo.utils import counters  # brings the compiler, which takes a second

    torch.compiler.reset()
    counters.clear()


def given_up() -> str | None:
    """Why not all that was to be compiled since `begin_run` was; None where it was."""
    from torch._dynamo.utils import counters

    if not counters["frames"]["ok"]:
        return "nothing was compiled"
    said = (str(key) for kind in counters.values() for key in kind)
    if any("recompile limit" in key or "recompile_limit" in key for key in said):
        return "there were more shapes than the compiler keeps programs for"
    return None
