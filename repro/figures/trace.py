"""Trace what a model does when it runs: its operations in order, the module that called each, and what each read.

The drawings of the model are made from traces, so they always show the code that runs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a module."""

    path: str  # its name in the model, "encoder.0.feed_forward"
    kind: str  # its class
    reads: tuple[int, ...]  # the steps that made its tensors, in the order of its arguments


@dataclass(frozen=True, kw_only=True)
class TracedStep:
    """One operation on tensors that depends on the model's inputs."""

    name: str  # "linear", "matmul", "softmax"
    calls: tuple[int, ...]  # the module calls it happened in, outermost first: places in `Trace.calls`
    reads: tuple[int, ...]  # earlier steps; -1 is the first input, -2 the second


@dataclass(frozen=True, kw_only=True)
class Trace:
    """All calls and operations, in order."""

    calls: list[Call] = field(default_factory=list)
    steps: list[TracedStep] = field(default_factory=list)


# names of operators -> the functions that are the same operation
_SAME = {"__matmul__": "matmul", "__add__": "add", "__radd__": "add", "__mul__": "mul", "__rmul__": "mul"}
# functions that only inspect a tensor, or return a view of it, and so compute nothing
_SILENT = {"transpose", "__getitem__", "squeeze", "unsqueeze", "detach", "to", "view", "contiguous", "dim", "size"}


class _Recorder(TorchFunctionMode):
    """Records each operation; PyTorch calls `__torch_function__` for every one of them."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        super().__init__()
        self.trace = Trace()
        self.stack: list[int] = []
        self.kept: list[Any] = list(inputs)  # kept alive, since an id is unique only while its tensor lives
        self.made_by = {id(tensor): -1 - i for i, tensor in enumerate(inputs)}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        reads = self.sources((*args, *(kwargs or {}).values()))
        if not reads or name == "__get__":
            return result
        name = _SAME.get(name, name)
        made = [item for item in _tensors(result) if self.made_by.get(id(item)) is None or name.endswith("_")]
        if not made:
            return result
        place = reads[0] if name in _SILENT else len(self.trace.steps)
        if name not in _SILENT:
            self.trace.steps.append(TracedStep(name=name, calls=tuple(self.stack), reads=reads))
        self.kept += made
        self.made_by |= dict.fromkeys(map(id, made), place)
        return result

    def sources(self, values: Iterable[Any]) -> tuple[int, ...]:
        """The steps that made these tensors; parameters and masks made from nothing have none."""
        return tuple(self.made_by[id(item)] for item in _tensors(values) if id(item) in self.made_by)

    def enter(self, path: str, module: nn.Module, args: tuple[Any, ...]) -> None:
        self.stack.append(len(self.trace.calls))
        self.trace.calls.append(Call(path=path, kind=type(module).__name__, reads=self.sources(args)))

    def leave(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        self.stack.pop()


def _tensors(values: Any) -> list[Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


def trace(function: Callable[..., Any], *inputs: Tensor, model: nn.Module | None = None) -> Trace:
    """Run `function` on `inputs`, without dropout or gradients, and return the trace.

    `model` is the module whose parts are named; by default it is `function`, if that is a module.
    """
    root = model if model is not None else function if isinstance(function, nn.Module) else nn.Module()
    recorder = _Recorder(inputs)
    hooks = []
    for path, part in root.named_modules():
        hooks.append(part.register_forward_pre_hook(lambda part, args, path=path: recorder.enter(path, part, args)))
        hooks.append(part.register_forward_hook(recorder.leave))
    was_training = root.training
    root.eval()
    try:
        with torch.no_grad(), recorder:
            function(*inputs)
    finally:
        root.train(was_training)
        for hook in hooks:
            hook.remove()
    return recorder.trace


def words(name: str) -> str:
    """The name of a class or attribute in words: "FeedForward" and "feed_forward" become "Feed Forward"."""
    spaced = "".join(f" {letter}" if letter.isupper() else letter for letter in name.replace("_", " "))
    return " ".join(word.capitalize() for word in spaced.split())
