"""Beam search as one writes it first: no cache, no batch of beams, loops over sentences and hypotheses."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer

Live = list[tuple[float, tuple[int, ...]]]  # log-probability and tokens, best first


@dataclass(frozen=True)
class Ended:
    """A hypothesis that is an answer, or was cut at the limit."""

    ids: tuple[int, ...]  # the end symbol included
    log_prob: float

    def worth(self, alpha: float) -> tuple[bool, float]:
        return self.ids[-1] == EOS, self.log_prob / ((5 + len(self.ids)) / 6) ** alpha


@torch.no_grad()
def next_log_probs(model: Transformer, source: Tensor, prefixes: Sequence[tuple[int, ...]], *, padding: bool) -> Tensor:
    """[rows, V] after each prefix, by a whole pass over it; all equally long. With padding, or without its share."""
    decoder_in = torch.tensor([(PAD, *prefix) for prefix in prefixes])
    logits = model.embedding.logits(model.decode(decoder_in, model.encode(source), source)[:, -1])
    if not padding:
        logits[:, PAD] = -torch.inf
    log_prob = logits.log_softmax(-1)
    log_prob[:, PAD] = -torch.inf
    return log_prob


def plain_search(
    model: Transformer, source: Tensor, limits: list[int], *, width: int, alpha: float, theirs: bool
) -> list[tuple[int, ...]]:
    """The translations of source [N, S] by our rules, or by those of CTranslate2."""
    live: dict[int, Live] = {i: [(0.0, ())] for i in range(len(source))}
    ended: dict[int, list[Ended]] = {i: [] for i in live}
    topped = set[int]()  # sentences whose best candidate was an end, once
    for length in range(1, max(limits) + 1):
        rows = [(i, ids) for i, beams in live.items() for _, ids in beams]
        log_prob = next_log_probs(model, source[[i for i, _ in rows]], [ids for _, ids in rows], padding=not theirs)
        value, token = log_prob.sort(dim=1, descending=True, stable=True)
        best = iter(zip(value[:, : 2 * width].tolist(), token[:, : 2 * width].tolist(), strict=True))
        for i, beams in list(live.items()):
            candidates = [
                (total + more, (*ids, token)) for total, ids in beams for more, token in zip(*next(best), strict=True)
            ]
            candidates.sort(key=lambda candidate: -candidate[0])
            candidates = candidates[: 2 * width if width > 1 else 1]
            if candidates[0][1][-1] == EOS:
                topped.add(i)
            eligible = candidates[:width] if theirs else candidates
            at_limit = length == limits[i]
            ended[i] += [Ended(ids, total) for total, ids in eligible if ids[-1] == EOS or (theirs and at_limit)]
            live[i] = [(total, ids) for total, ids in candidates if ids[-1] != EOS][:width]
            if theirs:
                done = len(ended[i]) >= width and (alpha > 0 or i in topped)
            else:
                hope = live[i][0][0] / ((5 + limits[i]) / 6) ** alpha if live[i] else -torch.inf
                done = bool(ended[i]) and max(one.worth(alpha)[1] for one in ended[i]) >= hope
                if at_limit and not ended[i]:
                    ended[i] = [Ended(ids, total) for total, ids in live[i]]
            if done or at_limit:
                del live[i]
        if not live:
            break
    answers = []
    for found in ended.values():
        if theirs:  # no more than the beam is wide come back, by their own penalty
            found = sorted(found, key=lambda one: -one.log_prob / (len(one.ids) if alpha else 1))[:width]
        ids = max(found, key=lambda one: one.worth(alpha)).ids
        answers.append(ids[:-1] if ids[-1] == EOS else ids)
    return answers
