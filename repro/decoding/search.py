"""How a trained model is searched, as one value, and what its outputs are scored by. Paper: section 6.1."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

Named = dict[str, float | str | None]  # "bleu": 25.8, "bleu_signature": "nrefs:1|..."; None: it has no value


@dataclass(frozen=True)
class Search:
    """The settings of a beam search; as they stand here, the paper's for translation."""

    beam: int = 4  # hypotheses of each sentence; 1 is greedy search
    alpha: float = 0.6  # strength of the length penalty
    extra: int = 50  # the longest output: source length + 50

    def __post_init__(self) -> None:
        # below 0 a penalty falls with length, and a search that stops early would stop too early
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
        """As a record keeps it."""
        return {"beam": self.beam, "alpha": self.alpha, "extra_length": self.extra}

    def penalty(self, length: Any) -> Any:
        """What log p is divided by; `length` is a number or a tensor of them, the end symbol counted.

        ((5 + length) / 6)^alpha: Wu et al. (2016), equation 14; paper: section 6.1.
        """
        return ((5 + length) / 6) ** self.alpha

    def __str__(self) -> str:
        return f"beam {self.beam}, alpha {self.alpha}, at most input + {self.extra}"


@dataclass(frozen=True)
class LengthNormalised(Search):
    """Ranks by log p / length^alpha, as fairseq does and with it the anchor's authors: the mean over tokens.

    It pays more for length than the paper's penalty, which at alpha 0.6 makes a token cost more than it earns sooner.
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
    """What a run asks its task for."""

    @property
    def search(self) -> Search:
        """The paper's for it."""
        ...

    def score(self, outputs: Sequence[str], references: Sequence[str], *, in_tokens: bool) -> Named:
        """What outputs are worth: each score and its signature. `in_tokens`: both sides are Moses tokens."""
        ...
