"""The hyper-parameters of one row, named as the columns of Table 3."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

LEARNED_POSITIONS = 512  # rows of the learned table on each side in row E; the paper does not print the size
LAST = 10  # each run is also scored with the mean of this many last checkpoints, beside its own weights
LATER = ("attention_dropout", "lr_factor", "warms_up")  # fields that the first records and run ids lack


@dataclass(frozen=True, kw_only=True)
class Hyper:
    """One row of Table 3; the defaults are the base model. Paper: sections 5.3, 5.4 and 6.2."""

    n_layers: int = 6  # N, in the encoder and again in the decoder
    d_model: int = 512
    d_ff: int = 2048
    n_heads: int = 8  # h
    d_k: int = 64
    d_v: int = 64
    dropout: float = 0.1  # P_drop
    label_smoothing: float = 0.1  # epsilon_ls
    learned_positions: bool = False  # row E
    steps: int = 100_000  # optimizer updates ("train steps")
    warmup: int = 4_000  # updates during which the learning rate rises
    average: int = 1  # checkpoints averaged; Table 3 averages none, Table 2 five or twenty
    average_every: int = 1_500  # updates between averaged checkpoints: 10 minutes (section 6.1) at 0.4 s an update
    attention_dropout: float = 0.0  # of the weights after the softmax; the paper names none
    lr_factor: float = 1.0  # multiplies the learning rate of section 5.3
    warms_up: bool = True  # the rate rises for `warmup` updates; False: it stays at its peak for as many

    def __post_init__(self) -> None:
        for field in fields(self):
            kind = type(field.default)
            value = _as_kind(field.name, getattr(self, field.name), kind)
            if kind is int and value < 1:  # counts and sizes
                raise ValueError(f"{field.name} must be at least 1, got {value}.")
            object.__setattr__(self, field.name, value)
        if self.d_model % 2:
            raise ValueError(
                f"d_model must be even, got {self.d_model}: sinusoidal positions pair a sine with a cosine."
            )
        for name in ("dropout", "label_smoothing", "attention_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"{name} must lie in [0, 1), got {getattr(self, name)}.")
        if not 0.0 < self.lr_factor < float("inf"):
            raise ValueError(f"lr_factor must be a positive number, got {self.lr_factor}.")
        if self.averaged_steps[0] < 1:
            raise ValueError(
                f"{self.average} checkpoints, {self.average_every} updates apart, do not fit in {self.steps} steps. "
                f"Train longer or average fewer or closer ones."
            )

    @property
    def averaged_steps(self) -> range:
        """The updates after which the averaged checkpoints are written; the last step is one of them."""
        span = self.average * self.average_every
        return range(self.steps - span + self.average_every, self.steps + 1, self.average_every)

    @property
    def last_steps(self) -> range:
        """The updates of the last `LAST` checkpoints, `average_every` apart; fewer in a short run."""
        n = min(LAST, 1 + (self.steps - 1) // self.average_every)
        return range(self.steps - (n - 1) * self.average_every, self.steps + 1, self.average_every)

    @property
    def kept_steps(self) -> range:
        """The updates whose checkpoints are kept: the longer of the two ranges above, which contains the other."""
        return max(self.averaged_steps, self.last_steps, key=len)


def _as_kind(name: str, value: Any, kind: type) -> Any:
    """Convert a number to its field's type, so that 2, 2.0 and NumPy numbers give the same run. Raises ValueError."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if kind not in (int, float) and isinstance(value, kind):
        return value
    if kind is float and is_number:
        return float(value)
    if kind is int and is_number and value == value // 1:
        return int(value)
    expected = {bool: "True or False", float: "a number", int: "a whole number"}.get(kind, f"a {kind.__name__}")
    raise ValueError(f"{name} must be {expected}, got {value!r}.")


BASE = Hyper()


def written(hyper: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row as run ids and records have them: without those of `LATER` that are at their default.

    So a run that was possible before such a field existed keeps its id, and its record stays the same byte by byte.
    """
    defaults = {field.name: field.default for field in fields(Hyper) if field.name in LATER}
    return {name: value for name, value in hyper.items() if name not in defaults or value != defaults[name]}


def divide(whole: int, parts: int) -> int:
    """whole / parts, for rows that share out or cut a width. Raises ValueError if it does not divide evenly."""
    if whole % parts:
        raise ValueError(
            f"{whole} cannot be divided evenly by {parts}. Choose a row or a base size where it can be: all "
            f"scales keep h = 8, N divisible by 3, d_model by 64 and d_k by 4."
        )
    return whole // parts
