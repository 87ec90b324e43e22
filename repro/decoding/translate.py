"""From a trained model to translations, perplexity and accuracy. Paper: sections 5.4 and 6.1.

Sentences are translated in batches of similar length and returned in their original order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from repro.data.batch import Batch
from repro.data.shards import Side
from repro.decoding.beam import Step, beam_search
from repro.decoding.search import PAPER_SEARCH, Search
from repro.decoding.topk import Softmax
from repro.model.bfloat16 import without_gradients
from repro.model.loss import nll_and_correct
from repro.model.protocol import TranslationSystem
from repro.model.special_tokens import PAD

BATCH_TOKENS = 4_096  # source tokens searched at once, padding included, with the paper's beam or a narrower one
GPU_BATCH_TOKENS = 32_768  # the same on a GPU, which needs hardly more time for so many


class TokenScores(NamedTuple):
    """Means over the target tokens of a text, each given those before it; end symbols count, padding does not."""

    nll: float  # negative log-likelihood in nats, unsmoothed; its exponential is the perplexity of Table 3
    # share of tokens that the model ranks first (the lowest id among equals); None: the backend does not tell
    accuracy: float | None


def stepping(model: TranslationSystem, dtype: torch.dtype) -> Step[Any]:
    """The step function that a search calls; products with the softmax matrix are made in `dtype`."""
    softmax = Softmax(model.embedding.weight, dtype)

    def step(last: Tensor, state: Any, k: int) -> tuple[Tensor, Tensor, Any]:
        hidden, state = model.advance(last, state)
        return *softmax.top_k(hidden, k), state

    return step


@without_gradients()
def translate(
    model: TranslationSystem,
    source: Side,
    search: Search = PAPER_SEARCH,
    *,
    batch_tokens: int | None = None,
    between: Callable[[int], None] = lambda done: None,
) -> list[Sequence[int]]:
    """The best hypothesis of each sentence as ids without the end symbol, in the order of `source`.

    At most `batch_tokens` source tokens are searched at once; None: as many as suit the device. `between` is called
    after each batch, with the number of sentences done.
    """
    model.eval()
    device = model.embedding.weight.device
    batch_tokens = batch_tokens or at_once(device)
    step = stepping(model, _dtype(model))
    found: dict[int, Sequence[int]] = {}
    with model.prepacked(_dtype(model)):
        for sentences in batches_by_length(np.asarray(source.lengths, np.int64), tokens_at_once(batch_tokens, search)):
            ids = _pad([source.sentence(int(i)) for i in sentences]).to(device)
            limits = (ids != PAD).sum(dim=1) + search.extra
            hypotheses = beam_search(step, model.start(ids), limits, search)
            found.update((int(i), best.ids) for i, best in zip(sentences, hypotheses, strict=True))
            between(len(found))
    return [found[i] for i in range(len(found))]


@without_gradients()
def score_tokens(model: TranslationSystem, batches: Iterable[Batch]) -> TokenScores:
    """How well the model predicts the next token of given translations (teacher forcing); padded or packed batches."""
    model.eval()
    device = model.embedding.weight.device
    total, n_correct, n = 0.0, 0, 0
    for batch in batches:
        source, decoder_in = batch.source.to(device), batch.decoder_in.to(device)
        hidden = model.decode(decoder_in, model.encode(source), source)
        target = batch.target.to(device).flatten()
        nll, correct = nll_and_correct(hidden.flatten(0, -2), model.embedding.weight, target)
        total += nll.item()
        n_correct += int(correct.item())
        n += batch.n_target
    if not n:
        raise ValueError("expected at least one sentence to score, got none.")
    return TokenScores(nll=total / n, accuracy=n_correct / n)


def _dtype(model: TranslationSystem) -> torch.dtype:
    """The type of products with the softmax matrix: autocast's where that is on, else the type of the weights."""
    device = model.embedding.weight.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else model.embedding.weight.dtype


def at_once(device: torch.device) -> int:
    """How many source tokens to search at once on a device."""
    return GPU_BATCH_TOKENS if device.type == "cuda" else BATCH_TOKENS


def tokens_at_once(batch_tokens: int, search: Search) -> int:
    """Source tokens at once: fewer with a beam wider than the paper's, so that the hypotheses take no more memory."""
    return batch_tokens * PAPER_SEARCH.beam // max(search.beam, PAPER_SEARCH.beam)


def batches_by_length(lengths: NDArray[np.int64], batch_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Batches of sentence numbers, longest first; sentences times longest length stays within `batch_tokens`."""
    order = np.argsort(-lengths, kind="stable")
    i = 0
    while i < len(order):
        n = max(1, batch_tokens // int(lengths[order[i]]))
        yield order[i : i + n]
        i += n


def _pad(rows: list[NDArray[np.integer]]) -> Tensor:
    ids = np.full((len(rows), max(len(row) for row in rows)), PAD, dtype=np.int64)
    for row, line in zip(rows, ids, strict=True):
        line[: len(row)] = row
    return torch.from_numpy(ids)
