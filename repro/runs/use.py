"""A finished run, put to use: lines in, translations, trees and scores out."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from repro.results.search import Search
from repro.runs.load import Trained

if TYPE_CHECKING:
    from repro.data.shards import Encoded
    from repro.data.tokenizer import Tokenizer

BUDGET = 4_096  # padded tokens of a batch that is scored


def outputs(
    trained: Trained, lines: Sequence[str], search: Search, *, backend: Any = "torch", bf16: bool = False
) -> Iterator[tuple[str, str]]:
    """Each line with what the run makes of it; of an empty line nothing."""
    from repro.decoding.backend import opened

    full = [line for line in lines if line]
    with opened(backend, trained.model, bf16=bf16) as ready:
        ids = ready.translate(encoded(trained.tokenizer, full), search)
    texts = map(trained.tokenizer.decode, ids)
    return ((line, next(texts) if line else "") for line in lines)


class TextScores(NamedTuple):
    """How likely given translations are; logarithms are natural, end symbols count as tokens."""

    nll: float  # mean over all target tokens, nats
    n_tokens: int  # of the target

    @property
    def ppl(self) -> float:
        """Perplexity of the text, per token."""
        return math.exp(self.nll)


def score_text(
    trained: Trained, sources: Sequence[str], targets: Sequence[str], *, backend: Any = "torch", bf16: bool = False
) -> TextScores:
    """How likely `targets` are as outputs for `sources`, line by line, over the whole text."""
    from repro.data.datamodule import DevBatches
    from repro.decoding.backend import opened

    source, target = encoded(trained.tokenizer, sources), encoded(trained.tokenizer, targets)
    batches = DevBatches(source, target, budget=BUDGET, rank=0, world=1)
    with opened(backend, trained.model, bf16=bf16) as ready:
        nll, _ = ready.score_tokens(batches[i] for i in range(len(batches)))
    return TextScores(nll, len(target.ids))


def encoded(tokenizer: "Tokenizer", lines: Sequence[str]) -> "Encoded":
    """Lines as ids, each with its end symbol."""
    from repro.data.shards import Encoded

    return Encoded(*tokenizer.encode(list(lines)))
