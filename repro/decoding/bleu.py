"""BLEU by two scorers, never without a signature. Paper: section 6.1, which does not say how it scored.

The same translations are worth different numbers to different scorers. `sacrebleu_score` is the one to
compare with others by; `published_score`, some tenths to a whole point above it, the one to hold against
the paper's tables.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version

from sacrebleu.metrics.bleu import BLEU
from sacremoses import MosesPunctNormalizer, MosesTokenizer

LANGUAGES = ("de", "en", "fr")  # the paper's

PUNCTUATION = MosesPunctNormalizer()  # of it only the part that is replace-unicode-punctuation.perl
LOW_QUOTE = str.maketrans("„", '"')


@dataclass(frozen=True)
class Score:
    """A BLEU score and what it was made of."""

    bleu: float  # 0 to 100
    signature: str  # every step and version that decides the number
    precisions: tuple[float, ...]  # of 1- to 4-grams, 0 to 100
    bp: float  # brevity penalty
    hyp_len: int  # tokens of the hypotheses
    ref_len: int  # tokens of the references


def sacrebleu_score(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """sacreBLEU of plain text: its tokeniser 13a, mixed case, exponential smoothing."""
    return _score(BLEU(tokenize="13a", smooth_method="exp", force=True), hypotheses, references)


def published_protocol(language: str) -> str | None:
    """None where translations into the language can be scored as published, else in words why they cannot."""
    if _rules(language) in LANGUAGES:
        return None
    return (
        f"no published protocol for {language!r}: the authors' script knows {', '.join(LANGUAGES)}, and Moses would "
        "take any other language for English"
    )


def published_score(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Score:
    """BLEU of plain text as the authors' script has it: `multi-bleu` of Moses tokens with compounds split.

    Case counts and nothing is smoothed: where no 4-gram matches, BLEU is 0, as `multi-bleu` has it. Only for
    languages that have a `published_protocol`.
    """
    multi_bleu = BLEU(tokenize="none", smooth_method="none", force=True)
    tokens = [[published_tokens(line, language) for line in lines] for lines in (hypotheses, references)]
    score = _score(multi_bleu, *tokens)
    steps = (
        "nrefs:1|case:mixed|punct:replace-unicode+low-quote"
        f"|tok:moses-{_rules(language)}-sacremoses-{version('sacremoses')}|split:compounds|smooth:none"
    )
    return replace(score, signature=f"BLEU|{steps}|version:{version('sacrebleu')}")


def published_tokens(line: str, language: str) -> str:
    """The line as the authors counted it, tokens between spaces: get_ende_bleu.sh of their first release.

    Their script replaces Unicode punctuation in the hypotheses; in the reference they had done so by hand,
    low quotes included (tensorflow/tensor2tensor#317). Here both sides go through all of it.
    """
    line = PUNCTUATION.replace_unicode_punct(line).translate(LOW_QUOTE)
    line = _moses(language).tokenize(line, return_str=True, escape=False)
    return split_compounds(line)


def split_compounds(line: str) -> str:
    """`rich-text` becomes `rich ##AT##-##AT## text`.

    In bytes, as the script's Perl reads: a match uses up a byte on either side, so that `1-0-1` is split
    once and `ä-ö-ü`, of two bytes a letter, twice. Not Moses' aggressive splitting, which would take both.
    """
    return re.sub(rb"(\S)-(\S)", rb"\1 ##AT##-##AT## \2", line.encode("utf-8")).decode("utf-8")


@cache
def _moses(language: str) -> MosesTokenizer:
    if reason := published_protocol(language):
        raise ValueError(f"Expected a language with a published protocol, got one without: {reason}.")
    return MosesTokenizer(_rules(language))


def _rules(language: str) -> str:
    """The language whose rules a tag such as de-AT goes by."""
    return language.split("-")[0]


def _score(metric: BLEU, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Score, signed by the metric itself. Its `force` only silences a guess that the text is tokenised."""
    if len(hypotheses) != len(references):
        raise ValueError(
            f"expected one hypothesis for each reference, got {len(hypotheses)} for {len(references)}: "
            "the two must be parallel."
        )
    if not references:
        raise ValueError("expected at least one hypothesis and its reference, got none: the split is empty.")
    found = metric.corpus_score(hypotheses, [references])
    return Score(
        bleu=found.score,
        signature=f"BLEU|{metric.get_signature()}",
        precisions=tuple(found.precisions),
        bp=found.bp,
        hyp_len=found.sys_len,
        ref_len=found.ref_len,
    )
