"""What a GPU runs as compiled programs: layers in training, and the loss with its gradient.

Dynamo keeps only a few programs for a function. After that it runs the function uncompiled for the rest of the process
and only logs it. So a run begins without programs. Evaluation is not compiled: batches of dev are padded, nearly each
has a shape of its own, and they would use the programs up.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn


def compile_training(layer: nn.Module, backend: str = "inductor") -> None:
    """Compile a layer at its next call in training; in evaluation it runs uncompiled."""
    plain = layer._call_impl
    program = torch.compile(plain, backend=backend)

    def call(*args: Any, **kwargs: Any) -> Any:
        return (program if layer.training else plain)(*args, **kwargs)

    layer._compiled_call_impl = call


@cache
def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled at its next call; cached, so that its programs are kept."""
    return torch.compile(function)


@cache
def why_not(device: str = "cuda") -> str | None:
    """Why nothing can be compiled here, in the compiler's words; None if compiling a small program worked. Tried once.

    The compiler builds a part of itself in C at first use; slim images lack a C compiler or Python's headers.
    """
    try:
        torch.compile(_doubled)(torch.ones(8, device=device))
    except Exception as error:  # whatever the error, the work can be done uncompiled, and the caller reports it
        lines = str(error).strip().split("\n")
        return f"{type(error).__name__}: {lines[0]}"
    return None


def _doubled(x: Tensor) -> Tensor:
    return 2 * x


def begin_run() -> None:
    """Forget all programs, so that a run does not depend on what this process did before."""
    from torch._dynamo.utils import counters  # imports the compiler, which takes a second

    torch.compiler.reset()
    counters.clear()


def given_up() -> str | None:
    """Why something was left uncompiled since `begin_run`; None if everything was compiled."""
    from torch._dynamo.utils import counters

    if not counters["frames"]["ok"]:
        return "nothing was compiled"
    said = (str(key) for kind in counters.values() for key in kind)
    if any("recompile limit" in key or "recompile_limit" in key for key in said):
        return "there were more shapes than the compiler keeps programs for"
    return None
