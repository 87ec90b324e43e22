"""A finished run, put to use: lines in, translations, trees, scores and attention out; typed or called.

Letters: H heads, Q tokens that look, K tokens that are looked at.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from repro.results.search import Search
from repro.runs.load import Trained

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

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


@dataclass(frozen=True)
class TextScores:
    """How likely given translations are; logarithms are natural, end symbols count as tokens."""

    nll: float  # mean over all target tokens, nats
    n_tokens: int  # of the target
    log_probs: tuple[float, ...] | None = None  # of each sentence, the sum over its tokens; None: not asked for
    n_each: tuple[int, ...] | None = None  # target tokens of each sentence

    @property
    def ppl(self) -> float:
        """Perplexity of the text, per token."""
        return math.exp(self.nll)

    @property
    def ppls(self) -> tuple[float, ...]:
        """Perplexity of each sentence, per token. Raises ValueError where sentences were not scored one by one."""
        if self.log_probs is None or self.n_each is None:
            raise ValueError("expected scores of each sentence, got those of a whole text: ask for each sentence.")
        return tuple(math.exp(-total / n) for total, n in zip(self.log_probs, self.n_each, strict=True))


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


def score_each(trained: Trained, sources: Sequence[str], targets: Sequence[str]) -> TextScores:
    """As `score_text`, and of each sentence apart. Raises ValueError for sides of unequal length or without a line."""
    if len(sources) != len(targets) or not sources:
        raise ValueError(
            f"expected as many sources as targets, and one at least; got {len(sources)} and {len(targets)}."
        )
    each = [score_text(trained, [source], [target]) for source, target in zip(sources, targets, strict=True)]
    counts = tuple(one.n_tokens for one in each)
    log_probs = tuple(-one.nll * one.n_tokens for one in each)
    return TextScores(-sum(log_probs) / sum(counts), sum(counts), log_probs, counts)


@dataclass(frozen=True)
class Attention:
    """Where each head looks: by part and layer float32 [H, Q, K], rows sum to one."""

    source_tokens: tuple[str, ...]  # what the encoder reads, the end symbol last
    target_tokens: tuple[str, ...]  # what the decoder reads: the zero vector first, then the target without its end
    weights: "dict[tuple[str, int], NDArray[float32]]"  # by ("encoder" | "decoder" | "cross", layer from 1)

    def head(self, part: str, layer: int, head: int) -> "NDArray[float32]":
        """[Q, K] of one head; layers and heads count from 1. Raises ValueError for what the model has not."""
        if (part, layer) not in self.weights or not 1 <= head <= len(self.weights[part, layer]):
            known = ", ".join(f"{name} {number}" for name, number in self.weights)
            raise ValueError(f"expected a head of one of {known}, from 1 on; got {part} {layer}, head {head}.")
        return self.weights[part, layer][head - 1]


def attention_of(trained: Trained, source: str, target: str) -> Attention:
    """Where each head looks while it reads `target` as the output for `source`. ValueError: a system without such."""
    import torch

    from repro.model.special_tokens import EOS, PAD, SPECIAL

    if not hasattr(trained.model, "attention_maps"):
        raise ValueError(f"row {trained.record.row!r} of {trained.record.table} is a system without attention maps.")
    ids, written = (trained.tokenizer.encode([line])[0].tolist() for line in (source, target))
    read = [PAD, *written[:-1]]
    device = trained.model.embedding.weight.device
    with torch.inference_mode():
        maps = trained.model.attention_maps(*(torch.tensor([side], device=device) for side in (ids, read)))
    kinds = {("encoder", "self_attention"): "encoder", ("decoder", "self_attention"): "decoder"}
    weights = {}
    for name, found in maps.items():
        stack, layer, kind = name.split(".")[:3]
        weights[kinds.get((stack, kind), "cross"), int(layer) + 1] = found[0].float().cpu().numpy()

    def texts(side: Sequence[int]) -> tuple[str, ...]:
        names = {PAD: SPECIAL[PAD], EOS: SPECIAL[EOS]}
        return tuple(names.get(id) or trained.tokenizer.decode([id]) for id in side)

    return Attention(texts(ids), texts(read), weights)


def encoded(tokenizer: "Tokenizer", lines: Sequence[str]) -> "Encoded":
    """Lines as ids, each with its end symbol."""
    from repro.data.shards import Encoded

    return Encoded(*tokenizer.encode(list(lines)))
