"""The n-gram counts of each sentence, by the two scorers of `bleu.py`; BLEU is computed from them. Paper: section 6.1.

Summed over all sentences they give the score of `bleu.py` up to its last digits; summed over a selection they give the
score of the selection, which a bootstrap over sentences needs.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from repro.decoding.bleu import given_tokens, plain_text, published_protocol, published_tokens, sacrebleu_tokeniser
from repro.results.sentences import NgramCounts


def ngram_counts(
    hypotheses: Sequence[str], references: Sequence[str], target: str, *, in_tokens: bool
) -> dict[str, NgramCounts]:
    """The counts by each scorer, by its name in records; without a published protocol for the language only sacreBLEU.

    `target` is the language, `in_tokens` whether both sides are Moses tokens. Raises ValueError for sides that are not
    parallel.
    """
    sides = hypotheses, references
    plain = [[plain_text(line, target) for line in side] for side in sides] if in_tokens else sides
    found = {"bleu": _counted(BLEU(tokenize=sacrebleu_tokeniser(target), force=True), *plain)}
    if published_protocol(target) is None:
        cut = given_tokens if in_tokens else published_tokens
        tokens = ([cut(line, target) for line in side] for side in sides)
        found["bleu_published"] = _counted(BLEU(tokenize="none", force=True), *tokens)
    return found


def thirds(
    hypotheses: Sequence[str], references: Sequence[str], target: str, *, in_tokens: bool
) -> tuple[NgramCounts, ...]:
    """Counts of the first, second and last third of each translation against the same third of its reference.

    Tokens are sacreBLEU's; of n tokens the k-th third begins at n k // 3. Arguments are those of `ngram_counts`.
    """
    cut = BLEU(tokenize=sacrebleu_tokeniser(target)).tokenizer
    sides = [[plain_text(line, target) if in_tokens else line for line in side] for side in (hypotheses, references)]
    tokens = [[cut(line).split() for line in side] for side in sides]
    scorer = BLEU(tokenize="none", force=True)
    return tuple(
        _counted(scorer, *([" ".join(of[len(of) * k // 3 : len(of) * (k + 1) // 3]) for of in side] for side in tokens))
        for k in range(3)
    )


def _counted(scorer: BLEU, hypotheses: Iterable[str], references: Iterable[str]) -> NgramCounts:
    found = [scorer.corpus_score([line], [[of]]) for line, of in zip(hypotheses, references, strict=True)]
    return NgramCounts(
        hypothesis=np.array([one.sys_len for one in found], dtype=np.int64),
        reference=np.array([one.ref_len for one in found], dtype=np.int64),
        correct=np.array([one.counts for one in found], dtype=np.int64).reshape(-1, scorer.max_ngram_order),
    )
