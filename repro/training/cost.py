"""What training consumes."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TrainingCost:
    """What the training of a run has consumed so far, over all its attempts."""

    steps: int = 0
    source_tokens: int = 0  # real tokens, no padding
    target_tokens: int = 0
    slots: int = 0  # token places of both sides, padding included
    seconds: float = 0.0  # spent in steps, without validation, checkpoints and start-up

    @property
    def tokens_per_second(self) -> float:
        return (self.source_tokens + self.target_tokens) / self.seconds if self.seconds else 0.0

    @property
    def padding(self) -> float:
        return 1 - (self.source_tokens + self.target_tokens) / self.slots if self.slots else 0.0

    def __add__(self, other: "TrainingCost") -> "TrainingCost":
        return TrainingCost(**{name: value + getattr(other, name) for name, value in vars(self).items()})
