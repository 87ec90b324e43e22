"""The settings of a search as one value, and the interface of what scores the outputs. Paper: section 6.1."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

Named = dict[str, float | str | None]  # "bleu": 25.8, "bleu_signature": "nrefs:1|..."; None: it has no value


@dataclass(frozen=True)
class Search:
    """The settings of a beam search; the defaults are the paper's for translation."""

    beam: int = 4  # hypotheses of each sentence; 1 is greedy search
    alpha: float = 0.6  # strength of the length penalty
    extra: int = 50  # the longest output has source length + 50 tokens

    def __post_init__(self) -> None:
        # with alpha below 0 the penalty falls with length, and early stopping would stop too early
        if self.beam < 1 or not 0 <= self.alpha <= sys.float_info.max or self.extra < 0:
            raise ValueError(
                f"A search of {self}: expected a beam of at least 1, an alpha that is finite and at least 0, and 0 "
                "tokens or more beyond the input. Change what is less."
            )

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The search of a run, from the settings in its record."""
        kind = LengthNormalised if settings.get("offset") == 0 else cls
        return kind(settings["beam"], settings["alpha"], settings["extra_length"])  # type: ignore[return-value]

    @property
    def settings(self) -> dict[str, int | float]:
        """The settings as a record keeps them."""
        return {"beam": self.beam, "alpha": self.alpha, "extra_length": self.extra}

    def penalty(self, length: Any) -> Any:
        """The divisor of log p; `length` is a number or a tensor of numbers, the end symbol counted.

        ((5 + length) / 6)^alpha: Wu et al. (2016), equation 14; paper: section 6.1.
        """
        return ((5 + length) / 6) ** self.alpha

    def __str__(self) -> str:
        return f"beam {self.beam}, alpha {self.alpha}, at most input + {self.extra}"


@dataclass(frozen=True)
class LengthNormalised(Search):
    """Ranks by log p / length^alpha (at alpha 1, the mean over tokens), as fairseq and the anchor's authors do.

    It favours length more than the paper's penalty with alpha 0.6, under which a further token stops paying off sooner.
    """

    beam: int = 5
    alpha: float = 1.0

    @property
    def settings(self) -> dict[str, int | float]:
        return {**super().settings, "offset": 0}  # of the penalty ((offset + length) / (offset + 1))^alpha

    def penalty(self, length: Any) -> Any:
        return length**self.alpha

    def __str__(self) -> str:
        return f"{super().__str__()}, log p over length^alpha"


PAPER_SEARCH = Search()
SEARCHES = {"paper": PAPER_SEARCH, "fairseq": LengthNormalised()}


class Scorer(Protocol):
    """What a run needs from its task."""

    @property
    def search(self) -> Search:
        """The paper's search for this task."""
        ...

    def score(self, outputs: Sequence[str], references: Sequence[str], *, in_tokens: bool) -> Named:
        """The scores of the outputs, each with its signature. `in_tokens`: both sides are Moses tokens."""
        ...
