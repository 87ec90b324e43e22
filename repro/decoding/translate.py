"""From a trained model to translations, perplexity and accuracy. Paper: sections 5.4 and 6.1.

Sentences are translated in batches of similar length and returned in their original order.

The softmax over the whole vocabulary is half of the computation of a search. It is most of the memory traffic if all
logits are made first, then summed, divided and searched. Here they are made one block of the vocabulary at a time; the
block's sum and its maxima are taken while it is in the processor's cache.

    R hypotheses    D d_model    V tokens    C tokens of a block    G groups of tokens    K tokens wanted
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from repro.data.batch import Batch
from repro.data.shards import Side
from repro.decoding.beam import Step, beam_search
from repro.decoding.search import PAPER_SEARCH, Search
from repro.model.bfloat16 import without_gradients
from repro.model.loss import nll_and_correct
from repro.model.prepacked import PackedLinear, can_prepack
from repro.model.protocol import TranslationSystem
from repro.model.special_tokens import PAD

BATCH_TOKENS = 4_096  # source tokens searched at once, padding included, with the paper's beam or a narrower one
GPU_BATCH_TOKENS = 32_768  # the same on a GPU, which needs hardly more time for so many
GROUP = 32  # tokens that share a maximum, at most: the K likeliest are in the K groups with the largest maxima
BLOCK = 4_096  # tokens of a block: the logits of a hundred rows fit into a core's cache
SIGN = 2**31 - 1  # the bits of a float32 that are flipped in negative numbers, so that keys sort like numbers


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


# The likeliest next tokens, straight from the decoder's output. Paper: section 3.4


class Softmax:
    """The softmax matrix, prepared to find only the likeliest tokens."""

    def __init__(self, weight: Tensor, dtype: torch.dtype | None = None) -> None:
        """weight [V, D]; products are made in `dtype`, sums in float32 at least."""
        self.n_tokens, self.dtype = len(weight), dtype or weight.dtype
        matrix = weight.detach().to(self.dtype)
        # a GPU takes the whole vocabulary as one block
        self.width = self.n_tokens + -self.n_tokens % GROUP if matrix.is_cuda else BLOCK
        self._blocks: list[Callable[[Tensor], Tensor]] = [
            PackedLinear(part, None, self.dtype) if can_prepack(part, self.dtype) else partial(F.linear, weight=part)
            for part in matrix.split(self.width)
        ]
        # memory for the logits, kept: clearing fresh memory costs as much as computing them
        self._room = matrix.new_empty(0)

    def top_k(self, hidden: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k likeliest tokens of each row of hidden [R, D]: log-probabilities and ids, both [R, k], likeliest first.

        Among equals the lower id comes first. Padding has a share of the probability but is never returned. If there
        are fewer than k tokens, the rest have log-probability -inf.
        """
        n_rows, n_tokens = len(hidden), self.n_tokens
        width, group = self.width, _group(n_tokens, k)
        slots = n_tokens + -n_tokens % GROUP
        if len(self._room) < n_rows * slots:
            self._room = self._room.new_empty(n_rows * slots)

        # 1. Make the logits block by block, [R, C]; keep the sum of each block and the maximum of each group.
        rows, groups, tops, sums = hidden.to(self.dtype), [], [], []
        for begin, product in zip(range(0, n_tokens, width), self._blocks, strict=True):
            stop = min(begin + width, n_tokens)
            block_RC = self._block(n_rows, begin, width, slots)
            block_RC[:, : stop - begin] = product(rows)
            block_RC[:, stop - begin :] = -math.inf
            maxima_RG = block_RC.view(n_rows, -1, group).amax(2)
            top_R1 = maxima_RG.amax(1, keepdim=True).to(torch.promote_types(maxima_RG.dtype, torch.float32))
            sums.append((block_RC - top_R1).exp_().sum(1, keepdim=True))
            if begin == 0:
                block_RC[:, PAD] = -math.inf
                maxima_RG[:, 0] = block_RC[:, :group].amax(1)
            tops.append(top_R1)
            groups.append(maxima_RG)
        tops_RB = torch.cat(tops, dim=1)
        top_R1 = tops_RB.amax(1, keepdim=True)
        log_sum_R1 = (torch.cat(sums, dim=1) * (tops_RB - top_R1).exp()).sum(1, keepdim=True).log()

        # 2. Take the groups with the largest maxima, in the order of their tokens.
        _, chosen_RK = first_largest(torch.cat(groups, dim=1), k)
        chosen_RK = chosen_RK.sort(1).values
        begin_RK = chosen_RK * group // width * width  # where the group's block begins
        width_RK = (slots - begin_RK).clamp(max=width)
        row_R1 = torch.arange(n_rows, device=hidden.device)[:, None]
        place_RK = n_rows * begin_RK + row_R1 * width_RK + chosen_RK * group - begin_RK
        members_RM = self._room.view(-1, group)[place_RK // group].flatten(1)

        # 3. Take the likeliest tokens of these groups.
        logit_RK, member_RK = first_largest(members_RM, k)
        token_RK = chosen_RK.gather(1, member_RK // group) * group + member_RK % group
        token_RK = token_RK.clamp(max=n_tokens - 1)  # beyond it are only the -inf entries that fill the last group
        log_prob_RK = logit_RK - top_R1 - log_sum_R1
        missing = k - log_prob_RK.shape[1]
        return F.pad(log_prob_RK, (0, missing), value=-math.inf), F.pad(token_RK, (0, missing), value=n_tokens - 1)

    def _block(self, n_rows: int, begin: int, width: int, slots: int) -> Tensor:
        """The memory for the logits of one block, [R, C]; blocks lie one after the other."""
        stop = min(begin + width, slots)
        return self._room[n_rows * begin : n_rows * stop].view(n_rows, stop - begin)


def _group(n_tokens: int, k: int) -> int:
    """The number of tokens that share a maximum; fastest if there are as many maxima as tokens in the k groups."""
    return min(GROUP, max(8, 2 ** math.ceil(math.log2(max(1, n_tokens / k)) / 2)))


def first_largest(x_RN: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each row (or all) and their indices, largest first; among equals the lower index first.

    `topk` guarantees no order among equals, which are common in bfloat16, and a stable sort of whole rows is 30 times
    slower. So `topk` gets keys that are never equal: the bits of the number, then the index counted from the end.
    """
    n = x_RN.shape[1]
    if x_RN.dtype == torch.float64:  # too long for a key
        value, place = x_RN.sort(dim=1, descending=True, stable=True)
        return value[:, :k], place[:, :k]
    key_RN = (x_RN.float() + 0.0).view(torch.int32).long()  # -0.0 + 0.0 is 0.0
    key_RN ^= (key_RN >> 63) & SIGN
    key_RN <<= 32
    key_RN |= torch.arange(n - 1, -1, -1, device=x_RN.device)
    place_RK = n - 1 - (key_RN.topk(min(k, n), dim=1).values & (2**32 - 1))
    return x_RN.gather(1, place_RK), place_RK
