"""Builds the model of a row's system; None is the Transformer."""

from functools import partial
from typing import Any

import torch

from repro.model.config import Hyper
from repro.model.protocol import refuse_incomplete
from repro.model.transformer import Transformer


def build(system: Any, hyper: Hyper, vocab_size: int) -> Any:
    """The model with its initial weights. Raises ValueError if the system lacks a member."""
    model = (Transformer if system is None else system)(hyper, vocab_size)
    refuse_incomplete(model)
    return model


def sketched(system: Any, hyper: Hyper, vocab_size: int) -> Any:
    """The same without memory for its weights, to count and inspect it, not to train it."""
    with torch.device("meta"):
        return build(system, hyper, vocab_size)


def reads_ragged(system: Any) -> bool:
    """Whether models of this system take ragged batches: its class does, and none of its parts needs padded ones."""
    handed: list[Any] = []
    while isinstance(system, partial):
        handed += map(_called, system.keywords.values())
        system = system.func
    in_kernel = all(getattr(part, "in_kernel", True) for part in handed)
    return in_kernel and bool(_class_of(system).reads_ragged)


def gradient_norm(system: Any) -> float | None:
    """The norm to which the gradient of an update is clipped; None, as in the paper: it is not clipped."""
    norm: float | None = getattr(_class_of(system), "gradient_norm", None)
    return norm


def compile_layers(model: Any) -> None:
    """Compile the model's layers at their next call, if the model has a method for it."""
    if hasattr(model, "compile_layers"):
        model.compile_layers()


def _class_of(system: Any) -> Any:
    return Transformer if system is None else _called(system)


def _called(part: Any) -> Any:
    return _called(part.func) if isinstance(part, partial) else part
