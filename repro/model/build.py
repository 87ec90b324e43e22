"""From a row's system to its model: None is the Transformer."""

from functools import partial
from typing import Any

import torch

from repro.model.config import Hyper
from repro.model.protocol import refuse_incomplete
from repro.model.transformer import Transformer


def build(system: Any, hyper: Hyper, vocab_size: int) -> Any:
    """The model with its first weights. Raises ValueError for a system that lacks a member."""
    model = (Transformer if system is None else system)(hyper, vocab_size)
    refuse_incomplete(model)
    return model


def sketched(system: Any, hyper: Hyper, vocab_size: int) -> Any:
    """The same without memory for its weights: to be counted and looked at, not to be trained."""
    with torch.device("meta"):
        return build(system, hyper, vocab_size)


def reads_ragged(system: Any) -> bool:
    """Whether models of this system take ragged batches: its class does, and no part handed over needs padded ones."""
    handed: list[Any] = []
    while isinstance(system, partial):
        handed += map(_called, system.keywords.values())
        system = system.func
    in_kernel = all(getattr(part, "in_kernel", True) for part in handed)
    return in_kernel and bool(_class_of(system).reads_ragged)


def gradient_norm(system: Any) -> float | None:
    """The norm that the gradient of an update is cut to; None, as in the paper: it is taken as it is."""
    norm: float | None = getattr(_class_of(system), "gradient_norm", None)
    return norm


def compile_layers(model: Any) -> None:
    """Have the model's layers compiled at their next call, where it says which they are."""
    if hasattr(model, "compile_layers"):
        model.compile_layers()


def _class_of(system: Any) -> Any:
    return Transformer if system is None else _called(system)


def _called(part: Any) -> Any:
    return _called(part.func) if isinstance(part, partial) else part
